"""What sampling looks up: made once per graph, in NumPy alone, and read by the samplers of every backend."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError


class AliasTable(NamedTuple):
    """A distribution over 0 … n-1, ready to draw from."""

    keep: np.ndarray  # (n,) float32: the chance to stay at a slot once it is hit
    other: np.ndarray  # (n,) int32: where to go instead


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


class TripletTables(NamedTuple):
    """The graph as a sampler of triplets reads it."""

    indptr: np.ndarray  # (nodes + 1,) int64
    indices: np.ndarray  # (entries,) int32, sorted in each row
    cumulative: np.ndarray  # (entries,) float64: running sums of a row's weights; empty where all weights are equal
    anchors: np.ndarray  # (k,) int32: the nodes u may be
    weights: np.ndarray  # (nodes,) float64: what j is drawn in proportion to


def triplet_tables(
    adjacency: sparse.csr_array, *, negative_power: float, allow_self_negative: bool
) -> tuple[TripletTables, AliasTable]:
    """The tables of a graph, and those to draw j from."""
    degree = np.diff(adjacency.indptr)
    weights = degree.astype(np.float64) ** negative_power
    tables = TripletTables(
        *neighbours(adjacency),
        anchors=_anchors(adjacency, degree, weights, allow_self_negative),
        weights=weights,
    )
    return tables, alias_table(weights)


def alias_table(weights: np.ndarray) -> AliasTable:
    """Build the table of a distribution proportional to weights (n,), which must be ≥ 0 with a positive sum.

    Vose's method: slots poorer than average are filled up, one after the other, by the surplus of the current
    rich slot; one that has given too much is itself filled up by the next. Who gives to whom follows from the
    running sums of what the poor lack and the rich can spare.

    >>> alias_table(np.array([1.0, 1.0])).keep
    array([1., 1.], dtype=float32)
    """
    share = np.asarray(weights, np.float64) * (len(weights) / np.sum(weights, dtype=np.float64))
    table = AliasTable(np.ones(len(share), np.float32), np.arange(len(share), dtype=np.int32))
    poor = np.flatnonzero(share < 1)[::-1]
    rich = np.flatnonzero(share >= 1)[::-1]
    lack, spare = np.cumsum(1 - share[poor]), np.cumsum(share[rich] - 1)

    giver = np.searchsorted(spare, np.concatenate([[0.0], lack])[: len(poor)])  # the first that can still spare
    served = giver < len(rich)  # rounding can leave the last of the poor, then all but full, without one
    table.keep[poor[served]] = share[poor[served]]
    table.other[poor[served]] = rich[giver[served]]

    last = np.searchsorted(lack, spare[:-1], side="right")  # whom a rich slot gives more than it can spare
    spent = np.flatnonzero(last < len(poor))
    table.keep[rich[spent]] = 1 + spare[spent] - lack[last[spent]]
    table.other[rich[spent]] = rich[spent + 1]
    return table


def _anchors(adjacency, degree, weights, allow_self_negative) -> np.ndarray:
    """The nodes with a neighbour and with a node that can be drawn against it."""
    candidates = np.count_nonzero(weights)
    excluded = degree.astype(np.int64)
    if not allow_self_negative:
        excluded += adjacency.diagonal() == 0
    anchors = np.flatnonzero((degree > 0) & (excluded < candidates)).astype(np.int32)
    if len(anchors) == 0:
        raise GraphError(
            f"no node of this graph ({adjacency.shape[0]:,} nodes, {adjacency.nnz:,} adjacency entries) has both a "
            "neighbour and a linked node that is not its neighbour, so there is nothing to rank; give a graph in "
            "which at least one pair of linked nodes is not linked to each other"
        )
    return anchors
