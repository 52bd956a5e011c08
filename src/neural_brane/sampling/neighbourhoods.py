"""Sampled neighbourhoods: a bounded number of neighbours a node, so that a hub costs no more than others."""

import numpy as np
from scipy import sparse


def sample_neighbours(adjacency: sparse.csr_array, nodes: np.ndarray, most: int, rng: np.random.Generator):
    """At most so many neighbours of each of nodes (k,): all where they are few, else uniform draws, with repeats.

    Returns indptr (k + 1,) int64 and neighbours (indptr[-1],) int64, as a CSR matrix keeps its rows.
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


def number(groups: list[np.ndarray], nodes: int):
    """The distinct nodes of several arrays, in increasing order, and each array with their positions in it."""
    place = np.zeros(nodes, np.int64)
    for group in groups:
        place[group] = 1
    distinct = np.flatnonzero(place)
    place[distinct] = np.arange(len(distinct))
    return distinct, [place[group] for group in groups]
