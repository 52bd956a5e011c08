import numpy as np
import pytest
from scipy import sparse

from neural_brane import AttributedGraph
from neural_brane.errors import GraphError
from neural_brane.methods.inductive import align

PAIR = [("zoe", "yan")]


def graph_of(**bags):
    return AttributedGraph.from_edges(PAIR, attributes=bags, name="new")


def test_attributes_are_matched_by_name_not_by_place(small_graph):
    aligned = align(graph_of(zoe={"tea": 3.0, "chess": 2.0}), small_graph.attribute_names)
    assert aligned.shape == (2, len(small_graph.attribute_names))
    named = dict(zip(small_graph.attribute_names.tolist(), aligned.toarray()[0].tolist(), strict=True))
    assert {name: value for name, value in named.items() if value} == {"tea": 3.0, "chess": 2.0}
    assert aligned.has_sorted_indices
    assert not aligned[[1]].nnz


def test_columns_in_the_same_order_are_taken_as_they_are(small_graph):
    assert align(small_graph, small_graph.attribute_names) is small_graph.attributes


def test_numbered_attributes_match_by_number():
    wide = AttributedGraph.from_sparse(sparse.csr_array([[0, 1], [1, 0]]), sparse.csr_array([[0, 5], [6, 0]]))
    aligned = align(wide, np.arange(4))
    np.testing.assert_array_equal(aligned.toarray(), [[0, 5, 0, 0], [6, 0, 0, 0]])


def test_attributes_not_learned_from_are_counted_and_left_out(small_graph):
    with pytest.warns(UserWarning, match="2 of the 3 attributes of graph 'new' were not learned from and are left out"):
        aligned = align(graph_of(zoe=["tea", "golf", "jazz"]), small_graph.attribute_names)
    assert aligned.nnz == 1


@pytest.mark.parametrize("bags", [{"zoe": ["golf"]}, {}])
def test_a_graph_that_shares_no_attribute_is_refused(bags, small_graph):
    with pytest.raises(GraphError, match=rf"none of the {len(bags)} attributes of graph 'new' is among the 5 learned"):
        align(graph_of(**bags), small_graph.attribute_names)
