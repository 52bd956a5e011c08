"""Attributes seen over some hops, reduced together: what three baselines are cases of."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.linalg import (
    REPORTS,
    inverse_frequency,
    leading_eigenvectors,
    tables_on,
    tell_apart,
    transition,
    weigh,
)
from neural_brane.linalg.tables import Table, Tables
from neural_brane.methods.base import Fitted, InductiveEmbedder
from neural_brane.methods.parameters import shared
from neural_brane.progress import Meter


class Hops(NamedTuple):
    """The matrix M = [w₀X, w₁ÂX, w₂Â²X, …]: X are weighted attributes, Â averages over a node and its neighbours."""

    attributes: sparse.csr_array  # X
    weights: Sequence[float] = (1.0,)
    averages: sparse.csr_array | None = None  # Â; None where no weight but the first counts


class Decomposition(NamedTuple):
    """The left singular vectors of M times its singular values, and the squares of these."""

    vectors: np.ndarray  # (nodes, dim) float32
    values: np.ndarray  # (dim,) float64, the largest first


def hops_of(
    graph: AttributedGraph,
    weights: Sequence[float],
    attributes: sparse.csr_array | None = None,
    known: sparse.csr_array | None = None,
    *,
    link_weight: float = 0.0,
) -> Hops:
    """The matrix of a graph; an attribute's weight is its rarity among those `known`, the graph's own unless given.

    With a `link_weight` the node's links are attributes as well: X has a column for every node, with that weight.
    Where neither these nor a known attribute tells nodes apart, links take their place: X is the identity, and w₀
    counts no longer.
    """
    attributes = graph.attributes if attributes is None else attributes
    known = attributes if known is None else known
    weights = np.trim_zeros(weights, "b")
    averages = _single(transition(graph.adjacency, self_loops=True)) if len(weights) > 1 else None
    linked = graph.adjacency.nnz > np.count_nonzero(graph.adjacency.diagonal())  # self-loops join nobody
    told = [weigh(attributes, inverse_frequency(known))] if tell_apart(known) else []
    if link_weight and linked:
        told.append(link_weight * weigh(graph.adjacency, inverse_frequency(graph.adjacency)))
    if told:
        return Hops(_single(sparse.hstack(told, format="csr")), weights, averages)
    if averages is None or not linked:
        raise GraphError(
            f"graph '{graph.name}' has no attribute that tells its nodes apart, and "
            f"{'links are not used' if linked else 'no links either'}; give nodes attributes, or choose a method that "
            "uses the links there are"
        )
    return Hops(sparse.eye_array(len(graph), dtype=np.float32, format="csr"), (0.0, *weights[1:]), averages)


def _single(matrix: sparse.csr_array) -> sparse.csr_array:
    """The matrix in single precision."""
    return matrix.astype(np.float32)


def decompose(
    hops: Hops,
    dim: int,
    *,
    seed: int,
    threads: int | None = 1,
    device: str = "cpu",
    report: Callable[[], Any] | None = None,
) -> Decomposition:
    """The leading `dim` directions of M; columns beyond its rank are zero. `report` is called REPORTS times."""
    tables = tables_on(device, threads)
    values, vectors = leading_eigenvectors(HopProduct(hops, tables), dim, tables=tables, seed=seed, report=report)
    return Decomposition(vectors, values)


class HopProduct:
    """Products with M on a device. ÂX has many entries: it is never formed."""

    def __init__(self, hops: Hops, tables: Tables):
        self.size, self.weights = hops.attributes.shape[0], hops.weights
        # Transposes are kept too, so that every product goes through the rows of a matrix.
        self.attributes, self.transposed_attributes = map(tables.matrix, (hops.attributes, hops.attributes.T.tocsr()))
        if hops.averages is not None:
            self.averages, self.transposed_averages = map(tables.matrix, (hops.averages, hops.averages.T.tocsr()))

    def image(self, table: Table) -> Table:
        """M(Mᵀ table)."""
        return self.across(self, table)

    def transposed(self, table: Table) -> Iterator[Table]:
        """Mᵀ table, hop by hop, without those that have no weight."""
        for hop, weight in enumerate(self.weights):
            table = self.transposed_averages @ table if hop else table
            if weight:
                part = self.transposed_attributes @ table
                part *= weight
                yield part

    def across(self, other: "HopProduct", table: Table) -> Table:
        """M(Nᵀ table), where N is the same matrix of another graph, or of this one."""
        parts = list(other.transposed(table))
        total: Any = None
        for weight in reversed(self.weights):
            before = None if total is None else self.averages @ total
            total = self.attributes @ (weight * parts.pop()) if weight else before
            if weight and before is not None:
                total += before
        return total


class Spectral(InductiveEmbedder):
    """The left singular vectors of weighted hops, times the singular values, at one scale for all graphs.

    One number scales all vectors, so that their mean squared length is dim: then a coordinate's square is 1 on
    average, as in standardised features, however much averaging over hops shrinks them. Ratios between vectors and
    between directions stay as the decomposition gives them. New nodes are projected on the same directions.
    """

    needs_links = False

    device: str = shared("device", default="cpu")

    def _learn(self, graph: AttributedGraph, seed: int) -> Decomposition:
        meter = Meter(self.progress, REPORTS, "steps")
        vectors, values = decompose(
            hops_of(graph, self._weights()), self.dim, seed=seed, threads=self.threads, device=self.device,
            report=meter.advance,
        )  # fmt: skip
        vectors *= np.float32(np.sqrt(self.dim * len(graph) / values.sum()))
        return Decomposition(vectors, values)

    def _encode(self, fitted: Fitted, graph: AttributedGraph, attributes: sparse.csr_array) -> Iterator[np.ndarray]:
        # The directions are V = MᵀU / √values. Vectors and graph give them, so they need not be kept.
        known, (vectors, values) = fitted.graph.attributes, fitted.learned
        tables = tables_on(self.device, self.threads)
        learned = HopProduct(hops_of(fitted.graph, self._weights()), tables)
        other = HopProduct(hops_of(graph, self._weights(), attributes, known), tables)
        shares = np.divide(vectors, values.astype(np.float32), out=np.zeros_like(vectors), where=values > 0)
        yield tables.array(tables.by_slabs(lambda table: other.across(learned, table), tables.table(shares)))

    def _can_transform(self, graph: AttributedGraph) -> bool:
        return tell_apart(graph.attributes)

    @abstractmethod
    def _weights(self) -> Sequence[float]:
        """The weights of the attributes 0, 1, 2, … hops away."""
