"""The rows of a graph's nodes wherever they lie: all mapped here, or a range of nodes here and the rest with others.

Both forms give the same answers bit for bit. They are asked with numbers of the whole graph, in any order.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from neural_brane.cluster.draws import copy_rows, draw_neighbours, find_links
from neural_brane.cluster.exchange import Exchange, Requests
from neural_brane.cluster.ranges import node_range
from neural_brane.kernels.model import Bags
from neural_brane.shards import MemoryShards, Rows, Shards

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
