"""Estimate the memory of one rank among many, and what ranks send each other in a step."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.model import padded
from neural_brane.kernels.threads import SLAB_COLUMNS
from neural_brane.methods.training import ALIAS, DOUBLE, SINGLE, Moments, spectral_width
from neural_brane.sampling.triplets import TripletSampler

# A rank looks up every row once, however many bags of its share of the batch name it. So traffic depends on the number
# of distinct rows, which `count_rows` counts for drawn triplets and `expected_rows` estimates from a graph's sizes.

ID, ENTRY, ANSWER = 8, 4, 1  # bytes of a number asked for, an entry of a bag, a yes or no


class BatchRows(NamedTuple):
    """Rows and entries that one rank's share of a batch names."""

    triplets: int
    nodes: float  # distinct ones among three slots for each triplet
    attribute_entries: float  # in the bags of these nodes together
    neighbour_entries: float
    attribute_rows: float  # distinct ones among these entries
    neighbour_rows: float


class Traffic(NamedTuple):
    """The bytes that a rank sends in a step, by kind; on average it gets as many from the others."""

    ids: float  # numbers of the rows that it asks for
    lengths: float  # of TorchRec's bags, one for each number; every rank gets those of all ranks
    rows: float  # that others ask it for
    gradients: float  # of the rows that it got
    layer: float
    graph: float  # bags, where every rank keeps a range of nodes

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
        attribute_entries=int(np.diff(attributes.indptr)[nodes].sum()),
        neighbour_entries=int(np.diff(adjacency.indptr)[nodes].sum()),
        attribute_rows=len(distinct_rows(attributes, nodes)),
        neighbour_rows=len(distinct_rows(adjacency, nodes)),
    )


def expected_rows(sizes: Sizes, triplets: int, nodes: int | None = None) -> BatchRows:
    """Estimate what so many triplets name, as if all nodes had equally many neighbours and attributes.

    Hubs are drawn more often and name more. nodes: how many distinct ones, where they are not drawn.
    """
    drawn = distinct(sizes.nodes, 3 * triplets) if nodes is None else nodes
    bags = [drawn * entries / max(sizes.nodes, 1) for entries in (sizes.attribute_entries, sizes.links)]
    rows = [distinct(count, bag) for count, bag in zip((sizes.attributes, sizes.nodes), bags, strict=True)]
    return BatchRows(triplets, drawn, *bags, *rows)


def distinct(items: float, draws: float) -> float:
    """Expected number of items that are drawn at least once, where all are equally likely.

    >>> round(distinct(1_000_000, 1_000)), round(distinct(100, 10_000))
    (1000, 100)
    """
    return -items * math.expm1(-draws / items) if items else 0.0


def row_bytes(settings: dict[str, Any]) -> tuple[int, int]:
    """Bytes of a row of P and of P', as the ranks keep and send them."""
    own = settings["attribute_dim"]
    other = settings["dim"] - settings["spectral_dim"] - own
    return SINGLE * padded(own), SINGLE * padded(other)


def traffic_of(rows: BatchRows, settings: dict[str, Any], ranks: int) -> Traffic:
    """The bytes that a rank sends in a step: of evenly spread rows, one in `ranks` is its own."""
    away = (ranks - 1) / ranks
    attribute_row, neighbour_row = row_bytes(settings)
    asked = (rows.attribute_rows if attribute_row else 0) + (rows.neighbour_rows if neighbour_row else 0)
    arrived = _arrived(rows, settings)
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


# Memory. Formulas count arrays, as those of one process do. A rank owns an equal range of the nodes and the attributes.

PROGRAM_BYTES = 480_000_000  # of Python, PyTorch, TorchRec and compiled kernels; two fifths are files that ranks share
BLOCK_NODES = 65_536  # whose vectors are made at a time
COPIES = 6  # of a batch's rows: as they come, in order, after the step, gradients; and two of the rows others ask for
NUMBERING = 40  # bytes for each entry of the larger bags, whose rows become places among those that arrive
MOST_ROWS = 65_536  # of other ranks that a product holds at once, or as many as a rank owns where that is more
ASKED = 32  # bytes for each row that products fetch: its number, who asks for it, and its scale in four matrices
LENGTHS = 16  # bytes for each row and rank: every rank gets the length of every row's bag
BATCHES = 2  # one is prepared while the other is trained
SAMPLING = 20  # bytes a node, once for a host: who may be u, the alias table, and the weights it is made from
MAKING = ALIAS + 8 + 9  # bytes a node of the host's first rank, which makes these: weights, degrees and self-loops


class Ranks(NamedTuple):
    """Memory and traffic of a training by several ranks, besides the program."""

    moments: Moments
    graph: int  # bytes of a rank's range of the graph
    host: dict[str, int]  # bytes that the ranks of a host share, where it has a copy of the whole graph
    batch: BatchRows
    counted: bool  # whether the rows of a batch were counted on triplets drawn from the graph, or follow from its sizes
    traffic: Traffic


