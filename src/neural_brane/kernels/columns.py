"""What a training step does to the tables, LANE columns at a time: pool rows, and take the step on them.

Whoever owns some columns pools and updates them in every step: no two threads write one number, and the cache
lines of a table stay with one core.
"""

import numba
import numpy as np

from neural_brane.kernels.lanes import fill, if_greater, label, load, multiply_add, store
from neural_brane.kernels.prefetch import prefetch
from neural_brane.kernels.types import LANE, MAX, MEAN

PREFETCH = 8  # rows between the one being pooled and the one asked for: a read from memory takes about as long


@numba.njit(cache=True, error_model="numpy")
def pool_columns(bags, table, column, nodes, settings, scale, pooled, winner, first, columns):
    """Pool the rows of nodes (k,), `columns` columns from `column` on, into pooled (k, dim) from `first` on.

    pooled is multiplied by scale; for max pooling, winner (k, ≥ d) tells the row of each number, -1 for none.
    """
    found = np.empty((1, LANE), np.float32)
    for slot in range(len(nodes)):
        if slot + 1 < len(nodes):
            _prefetch_bag(bags, table, nodes[slot + 1], column)
        if settings.pooling == MAX:
            _largest(bags, table, nodes[slot], column, settings.zero_floor, found, winner, slot)
        else:
            _total(bags, table, nodes[slot], column, settings.pooling == MEAN, found)
        for c in range(np.uint64(columns)):
            pooled[slot, np.uint64(first) + c] = scale * found[0, c]


@numba.njit(cache=True, error_model="numpy")
def _prefetch_bag(bags, table, node, column):
    """Ask for the first rows of the node that comes next; `_largest` asks for those that follow."""
    start = bags.indptr[node]
    for k in range(start, min(start + PREFETCH, bags.indptr[node + 1])):
        prefetch(table, bags.indices[k], column)


@numba.njit(cache=True, error_model="numpy")
def _largest(bags, table, node, column, zero_floor, found, winner, slot):
    """The largest number of each column among a node's rows, and which row it was: the first of equals."""
    start, stop = bags.indptr[node], bags.indptr[node + 1]
    best = fill(np.float32(0) if zero_floor or start == stop else np.float32(-np.inf))
    which = label(np.int32(-1))
    for k in range(start, stop, 2):
        row, next_row = bags.indices[k], bags.indices[min(k + 1, stop - 1)]
        for ahead in range(k + PREFETCH, min(k + PREFETCH + 2, stop)):
            prefetch(table, bags.indices[ahead], column)
        value, next_value = load(table, row, column), load(table, next_row, column)
        # Two rows are compared with each other first: the wait is for one comparison with the best, not two.
        larger = if_greater(next_value, value, next_value, value)
        mark = if_greater(next_value, value, label(next_row), label(row))
        which = if_greater(larger, best, mark, which)
        best = if_greater(larger, best, larger, best)
    store(best, found, 0, 0)
    store(which, winner, slot, column)


@numba.njit(cache=True, error_model="numpy")
def _total(bags, table, node, column, mean, found):
    """The sum, or the mean, of each column over a node's rows."""
    start, stop = bags.indptr[node], bags.indptr[node + 1]
    zero, one = fill(np.float32(0)), fill(np.float32(1))
    total = zero
    for k in range(start, stop):
        total = multiply_add(one, load(table, bags.indices[k], column), total)
    share = np.float32(1 / (stop - start)) if mean and stop > start else np.float32(1)
    store(multiply_add(fill(share), total, zero), found, 0, 0)


@numba.njit(cache=True, error_model="numpy")
def update_columns(bags, table, column, nodes, settings, scale, slope, winner, first, columns):
    """Walk all slots in order and subtract their gradients, slope (k, dim) from `first` on, from the rows they pooled.

    The table holds its numbers divided by scale.
    """
    rate = np.float32(settings.learning_rate / scale)
    at, column = np.uint64(first), np.uint64(column)  # unsigned: Numba tests the others for -1, -2, …
    for slot in range(len(nodes)):
        if settings.pooling == MAX:
            for c in range(np.uint64(columns)):
                row = winner[slot, column + c]
                if row >= 0:
                    table[np.uint64(row), column + c] -= rate * slope[slot, at + c]
        else:
            start, stop = bags.indptr[nodes[slot]], bags.indptr[nodes[slot] + 1]
            share = rate / np.float32(stop - start) if settings.pooling == MEAN else rate
            for k in range(start, stop):
                row = bags.indices[k]
                for c in range(np.uint64(columns)):
                    table[row, column + c] -= share * slope[slot, at + c]


@numba.njit(cache=True, error_model="numpy")
def scale_columns(table, column, factor):
    """Multiply LANE columns of a table by a factor."""
    for row in range(len(table)):
        store(multiply_add(fill(factor), load(table, row, column), fill(np.float32(0))), table, row, column)
