import numpy as np
import pytest
from scipy import sparse

from neural_brane import synthetic
from neural_brane.kernels.cpu.lanes import Largest, step_rows
from neural_brane.kernels.model import rows_of
from neural_brane.linalg.weights import restart_walk, spread, transition


def walk_and_start():
    """Make the transition matrix of a graph, and start numbers that are all different."""
    graph = synthetic(120, seed=4)
    start = graph.attributes.astype(np.float64)
    start.data[:] = 1 + np.random.default_rng(0).random(start.nnz)
    return transition(graph.adjacency), start


def largest(table, most):
    """Return a dense table with only the largest numbers of each row."""
    least = np.sort(table, axis=1)[:, -most][:, None]
    return np.where(table >= least, table, 0)


@pytest.mark.parametrize("restart", [0.5, 0.2])
def test_it_is_the_weighted_sum_of_powers(restart):
    walk, start = walk_and_start()
    powers = [start.toarray()]
    for _ in range(4):
        powers.append(walk.toarray() @ powers[-1])
    expected = restart * sum((1 - restart) ** length * power for length, power in enumerate(powers))
    found = spread(walk, start, restart=restart, steps=4, most=start.shape[1])
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-5)
    sums = restart_walk(walk, start.sum(axis=1), restart=restart, steps=4)
    np.testing.assert_allclose(sums, expected.sum(axis=1), rtol=1e-12)


def test_after_every_step_the_largest_numbers_of_a_row_are_kept():
    walk, start = walk_and_start()
    expected = start.toarray() / 2
    for _ in range(3):
        expected = largest(walk.toarray() @ expected / 2 + start.toarray() / 2, 30)
    found = spread(walk, start, restart=0.5, steps=3, most=30)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-5)
    assert np.diff(found.indptr).max() == 30
    assert found.has_sorted_indices


def test_neither_threads_nor_blocks_change_a_bit():
    walk, start = walk_and_start()
    one, two = (
        spread(walk, start, restart=0.5, steps=2, most=20, threads=threads, block=block)
        for threads, block in ((1, 10**6), (2, 100))
    )
    for first, second in zip((one.data, one.indices, one.indptr), (two.data, two.indices, two.indptr), strict=True):
        np.testing.assert_array_equal(first, second)


def test_of_equal_numbers_those_met_first_are_kept():
    start = sparse.csr_array(np.array([[0, 2, 1, 1, 1, 0]], np.float32))
    nothing = sparse.csr_array((1, 1), dtype=np.float32)
    found = Largest(np.zeros((1, 3), np.int32), np.zeros((1, 3), np.float32), np.zeros(1, np.int64), width=6)
    step_rows(*map(rows_of, (nothing, start, start)), 0.5, 0, found)
    assert [part.tolist() for part in found[:3]] == [[[1, 2, 3]], [[2, 1, 1]], [3]]