def ranks_of(
    source: AttributedGraph | Sizes,
    sizes: Sizes,
    settings: dict[str, Any],
    ranks: int,
    *,
    batch: BatchRows | None = None,
) -> Ranks:
    """Estimate one of `ranks` processes that train together, with the parameters in force for the graph.

    batch: what a rank's share of a batch names, where it is known; else it is counted where the graph is there, or
    estimated.
    """
    triplets = _share(settings["batch_size"], ranks) if settings["dim"] != settings["spectral_dim"] else 0
    counted = batch is not None or bool(triplets and not isinstance(source, Sizes))
    if batch is None and triplets and not isinstance(source, Sizes):
        options = {name: settings[name] for name in ("negative_power", "allow_self_negative")}
        drawn = TripletSampler(source.adjacency, **options).draw(0, triplets)
        batch = count_rows(source.adjacency, source.attributes, drawn)
    batch, copy = batch or expected_rows(sizes, triplets), shard_bytes(sizes)
    return Ranks(
        moments=_moments(sizes, settings, ranks, batch),
        graph=_share(copy, ranks),
        host={"one copy of the graph": copy, "sampling tables": SAMPLING * sizes.nodes},
        batch=batch,
        counted=counted,
        traffic=traffic_of(batch, settings, ranks),
    )


def shard_bytes(sizes: Sizes) -> int:
    """Bytes of a graph in parts, as it is mapped into memory; ids and names stay on the disk.

    >>> shard_bytes(Sizes(nodes=1_000, edges=10_000, attributes=100, attribute_entries=20_000))
    176000
    """
    link, entry = 8 if sizes.weighted else 4, 8 if sizes.amounts else 4
    return 16 * sizes.nodes + link * sizes.links + entry * sizes.attribute_entries


def _share(count: int, ranks: int) -> int:
    return -(-count // ranks)


def _moments(sizes: Sizes, settings: dict[str, Any], ranks: int, batch: BatchRows) -> Moments:
    """Bytes by part besides the graph: the spectral part first, then the learned one beside its vectors."""
    rows, width = _share(sizes.nodes, ranks), settings["spectral_dim"]
    found: dict[str, dict[str, int]] = {}
    if width:
        found["spectral products"] = _spectral(sizes, settings, ranks)
    spectral = {"spectral vectors": SINGLE * rows * width} if width else {}
    if width < settings["dim"]:
        attribute_row, neighbour_row = row_bytes(settings)
        spectral["tables"] = _share(sizes.attributes, ranks) * attribute_row + rows * neighbour_row
        found["sampling tables"] = spectral | {"made by a host's first rank": MAKING * sizes.nodes}
        found["training"] = spectral | {
            "bags of batches": round(BATCHES * (_bags(batch) + 24 * batch.triplets)),
            "lengths of TorchRec's bags": round(LENGTHS * ranks * (batch.attribute_rows + batch.neighbour_rows)),
            "rows and gradients": round(COPIES * _arrived(batch, settings)),
            "scratch of a step": round(SINGLE * batch.nodes * 2 * (settings["dim"] - width + settings["hidden"])),
        }
    block = expected_rows(sizes, 0, nodes=min(BLOCK_NODES, rows))
    arriving = {"rows and bags of a block": round(_arrived(block, settings) + _bags(block))}
    found["vectors"] = spectral | {"vectors": SINGLE * rows * settings["dim"]} | arriving
    return found


def _spectral(sizes: Sizes, settings: dict[str, Any], ranks: int) -> dict[str, int]:
    """Bytes of the spectral part: basis, matrices, and slabs of own and fetched rows."""
    rows = _share(sizes.nodes, ranks)
    width, hops = spectral_width(sizes.nodes, settings["spectral_dim"]), len(settings["hop_weights"])
    slab = SINGLE * SLAB_COLUMNS
    asked = [
        (ranks - 1) / ranks * distinct(count, entries / ranks)
        for count, entries in ((sizes.nodes, sizes.links), (sizes.attributes, sizes.attribute_entries))
    ]
    rounds = [1 if ranks == 1 else min(max(count / max(rows, MOST_ROWS), 1), ranks - 1) for count in asked]
    entries = _share(16 * sizes.links + 24 * sizes.attribute_entries, ranks)  # the latter also by their columns
    return {
        "basis": 2 * SINGLE * rows * width + 3 * DOUBLE * width * width,
        "matrices": round(entries + 8 * rows * sum(rounds) + 16 * rows),
        "slabs": slab * rows * (hops + 4),
        "fetched rows": round(slab * (rows + 3 * min(max(asked), max(rows, MOST_ROWS)))),
        "numbers of fetched rows": round(ASKED * sum(asked)),
    }


def _arrived(batch: BatchRows, settings: dict[str, Any]) -> float:
    attribute_row, neighbour_row = row_bytes(settings)
    return batch.attribute_rows * attribute_row + batch.neighbour_rows * neighbour_row


def _bags(batch: BatchRows) -> float:
    """Both kinds of bags, the numbers of their distinct rows, and the table that finds a row's place."""
    entries = batch.attribute_entries, batch.neighbour_entries
    return SINGLE * sum(entries) + 16 * batch.nodes + 8 * sum(batch[-2:]) + NUMBERING * max(entries)
