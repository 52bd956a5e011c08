"""Reduce attributes seen over some hops by one SVD: the core of three baselines and of Neural-Brane."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Newcomers, carry
from neural_brane.graph.memory import Sizes, require_memory
from neural_brane.insight.contributions import Reasons, SpectralReasons
from neural_brane.kernels.threads import map_threads, one_blas_thread
from neural_brane.linalg.eigenvectors import NEGLIGIBLE, REPORTS, Hops, arrange_hops, leading_eigenvectors, whiten
from neural_brane.linalg.tables import BLOCK_ROWS, Table, Tables, tables_on
from neural_brane.linalg.weights import average_scales, inverse_frequency, link_scales, tell_apart, weigh
from neural_brane.methods.base import Fitted, InductiveEmbedder, Start
from neural_brane.methods.parameters import shared
from neural_brane.methods.training import Moments, spectral_moments, spectral_width
from neural_brane.progress import Meter

_sum = partial(reduce, add)


class Decomposition(NamedTuple):
    """The rows of M along some directions: U = MV, and the squared lengths of U's columns.

    Where they were just found, the directions are the singular ones, the values the squared singular values, and the
    columns orthogonal. An update turns them together, so that nodes stay where they were; then columns are orthogonal
    no longer.
    """

    vectors: np.ndarray  # (nodes, dim) float32: U, perhaps at another scale
    values: np.ndarray  # (dim,) float64, the largest first where they were just found

    def shares(self, tables: Tables) -> Table:
        """U (UᵀU)⁻¹ at the scale of the vectors, of which Mᵀ makes the directions V; nothing beyond the rank."""
        with one_blas_thread():
            table = tables.table(self.vectors.copy())  # copied, because the result is written over it
            gram = tables.gram(table)
            apart, scale = whiten(gram), np.trace(gram) / (self.values.sum() or 1.0)
            return tables.rotate(table, scale * apart @ apart.T)

    @classmethod
    def empty(cls, nodes: int) -> Self:
        """No directions at all."""
        return cls(np.empty((nodes, 0), np.float32), np.empty(0))


class WholeGraph:
    """A graph in memory, as `arrange_hops` reads it."""

    def __init__(self, graph: AttributedGraph):
        self.name, self.attributes, self.adjacency = graph.name, graph.attributes, graph.adjacency
        self.linked = self.adjacency.nnz > np.count_nonzero(self.adjacency.diagonal())  # self-loops join nobody

    def bags(self) -> sparse.csr_array | None:
        """The attributes, weighed by their rarity; None where none of them tells nodes apart."""
        return weighed(self.attributes, self.attributes) if tell_apart(self.attributes) else None

    def averages(self) -> tuple[np.ndarray, np.ndarray]:
        """The scale of A's rows, and the diagonal, that make A an average over neighbours."""
        return average_scales(self.adjacency)

    def links(self) -> tuple[np.ndarray, np.ndarray]:
        """The scales of A's rows and columns that make links what `bags` makes of attributes."""
        return link_scales(self.adjacency)


def hops_of(graph: AttributedGraph, weights: Sequence[float], *, link_weight: float = 0.0) -> Hops:
    """The matrix of a graph: see `arrange_hops`."""
    return arrange_hops(WholeGraph(graph), weights, link_weight=link_weight)


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
        self.columns = []  # the parts of X, each with its transpose
        if hops.attributes is not None:
            self.columns.append(tables.both_ways(hops.attributes))
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
        total: Any = None
        for weight, part in self._averaged(table):
            total = None if total is None else self.averages @ total
            if weight:
                part = weight**2 * reduce(
                    add, [matrix @ (transposed @ part) for matrix, transposed in self.columns] or [part]
                )
                total = part if total is None else total + part
        return total

    def beside(self, new: "NewRows", table: Table) -> Table:
        """N(Mᵀ table), where N has the rows that M would have for new nodes."""
        total, known = self.tables.zeros(new.size, table.shape[1]), None
        for weight, part in self._averaged(table):
            total = new.average(total, known)
            known = None if known is None else self.averages @ known
            columns = [transposed @ part for _, transposed in self.columns]
            of_known = reduce(
                add, [matrix @ column for (matrix, _), column in zip(self.columns, columns, strict=True)] or [part]
            )
            known = weight**2 * of_known + (0 if known is None else known)
            if columns:  # new nodes have nothing of their own where X is the identity
                total = total + weight**2 * reduce(
                    add, [m @ column for m, column in zip(new.columns, columns, strict=True)]
                )
        return total

    def directions(self, table: Table) -> list[list[np.ndarray]]:
        """Xᵀ(Âᵀ)ʰ table for every hop h: an array for every part of X, or for the identity."""
        found = [[self.tables.array(transposed @ part) for _, transposed in self.columns] or [self.tables.array(part)]
                 for _, part in self._averaged(table)]  # fmt: skip
        return found[::-1]

    def _averaged(self, table: Table) -> Iterator[tuple[float, Table]]:
        """Every weight with (Âᵀ)ʰ table, the farthest hop first."""
        averaged = [table]
        for _ in self.weights[1:]:
            averaged.append(self.transposed_averages @ averaged[-1])
        for weight in reversed(self.weights):
            yield weight, averaged.pop()

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


