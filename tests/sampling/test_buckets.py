import numpy as np
import pytest
from scipy import stats

from neural_brane.kernels import cpu
from neural_brane.sampling.buckets import TileSorter, count_buckets


@pytest.fixture
def frequency():
    return np.random.default_rng(0).pareto(1.5, 600) + 0.1


@pytest.fixture
def pairs():
    return np.random.default_rng(1).integers(0, 600, (5000, 2)).astype(np.int32)


@pytest.mark.parametrize("one_table", [False, True])
def test_tiles_of_a_round_share_no_row_and_every_pair_is_in_one(frequency, pairs, one_table):
    sorter = TileSorter(frequency, frequency, one_table=one_table, seed=2)
    tiles = sorter.sort(pairs, 0)
    assert sorter.buckets == 4
    assert sorted(tiles.schedule.ravel()) == list(range(16))
    for tiles_of_round in tiles.schedule:
        touched = [_rows(tiles, tile) for tile in tiles_of_round]
        for sources, targets in touched:
            others = [rows for rows in touched if rows[0] is not sources]
            assert not any(sources & other[0] or targets & other[1] for other in others)
            if one_table:
                assert not any(sources & other[1] for other in others)
    placed = np.column_stack([sorter.sources.place[pairs[:, 0]], sorter.targets.place[pairs[:, 1]]])
    kept, pushed = tiles.items[tiles.items[:, 1] >= 0], tiles.items[tiles.items[:, 1] < 0]
    pushed = np.column_stack([pushed[:, 0], ~pushed[:, 1]])
    for found in (kept, pushed):
        np.testing.assert_array_equal(found[np.lexsort(found.T)], placed[np.lexsort(placed.T)])


def _rows(tiles, tile) -> tuple[set[int], set[int]]:
    some = slice(tiles.starts[tile], tiles.starts[tile + 1])
    targets = set(tiles.items[some, 1]) | set(tiles.negatives[some].ravel())
    return set(tiles.items[some, 0]), {target for target in targets if target >= 0}


def test_pairs_keep_their_order_within_a_tile(frequency):
    pairs = np.column_stack([np.zeros(5000), np.random.default_rng(1).integers(0, 600, 5000)]).astype(np.int32)
    sorter = TileSorter(frequency, frequency)
    tiles = sorter.sort(pairs, 0)
    for bucket in range(sorter.buckets):
        tile = sorter.sources.bucket[0] * sorter.buckets + bucket
        expected = sorter.targets.place[pairs[sorter.targets.bucket[pairs[:, 1]] == bucket, 1]]
        targets = tiles.items[tiles.starts[tile] : tiles.starts[tile + 1], 1]
        np.testing.assert_array_equal(targets[targets >= 0], expected)


def test_negatives_follow_the_power_of_the_frequency_among_all_targets(frequency):
    sorter = TileSorter(frequency, frequency, negatives=1, seed=3)
    target = 7
    negatives = sorter.sort(np.full((60_000, 2), target, np.int32), 0).negatives
    counts = np.bincount(negatives[negatives >= 0], minlength=600)[sorter.targets.place]
    assert counts[target] == 0
    others = np.arange(600) != target
    weights = frequency[others] ** 0.75
    assert stats.chisquare(counts[others], weights / weights.sum() * counts.sum()).pvalue > 1e-3


def test_every_pair_has_its_negatives_and_none_is_its_own(frequency, pairs):
    tiles = TileSorter(frequency, frequency, one_table=True, seed=4).sort(pairs, 0)
    pushed = tiles.items[:, 1] < 0
    assert (tiles.negatives[~pushed] == -1).all()
    assert (tiles.negatives[pushed] >= 0).mean() > 0.95
    assert not (tiles.negatives[pushed] == ~tiles.items[pushed][:, [1]]).any()
    assert not (tiles.negatives[pushed] == tiles.items[pushed][:, [0]]).any()


def test_threads_do_not_matter(frequency, pairs):
    sorter = TileSorter(frequency, frequency, seed=5)
    with cpu.threads(1):
        one = sorter.sort(pairs, 10)
    for first, second in zip(one, sorter.sort(pairs, 10), strict=True):
        np.testing.assert_array_equal(first, second)


def test_the_number_of_buckets_is_one_or_even_and_bounded():
    sizes = [1, 255, 256, 700, 10**6]
    assert [count_buckets(np.ones(size)) for size in sizes] == [1, 1, 2, 4, 16]
    assert count_buckets(np.ones(700), np.ones(3)) == 1
