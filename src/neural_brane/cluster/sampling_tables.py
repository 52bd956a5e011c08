"""What triplets are drawn from: arrays with a number for every node, made once per host and shared by its ranks.

They are written to files of a scratch folder and mapped by all ranks of the host; then the files' names are removed. The
memory goes back when the last rank ends, however it ends.
"""

import os
import socket
import tempfile
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neural_brane.cluster.exchange import Exchange
from neural_brane.cluster.rows import GraphRows, LocalRows, RangedRows
from neural_brane.errors import GraphError
from neural_brane.sampling.alias import AliasTable, alias_table

BLOCK_NODES = 1 << 20  # whose numbers of neighbours are looked up at a time


class SamplingTables(NamedTuple):
    """The arrays of `TripletTables` that have a number per node, and the alias table that j is drawn from."""

    anchors: np.ndarray  # (k,) int32: the nodes that u is drawn from
    weights: np.ndarray  # (nodes,) float64: j is drawn in proportion to these
    alias: AliasTable


def sampling_tables(
    rows: GraphRows,
    exchange: Exchange,
    *,
    negative_power: float,
    allow_self_negative: bool,
    scratch: Path | None = None,
) -> SamplingTables:
    """The tables of a graph, the same as `sampling.triplet_tables` makes. All ranks call it at once.

    scratch: a folder of the host; that of temporary files when None.
    """
    name = exchange.from_first(np.frombuffer(os.urandom(8), np.uint8))
    home = Path(scratch or tempfile.gettempdir()) / f"neural-brane-sampling-{name.tobytes().hex()}"
    is_first = _is_first_of_host(exchange)
    files = {field: home / f"{field}.npy" for field in ("anchors", "weights", "keep", "other")}
    if is_first:
        home.mkdir(parents=True)
    degrees = _degrees(rows, exchange, keep=is_first)
    if is_first and degrees is not None:
        made = _make(*degrees, negative_power, allow_self_negative)
        for path, array in zip(files.values(), (made.anchors, made.weights, *made.alias), strict=True):
            np.save(path, array)
        del made, degrees
    _wait(exchange)
    anchors, weights, keep, other = (np.load(path, mmap_mode="r") for path in files.values())
    _wait(exchange)
    if is_first:
        for path in files.values():
            path.unlink()
        home.rmdir()
    if len(anchors) == 0:
        raise GraphError(
            f"no node of this graph ({rows.nodes:,} nodes) has both a neighbour and a linked node that is not its "
            "neighbour, so there is nothing to rank; give a graph in which at least one pair of linked nodes is not "
            "linked to each other"
        )
    return SamplingTables(np.asarray(anchors), np.asarray(weights), AliasTable(np.asarray(keep), np.asarray(other)))


def _degrees(rows: GraphRows, exchange: Exchange, *, keep: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """How many neighbours every node has and whether it is its own; None where the host's first rank looks it up."""
    counts = np.empty(rows.nodes, np.int64) if keep else None
    loops = np.empty(rows.nodes, np.bool_) if keep else None
    if isinstance(rows, LocalRows):
        if counts is None or loops is None:
            return None
        for first in range(0, rows.nodes, BLOCK_NODES):
            part = slice(first, min(first + BLOCK_NODES, rows.nodes))
            counts[part], loops[part] = rows.mapped.degrees(part.start, part.stop)
        return counts, loops
    assert isinstance(rows, RangedRows)  # noqa: S101  (the other form there is)
    return _gathered(rows, exchange, counts, loops)


def _gathered(
    rows: RangedRows, exchange: Exchange, counts: np.ndarray | None, loops: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """The same where each rank knows its own nodes: it tells all others, some nodes at a time."""
    own = rows.own
    each = -(-rows.nodes // exchange.ranks)
    for first in range(0, each, BLOCK_NODES):
        low, high = min(own.start + first, own.stop), min(own.start + min(first + BLOCK_NODES, each), own.stop)
        degree, loop = rows.mapped.degrees(low, high)
        told = exchange.gather(np.stack([np.arange(low, high), 2 * degree + loop], axis=1))
        if counts is not None and loops is not None:
            counts[told[:, 0]], loops[told[:, 0]] = told[:, 1] // 2, told[:, 1] % 2
    return None if counts is None or loops is None else (counts, loops)


def _make(degree: np.ndarray, loops: np.ndarray, negative_power: float, allow_self_negative: bool) -> SamplingTables:
    """As `sampling.triplet_tables` decides who is ranked for and who is drawn."""
    weights = degree.astype(np.float64) ** negative_power
    candidates = np.count_nonzero(weights)
    excluded = degree if allow_self_negative else degree + ~loops
    anchors = np.flatnonzero((degree > 0) & (excluded < candidates)).astype(np.int32)
    return SamplingTables(anchors, weights, alias_table(weights) if len(anchors) else AliasTable(*[np.empty(0)] * 2))


def _is_first_of_host(exchange: Exchange) -> bool:
    """Whether no rank before this one runs on the same host."""
    host = np.frombuffer(blake2b(socket.gethostname().encode(), digest_size=8).digest(), np.int64)
    return int(np.flatnonzero(exchange.gather(host) == host[0])[0]) == exchange.rank


def _wait(exchange: Exchange) -> None:
    """Return once all ranks have come here."""
    exchange.largest(np.zeros(1, np.int64))
