"""The memory of one rank among many that train Neural-Brane together, and of what the ranks of a host share.

Formulas count arrays, as those of one process do. A rank owns an equal range of the nodes and of the attributes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from neural_brane.estimation.traffic import (
    BatchRows,
    Traffic,
    count_rows,
    distinct,
    expected_rows,
    row_bytes,
    traffic_of,
)
from neural_brane.graph import AttributedGraph
from neural_brane.graph.sizes import Sizes
from neural_brane.linalg.threads import SLAB_COLUMNS
from neural_brane.methods._memory import ALIAS, DOUBLE, SINGLE, Moments, spectral_width
from neural_brane.sampling.triplets import TripletSampler

PROGRAM_BYTES = 480_000_000  # of Python, PyTorch, TorchRec and compiled kernels; two fifths are files that ranks share
BLOCK_NODES = 65_536  # whose vectors are made at a time
# Of the rows of a batch: as they come, in the step's order, after the step, their gradients as they go; and of those
# that others ask for, the rows as they go and the gradients as they come.
COPIES = 6
NUMBERING = 40  # bytes for each entry of the larger bags, whose rows become places among those that arrive
MOST_ROWS = 65_536  # of other ranks that a product holds at once, or as many as a rank owns where that is more
ASKED = 32  # bytes for each row that products fetch: its number, who asks for it, and its scale in four matrices
LENGTHS = 16  # bytes for each row and rank: every rank is told the length of every row's bag, as it goes and comes
BATCHES = 2  # one is prepared while the other is trained
SAMPLING = 20  # bytes a node, once for a host: who may be u, the alias table, and the weights it is made from
MAKING = ALIAS + 8 + 9  # bytes a node of the host's first rank, which makes these: weights, degrees and self-loops


class Ranks(NamedTuple):
    """What a training by several ranks takes, besides the program and the graph: by moment, for each of them."""

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
    """What each of so many ranks takes, with the parameters in force for the graph.

    batch: what a rank's share of a batch names, where it is known; else it is found here.
    """
    batch, counted = (batch, True) if batch is not None else _batch_rows(source, sizes, settings, ranks)
    copy = shard_bytes(sizes)
    return Ranks(
        moments=_moments(sizes, settings, ranks, batch),
        graph=_share(copy, ranks),
        host={"one copy of the graph": copy, "sampling tables": SAMPLING * sizes.nodes},
        batch=batch,
        counted=counted,
        traffic=traffic_of(batch, settings, ranks),
    )


def shard_bytes(sizes: Sizes) -> int:
    """Of a graph in parts, as it is mapped into memory; ids and names stay on the disk.

    >>> shard_bytes(Sizes(nodes=1_000, edges=10_000, attributes=100, attribute_entries=20_000))
    176000
    """
    link, entry = 8 if sizes.weighted else 4, 8 if sizes.amounts else 4
    return 16 * sizes.nodes + link * sizes.links + entry * sizes.attribute_entries


def _share(count: int, ranks: int) -> int:
    return -(-count // ranks)


def _batch_rows(
    source: AttributedGraph | Sizes, sizes: Sizes, settings: dict[str, Any], ranks: int
) -> tuple[BatchRows, bool]:
    """What the first rank's share of the first batch names: counted where the graph is there."""
    triplets = _share(settings["batch_size"], ranks)
    if settings["dim"] == settings["spectral_dim"]:
        return expected_rows(sizes, 0), False
    if isinstance(source, Sizes):
        return expected_rows(sizes, triplets), False
    sampler = TripletSampler(
        source.adjacency, negative_power=settings["negative_power"], allow_self_negative=settings["allow_self_negative"]
    )
    return count_rows(source.adjacency, source.attributes, sampler.draw(0, triplets)), True


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
        found["training"] = spectral | _batches(batch, settings, ranks)
    block = expected_rows(sizes, 0, nodes=min(BLOCK_NODES, rows))
    arriving = {"rows and bags of a block": round(_arrived(block, settings) + _bags(block))}
    found["vectors"] = spectral | {"vectors": SINGLE * rows * settings["dim"]} | arriving
    return found


def _spectral(sizes: Sizes, settings: dict[str, Any], ranks: int) -> dict[str, int]:
    """The basis and matrices of a rank's rows, slabs of its own and of others' rows, and the list of the latter."""
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


def _batches(batch: BatchRows, settings: dict[str, Any], ranks: int) -> dict[str, int]:
    """Of a rank's batches: bags as they are renumbered, rows as they travel, and the scratch of a step."""
    learned = settings["dim"] - settings["spectral_dim"]
    return {
        "bags of batches": round(BATCHES * (_bags(batch) + 24 * batch.triplets)),
        "lengths of TorchRec's bags": round(LENGTHS * ranks * (batch.attribute_rows + batch.neighbour_rows)),
        "rows and gradients": round(COPIES * _arrived(batch, settings)),
        "scratch of a step": round(SINGLE * batch.nodes * 2 * (learned + settings["hidden"])),
    }


def _arrived(batch: BatchRows, settings: dict[str, Any]) -> float:
    attribute_row, neighbour_row = row_bytes(settings)
    return batch.attribute_rows * attribute_row + batch.neighbour_rows * neighbour_row


def _bags(batch: BatchRows) -> float:
    """Both kinds of bags, the numbers of their distinct rows, and the table that finds a row's place."""
    entries = batch.attribute_entries, batch.neighbour_entries
    return SINGLE * sum(entries) + 16 * batch.nodes + 8 * sum(batch[-2:]) + NUMBERING * max(entries)
