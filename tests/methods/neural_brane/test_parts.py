"""Vectors of two parts: as good as the better part if the other has no information, and of the promised length."""

import numpy as np
import pytest
from scipy import sparse

from neural_brane import AttributedGraph, NeuralBrane, classify
from neural_brane.errors import GraphError, ParameterError

NODES, BLOCKS = 240, 3
SHORT = {"dim": 24, "seed": 0}


def planted(*, links=True, attributes="own", nodes=NODES, hub=0):
    """A graph of blocks; half of a node's attributes and most of its neighbours belong to its block."""
    rng = np.random.default_rng(7)
    block = np.arange(nodes) % BLOCKS
    ends = rng.integers(0, nodes, (4 * nodes, 2))
    ends[: 3 * nodes, 1] = ends[: 3 * nodes, 0] % BLOCKS + BLOCKS * rng.integers(0, nodes // BLOCKS, 3 * nodes)
    edges = [tuple(pair) for pair in ends.tolist() if pair[0] != pair[1]] if links else []
    edges += [(0, other) for other in range(1, hub)]
    words = 20 * BLOCKS
    own = np.zeros((nodes, words), np.float32)
    for node in range(nodes):
        own[node, block[node] + BLOCKS * rng.integers(0, words // BLOCKS, 4)] = 1
        own[node, rng.integers(0, words, 4)] = 1
    table = {"own": own, "one": np.ones((nodes, 1), np.float32), "none": None}[attributes]
    return AttributedGraph.from_edges(edges, nodes=nodes, attributes=table, labels=[f"b{one}" for one in block])


def score(graph, **parameters):
    vectors = NeuralBrane(**SHORT | parameters).fit_transform(graph).vectors
    assert np.isfinite(vectors).all()
    assert vectors.any(axis=1).all()
    assert vectors.any(axis=0).all()
    return classify(vectors, graph.labels, train=[0.5]).at(0.5).macro.mean


@pytest.mark.parametrize("attributes", ["own", "one", "none"])
def test_both_parts_are_as_good_as_the_better_of_them(attributes):
    graph = planted(attributes=attributes)
    spectral, learned, both = (score(graph, spectral_dim=some) for some in (24, 0, None))
    assert both >= max(spectral, learned) - 0.02
    assert both > 0.9


def test_a_graph_without_links_has_the_spectral_part_alone():
    graph = planted(links=False)
    model = NeuralBrane(**SHORT).fit(graph)
    assert model.settings_["spectral_dim"] == 24
    assert score(graph) > 0.75
    with pytest.raises(GraphError, match="rank"):
        NeuralBrane(**SHORT | {"spectral_dim": 0}).fit(graph)


def test_ten_nodes_and_a_wide_vector():
    graph = planted(nodes=12)
    vectors = NeuralBrane(dim=150, seed=0).fit_transform(graph).vectors
    assert np.isfinite(vectors).all()
    assert vectors.any(axis=0).all()


def test_a_hub_of_all_nodes():
    assert score(planted(nodes=1200, hub=1200)) > 0.9


def test_vectors_have_their_length_and_the_learned_part_its_weight_and_centre():
    vectors = NeuralBrane(**SHORT, length=3.0, learned_weight=0.5).fit_transform(planted()).vectors
    spectral, learned = vectors[:, :18], vectors[:, 18:]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 3, rtol=1e-5)
    assert (learned**2).sum() / (spectral**2).sum() == pytest.approx(0.25, rel=0.1)
    ratio = np.linalg.norm(learned, axis=1) / np.linalg.norm(spectral, axis=1)
    np.testing.assert_allclose(ratio, 0.5, rtol=1e-4)
    assert np.abs(vectors.mean(axis=0)).max() < 0.3  # exactly zero before all rows came to one length


@pytest.mark.parametrize(("dim", "spectral"), [(1, 1), (2, 1), (3, 2), (4, 3), (150, 112)])
def test_any_dim_is_divided(dim, spectral):
    assert NeuralBrane(dim=dim).parameters_in_force()["spectral_dim"] == spectral
    assert NeuralBrane(**SHORT | {"dim": dim}).fit_transform(planted()).vectors.shape == (NODES, dim)


def test_a_spectral_part_needs_a_length():
    with pytest.raises(ParameterError, match=r"length=0\.0.*number.*0"):
        NeuralBrane(length=0).fit(planted())
    with pytest.raises(ParameterError, match=r"spectral_dim=151.*dim=150"):
        NeuralBrane(spectral_dim=151).fit(planted())


def test_amounts_count_in_the_spectral_part():
    graph = planted(links=False)
    heavier = graph.attributes.copy()
    heavier.data[::3] = 5
    other = AttributedGraph.from_sparse(sparse.csr_array((NODES, NODES), dtype=np.float32), heavier)
    first, second = (NeuralBrane(**SHORT).fit_transform(one).vectors for one in (graph, other))
    assert not np.allclose(first, second, atol=0.01)