class NewRows:
    """The rows that new nodes would have; known nodes stay as they were, whoever links to them now."""

    def __init__(self, hops: Hops, new: Newcomers, tables: Tables, *, link_weight: float):
        known = new.known
        self.size, self.columns = len(new), []
        if hops.attributes is not None:
            self.columns.append(tables.matrix(weighed(new.attributes, known.attributes)))
        if hops.links is not None:
            self.columns.append(tables.matrix(link_weight * weighed(new.links, known.adjacency)))
        if hops.averages is not None:
            weight = known.adjacency.data.mean(dtype=np.float64) if known.adjacency.nnz else 1.0
            scale = 1 / (new.links @ np.ones(len(known)) + new.among @ np.ones(len(new)) + weight)
            self.links = tables.matrix(new.links).scaled(rows=scale)
            self.among = tables.matrix(new.among).scaled(rows=scale, diagonal=weight * scale)

    def average(self, own: Table, known: Table | None) -> Table:
        """The mean of each new node, its neighbours among new nodes, and those among known ones."""
        return own if known is None else self.among @ own + self.links @ known


def weighed(matrix: sparse.csr_array, known: sparse.csr_array) -> sparse.csr_array:
    """Attributes as tf-idf by their rarity among known nodes, float32."""
    return weigh(matrix, inverse_frequency(known)).astype(np.float32)


def place_newcomers(
    found: Decomposition, new: Newcomers, weights: Sequence[float], tables: Tables, link_weight: float = 0.0
) -> np.ndarray:
    """Project the rows that new nodes would have in M on the directions that were found: (new nodes, dim) float32.

    The directions are V = MᵀU (UᵀU)⁻¹. The vectors and the graph give them, so they need not be kept.
    """
    hops = hops_of(new.known, weights, link_weight=link_weight)
    known, rows = HopProduct(hops, tables), NewRows(hops, new, tables, link_weight=link_weight)
    placed = tables.by_slabs(lambda table: known.beside(rows, table), found.shares(tables))
    return np.ascontiguousarray(tables.array(placed))


def spectral_reasons(found: Decomposition, hops: Hops, *, threads: int | None = 1) -> SpectralReasons:
    """Explain the vectors found by `decompose`; to find their directions takes one pass over the graph."""
    sizes = [matrix.shape[1] for matrix in (hops.attributes, hops.adjacency) if matrix is not None]
    require_memory(
        4 * len(hops.weights) * sum(sizes) * found.vectors.shape[1], "explaining this model",
        "explain a model of fewer dimensions or hops",
    )  # fmt: skip
    tables = tables_on("cpu", threads)
    return SpectralReasons(hops, HopProduct(hops, tables).directions(found.shares(tables)))


