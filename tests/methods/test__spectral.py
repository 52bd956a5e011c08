import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer

from neural_brane import AttributedGraph, Attributes, PropagatedAttributes, SmoothedAttributes, synthetic

GOLDEN = {
    Attributes: [1.337240, -0.834763, -0.859876],
    SmoothedAttributes: [1.797223, -0.493597, -0.651111],
    PropagatedAttributes: [1.688305, -0.561065, -0.743176],
}


def dense(graph, weights, dim):
    """Vectors · vectorsᵀ of the SVD of [w₀X, w₁ÂX, …], every matrix written down."""
    adjacency = graph.adjacency.toarray().astype(float)
    adjacency += graph.adjacency.data.mean() * np.eye(len(graph))
    averages = adjacency / adjacency.sum(axis=1, keepdims=True)
    part = TfidfTransformer().fit_transform(graph.attributes).toarray().astype(float)
    blocks = []
    for weight in weights:
        blocks.append(weight * part)
        part = averages @ part
    left, values, _ = np.linalg.svd(np.hstack(blocks), full_matrices=False)
    vectors = left[:, :dim] * values[:dim]
    return vectors @ vectors.T * (dim / (vectors**2).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("method", "weights"),
    [
        (Attributes(dim=3, seed=0), [1]),
        (SmoothedAttributes(dim=3, seed=0), [0, 0, 1]),
        (SmoothedAttributes(dim=3, hops=1, seed=0), [0, 1]),
        (PropagatedAttributes(dim=3, seed=0), [1, 1, 1]),
        (PropagatedAttributes(dim=3, weights=(2, 0, 0.5, 1), seed=0), [2, 0, 0.5, 1]),
    ],
)
def test_inner_products_are_those_of_a_dense_svd(method, weights, small_graph):
    vectors = method.fit_transform(small_graph).vectors.astype(float)
    np.testing.assert_allclose(vectors @ vectors.T, dense(small_graph, weights, 3), atol=1e-4)


@pytest.mark.parametrize("method", GOLDEN)
def test_golden_value(method, small_graph):
    np.testing.assert_allclose(method(dim=3, seed=0).fit_transform(small_graph).vectors[0], GOLDEN[method], rtol=1e-3)


@pytest.mark.parametrize("method", GOLDEN)
def test_a_graph_learned_from_is_embedded_again_alike(method, small_graph):
    fitted = method(dim=4, seed=0).fit(small_graph)
    again = fitted.transform(small_graph)
    np.testing.assert_allclose(again.vectors, fitted.embedding_.vectors, rtol=1e-4, atol=1e-5)
    assert again.ids.tolist() == small_graph.ids.tolist()


def test_new_nodes_lie_near_those_of_their_class():
    graph = synthetic(300, classes=3, seed=1)
    fitted = PropagatedAttributes(dim=8, seed=0).fit(graph)
    other = synthetic(150, classes=3, attributes=graph.attributes.shape[1], seed=2)
    vectors = fitted.transform(other).vectors
    centres = np.stack([vectors[other.labels == label].mean(axis=0) for label in other.classes])
    nearest = np.linalg.norm(vectors[:, None] - centres, axis=2).argmin(axis=1)
    assert vectors.shape == (150, 8)
    assert (other.classes[nearest] == other.labels).mean() > 0.9


def test_a_node_with_known_attributes_alone_is_placed_as_one_learned_from(small_graph):
    fitted = Attributes(dim=3, seed=0).fit(small_graph)
    pair = AttributedGraph.from_edges([("x", "y")], attributes={"x": ["opera", "chess"], "y": ["tea"]})
    new = fitted.transform(pair)
    np.testing.assert_allclose(new["x"], fitted.embedding_["ann"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(new["y"], fitted.embedding_["eve"], rtol=1e-4, atol=1e-5)


def test_progress_ends_at_its_total(small_graph):
    seen = []
    PropagatedAttributes(dim=3, seed=0, progress=seen.append).fit(small_graph)
    assert (seen[-1].done, seen[-1].unit, seen[-1].loss) == (seen[-1].total, "steps", None)
