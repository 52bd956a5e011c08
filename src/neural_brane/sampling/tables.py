"""The tables that draws read: alias tables, neighbours, and what triplets are drawn from.

They need NumPy alone, because samplers on the GPU build them where Numba is not installed.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError


class AliasTable(NamedTuple):
    """A distribution over 0 … n-1, ready to be drawn from with one random number and two look-ups."""

    keep: np.ndarray  # (n,) float32: the chance to stay at a slot once it is hit
    other: np.ndarray  # (n,) int32: where to go instead


def alias_table(weights: np.ndarray) -> AliasTable:
    """Build the table of a distribution proportional to weights (n,), which must be ≥ 0 with a positive sum.

    Vose's method: slots below the average are filled up, one after the other, by the surplus of the current slot above
    it; a slot that has given too much is itself filled up by the next. Who gives to whom follows from the running sums
    of what the slots below lack and the slots above can spare.

    >>> alias_table(np.array([1.0, 1.0])).keep
    array([1., 1.], dtype=float32)
    """
    share = np.asarray(weights, np.float64) * (len(weights) / np.sum(weights, dtype=np.float64))
    table = AliasTable(np.ones(len(share), np.float32), np.arange(len(share), dtype=np.int32))
    poor = np.flatnonzero(share < 1)[::-1]
    rich = np.flatnonzero(share >= 1)[::-1]
    lack, spare = np.cumsum(1 - share[poor]), np.cumsum(share[rich] - 1)

    giver = np.searchsorted(spare, np.concatenate([[0.0], lack])[: len(poor)])  # the first that can still spare
    served = giver < len(rich)  # rounding can leave the last poor slots, which are almost full, without a giver
    table.keep[poor[served]] = share[poor[served]]
    table.other[poor[served]] = rich[giver[served]]

    last = np.searchsorted(lack, spare[:-1], side="right")  # the poor slot to which a rich one gives too much
    spent = np.flatnonzero(last < len(poor))
    table.keep[rich[spent]] = 1 + spare[spent] - lack[last[spent]]
    table.other[rich[spent]] = rich[spent + 1]
    return table


class Neighbours(NamedTuple):
    """The rows of a sparse matrix, ready to be drawn from."""

    indptr: np.ndarray  # (nodes + 1,) int64
    indices: np.ndarray  # (entries,) int32, sorted in each row
    cumulative: np.ndarray  # (entries,) float64: running sums of a row's weights; empty where all weights are equal


def neighbour_table(adjacency: sparse.csr_array) -> Neighbours:
    """The neighbours of every node of a sorted CSR matrix."""
    weights, total = adjacency.data, np.empty(0)
    if len(weights) and weights.min() != weights.max():  # else a uniform draw does
        total = np.cumsum(weights, dtype=np.float64)
        before = np.concatenate([[0.0], total])[adjacency.indptr[:-1]]
        total -= np.repeat(before, np.diff(adjacency.indptr))
    return Neighbours(adjacency.indptr.astype(np.int64), adjacency.indices.astype(np.int32, copy=False), total)


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
    """The distinct of a graph's `nodes` in several arrays, in increasing order; the arrays as positions in them."""
    place = np.zeros(nodes, np.int64)
    for group in groups:
        place[group] = 1
    distinct = np.flatnonzero(place)
    place[distinct] = np.arange(len(distinct))
    return distinct, [place[group] for group in groups]


class TripletTables(NamedTuple):
    """A graph as a sampler of triplets reads it; the first three arrays are those of `Neighbours`."""

    indptr: np.ndarray  # (nodes + 1,) int64
    indices: np.ndarray  # (entries,) int32, sorted in each row
    cumulative: np.ndarray  # (entries,) float64: running sums of a row's weights; empty where all weights are equal
    anchors: np.ndarray  # (k,) int32: the nodes that u is drawn from
    weights: np.ndarray  # (nodes,) float64: j is drawn in proportion to these


def triplet_tables(
    adjacency: sparse.csr_array, *, negative_power: float, allow_self_negative: bool, among: np.ndarray | None = None
) -> tuple[TripletTables, AliasTable]:
    """The tables of a graph, and the alias table of j. among: whether each node may be u; all may where none could."""
    degree = np.diff(adjacency.indptr)
    weights = degree.astype(np.float64) ** negative_power
    anchors = _rankable(adjacency, degree, weights, allow_self_negative)
    if len(anchors) == 0:
        raise GraphError(
            f"no node of this graph ({adjacency.shape[0]:,} nodes, {adjacency.nnz:,} adjacency entries) has both a "
            "neighbour and a linked node that is not its neighbour, so there is nothing to rank; give a graph in "
            "which at least one pair of linked nodes is not linked to each other"
        )
    if among is not None and among[anchors].any():
        anchors = anchors[among[anchors]]
    return TripletTables(*neighbour_table(adjacency), anchors, weights), alias_table(weights)


def can_rank(adjacency: sparse.csr_array) -> bool:
    """Whether a node has both a neighbour and a linked node that is not its neighbour."""
    degree = np.diff(adjacency.indptr)
    return len(_rankable(adjacency, degree, degree, allow_self_negative=False)) > 0


def _rankable(adjacency, degree, weights, allow_self_negative) -> np.ndarray:
    """The nodes that have a neighbour and another node to be ranked below it."""
    candidates = np.count_nonzero(weights)
    excluded = degree.astype(np.int64)
    if not allow_self_negative:
        excluded += adjacency.diagonal() == 0
    return np.flatnonzero((degree > 0) & (excluded < candidates)).astype(np.int32)
