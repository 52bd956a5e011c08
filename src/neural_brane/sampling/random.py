"""Counter-based random numbers, and single draws from tables, in Numba."""

from typing import NamedTuple

import numpy as np

from neural_brane.kernels.compiling import njit

# Counter-based random numbers: each depends on a seed and a counter alone, not on earlier draws or on threads.

_STEP = np.uint64(0x9E3779B97F4A7C15)


class Draws(NamedTuple):
    """Draws number `first`, first + 1, … of a seed."""

    seed: np.uint64
    first: int


@njit
def stream(seed, index):
    """The starting state of stream `index` of a seed: streams of neighbouring indices are unrelated."""
    return _mix(np.uint64(seed) ^ _mix(np.uint64(index) + _STEP))


@njit
def advance(state):
    """The next state of a stream (SplitMix64)."""
    return state + _STEP


@njit
def uniform(state):
    """A float64 in [0, 1) from a state."""
    return (_mix(state) >> np.uint64(11)) * 2.0**-53


@njit
def _mix(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


# Single draws from alias tables and neighbour tables, in Numba, given a uniform random number.


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
