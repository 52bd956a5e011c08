import numpy as np
import pytest
from scipy import sparse

from neural_brane.graph.adjacency import Rules, assemble, compact, is_symmetric, merge, symmetrise


@pytest.fixture
def half():
    """A matrix that is not symmetric, with about 160 entries."""
    return sparse.random_array((40, 40), density=0.1, rng=np.random.default_rng(0), format="csr", dtype=np.float32)


@pytest.mark.parametrize("entries_per_strip", [7, 100, 10_000])
def test_symmetry_is_checked_strip_by_strip(half, entries_per_strip):
    whole = sparse.csr_array(half + half.T)
    whole.sum_duplicates()
    assert is_symmetric(whole, entries_per_strip=entries_per_strip)
    heavier = whole.copy()
    heavier.data[len(heavier.data) // 2] += 1
    assert not is_symmetric(heavier, entries_per_strip=entries_per_strip)
    half.sum_duplicates()
    assert not is_symmetric(half, entries_per_strip=entries_per_strip)


def test_assembled_matrices_are_symmetric_and_sorted():
    rng = np.random.default_rng(0)
    matrix = assemble(rng.integers(30, size=(200, 2)), rng.random(200).astype(np.float32) + 1, 30)
    assert is_symmetric(matrix)
    assert matrix.has_canonical_format
    assert (matrix.dtype, matrix.indices.dtype) == (np.float32, np.int32)


def test_a_symmetric_matrix_is_returned_itself_unless_self_loops_are_dropped():
    matrix = sparse.csr_array(np.array([[2, 1], [1, 0]], dtype=np.float32))
    assert symmetrise(matrix, Rules("sum")) is matrix
    assert symmetrise(matrix, Rules("sum", "drop")).toarray().tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(("rule", "weights"), [("max", [3, 2, 5]), ("sum", [4, 2, 5])])
def test_keys_are_merged_and_sorted(rule, weights):
    keys, merged = merge(np.array([7, 2, 9, 2]), np.array([2, 1, 5, 3.0]), rule)
    assert keys.tolist() == [2, 7, 9]
    assert merged.tolist() == weights
    assert merged.dtype == np.float32


def test_compact_copies_only_arrays_that_must_change():
    matrix = sparse.csr_array(np.eye(3, dtype=np.float32))
    assert np.shares_memory(compact(matrix).data, matrix.data)
    wide = sparse.csr_array((matrix.data.astype(float), matrix.indices.astype(np.int64), matrix.indptr), shape=(3, 3))
    assert (compact(wide).dtype, compact(wide).indices.dtype) == (np.float32, np.int32)
