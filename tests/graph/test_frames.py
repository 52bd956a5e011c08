import datetime

import numpy as np
import polars as pl
import pytest

from neural_brane.errors import GraphError, ReadingWarning
from neural_brane.graph import AttributedGraph
from neural_brane.graph.frames import as_frame

EDGES = {"from": ["ann", "bob", "ann"], "to": ["bob", "cid", "dan"], "weight": [1.0, 2.0, 0.5]}
NODES = {
    "name": ["ann", "bob", "cid", "dan", "eve"],
    "age": [31.0, float("nan"), 45.0, 31.0, 22.0],
    "land": ["IN", None, "FR", "IN", "FR"],
    "member": [True, False, True, True, False],
}


def same(first, second):
    assert first.digest() == second.digest()
    assert first.ids.tolist() == second.ids.tolist()
    assert first.attribute_names.tolist() == second.attribute_names.tolist()
    assert first.encoder.as_dict() == second.encoder.as_dict()


def test_polars_lazy_frames_and_arrow_streams_give_the_same_graph():
    edges, nodes = pl.DataFrame(EDGES), pl.DataFrame(NODES)

    class Stream:
        """An object with the stream protocol of Arrow."""

        def __init__(self, frame):
            self.frame = frame

        def __arrow_c_stream__(self, requested_schema=None):
            return self.frame.__arrow_c_stream__(requested_schema)

    graph = AttributedGraph.from_frames(edges, nodes)
    assert graph.attribute_names.tolist() == ["age=22", "age=31", "age=45", "land=FR", "land=IN", "member"]
    assert graph.adjacency[0, 1] == 1
    same(AttributedGraph.from_frames(edges.lazy(), nodes.lazy()), graph)
    same(AttributedGraph.from_frames(Stream(edges), Stream(nodes)), graph)


def test_arrow_tables_give_the_same_graph():
    arrow = pytest.importorskip("pyarrow", reason="install pyarrow to test its tables")
    same(
        AttributedGraph.from_frames(arrow.table(EDGES), arrow.table(NODES)),
        AttributedGraph.from_frames(pl.DataFrame(EDGES), pl.DataFrame(NODES)),
    )


class TestPandas:
    @pytest.fixture
    def pd(self):
        return pytest.importorskip("pandas", reason="install pandas to test its data frames")

    def test_columns_index_and_nullable_types_give_the_same_graph(self, pd):
        edges, nodes = pd.DataFrame(EDGES), pd.DataFrame(NODES)
        expected = AttributedGraph.from_frames(pl.DataFrame(EDGES), pl.DataFrame(NODES))
        same(AttributedGraph.from_frames(edges, nodes), expected)
        same(AttributedGraph.from_frames(edges, nodes.convert_dtypes()), expected)
        same(AttributedGraph.from_frames(edges, nodes.astype({"land": "category"})), expected)
        same(AttributedGraph.from_frames(edges, nodes.set_index("name")), expected)

    def test_an_index_that_was_set_joins_whatever_the_order_of_rows(self, pd):
        edges = pd.DataFrame({"u": [10, 20], "v": [20, 30]})
        ages = pd.DataFrame({"age": [3, 1, 2]}, index=[30, 10, 20])
        graph = AttributedGraph.from_frames(edges, ages)
        assert graph.ids.tolist() == [10, 20, 30]
        assert graph.attributes.toarray().argmax(axis=1).tolist() == [0, 1, 2]
        assert graph.encoder.columns[0].name == "index"

    def test_rows_are_never_matched_by_their_position(self, pd):
        edges = pd.DataFrame({"u": [0, 1], "v": [1, 2]})
        with pytest.raises(GraphError, match=r"no column holds the ids of the edges' nodes .* give the column"):
            AttributedGraph.from_frames(edges, pd.DataFrame({"land": ["IN", "FR", "IN"]}))

    def test_values_of_every_kind_are_converted(self, pd):
        frame = pd.DataFrame(
            {
                "lists": [["a", "b"], None, ("c",)],
                "mixed": [1, "x", None],
                "text": pd.Series(["a", None, "b"], dtype="string"),
                "whole": pd.Series([1, None, 2**62], dtype="Int64"),
                "flag": pd.Series([True, None, False], dtype="boolean"),
                "day": pd.to_datetime(["2020-01-01", None, "2021-01-01"]),
                "none": [None, None, None],
            }
        )
        found = as_frame(frame, "nodes").table
        assert found.drop("day").to_dict(as_series=False) == {
            "lists": [["a", "b"], None, ["c"]],
            "mixed": ["1", "x", None],
            "text": ["a", None, "b"],
            "whole": [1, None, 2**62],
            "flag": [True, None, False],
            "none": [None, None, None],
        }
        assert found["day"][0] == datetime.datetime(2020, 1, 1)
        assert found["day"][1] is None

    def test_two_columns_of_one_name_are_refused(self, pd):
        frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
        with pytest.raises(GraphError, match=r"nodes.*'a'"):
            as_frame(frame, "nodes")


@pytest.mark.parametrize("given", [[("a", "b")], {"a": [1]}, np.eye(2), "edges.csv"])
def test_an_object_that_is_not_a_table_is_refused(given):
    with pytest.raises(GraphError, match=r"edges are .*, not a table; give a DataFrame of pandas or polars"):
        AttributedGraph.from_frames(given)


def test_integers_are_the_same_ids_as_text_and_as_numbers():
    numbers = pl.DataFrame({"u": [30, 10], "v": [10, 20]})
    texts = numbers.cast(pl.String)
    people = pl.DataFrame({"id": ["10", "20", "30"], "age": ["1", "2", "2"]})
    graph = AttributedGraph.from_frames(numbers, people)
    assert graph.ids.tolist() == [10, 20, 30]
    same(AttributedGraph.from_frames(texts, people.cast(pl.Int64)), graph)


def test_columns_of_edges_are_named_or_counted():
    frame = pl.DataFrame({"x": [1, 2], "a": ["p", "q"], "b": ["q", "r"], "strength": [2.0, 3.0]})
    with pytest.warns(ReadingWarning, match="'x'"):
        named = AttributedGraph.from_frames(frame, source="a", target="b", weight="strength")
    counted = AttributedGraph.from_frames(frame.drop("x"), source=0, target=1, weight=2)
    assert named.digest() == counted.digest()
    assert named.adjacency[0, 1] == 2
