import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from neural_brane.linalg.weights import (
    average_scales,
    distinguishes_nodes,
    inverse_frequency,
    link_scales,
    transition,
    weigh,
)


def test_weights_are_scikit_learns_tfidf(small_graph):
    ours = weigh(small_graph.attributes, inverse_frequency(small_graph.attributes))
    theirs = TfidfTransformer().fit_transform(small_graph.attributes)
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), rtol=1e-6)
    assert small_graph.attributes.data.max() == 2  # the graph is unchanged


def test_rows_of_a_transition_sum_to_one(small_graph):
    alone = small_graph.ids.tolist().index("kim")
    plain = transition(small_graph.adjacency).sum(axis=1)
    np.testing.assert_allclose(np.delete(plain, alone), 1)
    assert plain[alone] == 0


def averages(adjacency):
    scale, diagonal = average_scales(adjacency)
    return scale[:, None] * adjacency.toarray() + np.diag(diagonal)


def test_averages_are_over_a_node_and_its_neighbours(small_graph):
    plain = small_graph.adjacency.toarray() + small_graph.adjacency.data.mean() * np.eye(len(small_graph))
    found = averages(small_graph.adjacency)
    np.testing.assert_allclose(found, plain / plain.sum(axis=1, keepdims=True), rtol=1e-6)
    heavier = averages(small_graph.adjacency * 1000)  # the unit of weights does not matter
    np.testing.assert_allclose(heavier, found, rtol=1e-6)


def test_links_are_weighed_as_attributes_are(small_graph):
    adjacency = small_graph.adjacency
    rows, columns = link_scales(adjacency)
    weighed = weigh(adjacency, inverse_frequency(adjacency)).toarray()
    np.testing.assert_allclose(rows[:, None] * adjacency.toarray() * columns, weighed, rtol=1e-6)


def test_amounts_count_where_attributes_have_some():
    amounts = sparse.csr_array([[3.0, 4.0], [1.0, 1.0]])
    np.testing.assert_allclose(weigh(amounts, np.ones(2)).toarray()[0], [0.6, 0.8])


def test_without_links_a_node_is_its_own_average():
    np.testing.assert_array_equal(averages(sparse.csr_array((3, 3))), np.eye(3))


@pytest.mark.parametrize(
    ("amounts", "told"),
    [
        ([[1, 1], [1, 1]], False),
        ([[1, 0], [1, 0]], False),
        ([[2, 1], [1, 1]], True),
        ([[1, 1], [1, 0]], True),
        ([[0, 0], [0, 0]], False),
        ([[], []], False),
    ],
)
def test_an_attribute_that_all_nodes_have_alike_tells_nothing(amounts, told):
    assert distinguishes_nodes(sparse.csr_array(np.array(amounts, np.float32))) == told
