import numpy as np
import pytest

from neural_brane.kernels import cpu, sgns
from neural_brane.kernels.model import padded, zeros
from neural_brane.sampling.buckets import TileSorter


def make_case(rows=300, width=20, count=2000, *, one_table=False, buckets=None, negatives=5):
    """Tables and pairs in tiles; with one table no pair joins a row with itself."""
    rng = np.random.default_rng(0)
    frequency = rng.random(rows) + 0.1
    source = zeros(rows, padded(width))
    source[:, :width] = rng.normal(scale=0.3, size=(rows, width))
    target = source
    if not one_table:
        target = zeros(rows, padded(width))
        target[:, :width] = rng.normal(scale=0.3, size=(rows, width))
    pairs = rng.integers(0, rows, (count, 2)).astype(np.int32)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    sorter = TileSorter(frequency, frequency, one_table=one_table, buckets=buckets, negatives=negatives, seed=1)
    return source, target, sorter.sort(pairs, 0)


@pytest.mark.parametrize("one_table", [False, True])
@pytest.mark.parametrize("buckets", [1, 2, 4])
def test_training_follows_the_reference(one_table, buckets, skip_gram):
    source, target, tiles = make_case(one_table=one_table, buckets=buckets)
    slow_source = source.astype(np.float64)
    slow_target = slow_source if one_table else target.astype(np.float64)
    skip_gram.train(slow_source, slow_target, tiles, 0.2, 0.05)
    before = source.copy()
    sgns.train(source, target, tiles, 0.2, 0.05)
    assert np.abs(source - before).max() > 0.1
    np.testing.assert_allclose(source, slow_source, atol=2e-5)
    np.testing.assert_allclose(target, slow_target, atol=2e-5)


@pytest.mark.parametrize(("width", "negatives"), [(1, 1), (16, 20), (150, 5)])
def test_any_width_and_number_of_negatives_follow_the_reference(width, negatives, skip_gram):
    source, target, tiles = make_case(rows=50, width=width, count=300, negatives=negatives)
    slow = source.astype(np.float64), target.astype(np.float64)
    skip_gram.train(*slow, tiles, 0.1, 0.0)
    sgns.train(source, target, tiles, 0.1, 0.0)
    np.testing.assert_allclose(source, slow[0], atol=2e-5)
    np.testing.assert_allclose(target, slow[1], atol=2e-5)
    assert not source[:, width:].any()
    assert not target[:, width:].any()


@pytest.mark.parametrize("one_table", [False, True])
def test_threads_do_not_change_a_bit(one_table):
    one, both = (make_case(rows=700, one_table=one_table) for _ in range(2))
    with cpu.threads(1):
        sgns.train(*one, 0.1, 0.0)
    sgns.train(*both, 0.1, 0.0)
    np.testing.assert_array_equal(one[0], both[0])
    np.testing.assert_array_equal(one[1], both[1])


@pytest.mark.parametrize("one_table", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_step_goes_down_the_gradient_by_finite_differences(one_table, sign, skip_gram):
    """First-order LINE has one table, second-order LINE two; a step is the rate times the slope of the pair's loss."""
    rng = np.random.default_rng(3)
    source = rng.normal(size=(6, 4))
    target = source if one_table else rng.normal(size=(6, 4))
    row, rows = (0, np.array([2])) if sign == 1 else (0, np.array([2, 4, 5]))

    def loss() -> float:
        return np.logaddexp(0, -sign * (target[rows] @ source[row])).sum()

    def slope(table, k, c, small=1e-6) -> float:
        kept = table[k, c]
        table[k, c] = kept + small
        above = loss()
        table[k, c] = kept - small
        below = loss()
        table[k, c] = kept
        return (above - below) / (2 * small)

    tables = [source] if one_table else [source, target]
    slopes = [np.array([[slope(table, k, c) for c in range(4)] for k in range(6)]) for table in tables]
    before = [table.copy() for table in tables]
    skip_gram.step(source, target, row, rows, sign, 1e-3)
    for table, old, gradient in zip(tables, before, slopes, strict=True):
        np.testing.assert_allclose((old - table) / 1e-3, gradient, atol=1e-6)
