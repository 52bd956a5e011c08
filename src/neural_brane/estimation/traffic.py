"""What the ranks of a training past one machine ask each other for in a step: rows counted, then bytes.

A rank looks up every row once, however many bags of its share of the batch name it. So what travels depends on how many
distinct rows there are, which `count_rows` counts for triplets that were drawn and `expected_rows` foretells from a
graph's sizes.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph.sizes import Sizes
from neural_brane.kernels.model import padded

SINGLE, ID, ENTRY, ANSWER = 4, 8, 4, 1  # bytes of a float32, a number asked for, an entry of a bag, a yes or no


class BatchRows(NamedTuple):
    """What one rank's share of a batch names."""

    triplets: int
    nodes: float  # distinct ones among three slots for each triplet
    attribute_entries: float  # in the bags of these nodes together
    neighbour_entries: float
    attribute_rows: float  # distinct ones among these entries
    neighbour_rows: float


class Traffic(NamedTuple):
    """The bytes that a rank sends in a step, by what they are; on average it gets as many from the others.

    A rank sends the numbers of the rows that it asks for, the rows that others ask it for, and the gradients of the
    rows that it got. Every number is a bag of its own to TorchRec, which tells all ranks the lengths of all bags: these
    bytes grow with the ranks. The graph's bags travel where every rank keeps a range of nodes, and not where hosts have
    a copy.
    """

    ids: float
    lengths: float
    rows: float
    gradients: float
    layer: float
    graph: float

    @property
    def with_copies(self) -> float:
        """All of it where every host has a copy of the graph."""
        return self.ids + self.lengths + self.rows + self.gradients + self.layer

    @property
    def by_range(self) -> float:
        """All of it where every rank keeps a range of nodes."""
        return self.with_copies + self.graph


def shares(triplets: np.ndarray, ranks: int) -> list[np.ndarray]:
    """The triplets of each rank: of a batch of B, rank r of W takes numbers r·B/W up to (r + 1)·B/W.

    >>> [len(share) for share in shares(np.zeros((10, 3), np.int32), 4)]
    [2, 3, 2, 3]
    """
    ends = np.arange(ranks + 1) * len(triplets) // ranks
    return [triplets[first:last] for first, last in pairwise(ends)]


def distinct_rows(matrix: sparse.csr_array, nodes: np.ndarray) -> np.ndarray:
    """The rows of a table that the bags of these nodes name, each once and in order."""
    named = np.zeros(matrix.shape[1], bool)
    named[matrix[nodes].indices] = True
    return np.flatnonzero(named)


def count_rows(adjacency: sparse.csr_array, attributes: sparse.csr_array, triplets: np.ndarray) -> BatchRows:
    """Count what the triplets (count, 3) of one rank name.

    >>> path = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    >>> count_rows(path, sparse.csr_array(np.eye(3)), np.array([[0, 1, 2], [0, 1, 2]]))
    BatchRows(triplets=2, nodes=3, attribute_entries=3, neighbour_entries=4, attribute_rows=3, neighbour_rows=3)
    """
    nodes = np.unique(triplets)
    return BatchRows(
        triplets=len(triplets),
        nodes=len(nodes),
        attribute_entries=_entries(attributes, nodes),
        neighbour_entries=_entries(adjacency, nodes),
        attribute_rows=len(distinct_rows(attributes, nodes)),
        neighbour_rows=len(distinct_rows(adjacency, nodes)),
    )


def expected_rows(sizes: Sizes, triplets: int, nodes: int | None = None) -> BatchRows:
    """What so many triplets name, as if all nodes had equally many neighbours and attributes, drawn evenly.

    Where some have many more than others, they are drawn more often and name more. nodes: how many distinct ones, where
    they are not drawn.
    """
    drawn = distinct(sizes.nodes, 3 * triplets) if nodes is None else nodes
    bags = [drawn * entries / max(sizes.nodes, 1) for entries in (sizes.attribute_entries, sizes.links)]
    rows = [distinct(count, bag) for count, bag in zip((sizes.attributes, sizes.nodes), bags, strict=True)]
    return BatchRows(triplets, drawn, *bags, *rows)


def distinct(items: float, draws: float) -> float:
    """How many of some items are drawn at least once, on average, where all are equally likely.

    >>> round(distinct(1_000_000, 1_000)), round(distinct(100, 10_000))
    (1000, 100)
    """
    return -items * math.expm1(-draws / items) if items else 0.0


def row_bytes(settings: dict[str, Any]) -> tuple[int, int]:
    """Of a row of P and of P', as the ranks keep and send them."""
    own = settings["attribute_dim"]
    other = settings["dim"] - settings["spectral_dim"] - own
    return SINGLE * padded(own), SINGLE * padded(other)


def traffic_of(rows: BatchRows, settings: dict[str, Any], ranks: int) -> Traffic:
    """The bytes that a rank sends in a step: of evenly spread rows, one in `ranks` is its own."""
    away = (ranks - 1) / ranks
    attribute_row, neighbour_row = row_bytes(settings)
    asked = (rows.attribute_rows if attribute_row else 0) + (rows.neighbour_rows if neighbour_row else 0)
    arrived = rows.attribute_rows * attribute_row + rows.neighbour_rows * neighbour_row
    learned = settings["dim"] - settings["spectral_dim"]
    layer = settings["hidden"] * (learned + 1) if learned else 0
    drawn = rows.triplets * (3 * ID + 2 * ENTRY + ANSWER)  # a neighbour of u; whether u and j are linked
    bags = rows.nodes * 4 * ID + ENTRY * (rows.attribute_entries + rows.neighbour_entries)  # with their lengths
    return Traffic(
        ids=away * ID * asked,
        lengths=(ranks - 1) * ID * asked,
        rows=away * arrived,
        gradients=away * arrived,
        layer=2 * away * SINGLE * layer,  # a sum over ranks, passed around a ring
        graph=away * (drawn + bags),
    )


def _entries(matrix: sparse.csr_array, nodes: np.ndarray) -> int:
    return int((matrix.indptr[nodes + 1].astype(np.int64) - matrix.indptr[nodes]).sum())
