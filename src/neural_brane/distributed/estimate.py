"""Estimate the memory of one of many ranks, and the bytes it sends per step."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.model import padded
from neural_brane.kernels.threads import SLAB_COLUMNS
from neural_brane.methods.training import ALIAS, DOUBLE, SINGLE, Moments, spectral_width
from neural_brane.sampling.triplets import TripletSampler

# A rank looks up a row once per step, even if many bags contain it. So traffic depends on the number of distinct rows:
# `count_rows` counts them for drawn triplets, and `expected_rows` estimates them from the sizes of a graph.

ID, ENTRY, ANSWER = 8, 4, 1  # bytes of a row number, of an entry of a bag, of a yes or no


class BatchRows(NamedTuple):
    """The numbers of rows and entries that one rank's share of a batch needs."""

    triplets: int
    nodes: float  # distinct nodes; a triplet has three slots
    attribute_entries: float  # entries in the bags of all these nodes
    neighbour_entries: float
    attribute_rows: float  # distinct rows among these entries
    neighbour_rows: float


class Traffic(NamedTuple):
    """The bytes that a rank sends per step, by kind; on average it receives as many."""

    ids: float  # numbers of the rows it requests
    lengths: float  # lengths of TorchRec's bags, one per requested row, sent to every rank
    rows: float  # rows that other ranks request
    gradients: float  # gradients of the rows it received
    layer: float
    graph: float  # bags, if every rank keeps a range of nodes


def distinct_rows(matrix: sparse.csr_array, nodes: np.ndarray) -> np.ndarray:
    """Return the distinct rows of a table in the bags of these nodes, in order."""
    used = np.zeros(matrix.shape[1], bool)
    used[matrix[nodes].indices] = True
    return np.flatnonzero(used)


def count_rows(adjacency: sparse.csr_array, attributes: sparse.csr_array, triplets: np.ndarray) -> BatchRows:
    """Count the rows and entries that the triplets (count, 3) of one rank need."""
    nodes = np.unique(triplets)
    return BatchRows(
        triplets=len(triplets), nodes=len(nodes), attribute_entries=int(np.diff(attributes.indptr)[nodes].sum()),
        neighbour_entries=int(np.diff(adjacency.indptr)[nodes].sum()),
        attribute_rows=len(distinct_rows(attributes, nodes)), neighbour_rows=len(distinct_rows(adjacency, nodes)),
    )  # fmt: skip


def expected_rows(sizes: Sizes, triplets: int, nodes: int | None = None) -> BatchRows:
    """Estimate the rows and entries of triplets, as if all nodes had equally many neighbours and attributes."""
    drawn = distinct(sizes.nodes, 3 * triplets) if nodes is None else nodes
    bags = [drawn * entries / max(sizes.nodes, 1) for entries in (sizes.attribute_entries, sizes.links)]
    rows = [distinct(count, bag) for count, bag in zip((sizes.attributes, sizes.nodes), bags, strict=True)]
    return BatchRows(triplets, drawn, *bags, *rows)


def distinct(items: float, draws: float) -> float:
    """Return the expected number of items drawn at least once, if all are equally likely."""
    return -items * math.expm1(-draws / items) if items else 0.0


def row_bytes(settings: dict[str, Any]) -> tuple[int, int]:
    """Return the bytes of a row of P and of a row of P', as ranks keep and send them."""
    own = settings["attribute_dim"]
    return SINGLE * padded(own), SINGLE * padded(settings["dim"] - settings["spectral_dim"] - own)


def traffic_of(rows: BatchRows, settings: dict[str, Any], ranks: int) -> Traffic:
    """Return the bytes that a rank sends per step, if one row in `ranks` is its own."""
    away = (ranks - 1) / ranks
    attribute_row, neighbour_row = row_bytes(settings)
    requested = (rows.attribute_rows if attribute_row else 0) + (rows.neighbour_rows if neighbour_row else 0)
    arrived = _arrived(rows, settings)
    learned = settings["dim"] - settings["spectral_dim"]
    layer = settings["hidden"] * (learned + 1) if learned else 0
    drawn = rows.triplets * (3 * ID + 2 * ENTRY + ANSWER)  # draw a neighbour of u; check whether u and j are linked
    bags = rows.nodes * 4 * ID + ENTRY * (rows.attribute_entries + rows.neighbour_entries)  # with their lengths
    return Traffic(
        ids=away * ID * requested,
        lengths=(ranks - 1) * ID * requested,
        rows=away * arrived,
        gradients=away * arrived,
        layer=2 * away * SINGLE * layer,  # a sum over ranks around a ring
        graph=away * (drawn + bags),
    )


# The formulas count the bytes of arrays. Each rank owns an equal range of the nodes and of the attributes.

PROGRAM_BYTES = 480_000_000  # Python, PyTorch, TorchRec and compiled kernels; ranks share two fifths of it
BLOCK_NODES = 65_536  # nodes whose vectors are made at a time
COPIES = 6  # copies of a batch's rows: received, in order, after the step, gradients, and two of the rows sent
NUMBERING = 40  # bytes per entry of the larger bags, to renumber its row
MOST_ROWS = 65_536  # fetched rows that a product keeps at a time; at least as many as a rank owns
FETCHED = 32  # bytes per row that products fetch: its number, the rank that needs it, its scale in four matrices
LENGTHS = 16  # bytes per row and rank: every rank gets the lengths of all bags
BATCHES = 2  # batches in memory: one in training, the next in preparation
SAMPLING = 20  # bytes per node, once per host: candidates for u, the alias table and its weights
MAKING = ALIAS + 8 + 9  # bytes per node for making these tables on a host's first rank


