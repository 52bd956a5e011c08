"""The rows of a graph's nodes wherever they lie, and the tables that triplets are drawn from."""

import os
import socket
import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from neural_brane.distributed.exchange import Exchange, Requests, node_range
from neural_brane.errors import GraphError
from neural_brane.files.graphs.parts import MemoryShards, Rows, Shards
from neural_brane.kernels.compiling import njit
from neural_brane.kernels.model import Bags
from neural_brane.sampling.random import advance, draw_alias, is_neighbour, stream, uniform
from neural_brane.sampling.tables import AliasTable, alias_table

# What a rank computes of its graph's rows in Numba. None of it holds Python's lock, so that it runs beside a step.


@njit(nogil=True)
def draw_neighbours(indptr, indices, weights, rows, chances):
    """As `sampling.draws.draw_neighbour`, whose running sums of weights are made here, row by row."""
    drawn = np.empty(len(rows), np.int32)
    for k in range(len(rows)):
        start, stop = indptr[rows[k]], indptr[rows[k] + 1]
        if len(weights) == 0:
            drawn[k] = indices[start + np.int64(chances[k] * (stop - start))]
            continue
        total = 0.0
        for at in range(start, stop):
            total += np.float64(weights[at])
        target, total, place = chances[k] * total, 0.0, stop - 1
        for at in range(start, stop):
            total += np.float64(weights[at])
            if total > target:
                place = at
                break
        drawn[k] = indices[place]
    return drawn


@njit(nogil=True)
def find_links(rows, nodes, others):
    """Whether each of others is a neighbour of its node."""
    found = np.empty(len(nodes), np.bool_)
    for k in range(len(nodes)):
        found[k] = is_neighbour(rows, nodes[k], others[k])
    return found


@njit(nogil=True)
def copy_rows(indptr, indices, rows, starts, out):
    """Write each row's numbers to out, from its start on."""
    for k in range(len(rows)):
        first, to = indptr[rows[k]], starts[k]
        for at in range(indptr[rows[k] + 1] - first):
            out[to + at] = indices[first + at]


@njit(nogil=True)
def begin_triplets(seed, first, anchors, alias, triplets, chance, states):
    """Write u and the first draw of j to triplets, i's random number to chance, and the state that j was drawn by."""
    for t in range(len(triplets)):
        state = stream(seed, first + t)
        triplets[t, 0] = anchors[np.int64(uniform(state) * len(anchors))]
        state = advance(state)
        chance[t] = uniform(state)
        states[t] = advance(state)
        triplets[t, 2] = draw_alias(alias, uniform(states[t]))


@njit(nogil=True)
def draw_again(alias, states, refused, triplets):
    """Draw j again for some triplets, and advance their states."""
    for t in refused:
        states[t] = advance(states[t])
        triplets[t, 2] = draw_alias(alias, uniform(states[t]))


@njit(nogil=True)
def draw_others(weights, bags, u, allow_self, states, refused, triplets):
    """Draw j of some triplets from the nodes that their u, whose neighbours are bags, is not linked to."""
    for k in range(len(refused)):
        row = bags.indices[bags.indptr[k] : bags.indptr[k + 1]]
        total = _walk_others(weights, row, u[k], allow_self, np.inf)[1]
        target = uniform(advance(states[k])) * total
        triplets[refused[k], 2] = _walk_others(weights, row, u[k], allow_self, target)[0]


@njit(nogil=True)
def _walk_others(weights, row, u, allow_self, target):
    """Add up the weights of u's non-neighbours until they pass target. Returns the last one added and the sum."""
    total, last, at = 0.0, -1, 0
    for j in range(len(weights)):
        while at < len(row) and row[at] < j:
            at += 1
        if weights[j] == 0 or (at < len(row) and row[at] == j) or (j == u and not allow_self):
            continue
        total += weights[j]
        last = j
        if total > target:
            break
    return last, total


@njit(nogil=True)
def number_distinct(numbers, keys, places, distinct, shift):
    """Open addressing: a number looks from its own place on for itself or for an empty place, −1."""
    keys[:] = -1
    count = 0
    for k in range(len(numbers)):
        number = numbers[k]
        at = np.int64((np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))
        while keys[at] != number and keys[at] >= 0:
            at = (at + 1) & (len(keys) - 1)
        if keys[at] < 0:
            keys[at], places[at], distinct[count] = number, count, number
            count += 1
        numbers[k] = places[at]
    return count


