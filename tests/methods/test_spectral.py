import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

from neural_brane import AttributedGraph, Attributes, PropagatedAttributes, SmoothedAttributes, synthetic
from neural_brane.errors import GraphError
from neural_brane.linalg.eigenvectors import leading_eigenvectors
from neural_brane.linalg.tables import OnTorch
from neural_brane.methods.spectral import HopProduct, decompose, hops_of

GOLDEN = {
    Attributes: [1.337240, -0.834763, -0.859876],
    SmoothedAttributes: [1.797223, -0.493597, -0.651111],
    PropagatedAttributes: [1.688305, -0.561065, -0.743176],
}


def dense_hops(graph, weights):
    """Return the dense matrix [w₀X, w₁ÂX, …]."""
    adjacency = graph.adjacency.toarray().astype(float)
    adjacency += graph.adjacency.data.mean() * np.eye(len(graph))
    averages = adjacency / adjacency.sum(axis=1, keepdims=True)
    part = TfidfTransformer().fit_transform(graph.attributes).toarray().astype(float)
    blocks = []
    for weight in weights:
        blocks.append(weight * part)
        part = averages @ part
    return np.hstack(blocks)


def dense(graph, weights, dim):
    """Return vectors · vectorsᵀ from its SVD, at the scale of the methods."""
    left, values, _ = np.linalg.svd(dense_hops(graph, weights), full_matrices=False)
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
    strangers = replace(small_graph, ids=np.array([f"new {node}" for node in small_graph.ids.tolist()]))
    again = fitted.transform(strangers)
    np.testing.assert_allclose(again.vectors, fitted.embedding_.vectors, rtol=1e-3, atol=1e-4)
    assert again.ids.tolist() == strangers.ids.tolist()


def test_new_nodes_lie_near_those_of_their_class():
    graph = synthetic(300, classes=3, seed=1)
    fitted = PropagatedAttributes(dim=8, seed=0).fit(graph)
    other = synthetic(150, classes=3, attributes=graph.attributes.shape[1], seed=2)
    other = replace(other, ids=other.ids + len(graph))
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


def accuracy(vectors, labels):
    return cross_val_score(LogisticRegression(max_iter=1000), vectors, labels, cv=3).mean()


@pytest.fixture(scope="module")
def planted():
    """A graph with three classes, which links and attributes separate."""
    return synthetic(600, classes=3, seed=1)


ON_LINKS = [SmoothedAttributes(dim=16, seed=0), PropagatedAttributes(dim=16, seed=0)]


@pytest.mark.parametrize("method", ON_LINKS, ids=lambda method: method.title)
@pytest.mark.parametrize("attributes", ["none", "one that all have"])
def test_links_tell_classes_where_attributes_tell_nothing(method, attributes, planted):
    shared = sparse.csr_array(np.full((600, 1), 2.0)) if attributes != "none" else None
    graph = AttributedGraph.from_sparse(planted.adjacency, shared)
    fitted = method.fit(graph)
    assert accuracy(fitted.embedding_.vectors, planted.labels) > 0.9
    np.testing.assert_array_equal(fitted.transform(graph).vectors, fitted.embedding_.vectors)


@pytest.mark.parametrize("method", ON_LINKS, ids=lambda method: method.title)
def test_without_attributes_newcomers_are_placed_by_their_links(method, planted):
    bare = AttributedGraph.from_sparse(planted.adjacency)
    old = np.arange(600) < 500
    fitted = clone(method).fit(bare.subgraph(old))
    new = fitted.transform(bare)
    regression = LogisticRegression(max_iter=1000).fit(new.vectors[old], planted.labels[old])
    assert regression.score(new.vectors[~old], planted.labels[~old]) > 0.9
    assert set(new.made_from.tolist()) == {"known", "links"}


@pytest.mark.parametrize("method", [Attributes(dim=16, seed=0), *ON_LINKS], ids=lambda method: method.title)
def test_attributes_tell_classes_where_there_are_no_links(method, planted):
    graph = AttributedGraph.from_sparse(sparse.eye_array(600), planted.attributes)  # each node is linked only to itself
    assert accuracy(method.fit_transform(graph).vectors, planted.labels) > 0.9


@pytest.mark.parametrize("weights", [(1.0, 0.0), (0.0, 1.0)])
def test_with_neither_links_nor_attributes_there_is_nothing_to_learn(weights):
    bare = AttributedGraph.from_sparse(sparse.eye_array(5))
    with pytest.raises(GraphError, match=r"no attribute .* no edges"):
        PropagatedAttributes(weights=weights).fit(bare)


def test_links_alone_are_averages_without_the_nodes_themselves(small_graph):
    bare = AttributedGraph.from_sparse(small_graph.adjacency)
    vectors, _ = decompose(hops_of(bare, (5.0, 1.0, 0.5)), 12, seed=0)
    adjacency = small_graph.adjacency.toarray() + small_graph.adjacency.data.mean() * np.eye(12)
    once = adjacency / adjacency.sum(axis=1, keepdims=True)
    twice = once @ once
    np.testing.assert_allclose(vectors @ vectors.T, once @ once.T + 0.25 * twice @ twice.T, atol=1e-5)


def test_ten_nodes_at_the_default_width():
    graph = synthetic(10, classes=2, seed=0)
    with pytest.warns(UserWarning, match="150 columns"):
        vectors = PropagatedAttributes(seed=0).fit_transform(graph).vectors
    assert np.isfinite(vectors).all()
    assert 0 < np.count_nonzero(vectors.any(axis=0)) <= 10


@pytest.mark.parametrize("weights", [(1.0,), (0.0, 0.0, 1.0), (1.0, 1.0, 1.0)])
def test_a_centred_decomposition_is_the_svd_of_the_matrix_minus_its_column_means(weights, small_graph):
    matrix = dense_hops(small_graph, weights)
    left, values, _ = np.linalg.svd(matrix - matrix.mean(axis=0), full_matrices=False)
    expected = left[:, :3] * values[:3]
    vectors, squares = decompose(hops_of(small_graph, weights, centred=True), 3, seed=0)
    np.testing.assert_allclose(vectors @ vectors.T, expected @ expected.T, atol=1e-4)
    np.testing.assert_allclose(squares, values[:3] ** 2, rtol=1e-4)
    np.testing.assert_allclose(vectors.mean(axis=0), 0, atol=1e-6)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("weights", [(1.0,), (0.0, 0.0, 1.0), (1.0, 1.0, 1.0)])
def test_tables_of_torch_give_the_same_directions(weights, centred, small_graph):
    pytest.importorskip("torch")
    hops = hops_of(small_graph, weights, centred=centred)
    ours, values = decompose(hops, 3, seed=0)
    tables = OnTorch("cpu")
    found, theirs = leading_eigenvectors(HopProduct(hops, tables), 3, tables=tables, seed=0)
    np.testing.assert_allclose(found, values, rtol=1e-5)
    np.testing.assert_allclose(theirs, ours, atol=1e-5)


PRINT = """
import hashlib
from neural_brane import PropagatedAttributes, load
print(hashlib.sha256(PropagatedAttributes(dim=40, seed=1).fit_transform(load("stdlib")).vectors.tobytes()).hexdigest())
"""


def test_another_process_gives_the_same_bits():
    runs = [subprocess.run([sys.executable, "-c", PRINT], check=True, capture_output=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout != b""
