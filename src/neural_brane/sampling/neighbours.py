"""A node's neighbours: draw one in proportion to its edge's weight, or ask whether a node is one."""

from typing import NamedTuple

import numba
import numpy as np
from scipy import sparse


class Neighbours(NamedTuple):
    """The rows of a sparse matrix, ready to draw from; any tuple with these three names will do below."""

    indptr: np.ndarray  # (nodes + 1,) int64
    indices: np.ndarray  # (entries,) int32, sorted in each row
    cumulative: np.ndarray  # (entries,) float64: running sums of a row's weights; empty where all weights are equal


def neighbours(adjacency: sparse.csr_array) -> Neighbours:
    """The neighbours of every node of a sorted CSR matrix."""
    return Neighbours(
        adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int32, copy=False), _cumulative(adjacency)
    )


def _cumulative(adjacency: sparse.csr_array) -> np.ndarray:
    """Running sums of the weights within each row, or nothing where a uniform draw is the same."""
    weights = adjacency.data
    if len(weights) == 0 or weights.min() == weights.max():
        return np.empty(0)
    total = np.cumsum(weights, dtype=np.float64)
    before = np.concatenate([[0.0], total])[adjacency.indptr[:-1]]
    total -= np.repeat(before, np.diff(adjacency.indptr))
    return total


@numba.njit(cache=True)
def draw_neighbour(tables, u, chance):
    """A neighbour of u, given one uniform number in [0, 1); u must have one."""
    start, stop = tables.indptr[u], tables.indptr[u + 1]
    if len(tables.cumulative) == 0:
        return tables.indices[start + np.int64(chance * (stop - start))]
    target = chance * tables.cumulative[stop - 1]
    low, high = start, stop - 1
    while low < high:
        middle = (low + high) // 2
        if tables.cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return tables.indices[low]


@numba.njit(cache=True)
def is_neighbour(tables, u, node):
    """Whether node stands in u's row, by binary search."""
    low, high = tables.indptr[u], tables.indptr[u + 1]
    while low < high:
        middle = (low + high) // 2
        if tables.indices[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low < tables.indptr[u + 1] and tables.indices[low] == node
