"""Build the tables that samplers read: alias tables, neighbours, and the tables for triplets.

This file does not need Numba, because samplers on the GPU run where Numba is not installed.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError


class AliasTable(NamedTuple):
    """A distribution over 0 … n-1; a draw takes one random number and two look-ups."""

    keep: np.ndarray  # (n,) float32: probability that a draw of slot k returns k
    other: np.ndarray  # (n,) int32: returned instead of k otherwise


def alias_table(weights: np.ndarray) -> AliasTable:
    """Return the alias table of a distribution proportional to weights (n,), which must be ≥ 0 with a positive sum.

    This is Vose's method. Slots above the average fill up the slots below it, one after the other. A slot that has
    given too much is filled up by the next. Running sums of deficits and surpluses determine which slot fills which.

    >>> alias_table(np.array([1.0, 1.0])).keep
    array([1., 1.], dtype=float32)
    """
    share = np.asarray(weights, np.float64) * (len(weights) / np.sum(weights, dtype=np.float64))
    table = AliasTable(np.ones(len(share), np.float32), np.arange(len(share), dtype=np.int32))
    poor = np.flatnonzero(share < 1)[::-1]
    rich = np.flatnonzero(share >= 1)[::-1]
    lack, spare = np.cumsum(1 - share[poor]), np.cumsum(share[rich] - 1)

    giver = np.searchsorted(spare, np.concatenate([[0.0], lack])[: len(poor)])  # first rich slot with a surplus left
    served = giver < len(rich)  # by rounding, the last poor slots may have no giver; they are almost full
    table.keep[poor[served]] = share[poor[served]]
    table.other[poor[served]] = rich[giver[served]]

    last = np.searchsorted(lack, spare[:-1], side="right")  # poor slot that makes a rich one poor
    spent = np.flatnonzero(last < len(poor))
    table.keep[rich[spent]] = 1 + spare[spent] - lack[last[spent]]
    table.other[rich[spent]] = rich[spent + 1]
    return table


class Neighbours(NamedTuple):
    """The neighbours of each node, with the sums of weights that a draw needs."""

    indptr: np.ndarray  # (nodes + 1,) int64
    indices: np.ndarray  # (entries,) int32, sorted in each row
    cumulative: np.ndarray  # (entries,) float64: running sums of a row's weights; empty if all weights are equal


def neighbour_table(adjacency: sparse.csr_array) -> Neighbours:
    """Return the neighbours of every node of a sorted CSR matrix."""
    weights, total = adjacency.data, np.empty(0)
    if len(weights) and weights.min() != weights.max():  # equal weights need only uniform draws
        total = np.cumsum(weights, dtype=np.float64)
        before = np.concatenate([[0.0], total])[adjacency.indptr[:-1]]
        total -= np.repeat(before, np.diff(adjacency.indptr))
    return Neighbours(adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int32, copy=False), total)


def sample_neighbours(adjacency: sparse.csr_array, nodes: np.ndarray, most: int, rng: np.random.Generator):
    """Return at most `most` neighbours of each of nodes (k,), so that a hub costs no more than other nodes.

    A node with more neighbours gets `most` uniform draws, which may repeat. Returns indptr (k + 1,) int64 and the
    neighbours (indptr[-1],) int64 in the layout of a CSR matrix.
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
    """Return the distinct numbers (< nodes) in several arrays, in increasing order, and the arrays as positions."""
    place = np.zeros(nodes, np.int64)
    for group in groups:
        place[group] = 1
    distinct = np.flatnonzero(place)
    place[distinct] = np.arange(len(distinct))
    return distinct, [place[group] for group in groups]


class TripletTables(NamedTuple):
    """The tables for drawing triplets (u, i, j); the first three arrays are those of `Neighbours`."""

    indptr: np.ndarray  # (nodes + 1,) int64
    indices: np.ndarray  # (entries,) int32, sorted in each row
    cumulative: np.ndarray  # (entries,) float64: running sums of a row's weights; empty if all weights are equal
    anchors: np.ndarray  # (k,) int32: candidates for u
    weights: np.ndarray  # (nodes,) float64: relative probabilities of j


def triplet_tables(
    adjacency: sparse.csr_array, *, negative_power: float, allow_self_negative: bool, among: np.ndarray | None = None
) -> tuple[TripletTables, AliasTable]:
    """Return the tables of a graph and the alias table of j; u comes from `among`, unless none of it can be u."""
    degree = np.diff(adjacency.indptr)
    weights = degree.astype(np.float64) ** negative_power
    anchors = _rankable(adjacency, degree, weights, allow_self_negative)
    if len(anchors) == 0:
        nodes = f"none of the {adjacency.shape[0]:,} nodes ({adjacency.nnz:,} adjacency entries)"
        found = f"nothing to rank: {nodes} has both a neighbour and a linked node that is not its neighbour"
        raise GraphError(f"{found}; give a graph with two linked nodes without an edge between them")
    if among is not None and among[anchors].any():
        anchors = anchors[among[anchors]]
    return TripletTables(*neighbour_table(adjacency), anchors, weights), alias_table(weights)


def can_rank(adjacency: sparse.csr_array) -> bool:
    """Return whether some node has both a neighbour and a linked node that is not its neighbour."""
    degree = np.diff(adjacency.indptr)
    return len(_rankable(adjacency, degree, degree, allow_self_negative=False)) > 0


def _rankable(adjacency, degree, weights, allow_self_negative) -> np.ndarray:
    """Return the nodes (k,) int32 that have a neighbour and a node to rank below it."""
    candidates = np.count_nonzero(weights)
    excluded = degree.astype(np.int64)
    if not allow_self_negative:
        excluded += adjacency.diagonal() == 0
    return np.flatnonzero((degree > 0) & (excluded < candidates)).astype(np.int32)
