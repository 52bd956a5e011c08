"""Draw a rank's share of each batch from a graph in shards, which may lie on other ranks."""

import os
import socket
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from neural_brane.distributed.exchange import Exchange, Requests, block_size, node_range
from neural_brane.errors import GraphError
from neural_brane.files.graphs.shards import MemoryShards, Shard, ShardRows, Shards
from neural_brane.kernels.compiling import njit
from neural_brane.kernels.model import Bags
from neural_brane.sampling.tables import AliasTable, alias_table
from neural_brane.sampling.triplets import PATIENCE
from neural_brane.sampling.walks import advance, draw_alias, is_neighbour, stream, uniform

# These kernels read the rows of a rank's graph. They release the GIL, so that they run during a training step.


@njit(nogil=True)
def draw_neighbours(indptr, indices, weights, rows, chances):
    """Draw a neighbour for each of rows (k,) by chances (k,) in [0, 1), as `sampling.draws.draw_neighbour` does."""
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
    """Return whether each of others (k,) is a neighbour of the same place's node, (k,) bool."""
    linked = np.empty(len(nodes), np.bool_)
    for k in range(len(nodes)):
        linked[k] = is_neighbour(rows, nodes[k], others[k])
    return linked


@njit(nogil=True)
def copy_rows(indptr, indices, rows, starts, out):
    """Write the column indices of row k to out, beginning at starts[k]."""
    for k in range(len(rows)):
        first, to = indptr[rows[k]], starts[k]
        for at in range(indptr[rows[k] + 1] - first):
            out[to + at] = indices[first + at]


class Drawn(NamedTuple):
    """Triplets (u, i, j) while they are drawn."""

    triplets: np.ndarray  # (count, 3) int32
    chance: np.ndarray  # (count,) float64: the uniform number that draws i
    states: np.ndarray  # (count,) uint64: the random state that drew j


@njit(nogil=True)
def begin_triplets(seed, first, anchors, drawn):
    """Write u, the uniform number for i, and the random state before the first draw of j."""
    for t in range(len(drawn.triplets)):
        state = stream(seed, first + t)
        drawn.triplets[t, 0] = anchors[np.int64(uniform(state) * len(anchors))]
        drawn.states[t] = advance(state)
        drawn.chance[t] = uniform(drawn.states[t])


@njit(nogil=True)
def draw_last(alias, pending, drawn):
    """Draw j for the triplets numbered in pending, and advance their random states."""
    for t in pending:
        drawn.states[t] = advance(drawn.states[t])
        drawn.triplets[t, 2] = draw_alias(alias, uniform(drawn.states[t]))


@njit(nogil=True)
def draw_others(weights, bags, allow_self, refused, drawn):
    """Draw j for the triplets numbered in refused among non-neighbours of u; bags: the neighbours of each u."""
    for k in range(len(refused)):
        u = drawn.triplets[refused[k], 0]
        row = bags.indices[bags.indptr[k] : bags.indptr[k + 1]]
        total = _walk_others(weights, row, u, allow_self, np.inf)[1]
        target = uniform(advance(drawn.states[refused[k]])) * total
        drawn.triplets[refused[k], 2] = _walk_others(weights, row, u, allow_self, target)[0]


@njit(nogil=True)
def _walk_others(weights, row, u, allow_self, target):
    """Sum the weights of nodes that are not in row until the sum exceeds target; return the last node and the sum."""
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
    """Replace numbers by their places among the distinct ones, which are written to distinct; return their count."""
    keys[:] = -1  # keys and places are a hash table with open addressing; −1 means free
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


AnyShards = Shards | MemoryShards


