import numpy as np
import pytest
from scipy import linalg

from neural_brane import AttributedGraph, ProNE, synthetic
from neural_brane.linalg.tables import tables_on
from neural_brane.methods.prone import Filter, link_matrix
from neural_brane.progress import Meter


def unit(table):
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    return np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0)


def rooted_svd(matrix, dim):
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    return unit(left[:, :dim] * np.sqrt(values[:dim]))


def weighed(graph):
    links = graph.adjacency.toarray().astype(float)
    np.fill_diagonal(links, 0)
    return links


def textbook_factors(graph, dim):
    """Return the dense matrix to factorise, and its SVD."""
    links = weighed(graph)
    chances = links / np.maximum(links.sum(axis=1, keepdims=True), 1e-300)
    negative = chances.sum(axis=0) ** 0.75
    negative /= negative.sum()
    matrix = np.zeros_like(links)
    linked = links > 0
    matrix[linked] = np.log(chances[linked]) - np.log(np.broadcast_to(negative, links.shape)[linked])
    return matrix, rooted_svd(matrix, dim)


def filtered(graph, table, theta, mu):
    """Return the filtered factors in closed form, with the exponential of a dense matrix."""
    looped = weighed(graph) + np.eye(len(graph))
    laplacian = np.eye(len(graph)) - looped / looped.sum(axis=1, keepdims=True)
    shifted = laplacian - mu * np.eye(len(graph))
    return looped @ (table - linalg.expm(-theta * (shifted @ shifted / 2 - np.eye(len(graph)))) @ table)


def graph_with_weights():
    graph = synthetic(150, seed=2)
    rows = np.repeat(np.arange(150), np.diff(graph.adjacency.indptr))
    graph.adjacency.data[:] = 1 + (graph.adjacency.indices + rows) % 3
    return graph


def test_the_matrix_is_that_of_the_formula():
    graph = graph_with_weights()
    np.testing.assert_allclose(link_matrix(graph.adjacency).toarray(), textbook_factors(graph, 4)[0], atol=1e-6)


def test_factors_have_the_inner_products_of_the_dense_ones():
    graph = synthetic(30, seed=2)
    vectors = ProNE(dim=24, steps=1, seed=1).fit_transform(graph).vectors
    _, expected = textbook_factors(graph, 24)
    np.testing.assert_allclose(vectors @ vectors.T, expected @ expected.T, atol=1e-5)


@pytest.mark.parametrize(("theta", "mu"), [(0.5, 0.2), (0.5, 0.0), (1.0, 1.0), (0.5, -1.0)])
def test_the_series_is_the_exponential(theta, mu):
    graph = graph_with_weights()
    table = np.random.default_rng(0).standard_normal((150, 32)).astype(np.float32)
    series = Filter(graph.adjacency, tables_on("cpu"), steps=20, theta=theta, mu=mu, meter=Meter(None, 1, "steps"))
    np.testing.assert_allclose(series.apply(table), filtered(graph, table, theta, mu), rtol=1e-4, atol=1e-4)


def test_vectors_are_the_filtered_factors():
    """The factors come from the method; inner products do not depend on signs and rotations of the SVD."""
    graph = graph_with_weights()
    factors = ProNE(dim=40, steps=1, seed=1).fit_transform(graph).vectors.astype(float)
    expected = rooted_svd(filtered(graph, factors, 0.5, 0.2), 40)
    vectors = ProNE(dim=40, seed=1).fit_transform(graph).vectors
    np.testing.assert_allclose(vectors @ vectors.T, expected @ expected.T, atol=1e-4)


def test_self_loops_do_not_count():
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c")]
    plain, looped = (AttributedGraph.from_edges(edges + more) for more in ([], [("b", "b")]))
    first, second = (ProNE(dim=2, seed=0).fit_transform(graph).vectors for graph in (plain, looped))
    np.testing.assert_array_equal(first, second)
