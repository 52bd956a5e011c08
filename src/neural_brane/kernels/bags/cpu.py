"""What trainings of pooled rows share on the CPU, in Numba: bags are pooled, and gradients go back to their rows.

The gradients of a batch are sorted by row, so that every row has one writer and one order of its sum: the number of
threads changes no bit. Kernels that run in parallel call these functions.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.compiling import njit
from neural_brane.kernels.bags.reference import MEAN_DECAY, SMALLEST, SQUARE_DECAY
from neural_brane.kernels.cpu.lanes import fill, load, multiply_add, store
from neural_brane.kernels.model import LANE


class Rows(NamedTuple):
    """A sparse matrix by rows."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32
    values: np.ndarray  # float32


def rows_of(matrix: sparse.csr_array) -> Rows:
    """A CSR matrix for a kernel."""
    values = matrix.data.astype(np.float32, copy=False)
    return Rows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), values)


@njit(error_model="numpy")
def pool(table, rows, shares, start, stop, pooled, slot):
    """pooled[slot] = Σ shares × rows of a table, over the entries start … stop - 1."""
    for c in range(0, table.shape[1], LANE):
        total = fill(np.float32(0))
        for entry in range(start, stop):
            total = multiply_add(fill(shares[entry]), load(table, rows[entry], c), total)
        store(total, pooled, slot, c)


@njit(error_model="numpy")
def turn(indptr, rows, place):
    """Sort the entries of some bags by row.

    indptr: (slots + 1,) int64. rows: of each entry. place: (rows of the table,) int64, -1 everywhere before and after.
    Returns the distinct rows, in the order they are met, where the entries of each begin, and of every entry sorted so
    its number and its slot.
    """
    distinct = np.empty(len(rows), np.int64)
    found = 0
    for row in rows:
        if place[row] < 0:
            place[row] = found
            distinct[found] = row
            found += 1
    starts = np.zeros(found + 1, np.int64)
    for row in rows:
        starts[place[row] + 1] += 1
    for at in range(found):
        starts[at + 1] += starts[at]
    entries, slots, filled = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64), starts[:-1].copy()
    for slot in range(len(indptr) - 1):
        for entry in range(indptr[slot], indptr[slot + 1]):
            at = place[rows[entry]]
            entries[filled[at]] = entry
            slots[filled[at]] = slot
            filled[at] += 1
    for row in rows:
        place[row] = -1
    return distinct[:found], starts, entries, slots


@njit(error_model="numpy")
def descend(table, mean, square, row, gradient, at, rate):
    """A step of Adam for one row, down gradient[at]; rate has the corrections of `reference.corrected`."""
    keep, forget = np.float32(MEAN_DECAY), np.float32(1 - MEAN_DECAY)
    keep_square, forget_square = np.float32(SQUARE_DECAY), np.float32(1 - SQUARE_DECAY)
    own, own_mean, own_square, slope = table[row], mean[row], square[row], gradient[at]
    for c in range(len(own)):
        own_mean[c] = keep * own_mean[c] + forget * slope[c]
        own_square[c] = keep_square * own_square[c] + forget_square * slope[c] * slope[c]
        own[c] -= rate * own_mean[c] / (np.sqrt(own_square[c]) + np.float32(SMALLEST))


@njit(error_model="numpy")
def gathered(gradients, shares, entries, slots, start, stop, total, at):
    """total[at] = Σ shares × gradients of slots, over the sorted entries start … stop - 1."""
    for c in range(0, total.shape[1], LANE):
        lane = fill(np.float32(0))
        for k in range(start, stop):
            lane = multiply_add(fill(shares[entries[k]]), load(gradients, slots[k], c), lane)
        store(lane, total, at, c)
