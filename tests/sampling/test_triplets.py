import numpy as np
import pytest
from scipy import sparse, stats

from neural_brane.errors import GraphError
from neural_brane.kernels.cpu import threads
from neural_brane.sampling.triplets import TripletSampler

DRAWS = 200_000
ENOUGH = 1e-4  # the seed is fixed, so a smaller p-value is a fault


def weighted_graph(nodes=60, density=0.12, seed=3) -> sparse.csr_array:
    """A symmetric weighted graph with a hub, a self-loop and an isolated node (the last one)."""
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.pareto(1.5, (nodes, nodes)) * (rng.random((nodes, nodes)) < density), 1)
    weights[0, 1:40] = 0.5
    weights[3, 3] = 2.0
    weights[:, -1] = 0
    weights += np.triu(weights, 1).T
    return sparse.csr_array(weights.astype(np.float32))


def draw(adjacency, **options) -> np.ndarray:
    return TripletSampler(adjacency, seed=7, **options).draw(0, DRAWS)


def test_u_is_uniform_over_the_nodes_with_a_neighbour():
    adjacency = weighted_graph()
    counts = np.bincount(draw(adjacency)[:, 0], minlength=60)
    linked = np.diff(adjacency.indptr) > 0
    assert not counts[~linked].any()
    assert stats.chisquare(counts[linked]).pvalue > ENOUGH


@pytest.mark.parametrize("u", [0, 3, 17])
def test_i_follows_the_edge_weights(u):
    adjacency = weighted_graph()
    triplets = draw(adjacency)
    counts = np.bincount(triplets[triplets[:, 0] == u, 1], minlength=60)
    weights = adjacency[[u]].toarray()[0].astype(np.float64)
    assert not counts[weights == 0].any()
    expected = weights / weights.sum() * counts.sum()
    assert stats.chisquare(counts[weights > 0], expected[weights > 0]).pvalue > ENOUGH


@pytest.mark.parametrize("u", [0, 3, 17])
@pytest.mark.parametrize("power", [0.0, 0.75, 1.0])
@pytest.mark.parametrize("allow_self", [False, True])
def test_j_follows_a_power_of_degree_and_is_never_a_neighbour(u, power, allow_self):
    adjacency = weighted_graph()
    triplets = draw(adjacency, negative_power=power, allow_self_negative=allow_self)
    counts = np.bincount(triplets[triplets[:, 0] == u, 2], minlength=60)
    weights = np.diff(adjacency.indptr).astype(np.float64) ** power
    weights[adjacency[[u]].indices] = 0
    if not allow_self:
        weights[u] = 0
    assert not counts[weights == 0].any()
    expected = weights / weights.sum() * counts.sum()
    assert stats.chisquare(counts[weights > 0], expected[weights > 0]).pvalue > ENOUGH


def test_no_triplet_breaks_the_definition():
    adjacency = weighted_graph()
    u, i, j = draw(adjacency).T
    dense = adjacency.toarray() > 0
    assert dense[u, i].all()
    assert not dense[u, j].any()
    assert (u != j).all()


def test_equal_weights_draw_neighbours_evenly():
    adjacency = weighted_graph()
    adjacency.data[:] = 2
    triplets = draw(adjacency)
    counts = np.bincount(triplets[triplets[:, 0] == 0, 1], minlength=60)
    assert stats.chisquare(counts[counts > 0]).pvalue > ENOUGH


def test_a_node_linked_to_almost_all_still_gets_exact_negatives():
    """Nearly all draws are neighbours of the node, so the sampler always reaches its exact draw."""
    nodes = 400
    dense = np.zeros((nodes, nodes), np.float32)
    dense[0, 1:-3] = 1
    dense[-3, -2] = dense[-2, -1] = 1
    dense[1:200, 200:-3] = 1
    triplets = draw(sparse.csr_array(dense + dense.T))
    counts = np.bincount(triplets[triplets[:, 0] == 0, 2], minlength=nodes)[-3:]
    expected = np.array([1, 2, 1]) ** 0.75
    assert stats.chisquare(counts, expected / expected.sum() * counts.sum()).pvalue > ENOUGH


def test_a_range_is_the_same_however_it_is_asked_for_and_on_any_threads():
    sampler = TripletSampler(weighted_graph(), seed=11)
    whole = sampler.draw(0, 5000)
    with threads(1):
        np.testing.assert_array_equal(sampler.draw(1234, 777), whole[1234 : 1234 + 777])
    assert (TripletSampler(weighted_graph(), seed=12).draw(0, 5000) != whole).any()


@pytest.mark.parametrize("nodes", [2, 5])
def test_a_complete_graph_has_nothing_to_rank(nodes):
    complete = sparse.csr_array(1 - np.eye(nodes, dtype=np.float32))
    with pytest.raises(GraphError, match="nothing to rank"):
        TripletSampler(complete)


def test_a_node_linked_to_all_is_passed_over_as_u():
    star = sparse.csr_array(np.array([[0, 1, 1], [1, 0, 0], [1, 0, 0]], np.float32))
    assert set(draw(star)[:, 0].tolist()) == {1, 2}
