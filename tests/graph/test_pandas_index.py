import numpy as np
import pytest

from neural_brane import AttributedGraph
from neural_brane.errors import GraphError
from neural_brane.graph.frames import adjacency_frame, by_index, numeric_frame

pandas = pytest.importorskip("pandas", reason="these are frames of pandas")
IDS = np.array(["a", "b", "c"])


def test_rows_are_found_by_their_index():
    frame = pandas.DataFrame({"age": [3, 1, 2]}, index=["c", "a", "b"])
    assert by_index(frame, IDS, "attributes")["age"].tolist() == [1, 2, 3]
    numbers, names = numeric_frame(frame, IDS)
    assert numbers.tolist() == [[1], [2], [3]]
    assert names.tolist() == ["age"]


@pytest.mark.parametrize("index", [["a", "b"], ["a", "b", "d"], ["a", "b", "b"], ["a", "b", "c", "d"], [0, 1, 2]])
def test_an_index_that_does_not_name_the_nodes_is_refused(index):
    frame = pandas.DataFrame({"age": range(len(index))}, index=index)
    with pytest.raises(GraphError, match=rf"DataFrame of {len(index)} rows.*3 nodes.*index"):
        by_index(frame, IDS, "attributes")


def test_an_adjacency_may_have_its_columns_in_any_order():
    frame = pandas.DataFrame([[0, 5], [5, 7]], index=["a", "b"], columns=["a", "b"])[["b", "a"]]
    weights, ids = adjacency_frame(frame)
    assert weights.tolist() == [[0, 5], [5, 7]]
    assert ids.tolist() == ["a", "b"]
    with pytest.raises(GraphError, match=r"index.*columns.*nodes"):
        adjacency_frame(frame.rename(columns={"a": "z"}))


def test_attributes_of_a_graph_join_by_index():
    frame = pandas.DataFrame({"age": [3.5, 1, 2]}, index=["c", "a", "b"])
    graph = AttributedGraph.from_edges([("a", "b"), ("b", "c")], attributes=frame)
    assert graph.attributes.toarray().tolist() == [[1], [2], [3.5]]
    assert graph.attribute_names.tolist() == ["age"]
    words = frame.assign(town="x")
    with pytest.raises(GraphError, match=r"attribute.*'town'"):
        AttributedGraph.from_edges([("a", "b"), ("b", "c")], attributes=words)
