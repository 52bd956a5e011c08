"""A node's neighbours: draw one in proportion to its edge's weight, or ask whether a node is one."""

import numba
import numpy as np


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
