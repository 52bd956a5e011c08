"""Reduce the attributes within several hops by one SVD: the core of three baselines and of Neural-Brane."""

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
from neural_brane.linalg.eigenvectors import NEGLIGIBLE, REPORTS, Hops, factor_hops, leading_eigenvectors, whiten
from neural_brane.linalg.tables import BLOCK_ROWS, Table, Tables, tables_on
from neural_brane.linalg.weights import average_scales, distinguishes_nodes, inverse_frequency, link_scales, weigh
from neural_brane.methods.base import Fitted, InductiveEmbedder, Start
from neural_brane.methods.parameters import shared
from neural_brane.methods.training import Moments, spectral_moments, spectral_width
from neural_brane.progress import Meter

_sum = partial(reduce, add)


class Decomposition(NamedTuple):
    """The projections U = MV of the rows of M on several directions V, and the squared lengths of U's columns.

    After `decompose` the directions are singular vectors, the values are the squared singular values, and the columns
    are orthogonal. An update rotates all directions so that nodes stay in place; the columns are then no longer
    orthogonal.
    """

    vectors: np.ndarray  # U (nodes, dim) float32, possibly scaled
    values: np.ndarray  # (dim,) float64, largest first after `decompose`

    def shares(self, tables: Tables) -> Table:
        """Return S = U (UᵀU)⁻¹ at the scale of the vectors, so that V = MᵀS; columns beyond the rank are zero."""
        with one_blas_thread():
            table = tables.table(self.vectors.copy())  # copied, because the result is written over it
            gram = tables.gram(table)
            apart, scale = whiten(gram), np.trace(gram) / (self.values.sum() or 1.0)
            return tables.rotate(table, scale * apart @ apart.T)

    @classmethod
    def empty(cls, nodes: int) -> Self:
        """Return a decomposition without directions."""
        return cls(np.empty((nodes, 0), np.float32), np.empty(0))


