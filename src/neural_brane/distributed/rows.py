"""The rows of a graph's nodes wherever they lie, and the tables that triplets are drawn from."""

import os
import socket
import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neural_brane.distributed.exchange import Exchange, Requests, block_size, node_range
from neural_brane.errors import GraphError
from neural_brane.files.graphs.parts import MemoryShards, Rows, Shards
from neural_brane.kernels.compiling import njit
from neural_brane.kernels.model import Bags
from neural_brane.sampling.tables import AliasTable, alias_table
from neural_brane.sampling.walks import advance, draw_alias, is_neighbour, stream, uniform

# Kernels over the rows of a rank's graph. None of them holds Python's lock, so that they run beside a step.


@njit(nogil=True)
def draw_neighbours(indptr, indices, weights, rows, chances):
    """Draw as `sampling.draws.draw_neighbour` does; running sums of weights are made here, row by row."""
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


class Drawn(NamedTuple):
    """Triplets that are being drawn: (count, 3) int32, the random number for i, and the state that j was drawn by."""

    triplets: np.ndarray
    chance: np.ndarray
    states: np.ndarray


@njit(nogil=True)
def begin_triplets(seed, first, anchors, alias, drawn):
    """Write u, the random number for i, and the first draw of j with its state."""
    for t in range(len(drawn.triplets)):
        state = stream(seed, first + t)
        drawn.triplets[t, 0] = anchors[np.int64(uniform(state) * len(anchors))]
        state = advance(state)
        drawn.chance[t] = uniform(state)
        drawn.states[t] = advance(state)
        drawn.triplets[t, 2] = draw_alias(alias, uniform(drawn.states[t]))


@njit(nogil=True)
def draw_again(alias, refused, drawn):
    """Draw j again for some triplets, and advance their states."""
    for t in refused:
        drawn.states[t] = advance(drawn.states[t])
        drawn.triplets[t, 2] = draw_alias(alias, uniform(drawn.states[t]))


@njit(nogil=True)
def draw_others(weights, bags, allow_self, refused, drawn):
    """Draw j of some triplets from the nodes that their u, whose neighbours are bags, is not linked to."""
    for k in range(len(refused)):
        u = drawn.triplets[refused[k], 0]
        row = bags.indices[bags.indptr[k] : bags.indptr[k + 1]]
        total = _walk_others(weights, row, u, allow_self, np.inf)[1]
        target = uniform(advance(drawn.states[refused[k]])) * total
        drawn.triplets[refused[k], 2] = _walk_others(weights, row, u, allow_self, target)[0]


@njit(nogil=True)
def _walk_others(weights, row, u, allow_self, target):
    """Add up the weights of u's non-neighbours until they pass target; return the last one added and the sum."""
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


# The rows of a graph's nodes: all mapped here, or a range of nodes here and the rest with other ranks.

AnyShards = Shards | MemoryShards


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
        """Count the neighbours of the nodes first … stop − 1, int64, and tell whether each is its own neighbour."""
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


class GraphRows:
    """Answers about any nodes of the whole graph, the same bits wherever their rows lie.

    Without an exchange, all parts are mapped here, and the ranks of a host share the pages. With one, each rank maps
    the parts of its own nodes and asks the others for the rest: all must ask at once, in the same order.
    """

    def __init__(self, shards: AnyShards, exchange: Exchange | None = None):
        self.exchange = exchange or Exchange(alone=True)
        self.nodes, self.attributes = shards.nodes, shards.attributes
        self.own = node_range(shards.nodes, self.exchange.rank, self.exchange.ranks)
        self.mapped = MappedRows(shards, self.own)
        low, high = self.mapped.weights_range()
        largest = self.exchange.largest(np.array([-low, high]))
        self._weighted = bool(-largest[0] < largest[1])

    @property
    def is_whole(self) -> bool:
        """Whether nobody else needs to be asked."""
        return self.exchange.ranks == 1

    def neighbours(self, u: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """Draw a neighbour of each u in proportion to its edge's weight, given a uniform number in [0, 1); int32."""
        if self.is_whole:
            return self.mapped.neighbours(u, chance, self._weighted)
        ask = self._ask(u)
        return ask.answers(self.mapped.neighbours(ask.wanted + self.own.start, ask.back(chance), self._weighted))

    def linked(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Tell of each v whether it is a neighbour of its u."""
        if self.is_whole:
            return self.mapped.linked(u, v)
        ask = self._ask(u)
        return ask.answers(self.mapped.linked(ask.wanted + self.own.start, ask.back(v)))

    def bags(self, side: str, nodes: np.ndarray) -> Bags:
        """Return the rows of each node in "adjacency" or "attributes"."""
        if self.is_whole:
            return self.mapped.bags(side, nodes)
        ask = self._ask(nodes)
        found = self.mapped.bags(side, ask.wanted + self.own.start)
        lengths, indices = ask.bags(np.diff(found.indptr), found.indices)
        return Bags(np.concatenate([[0], np.cumsum(lengths)]), indices)

    def any(self, flags: np.ndarray) -> bool:
        """Whether a flag is set here, or at a rank that asks in step with this one."""
        return bool(self.exchange.largest(np.array([flags.any()], np.int64))[0])

    def _ask(self, nodes: np.ndarray) -> Requests:
        return Requests(self.exchange, np.asarray(nodes, np.int64), self.nodes)


def _plain(rows: Rows) -> Rows:
    """The same rows as plain arrays over the mapped memory, which Numba takes."""
    data = None if rows.data is None else np.asarray(rows.data)
    return Rows(np.asarray(rows.indptr), np.asarray(rows.indices), data)


# Tables that triplets are drawn from: a number for every node, made once per host and shared by its ranks.
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
    degrees = _degrees(rows, keep=is_first)
    if degrees is not None:
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


def _degrees(rows: GraphRows, *, keep: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Return how many neighbours every node has and whether it is its own; None on ranks that do not `keep` them.

    Where each rank knows its own nodes, it tells all others, some nodes at a time.
    """
    if rows.is_whole and not keep:
        return None
    own, each = rows.own, block_size(rows.nodes, rows.exchange.ranks)
    counts, loops = (np.empty(rows.nodes if keep else 0, kind) for kind in (np.int64, np.bool_))
    for first in range(0, each, BLOCK_NODES):
        low, high = min(own.start + first, own.stop), min(own.start + min(first + BLOCK_NODES, each), own.stop)
        degree, loop = rows.mapped.degrees(low, high)
        known = rows.exchange.gather(np.stack([np.arange(low, high), 2 * degree + loop], axis=1))
        if keep:
            counts[known[:, 0]], loops[known[:, 0]] = known[:, 1] // 2, known[:, 1] % 2
    return (counts, loops) if keep else None


def _make(degree: np.ndarray, loops: np.ndarray, negative_power: float, allow_self_negative: bool) -> SamplingTables:
    """Decide as `sampling.triplet_tables` who is ranked for and who is drawn."""
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
