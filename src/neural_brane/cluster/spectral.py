"""The spectral part by ranks: the joint SVD of attributes and links, of which each rank holds its own nodes' rows."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from neural_brane.cluster.exchange import Exchange
from neural_brane.cluster.own import MOST_ROWS, OwnMatrix, own_matrix
from neural_brane.cluster.products import OnRanks
from neural_brane.linalg import average_scales, leading_eigenvectors, link_scales, tables_on, weigh
from neural_brane.linalg.hops import arrange_hops
from neural_brane.linalg.weights import rarity
from neural_brane.methods._spectral import Decomposition, HopProduct


class OwnGraph:
    """The rows of a graph that a rank owns, as what the matrix M is made of; its numbers are those of the whole graph.

    All ranks ask for the same things in the same order. most_rows: of other ranks that are held at once.
    """

    def __init__(self, shards: Any, exchange: Exchange, most_rows: int = MOST_ROWS):
        self.shards, self.exchange, self.most_rows, self.name = shards, exchange, most_rows, shards.name

    @cached_property
    def adjacency(self) -> OwnMatrix:
        """The own rows of A."""
        return own_matrix(self.shards, "adjacency", self.shards.nodes, self.exchange, self.most_rows)

    @cached_property
    def attributes(self) -> OwnMatrix:
        """The own nodes' attributes."""
        return own_matrix(self.shards, "attributes", self.shards.attributes, self.exchange, self.most_rows)

    @cached_property
    def linked(self) -> bool:
        """Whether any edge joins two nodes; self-loops join nobody."""
        matrix = self.adjacency.matrix  # own columns stand first, so its diagonal is that of A
        return bool(self._sum(matrix.nnz - np.count_nonzero(matrix.diagonal())) > 0)

    @cached_property
    def holders(self) -> np.ndarray:
        """How many nodes have each attribute that the rank owns."""
        own = self.attributes
        return own.collect(np.bincount(own.matrix.indices, minlength=own.matrix.shape[1]))

    @cached_property
    def tell_apart(self) -> bool:
        """Whether some attribute tells nodes apart: not all of them have it in the same amount."""
        nodes, matrix = self.shards.nodes, self.attributes.matrix
        if self._sum(np.count_nonzero((self.holders > 0) & (self.holders < nodes))):
            return True
        everywhere = int(self._sum(np.count_nonzero(self.holders)))  # and no node has any other
        amounts = matrix.data.reshape(matrix.shape[0], everywhere)
        first = self.exchange.from_first(amounts[0] if len(amounts) else np.empty(everywhere, np.float32))
        return bool(self._sum(np.count_nonzero(amounts != first)))

    def bags(self) -> OwnMatrix | None:
        """The attributes, weighed by their rarity; None where none of them tells nodes apart."""
        if not self.tell_apart:
            return None
        own = self.attributes
        weights = own.fetch(rarity(self.holders, self.shards.nodes))
        del self.attributes  # the weighed ones take its place
        return own._replace(matrix=weigh(own.matrix, weights).astype(np.float32))

    def averages(self) -> tuple[np.ndarray, np.ndarray]:
        """The scale of A's own rows, and the diagonal, that make A an average over neighbours."""
        matrix = self.adjacency.matrix
        entries = self._sum(matrix.nnz)
        return average_scales(matrix, self._sum(matrix.data.sum(dtype=np.float64)) / entries if entries else 1.0)

    def links(self) -> tuple[np.ndarray, np.ndarray]:
        """The scales of A's own rows and columns that make links what `bags` makes of attributes."""
        own = self.adjacency
        weights = rarity(np.diff(own.matrix.indptr), self.shards.nodes)  # A is symmetric: a column is a row
        return link_scales(own.matrix, own.fetch(weights))[0], weights

    def _sum(self, number: Any) -> float:
        return float(self.exchange.total(np.array([number], np.float64))[0])


def spectral_part(
    shards: Any,
    exchange: Exchange,
    settings: dict[str, Any],
    seed: int,
    report: Callable[[], Any] | None = None,
    most_rows: int = MOST_ROWS,
) -> Decomposition:
    """The joint SVD of attributes and links over hops, with the own nodes' rows as vectors: (own nodes, spectral_dim).

    All ranks call it together, and the vectors of one process come out, up to rounding. `report` is called
    `linalg.REPORTS` times. most_rows: of other ranks that are held at once, or as many as a rank owns if that is more.
    """
    graph = OwnGraph(shards, exchange, most_rows)
    tables = OnRanks(tables_on(exchange.device.type, settings["threads"]), exchange)
    hops = arrange_hops(graph, settings["hop_weights"], link_weight=settings["link_weight"])
    product = HopProduct(hops, tables)
    del graph, hops  # where columns come in several rounds, the product has its own copy of the entries
    values, vectors = leading_eigenvectors(product, settings["spectral_dim"], tables=tables, seed=seed, report=report)
    return Decomposition(vectors, exchange.from_first(values))
