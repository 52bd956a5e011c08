import numpy as np
from scipy import sparse, stats

from neural_brane.kernels import cpu
from neural_brane.sampling.tables import alias_table
from neural_brane.sampling.walks import EdgeSampler, window_pairs, window_targets


def test_a_window_of_one_pairs_neighbours_on_the_walk():
    walks = np.array([[3, 1, 4, -1], [5, -1, -1, -1]], np.int32)
    pairs = window_pairs(walks, window=1, seed=0, first=0)
    assert pairs.tolist() == [[3, 1], [1, 3], [1, 4], [4, 1]]


def test_near_nodes_are_paired_more_often():
    """A pair d places apart is kept if the reach, uniform on 1 … window, is at least d."""
    walks = np.tile(np.arange(40, dtype=np.int32), (2000, 1))
    pairs = window_pairs(walks, window=4, seed=1, first=0)
    distance = np.bincount(np.abs(pairs[:, 0] - pairs[:, 1]), minlength=5)
    ends = 2 * (40 - np.arange(1, 5)) * len(walks)
    np.testing.assert_allclose(distance[1:] / ends, [1, 0.75, 0.5, 0.25], atol=0.01)
    assert distance[0] == 0


def test_pairs_depend_on_the_number_of_the_walk_alone():
    walks = np.random.default_rng(0).integers(0, 9, (30, 12)).astype(np.int32)
    together = window_pairs(walks, window=5, seed=2, first=100)
    apart = [window_pairs(walks[k : k + 10], window=5, seed=2, first=100 + k) for k in (0, 10, 20)]
    np.testing.assert_array_equal(together, np.concatenate(apart))
    with cpu.threads(1):
        np.testing.assert_array_equal(together, window_pairs(walks, window=5, seed=2, first=100))
    assert len(together) != len(window_pairs(walks, window=5, seed=2, first=0))


def test_edges_are_drawn_in_proportion_to_their_weight():
    matrix = sparse.csr_array(np.array([[0, 1, 4], [2, 0, 0.5]], np.float32))
    sampler = EdgeSampler(matrix, seed=3)
    pairs = sampler.draw(0, 20_000)
    counts = np.zeros(matrix.shape)
    np.add.at(counts, tuple(pairs.T), 1)
    edges = matrix.toarray() > 0
    assert not counts[~edges].any()
    assert stats.chisquare(counts[edges], np.array([1, 4, 2, 0.5]) / 7.5 * 20_000).pvalue > 1e-3
    np.testing.assert_array_equal(pairs[50:70], sampler.draw(50, 20))


def test_targets_are_a_window_with_negatives_that_are_others():
    walks = np.array([[3, 1, 3, 0, 2], [1, 0, -1, -1, -1]] * 200, np.int32)
    places, frequent = np.tile([2, 0], 200), alias_table(np.array([1.0, 2.0, 3.0, 4.0]))
    options = {"window": 2, "negatives": 3, "frequent": frequent, "seed": 7}
    targets = window_targets(walks, places, first=0, **options)
    groups = targets.reshape(400, 4, 4)
    assert (groups[::2, :, 0] == [3, 1, 0, 2]).all()
    assert (groups[1::2, :, 0] == [0, -1, -1, -1]).all()
    assert (groups[1::2, 1:] == -1).all()
    drawn = groups[::2, :, 1:]
    assert (drawn != groups[::2, :, :1]).all()
    shares = np.bincount(drawn[:, 2][drawn[:, 2] >= 0], minlength=4) / drawn[:, 2].size  # against node 0
    np.testing.assert_allclose(shares, [0, 0.2, 0.3, 0.4], atol=0.06)
    np.testing.assert_array_equal(window_targets(walks[150:], places[150:], first=150, **options), targets[150:])