class RankEstimate(NamedTuple):
    """The memory and traffic of one of several ranks, without the memory of the program itself."""

    moments: Moments
    graph: int  # bytes of a rank's range of the graph
    host: dict[str, int]  # bytes that the ranks of a host share if it has a copy of the whole graph
    batch: BatchRows
    counted: bool  # True if the rows of a batch were counted on drawn triplets, False if estimated
    traffic: Traffic


def estimate_rank(
    source: AttributedGraph | Sizes,
    sizes: Sizes,
    settings: dict[str, Any],
    ranks: int,
    *,
    batch: BatchRows | None = None,
) -> RankEstimate:
    """Estimate one of so many ranks, by the parameters in force; `batch`: rows of its share, counted if not given."""
    triplets = _share(settings["batch_size"], ranks) if settings["dim"] != settings["spectral_dim"] else 0
    counted = batch is not None or bool(triplets and not isinstance(source, Sizes))
    if batch is None and triplets and not isinstance(source, Sizes):
        options = {name: settings[name] for name in ("negative_power", "allow_self_negative")}
        drawn = TripletSampler(source.adjacency, **options).draw(0, triplets)
        batch = count_rows(source.adjacency, source.attributes, drawn)
    batch, copy = batch or expected_rows(sizes, triplets), shard_bytes(sizes)
    return RankEstimate(
        moments=_moments(sizes, settings, ranks, batch), graph=_share(copy, ranks),
        host={"one copy of the graph": copy, "sampling tables": SAMPLING * sizes.nodes}, batch=batch, counted=counted,
        traffic=traffic_of(batch, settings, ranks),
    )  # fmt: skip


def shard_bytes(sizes: Sizes) -> int:
    """Return the bytes of a graph in part files mapped into memory; ids and names stay on the disk.

    >>> shard_bytes(Sizes(nodes=1_000, edges=10_000, attributes=100, attribute_entries=20_000))
    176000
    """
    link, entry = 8 if sizes.weighted else 4, 8 if sizes.amounts else 4
    return 16 * sizes.nodes + link * sizes.links + entry * sizes.attribute_entries


def _share(count: int, ranks: int) -> int:
    """Return the number of items per rank, rounded up."""
    return -(-count // ranks)


def _moments(sizes: Sizes, settings: dict[str, Any], ranks: int, batch: BatchRows) -> Moments:
    """Return the bytes of each array at each moment of a training, without the graph."""
    rows, width = _share(sizes.nodes, ranks), settings["spectral_dim"]
    moments: dict[str, dict[str, int]] = {}
    if width:
        moments["spectral products"] = _spectral(sizes, settings, ranks)
    spectral = {"spectral vectors": SINGLE * rows * width} if width else {}
    if width < settings["dim"]:
        attribute_row, neighbour_row = row_bytes(settings)
        spectral["tables"] = _share(sizes.attributes, ranks) * attribute_row + rows * neighbour_row
        moments["sampling tables"] = spectral | {"made by a host's first rank": MAKING * sizes.nodes}
        moments["training"] = spectral | {
            "bags of batches": round(BATCHES * (_bags(batch) + 24 * batch.triplets)),
            "lengths of TorchRec's bags": round(LENGTHS * ranks * (batch.attribute_rows + batch.neighbour_rows)),
            "rows and gradients": round(COPIES * _arrived(batch, settings)),
            "scratch of a step": round(SINGLE * batch.nodes * 2 * (settings["dim"] - width + settings["hidden"])),
        }
    block = expected_rows(sizes, 0, nodes=min(BLOCK_NODES, rows))
    arriving = {"rows and bags of a block": round(_arrived(block, settings) + _bags(block))}
    moments["vectors"] = spectral | {"vectors": SINGLE * rows * settings["dim"]} | arriving
    return moments


def _spectral(sizes: Sizes, settings: dict[str, Any], ranks: int) -> dict[str, int]:
    """Return the bytes of the spectral part: basis, matrices, and slabs of own and fetched rows."""
    rows = _share(sizes.nodes, ranks)
    width, hops = spectral_width(sizes.nodes, settings["spectral_dim"]), len(settings["hop_weights"])
    slab = SINGLE * SLAB_COLUMNS
    fetched = [
        (ranks - 1) / ranks * distinct(count, entries / ranks)
        for count, entries in ((sizes.nodes, sizes.links), (sizes.attributes, sizes.attribute_entries))
    ]
    rounds = [1 if ranks == 1 else min(max(count / max(rows, MOST_ROWS), 1), ranks - 1) for count in fetched]
    entries = _share(16 * sizes.links + 24 * sizes.attribute_entries, ranks)  # attributes are also stored by column
    return {
        "basis": 2 * SINGLE * rows * width + 3 * DOUBLE * width * width,
        "matrices": round(entries + 8 * rows * sum(rounds) + 16 * rows),
        "slabs": slab * rows * (hops + 4),
        "fetched rows": round(slab * (rows + 3 * min(max(fetched), max(rows, MOST_ROWS)))),
        "numbers of fetched rows": round(FETCHED * sum(fetched)),
    }


def _arrived(batch: BatchRows, settings: dict[str, Any]) -> float:
    """Return the bytes of the rows of a batch."""
    attribute_row, neighbour_row = row_bytes(settings)
    return batch.attribute_rows * attribute_row + batch.neighbour_rows * neighbour_row


def _bags(batch: BatchRows) -> float:
    """Return the bytes of both kinds of bags, of their distinct row numbers, and of the table that renumbers rows."""
    entries = batch.attribute_entries, batch.neighbour_entries
    return SINGLE * sum(entries) + 16 * batch.nodes + 8 * sum(batch[-2:]) + NUMBERING * max(entries)
