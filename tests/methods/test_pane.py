import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from neural_brane import PANE, AttributedGraph, synthetic
from neural_brane.methods.pane import descend
from neural_brane.progress import Meter


def weighted_graph():
    """Return a graph with weights of edges, amounts of attributes, and one node without neighbours."""
    graph = synthetic(90, attributes=60, attributes_per_node=6, seed=2)
    attributes, links = graph.attributes.copy(), np.triu(graph.adjacency.toarray())
    attributes.data[:] = 1 + np.random.default_rng(0).integers(4, size=attributes.nnz)
    links[5] = links[:, 5] = 0
    links *= 1 + np.add.outer(np.arange(90), np.arange(90)) % 3
    return replace(graph, adjacency=sparse.csr_array(links + links.T), attributes=attributes)


def textbook_affinities(graph, restart, steps):
    """Return F and B by the paper's formulas: walks along P forward, along its transpose backward."""
    links, own = graph.adjacency.toarray().astype(float), graph.attributes.toarray().astype(float)
    degrees = links.sum(axis=1, keepdims=True)
    walk = np.divide(links, degrees, out=np.zeros_like(links), where=degrees > 0)
    ahead, back = own / own.sum(axis=1, keepdims=True), own / own.sum(axis=0)
    chances, starts = [np.zeros_like(own), np.zeros_like(own)], [ahead, back]
    for length in range(steps + 1):
        for way, matrix in enumerate((walk, walk.T)):
            chances[way] += restart * (1 - restart) ** length * np.linalg.matrix_power(matrix, length) @ starts[way]
    forward = np.log(len(own) * chances[0] / chances[0].sum(axis=0) + 1)
    return forward, np.log(own.shape[1] * chances[1] / chances[1].sum(axis=1, keepdims=True) + 1)


def textbook_factors(forward, backward, half, epochs):
    """Return factors from the SVD of F and coordinate descent, number by number on dense residuals."""
    left, values, right = np.linalg.svd(forward, full_matrices=False)
    nodes, shared = left[:, :half] * values[:half], right[:half].T.copy()
    others = backward @ shared
    for _ in range(epochs):
        for table, target in ((nodes, forward), (others, backward)):
            for at in range(half):
                residual = table @ shared.T - target
                table[:, at] -= residual @ shared[:, at] / (shared[:, at] @ shared[:, at])
        for at in range(half):
            residuals = nodes @ shared.T - forward, others @ shared.T - backward
            slope = nodes[:, at] @ residuals[0] + others[:, at] @ residuals[1]
            shared[:, at] -= slope / (nodes[:, at] @ nodes[:, at] + others[:, at] @ others[:, at])
    return nodes, others, shared


def objective(model, forward, backward):
    """‖F − X_f Yᵀ‖² + ‖B − X_b Yᵀ‖²."""
    parts = ((forward, model.forward_), (backward, model.backward_))
    return sum(((target - table @ model.attributes_.T) ** 2).sum() for target, table in parts)


@pytest.mark.parametrize(("restart", "error", "steps"), [(0.5, 0.015, 5), (0.2, 0.3, 4)])
def test_affinities_are_those_of_the_formulas(restart, error, steps):
    graph, method = weighted_graph(), PANE(restart=restart, error=error)
    found = method._affinities(graph, Meter(None, 1, "steps"))
    for matrix, expected in zip(found, textbook_affinities(graph, restart, steps), strict=True):
        np.testing.assert_allclose(matrix.toarray(), expected, rtol=1e-5, atol=1e-6)


def test_factors_are_those_of_a_dense_textbook_version():
    graph = weighted_graph()
    expected = textbook_factors(*textbook_affinities(graph, 0.5, 5), half=6, epochs=3)
    model = PANE(dim=12, epochs=3, seed=1).fit(graph)
    signs = np.sign((model.attributes_ * expected[2]).sum(axis=0))
    for found, table in zip((model.forward_, model.backward_, model.attributes_), expected, strict=True):
        np.testing.assert_allclose(found * signs, table, atol=1e-4 * np.abs(table).max())
    units = [table / np.linalg.norm(table, axis=1, keepdims=True) for table in expected[:2]]
    np.testing.assert_allclose(model.embedding_.vectors * np.tile(signs, 2), np.hstack(units), atol=2e-4)


def test_descent_comes_nearer_to_both_matrices():
    graph = weighted_graph()
    targets = textbook_affinities(graph, 0.5, 5)
    reached = [objective(PANE(dim=16, epochs=epochs, seed=0).fit(graph), *targets) for epochs in (1, 3, 9)]
    assert reached == sorted(reached, reverse=True)
    assert reached[-1] < 0.999 * reached[0]


def test_a_column_without_numbers_is_left_at_zero():
    table = np.ones((2, 2), np.float32)
    descend(table, np.array([[4.0, 0.0], [6.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 0.0]]))
    np.testing.assert_array_equal(table, [[2, 0], [3, 0]])


def test_long_rows_keep_their_largest_numbers():
    graph = weighted_graph()
    exact, same, cut = (
        PANE(dim=12, row_entries=entries, seed=0)._affinities(graph, Meter(None, 1, "steps"))
        for entries in (None, 60, 20)
    )
    for first, second in zip(exact, same, strict=True):
        np.testing.assert_array_equal(first.toarray(), second.toarray())
    for matrix in cut:
        assert np.diff(matrix.indptr).max() == 20
    alike = PANE(dim=12, row_entries=50, seed=0).fit_transform(graph).vectors
    whole = PANE(dim=12, seed=0).fit_transform(graph).vectors
    assert np.corrcoef((alike @ alike.T).ravel(), (whole @ whole.T).ravel())[0, 1] > 0.95


def test_without_attributes_each_node_is_its_own():
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "f"), ("f", "d")]
    vectors = PANE(dim=6, seed=0).fit_transform(AttributedGraph.from_edges(edges)).vectors
    alike = vectors @ vectors.T
    assert alike[0, 1] > alike[0, 4]
    assert alike[4, 5] > alike[0, 4]


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_any_dim_tells_nodes_apart(dim):
    graph = synthetic(60, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vectors = PANE(dim=dim, seed=0).fit_transform(graph).vectors
    assert vectors.shape == (60, dim)
    assert len(np.unique(vectors, axis=0)) == 60
