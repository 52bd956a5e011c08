"""The neighbours of nodes: tables to draw them from, and samples of bounded size.

NumPy alone: samplers on the GPU build the same tables where Numba is not installed. `draws` draws from them.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse


class Neighbours(NamedTuple):
    """The rows of a sparse matrix, ready to be drawn from."""

    indptr: np.ndarray  # (nodes + 1,) int64
    indices: np.ndarray  # (entries,) int32, sorted in each row
    cumulative: np.ndarray  # (entries,) float64: running sums of a row's weights; empty where all weights are equal


def neighbour_table(adjacency: sparse.csr_array) -> Neighbours:
    """The neighbours of every node of a sorted CSR matrix."""
    return Neighbours(
        adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int32, copy=False), _cumulative(adjacency)
    )


def sample_neighbours(adjacency: sparse.csr_array, nodes: np.ndarray, most: int, rng: np.random.Generator):
    """At most `most` neighbours of each of nodes (k,), so that a hub costs no more than others.

    All neighbours of a node that has no more; of the others `most` uniform draws, with repeats. Returns indptr (k + 1,)
    int64 and neighbours (indptr[-1],) int64, as a CSR matrix keeps its rows.
    """
    first = adjacency.indptr[nodes].astype(np.int64)
    degree = adjacency.indptr[nodes + 1] - first
    counts = np.minimum(degree, most)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    place = np.arange(indptr[-1]) - np.repeat(indptr[:-1], counts)
    crowded = np.repeat(degree > most, counts)
    room = np.repeat(degree, counts)[crowded]
    place[crowded] = rng.random(len(room)) * room
    return indptr, adjacency.indices[np.repeat(first, counts) + place].astype(np.int64)


def renumber(groups: list[np.ndarray], nodes: int):
    """The distinct nodes of several arrays, in increasing order, and each array with positions among them.

    nodes: how many nodes the graph has.
    """
    place = np.zeros(nodes, np.int64)
    for group in groups:
        place[group] = 1
    distinct = np.flatnonzero(place)
    place[distinct] = np.arange(len(distinct))
    return distinct, [place[group] for group in groups]


def _cumulative(adjacency: sparse.csr_array) -> np.ndarray:
    """Running sums of the weights within each row; empty where all are equal and a uniform draw does."""
    weights = adjacency.data
    if len(weights) == 0 or weights.min() == weights.max():
        return np.empty(0)
    total = np.cumsum(weights, dtype=np.float64)
    before = np.concatenate([[0.0], total])[adjacency.indptr[:-1]]
    total -= np.repeat(before, np.diff(adjacency.indptr))
    return total