class WholeGraph:
    """A graph in memory, in the form that `factor_hops` reads."""

    def __init__(self, graph: AttributedGraph):
        self.name, self.attributes, self.adjacency = graph.name, graph.attributes, graph.adjacency
        self.linked = self.adjacency.nnz > np.count_nonzero(self.adjacency.diagonal())  # self-loops do not count

    def bags(self) -> sparse.csr_array | None:
        """Return the attributes weighed by rarity; None if no attribute distinguishes nodes."""
        return weighed(self.attributes, self.attributes) if distinguishes_nodes(self.attributes) else None

    def averages(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the row scale and the diagonal that make A an average over neighbours."""
        return average_scales(self.adjacency)

    def links(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the scales of A's rows and columns that weigh links as `bags` weighs attributes."""
        return link_scales(self.adjacency)


def hops_of(graph: AttributedGraph, weights: Sequence[float], **options: Any) -> Hops:
    """Return the matrix M of a graph; see `factor_hops` for the options."""
    return factor_hops(WholeGraph(graph), weights, **options)


def decompose(
    hops: Hops,
    dim: int,
    *,
    seed: int,
    threads: int | None = 1,
    device: str = "cpu",
    report: Callable[[], Any] | None = None,
) -> Decomposition:
    """Return the leading `dim` directions of M; columns beyond its rank are zero. `report` is called REPORTS times."""
    tables = tables_on(device, threads)
    values, vectors = leading_eigenvectors(HopProduct(hops, tables), dim, tables=tables, seed=seed, report=report)
    return Decomposition(vectors, values)


class HopProduct:
    """Products with M on a device. ÂX is never formed, because it has too many entries."""

    def __init__(self, hops: Hops, tables: Tables):
        self.tables, self.weights, self.centred = tables, hops.weights, hops.centred
        self.size = next(matrix.shape[0] for matrix in (hops.attributes, hops.adjacency) if matrix is not None)
        self.columns = []  # the blocks of X, each with its transpose
        if hops.attributes is not None:
            self.columns.append(tables.with_transpose(hops.attributes))
        if hops.adjacency is None:
            return
        adjacency = tables.matrix(hops.adjacency)  # symmetric, so the transpose only swaps the scales
        if hops.links is not None:
            rows, columns = hops.links
            transposed = adjacency.scaled(rows=columns, columns=rows)
            self.columns.append((adjacency.scaled(rows=rows, columns=columns), transposed))
        if hops.averages is not None:
            scale, diagonal = hops.averages
            self.averages = adjacency.scaled(rows=scale, diagonal=diagonal)
            self.transposed_averages = adjacency.scaled(columns=scale, diagonal=diagonal)

    def image(self, table: Table) -> Table:
        """Return M(Mᵀ table); if M is centred, the columns of the table should have mean zero, as those of an image."""
        return self.tables.centre(self._image(table)) if self.centred else self._image(table)

    def mean_row(self) -> np.ndarray:
        """Return M times the mean of M's rows, (size,) float64, where M is not centred."""
        even = self.tables.table(np.full((self.size, 1), 1 / self.size))
        return self.tables.array(self._image(even))[:, 0].astype(np.float64)

    def _image(self, table: Table) -> Table:
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
        """Return N(Mᵀ table), where N has the rows that M would have for new nodes, not centred."""
        total, known = self.tables.zeros(new.size, table.shape[1]), None
        for weight, part in self._averaged(table):
            total = new.average(total, known)
            known = None if known is None else self.averages @ known
            columns = [transposed @ part for _, transposed in self.columns]
            of_known = reduce(
                add, [matrix @ column for (matrix, _), column in zip(self.columns, columns, strict=True)] or [part]
            )
            known = weight**2 * of_known + (0 if known is None else known)
            if columns:  # new nodes have no row of X if X is the identity
                total = total + weight**2 * reduce(
                    add, [m @ column for m, column in zip(new.columns, columns, strict=True)]
                )
        return total

    def directions(self, table: Table) -> list[list[np.ndarray]]:
        """Return Xᵀ(Âᵀ)ʰ table for every hop h, as one array per block of X or one for the identity."""
        found = [[self.tables.array(transposed @ part) for _, transposed in self.columns] or [self.tables.array(part)]
                 for _, part in self._averaged(table)]  # fmt: skip
        return found[::-1]

    def _averaged(self, table: Table) -> Iterator[tuple[float, Table]]:
        """Yield every weight with (Âᵀ)ʰ table, the farthest hop first."""
        averaged = [table]
        for _ in self.weights[1:]:
            averaged.append(self.transposed_averages @ averaged[-1])
        for weight in reversed(self.weights):
            yield weight, averaged.pop()

    def gram(self, table: Table) -> np.ndarray:
        """Return the inner products of the columns of Mᵀ table, float64."""
        total = np.zeros((table.shape[1],) * 2)
        for hop, weight in enumerate(self.weights):
            if hop:  # the first average is a new table, and later ones overwrite it
                table = self.tables.by_slabs(lambda slab: self.transposed_averages @ slab, table, reuse=hop > 1)
            if weight:
                grams = [transposed.gram(table) for _, transposed in self.columns] or [self.tables.gram(table)]
                total += weight**2 * sum(grams)
        return total


class NewRows:
    """The rows that new nodes would have in M. Links to new nodes do not change the known nodes."""

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
        """Return the mean over each new node, its new neighbours and its known neighbours."""
        return own if known is None else self.among @ own + self.links @ known


def weighed(matrix: sparse.csr_array, known: sparse.csr_array) -> sparse.csr_array:
    """Return tf-idf weights of the attributes by their rarity among known nodes, float32."""
    return weigh(matrix, inverse_frequency(known)).astype(np.float32)


def place_newcomers(
    found: Decomposition, new: Newcomers, hops: Hops, tables: Tables, link_weight: float = 0.0
) -> np.ndarray:
    """Return the vectors of new nodes (new nodes, dim) float32: the rows they would have in M, projected on V.

    The directions V = MᵀU (UᵀU)⁻¹ are computed from the vectors and the known graph, so they need not be saved. If M is
    centred, the mean of its rows is subtracted from new rows, too.
    """
    known, rows, shares = (
        HopProduct(hops, tables),
        NewRows(hops, new, tables, link_weight=link_weight),
        found.shares(tables),
    )
    placed = np.ascontiguousarray(tables.array(tables.by_slabs(lambda table: known.beside(rows, table), shares)))
    if hops.centred:
        placed -= mean_vector(known, tables.array(shares)).astype(np.float32)
    return placed


def mean_vector(known: HopProduct, shares: np.ndarray) -> np.ndarray:
    """Return the mean of M's rows, not centred, projected on V = Mᵀ shares, (dim,) float64."""
    mean = known.mean_row()
    blocks = [slice(at, at + BLOCK_ROWS) for at in range(0, len(shares), BLOCK_ROWS)]
    return sum((mean[rows] @ shares[rows].astype(np.float64) for rows in blocks), np.zeros(shares.shape[1]))


def spectral_reasons(found: Decomposition, hops: Hops, *, threads: int | None = 1) -> SpectralReasons:
    """Return the explainer of a decomposition; computing its directions takes one pass over the graph."""
    sizes = [matrix.shape[1] for matrix in (hops.attributes, hops.adjacency) if matrix is not None]
    require_memory(
        4 * len(hops.weights) * sum(sizes) * found.vectors.shape[1], "explaining this model",
        "explain a model with fewer dimensions or hops",
    )  # fmt: skip
    tables = tables_on("cpu", threads)
    product, shares = HopProduct(hops, tables), found.shares(tables)
    mean = mean_vector(product, shares) if hops.centred else np.zeros(shares.shape[1])
    return SpectralReasons(hops, product.directions(shares), mean)


class Spectral(InductiveEmbedder):
    """A method whose vectors are the left singular vectors of weighted hops times the singular values.

    One factor scales all vectors to a mean squared length of dim: the mean square of a coordinate is then 1, as in
    standardised features, however much averaging over hops shrinks the vectors. New nodes are projected on the same
    directions.
    """

    learns = {"values_": "ndarray of shape (dim,), float64: Squared singular value of every column."}

    needs_links = False
    updates = True
    shortlisted = True
    holds = {"decomposition": Decomposition}

    device: str = shared("device", default="cpu")

    def memory(self, sizes: Sizes) -> Moments:
        return spectral_moments(sizes, self.dim, hops=len(self._weights()))

    def work(self, sizes: Sizes) -> float:
        """Return the number of multiplications: with entries over the hops, and between columns of the table."""
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
        vectors, values = follow_changes(earlier, hops, start.changes.nodes, tables, self.threads)
        vectors *= self._scale(values, len(graph))
        return Decomposition(vectors, values)

    def _scale(self, values: np.ndarray, nodes: int) -> np.float32:
        """Return the factor that makes the mean squared length dim."""
        return np.float32(np.sqrt(self.dim * nodes / values.sum()))

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        hops = hops_of(new.known, self._weights())
        return place_newcomers(fitted.learned, new, hops, tables_on(self.device, self.threads))

    @abstractmethod
    def _weights(self) -> Sequence[float]:
        """Return the weights of the attributes 0, 1, 2, … hops away."""


def follow_changes(
    found: Decomposition, hops: Hops, places: np.ndarray, tables: Tables, threads: int | None
) -> Decomposition:
    """Return the decomposition of a changed graph near that of the old one.

    places: the old row of every node, negative for a new one. This takes one step of subspace iteration from the
    vectors U of the nodes that stay: the rows of the new M are projected on an orthonormal basis of the columns of MᵀU
    and rotated back as a whole (orthogonal Procrustes). An unchanged graph leaves all vectors in place.
    """
    shares = carry(found.vectors, places)
    if hops.centred:
        Tables(threads).centre(shares)
    squares = np.einsum("ij,ij->j", shares, shares, dtype=np.float64)
    shares *= _inverse(squares).astype(np.float32)  # gives the columns of MᵀU about the same length
    with one_blas_thread():
        moved = tables.by_slabs(HopProduct(hops, tables).image, tables.table(shares))
        image, width = tables.array(moved), shares.shape[1]
        blocks = [slice(at, at + BLOCK_ROWS) for at in range(0, len(shares), BLOCK_ROWS)]
        products = map_threads(
            lambda rows: shares[rows].astype(np.float64).T @ image[rows].astype(np.float64), blocks, threads
        )
        among = sum(products, np.zeros((width, width)))  # inner products of the columns of MᵀU, summed in a fixed order
        vectors = np.ascontiguousarray(tables.array(tables.rotate(moved, _turn(among, squares))))
    return Decomposition(vectors, np.einsum("ij,ij->j", vectors, vectors, dtype=np.float64))


def _turn(among: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return the matrix that makes columns with these inner products orthonormal and rotates them towards U."""
    values, axes = np.linalg.eigh((among + among.T) / 2)
    basis = axes * _inverse(np.sqrt(np.where(values > NEGLIGIBLE * values[-1], values, 0)))
    left, _, right = np.linalg.svd(basis.T @ among * squares)
    turn: np.ndarray = basis @ left @ right
    return turn


def _inverse(values: np.ndarray) -> np.ndarray:
    return np.divide(1, values, out=np.zeros_like(values), where=values > 0)
