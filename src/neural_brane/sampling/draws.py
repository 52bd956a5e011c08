"""Single draws from alias tables and neighbour tables, in Numba, given a uniform random number."""

import numpy as np

from neural_brane.compiling import njit


@njit
def draw_alias(table, uniform):
    """A draw from an AliasTable, given a uniform number in [0, 1)."""
    position = uniform * len(table.keep)
    k = np.int64(position)
    return np.int64(k) if position - k < table.keep[k] else np.int64(table.other[k])


@njit
def draw_neighbour(table, u, chance):
    """A neighbour of u in proportion to its edge's weight, given a uniform number in [0, 1); u must have one.

    table: any tuple with the three arrays of `Neighbours`.
    """
    start, stop = table.indptr[u], table.indptr[u + 1]
    if len(table.cumulative) == 0:
        return table.indices[start + np.int64(chance * (stop - start))]
    target = chance * table.cumulative[stop - 1]
    low, high = start, stop - 1
    while low < high:
        middle = (low + high) // 2
        if table.cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return table.indices[low]


@njit
def is_neighbour(table, u, node):
    """Whether node is a neighbour of u: a binary search in its row."""
    low, high = table.indptr[u], table.indptr[u + 1]
    while low < high:
        middle = (low + high) // 2
        if table.indices[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low < table.indptr[u + 1] and table.indices[low] == node
