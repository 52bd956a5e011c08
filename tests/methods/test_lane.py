import numpy as np
import pytest

from neural_brane import LANE, AttributedGraph, classify, load, synthetic
from neural_brane.errors import GraphError

WEIGHTS = {"attribute_weight": 3.0, "label_weight": 5.0, "link_share": 0.9, "attribute_share": 1.4}


def laplacian(matrix):
    """Return the dense matrix of cosines between rows, 1 + 10⁻⁶ on the diagonal, normalised by their sums."""
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    rows = matrix / np.where(lengths > 0, lengths, 1)
    alike = rows @ rows.T
    np.fill_diagonal(alike, 1 + 1e-6)
    roots = np.sqrt(alike.sum(axis=1))
    return alike / roots / roots[:, None]


def leading(matrix, dim):
    """Return the projection on the leading eigenvectors, which is unique only if their values differ from the next."""
    values, axes = np.linalg.eigh(matrix)
    assert values[-dim] - values[-dim - 1] > 1e-3 * values[-1]
    return axes[:, -dim:] @ axes[:, -dim:].T


def textbook(links, attributes, labels, *, dim, alpha, beta, epochs):
    """Return HHᵀ from the paper's four eigenvalue problems in turn, with dense matrices."""
    by_links, by_attributes = laplacian(links), laplacian(attributes)
    by_labels = None if labels is None else laplacian(labels)
    nothing = np.zeros_like(by_links)
    own, named, shared = nothing, nothing, nothing
    for _ in range(epochs):
        near = leading(by_links + beta * own + (alpha[1] * named if labels is not None else 0) + shared, dim)
        own = leading(alpha[0] * by_attributes + beta * near + shared, dim)
        if by_labels is not None:
            named = leading(alpha[1] * (by_labels + near) + shared, dim)
        shared = leading(near + own + named, dim)
    return shared


@pytest.fixture
def graph():
    return synthetic(30, degree=6, attributes=20, attributes_per_node=5, classes=3, seed=2)


def dense(graph):
    links = graph.adjacency.toarray().astype(float)
    np.fill_diagonal(links, 1)
    return links, graph.attributes.toarray().astype(float)


def test_without_labels_it_is_the_dense_textbook_version(graph):
    vectors = LANE(dim=4, attribute_weight=3.0, correlation=0.5, epochs=2, seed=0).fit_transform(graph).vectors
    links, attributes = dense(graph)
    expected = textbook(links, attributes, None, dim=4, alpha=(3.0, 0.0), beta=0.5, epochs=2)
    np.testing.assert_allclose(vectors @ vectors.T / len(graph), expected, atol=2e-5)


def test_with_labels_it_is_the_dense_textbook_version_on_the_labelled_nodes(graph):
    known = np.where(np.arange(30) < 20, graph.labels, "")
    vectors = LANE(dim=4, epochs=2, seed=0, **WEIGHTS).fit_transform(graph, labels=known).vectors.astype(float)
    links, attributes = dense(graph)
    names = (known[:20, None] == np.unique(known[:20])).astype(float)
    shared = textbook(links[:20, :20], attributes[:20], names, dim=4, alpha=(3.0, 5.0), beta=3.0, epochs=2)
    np.testing.assert_allclose(vectors[:20] @ vectors[:20].T / 20, shared, atol=2e-5)
    axes = vectors[:20] / np.sqrt(20)
    maps = [np.linalg.pinv(np.linalg.pinv(axes) @ part[:20]) for part in (links, attributes)]
    placed = 0.9 * links[20:] @ maps[0] + 1.4 * attributes[20:] @ maps[1]
    np.testing.assert_allclose(vectors[20:], placed * np.sqrt(20), rtol=1e-3, atol=1e-3)


def test_labels_help_to_predict_the_labels_of_others():
    graph = load("stdlib")
    told = classify(lambda known: LANE(dim=32, seed=0).fit_transform(graph, labels=known), graph.labels, train=[0.7])
    plain = classify(LANE(dim=32, seed=0).fit_transform(graph), graph.labels, train=[0.7])
    assert told.at(0.7).macro.mean > plain.at(0.7).macro.mean


def test_negative_attributes_that_cancel_are_refused():
    signs = [[1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]
    graph = AttributedGraph.from_sparse(np.ones((4, 4)) - np.eye(4), np.array(signs))
    with pytest.raises(GraphError, match=r"lane.*attributes.*negative"):
        LANE(dim=2, seed=0).fit(graph)