# The rows of a graph's nodes wherever they lie: all mapped here, or a range of nodes here and the rest with others.
#
# Both forms give the same answers bit for bit. They are asked with numbers of the whole graph, in any order.

AnyShards = Shards | MemoryShards


class GraphRows(Protocol):
    """What training asks about nodes. Ranks that hold a range each must all ask at once, in the same order."""

    nodes: int
    attributes: int

    def neighbours(self, u: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """A neighbour of each u, in proportion to its edge's weight, given a uniform number in [0, 1); int32."""

    def linked(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Whether each v is a neighbour of its u."""

    def adjacency_bags(self, nodes: np.ndarray) -> Bags:
        """The neighbours of each node."""

    def attribute_bags(self, nodes: np.ndarray) -> Bags:
        """The attributes of each node."""

    def any(self, flags: np.ndarray) -> bool:
        """Whether a flag is set here or at a rank that asks in step with this one."""


class _Piece(NamedTuple):
    """The rows of the nodes first … first + k − 1, as one part keeps them."""

    first: int
    adjacency: Rows
    attributes: Rows


class MappedRows:
    """Answers about the nodes of a range, whose parts are mapped into memory here."""

    def __init__(self, shards: AnyShards, own: range):
        self.nodes, self.attributes, self.own = shards.nodes, shards.attributes, own
        overlap = [
            k for k in range(len(shards)) if shards.bounds[k] < own.stop and shards.bounds[k + 1] > own.start
        ]  # fmt: skip
        parts = [shards.part(k) for k in overlap]
        self._pieces = [_Piece(part.first, _plain(part.adjacency), _plain(part.attributes)) for part in parts]
        self._bounds = np.array([piece.first for piece in self._pieces], np.int64)

    def weights_range(self) -> tuple[float, float]:
        """The smallest and the largest weight of an edge; 1 where there are no weights."""
        found = [piece.adjacency.data for piece in self._pieces]
        known = [data for data in found if data is not None and len(data)]
        if not known:
            return 1.0, 1.0
        return min(float(data.min()) for data in known), max(float(data.max()) for data in known)

    def neighbours(self, u: np.ndarray, chance: np.ndarray, weighted: bool) -> np.ndarray:
        """A neighbour of each u; without `weighted` all its edges count alike."""
        drawn = np.empty(len(u), np.int32)
        for piece, at in self._deal(u):
            rows = piece.adjacency
            weights = rows.data if weighted and rows.data is not None else np.empty(0, np.float32)
            drawn[at] = draw_neighbours(rows.indptr, rows.indices, weights, u[at] - piece.first, chance[at])
        return drawn

    def linked(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Whether each v is a neighbour of its u."""
        found = np.empty(len(u), np.bool_)
        for piece, at in self._deal(u):
            found[at] = find_links(piece.adjacency, u[at] - piece.first, v[at])
        return found

    def bags(self, side: str, nodes: np.ndarray) -> Bags:
        """The rows of each node; side: "adjacency" or "attributes"."""
        pieces = list(self._deal(nodes))
        indptr = np.zeros(len(nodes) + 1, np.int64)
        for piece, at in pieces:
            ends, rows = getattr(piece, side).indptr, nodes[at] - piece.first
            indptr[1:][at] = ends[rows + 1] - ends[rows]
        np.cumsum(indptr, out=indptr)
        indices = np.empty(indptr[-1], np.int32)
        for piece, at in pieces:
            kept = getattr(piece, side)
            copy_rows(kept.indptr, kept.indices, nodes[at] - piece.first, indptr[:-1][at], indices)
        return Bags(indptr, indices)

    def degrees(self, first: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """How many neighbours the nodes first … stop − 1 have, int64, and whether each is its own neighbour."""
        nodes = np.arange(first, stop)
        counts = np.empty(len(nodes), np.int64)
        for piece, at in self._deal(nodes):
            rows = nodes[at] - piece.first
            counts[at] = piece.adjacency.indptr[rows + 1] - piece.adjacency.indptr[rows]
        return counts, self.linked(nodes, nodes)

    def _deal(self, nodes: np.ndarray) -> Iterator[tuple[_Piece, Any]]:
        """Each part that has some of the nodes, and where these stand."""
        if len(self._pieces) == 1:
            yield self._pieces[0], slice(None)
            return
        home = np.searchsorted(self._bounds, nodes, side="right") - 1
        order = np.argsort(home, kind="stable")
        cuts = np.searchsorted(home[order], np.arange(len(self._pieces) + 1))
        for number, piece in enumerate(self._pieces):
            if cuts[number] < cuts[number + 1]:
                yield piece, order[cuts[number] : cuts[number + 1]]


class LocalRows:
    """All parts are mapped here; the ranks of a host share the pages."""

    def __init__(self, shards: AnyShards):
        self.nodes, self.attributes = shards.nodes, shards.attributes
        self.mapped = MappedRows(shards, range(shards.nodes))
        low, high = self.mapped.weights_range()
        self._weighted = low < high

    def neighbours(self, u: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """A neighbour of each u."""
        return self.mapped.neighbours(u, chance, self._weighted)

    def linked(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Whether each v is a neighbour of its u."""
        return self.mapped.linked(u, v)

    def adjacency_bags(self, nodes: np.ndarray) -> Bags:
        """The neighbours of each node."""
        return self.mapped.bags("adjacency", nodes)

    def attribute_bags(self, nodes: np.ndarray) -> Bags:
        """The attributes of each node."""
        return self.mapped.bags("attributes", nodes)

    def any(self, flags: np.ndarray) -> bool:
        """Whether a flag is set here: nobody else waits for the answer."""
        return bool(flags.any())


class RangedRows:
    """Only the parts of a rank's own nodes are mapped here; other ranks are asked for the rest, in lockstep."""

    def __init__(self, shards: AnyShards, exchange: Exchange):
        self.nodes, self.attributes, self.exchange = shards.nodes, shards.attributes, exchange
        self.own = node_range(shards.nodes, exchange.rank, exchange.ranks)
        self.mapped = MappedRows(shards, self.own)
        low, high = self.mapped.weights_range()
        largest = exchange.largest(np.array([-low, high]))
        self._weighted = bool(-largest[0] < largest[1])

    def neighbours(self, u: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """A neighbour of each u."""
        ask = self._ask(u)
        return ask.answers(self.mapped.neighbours(self._asked(ask), ask.back(chance), self._weighted))

    def linked(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Whether each v is a neighbour of its u."""
        ask = self._ask(u)
        return ask.answers(self.mapped.linked(self._asked(ask), ask.back(v)))

    def adjacency_bags(self, nodes: np.ndarray) -> Bags:
        """The neighbours of each node."""
        return self._bags("adjacency", nodes)

    def attribute_bags(self, nodes: np.ndarray) -> Bags:
        """The attributes of each node."""
        return self._bags("attributes", nodes)

    def any(self, flags: np.ndarray) -> bool:
        """Whether a flag is set at any rank."""
        return bool(self.exchange.largest(np.array([flags.any()], np.int64))[0])

    def _bags(self, side: str, nodes: np.ndarray) -> Bags:
        ask = self._ask(nodes)
        found = self.mapped.bags(side, self._asked(ask))
        lengths, indices = ask.bags(np.diff(found.indptr), found.indices)
        return Bags(np.concatenate([[0], np.cumsum(lengths)]), indices)

    def _ask(self, nodes: np.ndarray) -> Requests:
        return Requests(self.exchange, np.asarray(nodes, np.int64), self.nodes)

    def _asked(self, ask: Requests) -> np.ndarray:
        return ask.wanted + self.own.start


def _plain(rows: Rows) -> Rows:
    """The same rows as plain arrays over the mapped memory, which Numba takes."""
    data = None if rows.data is None else np.asarray(rows.data)
    return Rows(np.asarray(rows.indptr), np.asarray(rows.indices), data)


# What triplets are drawn from: arrays with a number for every node, made once per host and shared by its ranks.
#
# They are written to files of a scratch folder and mapped by all ranks of the host; then the files' names are removed.
# The memory goes back when the last rank ends, however it ends.

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
