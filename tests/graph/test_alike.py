import numpy as np
import polars as pl
import pytest

from neural_brane import AttributedGraph, Attributes
from neural_brane.errors import GraphError
from neural_brane.graph.convert import as_graph_of_new_nodes, join_new_nodes

EDGES = pl.DataFrame({"from": ["ann", "bob", "cid"], "to": ["bob", "cid", "dan"]})
PEOPLE = pl.DataFrame(
    {
        "name": ["ann", "bob", "cid", "dan"],
        "age": [31, 22, 31, 45],
        "country": ["IN", "FR", "IN", "FR"],
        "tags": [["a", "b"], ["a"], ["b"], []],
    }
)
NEW = pl.DataFrame({"name": ["zoe", "yan"], "age": [22, 45], "country": ["IN", "FR"], "tags": [["a"], ["b"]]})


@pytest.fixture
def known():
    return AttributedGraph.from_frames(EDGES, PEOPLE)


def names(graph, node):
    row = graph.attributes[[graph.ids.tolist().index(node)]]
    return sorted(graph.attribute_names[row.indices].tolist())


@pytest.mark.parametrize("kind", [lambda t: t, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame.lazy])
def test_a_table_of_new_nodes_is_encoded_like_the_known_table(kind, known):
    graph = as_graph_of_new_nodes(kind(NEW), known)
    assert graph.ids.tolist() == ["zoe", "yan"]
    assert graph.edges == 0
    assert names(graph, "zoe") == ["age=22", "country=IN", "tags=a"]
    assert names(graph, "yan") == ["age=45", "country=FR", "tags=b"]


def test_the_index_of_a_data_frame_holds_ids(known):
    frame = NEW.rename({"name": "who"}).to_pandas().set_index("who")
    assert as_graph_of_new_nodes(frame, known).ids.tolist() == ["zoe", "yan"]


def test_links_to_known_nodes_need_no_row(known, recwarn):
    graph = as_graph_of_new_nodes((pl.DataFrame({"from": ["zoe"], "to": ["ann"]}), NEW), known)
    assert not recwarn.list
    assert sorted(graph.ids.tolist()) == ["ann", "yan", "zoe"]
    assert graph.edges == 1
    assert names(graph, "ann") == []


def test_new_nodes_of_the_edges_without_a_row_give_a_warning(known):
    edges = pl.DataFrame({"from": ["zoe", "xia"], "to": ["ann", "bob"]})
    with pytest.warns(UserWarning, match=r"1.*4 nodes.*'xia'"):
        as_graph_of_new_nodes((edges, NEW), known)


def test_columns_and_values_that_are_unknown_are_left_out_and_counted(known):
    odd = NEW.with_columns(pl.Series("country", ["IN", "XX"]), height=pl.lit(3), weight=pl.lit(4))
    with (
        pytest.warns(UserWarning, match=r"2 columns.*'height'.*'weight'"),
        pytest.warns(UserWarning, match=r"1 values.*'country'"),
    ):
        graph = as_graph_of_new_nodes(odd, known)
    assert names(graph, "yan") == ["age=45", "tags=b"]


@pytest.mark.parametrize("absent", ["age", "country", "tags"])
def test_a_missing_column_is_taken_as_empty(known, absent):
    with pytest.warns(UserWarning, match=f"1 columns.*'{absent}'"):
        graph = as_graph_of_new_nodes(NEW.drop(absent), known)
    assert len(names(graph, "zoe")) == 2


def test_a_table_without_a_known_column_or_id_is_refused(known):
    with pytest.raises(GraphError, match=r"columns.*'age'"):
        as_graph_of_new_nodes(pl.DataFrame({"name": ["zoe"], "height": [3]}), known)
    with pytest.raises(GraphError, match="column 'name'"):
        as_graph_of_new_nodes(NEW.rename({"name": "who"}), known)
    assert len(join_new_nodes(None, NEW.rename({"name": "who"}), known, id="who")) == 2


def test_a_graph_without_a_table_cannot_encode_a_table_of_new_nodes(small_graph):
    with pytest.raises(GraphError, match="graph 'small'"):
        as_graph_of_new_nodes(NEW, small_graph)


def test_integers_stay_integers():
    edges = pl.DataFrame({"from": [1, 2], "to": [2, 3]})
    known = AttributedGraph.from_frames(edges, pl.DataFrame({"id": [1, 2, 3], "age": [3, 4, 3]}))
    for ids in ([9, 8], ["9", "8"]):
        graph = as_graph_of_new_nodes(pl.DataFrame({"id": ids, "age": [3, 4]}), known)
        assert graph.ids.dtype == np.int64
        assert graph.ids.tolist() == [9, 8]


@pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning")
def test_transform_takes_a_table_a_pair_and_a_dict(known, small_graph):
    model = Attributes(dim=3, seed=0).fit(known)
    alone = model.transform(NEW)
    assert alone.made_from.tolist() == ["attributes", "attributes"]
    twin = model.transform(PEOPLE.with_columns(name=pl.col("name") + "'"))
    np.testing.assert_allclose(twin.vectors, model.embedding_.vectors, atol=1e-5)
    same = model.transform((EDGES, PEOPLE))
    np.testing.assert_array_equal(same.vectors, model.embedding_.vectors)
    by_name = Attributes(dim=3, seed=0).fit(small_graph).transform({"zoe": ["chess"], "yan": {"tea": 2.0}})
    assert by_name.ids.tolist() == ["zoe", "yan"]
    assert by_name.made_from.tolist() == ["attributes", "attributes"]
