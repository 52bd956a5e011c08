"""The features of pairs are those of dense matrices, and the draws of pairs keep their promises."""

import numpy as np
import pytest

from neural_brane import AttributedGraph, load
from neural_brane.insight import pairs
from neural_brane.insight.pairs import PairFeatures, even_blocks, spectral_vectors, without_edges


def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)


def dense_features(vectors, adjacency, count):
    """Return the features (nodes, nodes, 11) of all pairs, from dense matrices."""
    links = (adjacency > 0).astype(float)
    np.fill_diagonal(links, 0)
    nodes, degrees = len(links), links.sum(axis=1)
    one = unit(vectors.astype(float))
    around = unit((links + np.eye(nodes)) @ one / (degrees + 1)[:, None])
    shared = links @ np.diag(1 / np.maximum(degrees, 1)) @ links
    roots = 1 / np.sqrt(np.maximum(degrees, 1))
    values, axes = np.linalg.eigh(links * roots * roots[:, None])
    kept = np.argsort(-np.abs(values))[:count]
    values, axes = values[kept], axes[:, kept]
    reach = nodes * (axes * np.maximum(values, 0)) @ axes.T
    places = unit(axes * values)
    logs = np.log1p(degrees)
    low, high = np.minimum.outer(degrees, degrees), np.maximum.outer(degrees, degrees)
    return np.stack(
        [
            one @ one.T,
            around @ one.T + one @ around.T,
            around @ around.T,
            np.log1p(50 * shared),
            shared > 0,
            np.sign(reach) * np.log1p(np.abs(reach)),
            places @ places.T,
            np.add.outer(logs, logs),
            np.abs(np.subtract.outer(logs, logs)),
            low == 0,
            high == 0,
        ],
        axis=2,
    )


def test_features_are_those_of_dense_matrices(monkeypatch, small_graph):
    monkeypatch.setattr(pairs, "MOST_NEIGHBOURS", 5)
    monkeypatch.setattr(pairs, "BLOCK_PAIRS", 50)
    vectors = np.random.default_rng(0).normal(size=(12, 3))
    vectors[5] = 0
    features = PairFeatures(vectors, small_graph, seed=0)
    every = np.argwhere(np.ones((12, 12)))
    expected = dense_features(vectors, small_graph.adjacency.toarray(), 12).reshape(144, -1)
    off = every[:, 0] != every[:, 1]
    np.testing.assert_allclose(features(every)[off], expected[off], atol=2e-4)
    assert features(every).shape[1] == len(PairFeatures.NAMES)


def test_leading_eigenvectors_have_their_sign():
    graph = load("stdlib")
    vectors = spectral_vectors(graph, 0)
    features = PairFeatures(vectors, graph, seed=0)
    chosen = np.random.default_rng(0).integers(554, size=(500, 2))
    dense = dense_features(vectors, graph.adjacency.toarray(), pairs.EIGENVECTORS)[chosen[:, 0], chosen[:, 1]]
    found = features(chosen)
    exact = [0, 1, 2, 3, 4, 7, 8, 9, 10]
    np.testing.assert_allclose(found[:, exact], dense[:, exact], atol=1e-4)
    for column in (5, 6):  # the last of 128 eigenvectors are found roughly
        assert np.corrcoef(found[:, column], dense[:, column])[0, 1] > 0.95


def test_the_number_of_threads_changes_no_bit(monkeypatch):
    graph = load("stdlib")
    chosen = np.random.default_rng(0).integers(554, size=(200, 2))
    one = PairFeatures(spectral_vectors(graph, 0), graph, seed=0)(chosen)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    np.testing.assert_array_equal(PairFeatures(spectral_vectors(graph, 0), graph, seed=0)(chosen), one)


def test_no_pair_has_no_features(small_graph):
    assert PairFeatures(np.ones((12, 2)), small_graph, seed=0)(np.empty((0, 2), int)).shape == (0, 11)


def test_removed_edges_are_gone_and_others_keep_their_weight(small_graph):
    edges = pairs.edge_pairs(small_graph)
    smaller = without_edges(small_graph, edges[:3][:, ::-1])
    before, after = small_graph.adjacency.toarray(), smaller.adjacency.toarray()
    gone = np.zeros((12, 12), bool)
    gone[tuple(edges[:3].T)] = True
    np.testing.assert_array_equal(after, np.where(gone | gone.T, 0, before))


def test_nodes_that_nothing_distinguishes_have_vectors_of_zeros():
    graph = AttributedGraph.from_edges([(0, 0)], attributes={node: ["red"] for node in range(3)}, ids=range(3))
    assert not spectral_vectors(graph, 0).any()


@pytest.mark.parametrize(("sizes", "found"), [([], []), ([9], [1]), ([2, 2, 2, 9, 1], [2, 1, 1, 1])])
def test_blocks_hold_as_many_neighbours_as_fit(monkeypatch, sizes, found):
    monkeypatch.setattr(pairs, "MOST_NEIGHBOURS", 5)
    blocks = list(even_blocks(np.array(sizes, int)))
    assert [one.stop - one.start for one in blocks] == found