class GraphRows:
    """The rows of all nodes of a graph: from all shards, mapped, or with an exchange from this rank's shards only."""

    def __init__(self, shards: AnyShards, exchange: Exchange | None = None):
        self.exchange = exchange or Exchange(alone=True)
        self.nodes, self.attributes = shards.nodes, shards.attributes
        self.own = own = node_range(shards.nodes, self.exchange.rank, self.exchange.ranks)
        bounds = shards.bounds
        overlap = [k for k in range(len(shards)) if bounds[k] < own.stop and bounds[k + 1] > own.start]
        parts = [shards.shard(k) for k in overlap]
        self._pieces = [Shard(part.first, _plain(part.adjacency), _plain(part.attributes)) for part in parts]
        self._bounds = np.array([piece.first for piece in self._pieces], np.int64)
        known = [data for piece in self._pieces if (data := piece.adjacency.data) is not None and len(data)]
        low = min((float(data.min()) for data in known), default=1.0)
        high = max((float(data.max()) for data in known), default=1.0)
        largest = self.exchange.largest(np.array([-low, high]))
        self._weighted = bool(-largest[0] < largest[1])

    def neighbours(self, u: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """Draw a neighbour of each u in proportion to the edge weights, by uniform numbers in [0, 1); int32."""
        requests = self._request(u)
        nodes, chance = requests.own_rows + self.own.start, requests.back(chance)
        drawn = np.empty(len(nodes), np.int32)
        for piece, at in self._by_piece(nodes):
            rows = piece.adjacency
            weights = rows.data if self._weighted and rows.data is not None else np.empty(0, np.float32)
            drawn[at] = draw_neighbours(rows.indptr, rows.indices, weights, nodes[at] - piece.first, chance[at])
        return requests.answers(drawn)

    def linked(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return whether each v is a neighbour of the same place's u, bool."""
        requests = self._request(u)
        return requests.answers(self._linked(requests.own_rows + self.own.start, requests.back(v)))

    def bags(self, side: str, nodes: np.ndarray) -> Bags:
        """Return the rows of each node in "adjacency" or "attributes"."""
        requests = self._request(nodes)
        nodes = requests.own_rows + self.own.start
        pieces = list(self._by_piece(nodes))
        lengths = np.empty(len(nodes), np.int64)
        for piece, at in pieces:
            ends, rows = getattr(piece, side).indptr, nodes[at] - piece.first
            lengths[at] = ends[rows + 1] - ends[rows]
        starts = np.cumsum(lengths) - lengths
        indices = np.empty(lengths.sum(), np.int32)
        for piece, at in pieces:
            table = getattr(piece, side)
            copy_rows(table.indptr, table.indices, nodes[at] - piece.first, starts[at], indices)
        lengths, indices = requests.bags(lengths, indices)
        return Bags(np.concatenate([[0], np.cumsum(lengths)]), indices)

    def any(self, flags: np.ndarray) -> bool:
        """Return whether a flag is true on any rank that shares the rows."""
        return bool(self.exchange.largest(np.array([flags.any()], np.int64))[0])

    def degrees(self, first: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the degrees of own nodes first … stop − 1, int64, and whether each has a self-loop, bool."""
        nodes = np.arange(first, stop)
        counts = np.empty(len(nodes), np.int64)
        for piece, at in self._by_piece(nodes):
            rows = nodes[at] - piece.first
            counts[at] = piece.adjacency.indptr[rows + 1] - piece.adjacency.indptr[rows]
        return counts, self._linked(nodes, nodes)

    def _linked(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        linked = np.empty(len(u), np.bool_)
        for piece, at in self._by_piece(u):
            linked[at] = find_links(piece.adjacency, u[at] - piece.first, v[at])
        return linked

    def _request(self, nodes: np.ndarray) -> Requests:
        return Requests(self.exchange, np.asarray(nodes, np.int64), self.nodes)

    def _by_piece(self, nodes: np.ndarray) -> Iterator[tuple[Shard, Any]]:
        """Yield each shard that contains some of the own nodes, and the positions of these nodes."""
        if len(self._pieces) == 1:
            yield self._pieces[0], slice(None)
            return
        home = np.searchsorted(self._bounds, nodes, side="right") - 1
        order = np.argsort(home, kind="stable")
        cuts = np.searchsorted(home[order], np.arange(len(self._pieces) + 1))
        for number, piece in enumerate(self._pieces):
            if cuts[number] < cuts[number + 1]:
                yield piece, order[cuts[number] : cuts[number + 1]]


def _plain(rows: ShardRows) -> ShardRows:
    """Return the same rows as plain arrays over the mapped memory, because Numba accepts no memory maps."""
    data = None if rows.data is None else np.asarray(rows.data)
    return ShardRows(np.asarray(rows.indptr), np.asarray(rows.indices), data)


# The tables for drawing triplets have an entry for every node. The first rank of a host writes them to temporary files,
# and all ranks of the host map these. The files are then deleted, so that the system frees the memory when the last
# rank ends, even if it is killed.

BLOCK_NODES = 1 << 20  # nodes whose degrees are read at a time


class SamplingTables(NamedTuple):
    """The tables for drawing triplets, as in `sampling.triplets`."""

    anchors: np.ndarray  # (k,) int32: candidates for u
    weights: np.ndarray  # (nodes,) float64: j is drawn in proportion to these
    alias: AliasTable  # draws j


def sampling_tables(
    rows: GraphRows, exchange: Exchange, *, negative_power: float, allow_self_negative: bool
) -> SamplingTables:  # fmt: skip
    """Make the same tables as `sampling.triplet_tables`. All ranks call this together."""
    name = exchange.from_first(np.frombuffer(os.urandom(8), np.uint8))
    home = Path(tempfile.gettempdir()) / f"neural-brane-sampling-{name.tobytes().hex()}"
    host = np.frombuffer(blake2b(socket.gethostname().encode(), digest_size=8).digest(), np.int64)
    is_first = int(np.flatnonzero(exchange.gather(host) == host[0])[0]) == exchange.rank  # first rank of this host
    files = {field: home / f"{field}.npy" for field in ("anchors", "weights", "keep", "other")}
    degrees = _degrees(rows, keep=is_first)
    if degrees is not None:
        home.mkdir(parents=True)
        degree, loops = degrees
        weights = degree.astype(np.float64) ** negative_power
        excluded = degree if allow_self_negative else degree + ~loops
        anchors = np.flatnonzero((degree > 0) & (excluded < np.count_nonzero(weights))).astype(np.int32)
        alias = alias_table(weights) if len(anchors) else AliasTable(*[np.empty(0)] * 2)
        arrays: list[np.ndarray] = [anchors, weights, *alias]
        for path, array in zip(files.values(), arrays, strict=True):
            np.save(path, array)
        del degrees, degree, loops, excluded, alias, arrays
    exchange.wait()
    anchors, weights, keep, other = (np.asarray(np.load(path, mmap_mode="r")) for path in files.values())
    exchange.wait()
    if is_first:
        for path in files.values():
            path.unlink()
        home.rmdir()
    if len(anchors) == 0:
        raise GraphError(
            f"no node of this graph ({rows.nodes:,} nodes) has both a neighbour and a linked node that is not its "
            "neighbour, so no triplet can be drawn; give a graph in which two linked nodes are not neighbours"
        )
    return SamplingTables(anchors, weights, AliasTable(keep, other))


def _degrees(rows: GraphRows, *, keep: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the degrees of all nodes and whether each has a self-loop; None on ranks that do not `keep` them."""
    if rows.exchange.ranks == 1 and not keep:
        return None
    own, each = rows.own, block_size(rows.nodes, rows.exchange.ranks)
    counts, loops = (np.empty(rows.nodes if keep else 0, kind) for kind in (np.int64, np.bool_))
    for first in range(0, each, BLOCK_NODES):
        low, high = min(own.start + first, own.stop), min(own.start + min(first + BLOCK_NODES, each), own.stop)
        degree, loop = rows.degrees(low, high)
        known = rows.exchange.gather(np.stack([np.arange(low, high), 2 * degree + loop], axis=1))
        if keep:
            counts[known[:, 0]], loops[known[:, 0]] = known[:, 1] // 2, known[:, 1] % 2
    return (counts, loops) if keep else None


class Batch(NamedTuple):
    """A rank's share of a batch. Nodes and table rows are renumbered from 0, in order of their first appearance."""

    triplets: np.ndarray  # (count, 3) int32: numbers of distinct nodes
    bags: tuple[Bags, Bags]  # attributes and neighbours of each distinct node
    ids: tuple[np.ndarray, np.ndarray]  # (k,) int64: the rows of P and of P' in the bags


def share_of(batch: int, rank: int, ranks: int) -> range:
    """Return the numbers of the triplets of a batch that belong to one rank."""
    return range(batch * rank // ranks, batch * (rank + 1) // ranks)


class BatchMaker:
    """Make a rank's share of any batch, with the triplets of `sampling.triplets`; ranks draw at the same time."""

    def __init__(
        self, rows: GraphRows, tables: SamplingTables, share: range, batch: int, *, allow_self_negative: bool, seed: int
    ):  # fmt: skip
        self.rows, self.tables, self.share, self.batch = rows, tables, share, batch
        self.allow_self_negative, self.seed = allow_self_negative, np.uint64(seed)
        self._number = Numbering()

    def __call__(self, step: int) -> Batch:
        """Make this rank's share of batch number `step`."""
        triplets = self.draw(step * self.batch + self.share.start, len(self.share))
        nodes = self._number(triplets.reshape(-1))
        return bags_of_nodes(self.rows, nodes, self._number)._replace(triplets=triplets)

    def draw(self, first: int, count: int) -> np.ndarray:
        """Return triplets (u, i, j) number first … first + count − 1, (count, 3) int32."""
        drawn = Drawn(np.empty((count, 3), np.int32), np.empty(count), np.empty(count, np.uint64))
        triplets, tables = drawn.triplets, self.tables
        begin_triplets(self.seed, first, tables.anchors, drawn)
        u, pending = triplets[:, 0].astype(np.int64), np.arange(count)
        triplets[:, 1] = self.rows.neighbours(u, drawn.chance)
        for _ in range(PATIENCE):
            draw_last(tables.alias, pending, drawn)
            j = triplets[pending, 2]
            again = self.rows.linked(u[pending], j)
            pending = pending[again if self.allow_self_negative else again | (j == u[pending])]
            if not self.rows.any(np.array([len(pending)])):
                return triplets
        bags = self.rows.bags("adjacency", u[pending])  # u has almost all nodes as neighbours: draw from the others
        draw_others(tables.weights, bags, self.allow_self_negative, pending, drawn)
        return triplets


def bags_of_nodes(rows: GraphRows, nodes: np.ndarray, number: "Numbering | None" = None) -> Batch:
    """Return a batch without triplets: the bags of distinct nodes."""
    number = number or Numbering()
    bags = rows.bags("attributes", nodes), rows.bags("adjacency", nodes)
    return Batch(np.empty((0, 3), np.int32), bags, (number(bags[0].indices), number(bags[1].indices)))


class Prefetch:
    """Prepare the next batch in a thread during the current step; use it in a `with` statement."""

    def __init__(self, make: BatchMaker, steps: int):
        self._make, self._steps = make, steps
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="neural-brane-batches")
        self._next: tuple[int, Future[Batch]] | None = None

    def __call__(self, step: int) -> Batch:
        """Return batch number `step`, and begin the one after it."""
        ahead, self._next = self._next, None
        future = ahead[1] if ahead and ahead[0] == step else self._pool.submit(self._make, step)
        batch = future.result()
        if step + 1 < self._steps:
            self._next = step + 1, self._pool.submit(self._make, step + 1)
        return batch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True)  # other ranks may need this rank's answers for the batch


class Numbering:
    """Number the distinct entries of arrays by first appearance; the memory of its hash table is reused."""

    def __init__(self) -> None:
        self._keys, self._places = np.empty(0, np.int32), np.empty(0, np.int32)

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        """Replace entries (k,) int32 ≥ 0 by their places among the distinct entries, in place; return these, int64.

        >>> numbers = np.array([7, 3, 7], np.int32)
        >>> Numbering()(numbers), numbers
        (array([7, 3]), array([0, 1, 0], dtype=int32))
        """
        bits = max(int(2 * len(numbers) - 1).bit_length(), 4) if len(numbers) else 4
        if len(self._keys) < 1 << bits:
            self._keys, self._places = np.empty(1 << bits, np.int32), np.empty(1 << bits, np.int32)
        distinct = np.empty(len(numbers), np.int64)
        count = number_distinct(numbers, self._keys[: 1 << bits], self._places, distinct, 64 - bits)
        return distinct[:count].copy()
