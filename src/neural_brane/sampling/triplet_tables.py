"""The tables from which triplets are drawn, for the samplers of the CPU and of the GPU.

NumPy alone: Numba need not be installed where training runs on a GPU.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.sampling.alias import AliasTable, alias_table
from neural_brane.sampling.neighbours import neighbour_table


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
    """The tables of a graph, and the alias table that j is drawn from.

    among: whether each node may be u; where none of these can be, or it is not given, all may.
    """
    degree = np.diff(adjacency.indptr)
    weights = degree.astype(np.float64) ** negative_power
    anchors = _anchors(adjacency, degree, weights, allow_self_negative)
    if among is not None and among[anchors].any():
        anchors = anchors[among[anchors]]
    tables = TripletTables(*neighbour_table(adjacency), anchors=anchors, weights=weights)
    return tables, alias_table(weights)


def _anchors(adjacency, degree, weights, allow_self_negative) -> np.ndarray:
    anchors = _rankable(adjacency, degree, weights, allow_self_negative)
    if len(anchors) == 0:
        raise GraphError(
            f"no node of this graph ({adjacency.shape[0]:,} nodes, {adjacency.nnz:,} adjacency entries) has both a "
            "neighbour and a linked node that is not its neighbour, so there is nothing to rank; give a graph in "
            "which at least one pair of linked nodes is not linked to each other"
        )
    return anchors


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