class Spectral(InductiveEmbedder):
    """The left singular vectors of weighted hops, times the singular values, at one scale for all graphs.

    One number scales all vectors, so that their mean squared length is dim: then a coordinate's square is 1 on
    average, as in standardised features, however much averaging over hops shrinks them. Ratios between vectors and
    between directions stay as the decomposition gives them. New nodes are projected on the same directions.
    """

    needs_links = False
    updates = True
    shortlisted = True
    holds = {"decomposition": Decomposition}

    device: str = shared("device", default="cpu")

    def memory(self, sizes: Sizes) -> Moments:
        return spectral_moments(sizes, self.dim, hops=len(self._weights()))

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied: with entries over the hops, and among the columns of the table."""
        width, hops = spectral_width(sizes.nodes, self.dim), len(self._weights())
        return float(width * (2 * hops * (sizes.links + sizes.attribute_entries) + sizes.nodes * width))

    def _learn(self, graph: AttributedGraph, seed: int) -> Decomposition:
        meter = Meter(self.progress, REPORTS, "steps")
        vectors, values = decompose(
            hops_of(graph, self._weights()), self.dim, seed=seed, threads=self.threads, device=self.device,
            report=meter.advance,
        )  # fmt: skip
        vectors *= self._scale(values, len(graph))
        return Decomposition(vectors, values)

    def _reasons(self, fitted: Fitted) -> Reasons:
        return spectral_reasons(fitted.learned, hops_of(fitted.graph, self._weights()), threads=self.threads)

    def _update(self, start: Start, graph: AttributedGraph, seed: int) -> Decomposition:
        before, values = start.learned
        unscaled = before / self._scale(values, len(before))
        tables, hops = tables_on(self.device, self.threads), hops_of(graph, self._weights())
        earlier = Decomposition(unscaled, values)
        vectors, values = follow(earlier, hops, start.changes.nodes, tables, self.threads)
        vectors *= self._scale(values, len(graph))
        return Decomposition(vectors, values)

    def _scale(self, values: np.ndarray, nodes: int) -> np.float32:
        """Give the factor that makes the mean squared length dim."""
        return np.float32(np.sqrt(self.dim * nodes / values.sum()))

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        return place_newcomers(fitted.learned, new, self._weights(), tables_on(self.device, self.threads))

    @abstractmethod
    def _weights(self) -> Sequence[float]:
        """The weights of the attributes 0, 1, 2, … hops away."""


def follow(found: Decomposition, hops: Hops, places: np.ndarray, tables: Tables, threads: int | None) -> Decomposition:
    """The directions that were found, in a graph that has changed since: its nodes were at these `places`, or nowhere.

    One step of subspace iteration, from the vectors U of the nodes that stay: the rows that M has now are projected on
    an orthonormal basis of the columns of MᵀU, and then turned as a whole to where they were (orthogonal Procrustes).
    So nothing moves where nothing changed, however often this is done, and new nodes join the others.
    """
    shares = carry(found.vectors, places)
    squares = np.einsum("ij,ij->j", shares, shares, dtype=np.float64)
    shares *= _inverse(squares).astype(np.float32)  # about of one length each in MᵀU
    with one_blas_thread():
        moved = tables.by_slabs(HopProduct(hops, tables).image, tables.table(shares))
        image, width = tables.array(moved), shares.shape[1]
        blocks = [slice(at, at + BLOCK_ROWS) for at in range(0, len(shares), BLOCK_ROWS)]
        products = map_threads(
            lambda rows: shares[rows].astype(np.float64).T @ image[rows].astype(np.float64), blocks, threads
        )
        among = sum(products, np.zeros((width, width)))  # the inner products of MᵀU's columns, block after block
        vectors = np.ascontiguousarray(tables.array(tables.rotate(moved, _turn(among, squares))))
    return Decomposition(vectors, np.einsum("ij,ij->j", vectors, vectors, dtype=np.float64))


def _turn(among: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Find the matrix that makes columns with these inner products orthonormal and turns them to where U was."""
    values, axes = np.linalg.eigh((among + among.T) / 2)
    basis = axes * _inverse(np.sqrt(np.where(values > NEGLIGIBLE * values[-1], values, 0)))
    left, _, right = np.linalg.svd(basis.T @ among * squares)
    turn: np.ndarray = basis @ left @ right
    return turn


def _inverse(values: np.ndarray) -> np.ndarray:
    return np.divide(1, values, out=np.zeros_like(values), where=values > 0)
