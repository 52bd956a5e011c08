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
    average_scales,
    inverse_frequency,
    leading_eigenvectors,
    link_scales,
    tables_on,
    tell_apart,
    weigh,
)
from neural_brane.linalg.tables import Table, Tables
from neural_brane.methods.base import Fitted
from neural_brane.methods.inductive import InductiveEmbedder
from neural_brane.methods.parameters import shared
from neural_brane.progress import Meter


class Hops(NamedTuple):
    """What the matrix M = [w₀X, w₁ÂX, w₂Â²X, …] is made of: X = [attributes ‖ links], Â averages over neighbours.

    Links are the adjacency A itself between two scalings, and so is Â: none of them is ever formed.
    """

    attributes: sparse.csr_array | None  # weighed; with neither these nor links, X is the identity
    weights: Sequence[float] = (1.0,)
    adjacency: sparse.csr_array | None = None  # A; None where it has no part in M
    links: tuple[np.ndarray, np.ndarray] | None = None  # scales of A's rows and columns
    averages: tuple[np.ndarray, np.ndarray] | None = None  # scale of A's rows, and what stands on Â's diagonal


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
    adjacency = graph.adjacency
    linked = adjacency.nnz > np.count_nonzero(adjacency.diagonal())  # self-loops join nobody
    bags = weigh(attributes, inverse_frequency(known)).astype(np.float32) if tell_apart(known) else None
    averages = average_scales(adjacency) if len(weights) > 1 else None
    links = None
    if link_weight and linked:
        rows, columns = link_scales(adjacency)
        links = link_weight * rows, columns
    if bags is None and links is None:
        if averages is None or not linked:
            raise GraphError(
                f"graph '{graph.name}' has no attribute that tells its nodes apart, and "
                f"{'links are not used' if linked else 'no links either'}; give nodes attributes, or choose a method "
                "that uses the links there are"
            )
        weights = (0.0, *weights[1:])
    return Hops(bags, weights, adjacency if links or averages else None, links, averages)


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
        self.tables, self.weights = tables, hops.weights
        self.size = next(matrix.shape[0] for matrix in (hops.attributes, hops.adjacency) if matrix is not None)
        self.columns = []  # the parts of X and their transposes, so that every product goes through a matrix's rows
        if hops.attributes is not None:
            self.columns.append((tables.matrix(hops.attributes), tables.matrix(hops.attributes.T.tocsr())))
        if hops.adjacency is None:
            return
        adjacency = tables.matrix(hops.adjacency)  # symmetric: its transpose swaps the scales of rows and columns
        if hops.links is not None:
            rows, columns = hops.links
            transposed = adjacency.scaled(rows=columns, columns=rows)
            self.columns.append((adjacency.scaled(rows=rows, columns=columns), transposed))
        if hops.averages is not None:
            scale, diagonal = hops.averages
            self.averages = adjacency.scaled(rows=scale, diagonal=diagonal)
            self.transposed_averages = adjacency.scaled(columns=scale, diagonal=diagonal)

    def image(self, table: Table) -> Table:
        """M(Mᵀ table)."""
        return self.across(self, table)

    def across(self, other: "HopProduct", table: Table) -> Table:
        """M(Nᵀ table), where N is the same matrix of another graph, or of this one."""
        averaged = [table]
        for _ in other.weights[1:]:
            averaged.append(other.transposed_averages @ averaged[-1])
        total: Any = None
        for weight in reversed(self.weights):
            part, total = averaged.pop(), None if total is None else self.averages @ total
            if weight:
                part = weight**2 * self._without_hops(other, part)
                total = part if total is None else total + part
        return total

    def gram(self, table: Table) -> np.ndarray:
        """The inner products of the columns of Mᵀ table, float64."""
        total = np.zeros((table.shape[1],) * 2)
        for hop, weight in enumerate(self.weights):
            if hop:  # the first average is a table of its own, and the next are written over it
                table = self.tables.by_slabs(lambda slab: self.transposed_averages @ slab, table, reuse=hop > 1)
            if weight:
                grams = [transposed.gram(table) for _, transposed in self.columns] or [self.tables.gram(table)]
                total += weight**2 * sum(grams)
        return total

    def _without_hops(self, other: "HopProduct", table: Table) -> Table:
        """X(Yᵀ table), where Y are the attributes and links of the other."""
        if not self.columns:
            return table
        (matrix, _), *rest = self.columns
        (_, transposed), *others = other.columns
        total = matrix @ (transposed @ table)
        for (matrix, _), (_, transposed) in zip(rest, others, strict=True):
            total += matrix @ (transposed @ table)
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
