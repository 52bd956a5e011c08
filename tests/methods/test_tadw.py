import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer

from neural_brane import TADW, synthetic

GOLDEN = [-0.520405, -0.853920, -0.517606, -0.855619]


def textbook(graph, *, dim, text_dim, l2, epochs, seed):
    """Dense TADW: M is formed, and H solves one least-squares problem over all its entries."""
    adjacency = graph.adjacency.toarray().astype(float)
    walk = adjacency / np.maximum(adjacency.sum(axis=1, keepdims=True), 1e-12)
    target = (walk + walk @ walk) / 2
    left, values, _ = np.linalg.svd(TfidfTransformer().fit_transform(graph.attributes).toarray(), full_matrices=False)
    text = (left[:, :text_dim] * values[:text_dim]).T
    half = dim // 2
    links = np.random.default_rng(seed).standard_normal((half, text_dim))
    for _ in range(epochs):
        seen = links @ text
        nodes = np.linalg.solve(seen @ seen.T + l2 / 2 * np.eye(half), seen @ target.T)
        system = np.kron(nodes @ nodes.T, text @ text.T) + l2 / 2 * np.eye(half * text_dim)
        links = np.linalg.solve(system, (nodes @ target @ text.T).ravel()).reshape(half, text_dim)
    return objective(target, nodes, links, text, l2)


def objective(target, nodes, links, text, l2):
    """‖M − WᵀHT‖² + λ/2 (‖W‖² + ‖H‖²)."""
    return ((target - nodes.T @ links @ text) ** 2).sum() + l2 / 2 * ((nodes**2).sum() + (links**2).sum())


@pytest.mark.parametrize("l2", [0.2, 0.001])
def test_it_reaches_the_objective_of_a_dense_textbook_version(l2):
    graph = synthetic(200, seed=5)
    method = TADW(dim=16, text_dim=20, l2=l2, epochs=15, seed=0).fit(graph)
    walk = graph.adjacency.toarray() / np.maximum(graph.adjacency.toarray().sum(axis=1, keepdims=True), 1e-12)
    target = (walk + walk @ walk) / 2
    ours = objective(target, method.nodes_.T, method.directions_.T, method.text_.T, l2)
    theirs = textbook(graph, dim=16, text_dim=20, l2=l2, epochs=15, seed=1)
    assert ours == pytest.approx(theirs, rel=0.01)
    assert ours < 0.999 * (target**2).sum()  # better than zero vectors


def test_both_halves_of_a_vector_have_length_one(small_graph):
    vectors = TADW(dim=5, text_dim=4, seed=0).fit_transform(small_graph).vectors
    linked = small_graph.adjacency.sum(axis=1) > 0
    np.testing.assert_allclose(np.linalg.norm(vectors[:, :3], axis=1), linked, rtol=1e-5)
    assert vectors.shape == (12, 5)


def test_golden_value(small_graph):
    vectors = TADW(dim=4, text_dim=4, seed=0).fit_transform(small_graph).vectors
    np.testing.assert_allclose(vectors[0], GOLDEN, rtol=1e-3)
