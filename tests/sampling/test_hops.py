import numpy as np
import pytest
from scipy import sparse

from neural_brane.kernels import cpu
from neural_brane.sampling.walks import LIMIT, HopSampler


def steps_between(adjacency, hops):
    """Return the number of hops between all nodes; hops + 1 stands for all larger numbers."""
    steps = sparse.csgraph.shortest_path(adjacency, unweighted=True)
    return np.where(steps > hops, hops + 1, steps).astype(int)


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_nodes_are_drawn_at_their_hop(hops, small_graph):
    sampler = HopSampler(small_graph.adjacency, hops=hops, seed=3)
    steps = steps_between(small_graph.adjacency, hops)
    for hop in range(1, hops + 2):
        np.testing.assert_array_equal(sampler.sizes[:, hop - 1], (steps == hop).sum(axis=1))
        for turn in range(20):
            drawn = sampler.draw(turn)[:, hop - 1]
            there = drawn >= 0
            np.testing.assert_array_equal(there, (steps == hop).any(axis=1))
            assert (steps[np.flatnonzero(there), drawn[there]] == hop).all()


def test_every_node_of_a_hop_is_as_likely(small_graph):
    sampler = HopSampler(small_graph.adjacency, hops=2, seed=0)
    drawn = np.stack([sampler.draw(turn)[0] for turn in range(3000)])  # ann: 2 neighbours, 2 at two hops, 7 beyond
    for hop, size in enumerate((2, 2, 7)):
        _, counts = np.unique(drawn[:, hop], return_counts=True)
        assert len(counts) == size
        np.testing.assert_allclose(counts / 3000, 1 / size, atol=0.04)


def test_draws_follow_the_seed_and_the_turn_not_the_threads(small_graph):
    with cpu.threads(1):
        alone = HopSampler(small_graph.adjacency, hops=2, seed=1)
        first, second = alone.draw(0), alone.draw(1)
    with cpu.threads(2):
        together = HopSampler(small_graph.adjacency, hops=2, seed=1)
        np.testing.assert_array_equal(together.draw(1), second)
        np.testing.assert_array_equal(together.draw(0), first)
    assert (first != second).any()
    assert (HopSampler(small_graph.adjacency, hops=2, seed=2).draw(0) != first).any()


def test_a_hubs_leaves_keep_a_part_of_each_other():
    leaves = 3 * LIMIT
    star = sparse.lil_array((leaves + 1, leaves + 1))
    star[0, 1:] = star[1:, 0] = 1
    sampler = HopSampler(star.tocsr(), hops=2, seed=0)
    assert sampler.sizes[0].tolist() == [leaves, 0, 0]  # the first hop is exact
    assert (sampler.sizes[1:, 1] <= LIMIT).all()
    assert (sampler.sizes[1:, 1] > LIMIT / 2).all()
    assert len(sampler._indices) <= 2 * leaves + leaves * LIMIT
    drawn = sampler.draw(0)
    assert (drawn[1:, 0] == 0).all()
    assert (drawn[1:, 1] > 0).all()
    assert (drawn[1:, 1] != np.arange(1, leaves + 1)).all()
