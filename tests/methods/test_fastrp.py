import numpy as np
import pytest

from neural_brane import AttributedGraph, FastRP, synthetic
from neural_brane.methods.fastrp import random_projection


def textbook(graph, *, dim, weights, hub_discount, seed):
    """Dense FastRP: every power of the transition matrix is formed."""
    weighed = graph.adjacency.toarray().astype(float)
    degrees = weighed.sum(axis=1)
    known = degrees > 0
    steps = np.divide(weighed, degrees[:, None], out=np.zeros_like(weighed), where=known[:, None])
    scale = np.zeros(len(degrees))
    scale[known] = (degrees[known] / degrees.sum()) ** -hub_discount
    total = np.zeros((len(degrees), dim))
    for power, weight in enumerate(weights, start=1):
        seen = np.linalg.matrix_power(steps, power) @ np.diag(scale) @ random_projection(len(degrees), dim, seed)
        lengths = np.linalg.norm(seen, axis=1, keepdims=True)
        total += weight * np.divide(seen, lengths, out=np.zeros_like(seen), where=lengths > 0)
    spread = total.std(axis=0)
    return np.divide(total - total.mean(axis=0), spread, out=np.zeros_like(total), where=spread > 0)


@pytest.mark.parametrize("weights", [(1.0,), (0.0, 0.0, 1.0, 4.0), (1.0, 2.0, 0.5)])
@pytest.mark.parametrize("hub_discount", [0.0, 0.2, 0.9])
def test_vectors_are_those_of_the_formulas(weights, hub_discount):
    graph = synthetic(150, seed=2)
    graph.adjacency.data[:] = (
        1 + (graph.adjacency.indices + np.repeat(np.arange(150), np.diff(graph.adjacency.indptr))) % 3
    )
    vectors = FastRP(dim=40, weights=weights, hub_discount=hub_discount, seed=5).fit_transform(graph).vectors
    expected = textbook(graph, dim=40, weights=weights, hub_discount=hub_discount, seed=5)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_the_projection_is_very_sparse_and_of_variance_one():
    projection = random_projection(10_000, 200, seed=1)
    assert set(np.abs(projection.data)) == {10.0}
    assert projection.nnz == pytest.approx(200 * 100, rel=0.03)  # a share 1/√nodes of the entries: 3 % is 4 deviations
    assert abs(projection.data.mean()) < 0.3


@pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning")
def test_nodes_without_neighbours_share_one_vector():
    graph = AttributedGraph.from_edges([("a", "b"), ("b", "c"), ("c", "d")], ids=list("abcdxy"))
    embedding = FastRP(dim=16, seed=0).fit_transform(graph)
    np.testing.assert_array_equal(embedding["x"], embedding["y"])
    assert not np.array_equal(embedding["x"], embedding["a"])


def test_linked_nodes_are_alike():
    graph = synthetic(400, classes=4, seed=1)
    vectors = FastRP(dim=64, seed=0).fit_transform(graph).vectors
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    entries = graph.adjacency.tocoo()
    linked = (unit[entries.row] * unit[entries.col]).sum(axis=1).mean()
    assert linked > (unit @ unit.T).mean() + 0.2
