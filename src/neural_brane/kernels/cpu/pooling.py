"""Pool the rows of one node's bag, one lane of columns at a time, in registers.

The pass over the first lane brings the rows into the cache, where the other lanes find them.
"""

import numba
import numpy as np
from numba import prange

from neural_brane.kernels.cpu.lanes import fill, if_greater, label, load, multiply_add, prefetch, store
from neural_brane.kernels.model import LANE, MAX, MEAN

PREFETCH = 4  # rows ahead of the one being pooled: pooling so many takes about as long as a read from memory


@numba.njit(cache=True, error_model="numpy")
def pool(bags, table, node, settings, pooled, winner, slot):
    """Reduce one node's rows of a table (rows, d) into pooled (1, d); for max, which row won into winner[slot] (d,).

    d is a multiple of LANE.
    """
    start, stop = bags.indptr[node], bags.indptr[node + 1]
    for column in range(0, table.shape[1], LANE):
        if settings.pooling == MAX:
            _largest(bags, table, start, stop, column, settings.zero_floor, pooled, winner, slot)
        else:
            _total(bags, table, start, stop, column, settings.pooling == MEAN, pooled)


@numba.njit(cache=True, error_model="numpy")
def pool_scaled(bags, table, node, settings, scale, best, winner, pooled, slot, first, last):
    """Pool one node's rows and write them, times scale, to columns first to last of pooled[slot] (dim,).

    best (1, ≥ d) is scratch memory.
    """
    pool(bags, table, node, settings, best, winner, slot)
    for c in range(np.uint64(last - first)):
        pooled[slot, np.uint64(first) + c] = scale * best[0, c]


@numba.njit(cache=True, error_model="numpy", parallel=True)
def pool_nodes(bags, table, nodes, settings, pooled, first, last):
    """Pool one table for every node of nodes (k,) into columns first to last of pooled (k, dim)."""
    for slot in prange(len(nodes)):
        best = np.empty((1, table.shape[1]), np.float32)
        winner = np.empty((1, table.shape[1]), np.int32)
        pool(bags, table, nodes[slot], settings, best, winner, np.int64(0))
        for c in range(last - first):
            pooled[slot, first + c] = best[0, c]


@numba.njit(cache=True, error_model="numpy")
def prefetch_bag(bags, table, node):
    """Prefetch the first rows of the next node; `pool` prefetches the rest."""
    start = bags.indptr[node]
    for k in range(start, min(start + PREFETCH, bags.indptr[node + 1])):
        _prefetch_row(table, bags.indices[k])


@numba.njit(cache=True, error_model="numpy")
def _prefetch_row(table, row):
    for column in range(0, table.shape[1], LANE):
        prefetch(table, row, column)


@numba.njit(cache=True, error_model="numpy")
def _largest(bags, table, start, stop, column, zero_floor, pooled, winner, slot):
    """The largest number of each column among the rows, and which row it was: the first of equals."""
    best = fill(np.float32(0) if zero_floor or start == stop else np.float32(-np.inf))
    which = label(np.int32(-1))
    for k in range(start, stop, 2):
        row, next_row = bags.indices[k], bags.indices[min(k + 1, stop - 1)]
        if column == 0:
            for ahead in range(k + PREFETCH, min(k + PREFETCH + 2, stop)):
                _prefetch_row(table, bags.indices[ahead])
        value, next_value = load(table, row, column), load(table, next_row, column)
        # Two rows are compared with each other first, so that each pair waits for the best only once.
        larger = if_greater(next_value, value, next_value, value)
        mark = if_greater(next_value, value, label(next_row), label(row))
        which = if_greater(larger, best, mark, which)
        best = if_greater(larger, best, larger, best)
    store(best, pooled, 0, column)
    store(which, winner, slot, column)


@numba.njit(cache=True, error_model="numpy")
def _total(bags, table, start, stop, column, mean, pooled):
    """The sum, or the mean, of each column over the rows."""
    zero, one = fill(np.float32(0)), fill(np.float32(1))
    total = zero
    for k in range(start, stop):
        total = multiply_add(one, load(table, bags.indices[k], column), total)
    share = np.float32(1 / (stop - start)) if mean and stop > start else np.float32(1)
    store(multiply_add(fill(share), total, zero), pooled, 0, column)
