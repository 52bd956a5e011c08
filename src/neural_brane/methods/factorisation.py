"""Solve for all vectors at once, by linear algebra: what factorisations share, TADW and AANE."""

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import by_slabs, map_threads, one_blas_thread
from neural_brane.linalg.eigenvectors import REPORTS, Hops
from neural_brane.linalg.tables import Table, Tables
from neural_brane.linalg.weights import inverse_frequency, transition, unit_rows, weigh
from neural_brane.methods.base import Embedder, Vectors
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.spectral import decompose
from neural_brane.methods.training import (
    DOUBLE,
    SINGLE,
    WEIGHED,
    Loop,
    Moments,
    diverged,
    spectral_moments,
    spectral_width,
)
from neural_brane.progress import Meter


class Factorisation(Embedder):
    """A method whose vectors are factors of matrices, solved for in double precision."""

    prolongs: ClassVar[tuple[str, ...]] = ("epochs",)
    why_not = "its factors are solved for all nodes at once"
    small = {"epochs": 2}

    checkpoint: str | Path | None = shared("checkpoint", default=None)

    def _learn(self, graph: AttributedGraph, seed: int) -> Any:
        with one_blas_thread():
            factors = self._factorise(graph, seed)
        return factors._replace(vectors=factors.vectors.astype(np.float32))

    @abstractmethod
    def _factorise(self, graph: AttributedGraph, seed: int) -> Any:
        """A named tuple that has the vectors (nodes, dim) and whatever else was solved for."""


# Sparse matrices, reduced to vectors by their leading singular directions.


class SparseProduct:
    """Products with a sparse matrix and with its transpose."""

    def __init__(self, matrix: sparse.csr_array, tables: Tables):
        self.size = matrix.shape[0]
        self.matrix, self.transposed = tables.matrix(matrix), tables.matrix(matrix.T.tocsr())

    def image(self, table: Table) -> Table:
        """M(Mᵀ table)."""
        return self.matrix @ (self.transposed @ table)

    def gram(self, table: Table) -> np.ndarray:
        """The inner products of the columns of Mᵀ table, float64."""
        return self.transposed.gram(table)


def rooted_unit_rows(vectors: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Rows of length one of the singular vectors times the roots of the singular values.

    vectors, values: as `leading_eigenvectors` gives them, singular vectors times singular values, and their squares.
    """
    scales = np.divide(1, values**0.25, out=np.zeros_like(values), where=values > 0)
    return as_unit_rows(vectors * scales.astype(np.float32))


def as_unit_rows(table: np.ndarray) -> np.ndarray:
    """The table with rows of length one, float32 and in one piece."""
    return np.ascontiguousarray(unit_rows(table), np.float32)


class Factors(NamedTuple):
    """The vectors, and the factors and the text that they are made of."""

    vectors: np.ndarray  # (nodes, dim)
    nodes: np.ndarray  # Wᵀ (nodes, half)
    directions: np.ndarray  # Hᵀ (text_dim, half)
    text: np.ndarray  # Tᵀ (nodes, text_dim)


class TADW(Factorisation):
    """Network representation learning with rich text information (Yang, Liu, Zhao, Sun, Chang; 2015).

    Minimises ‖M − WᵀHT‖² + λ/2 (‖W‖² + ‖H‖²), where M = (P + P²)/2 holds the chances of a random walk's first two
    steps and T the text: tf-idf attributes reduced by SVD. W and H are solved for in turn, each exactly. M is only
    ever multiplied with. A vector is the node's column of W beside that of HT, each of length one as in the authors'
    program; an odd dim leaves out the last number of HT.

    Examples
    --------
    >>> from neural_brane import load
    >>> TADW(dim=16, epochs=3, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "tadw"
    uses = ("links", "attributes")
    growth = "time: epochs × (edges × dim + nodes × dim × text_dim); memory: entries + nodes × (dim + text_dim)"
    paper = "Yang, Liu, Zhao, Sun, Chang: Network representation learning with rich text information, 2015"
    shortlisted = True
    holds = {"tadw factors": Factors}

    text_dim: int = whole("Directions of the attributes that are kept.", default=200)
    l2: float = number("Weight of the regularisation, the paper's λ.", default=0.2, above=0)
    epochs: int = shared("epochs", default=20, about="How many times W and H are solved for.")

    def memory(self, sizes: Sizes) -> Moments:
        n, half = sizes.nodes, (self.dim + 1) // 2
        text = {"text": DOUBLE * n * self.text_dim}
        factor = DOUBLE * n * half
        walk = {"matrices": WEIGHED * sizes.links}
        return {
            **spectral_moments(sizes, self.text_dim, hops=1),
            "text": text | {"vectors": SINGLE * n * self.text_dim},
            "training": text | walk | {"tables": 5 * factor},
            "vectors": text | walk | {"tables": 2 * factor, "vectors": 5 * factor},
        }

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied: the SVD of the attributes, and every turn of the two factors."""
        n, half, width = sizes.nodes, (self.dim + 1) // 2, spectral_width(sizes.nodes, self.text_dim)
        decomposition = width * (14 * sizes.attribute_entries + 14 * n * width)
        return float(decomposition + self.epochs * half * (8 * sizes.links + 4 * n * self.text_dim + 4 * n * half))

    def _factorise(self, graph: AttributedGraph, seed: int) -> Factors:
        meter = Meter(self.progress, REPORTS + self.epochs, "steps", epochs=self.epochs)
        text = self._stages.once("text", lambda: self._text(graph, seed, meter))
        nodes, directions = self._alternate(text, transition(graph.adjacency), seed, meter)
        vectors = np.hstack([unit_rows(nodes), unit_rows(text @ directions)])[:, : self.dim]
        return Factors(vectors, nodes, directions, text)

    def _text(self, graph: AttributedGraph, seed: int, meter: Meter) -> np.ndarray:
        """Tᵀ (nodes, text_dim): the attributes in few directions."""
        words = Hops(weigh(graph.attributes, inverse_frequency(graph.attributes)))
        found = decompose(words, self.text_dim, seed=seed, threads=self.threads, report=meter.advance)
        return found.vectors.astype(np.float64)

    def _alternate(
        self, text: np.ndarray, walk: sparse.csr_array, seed: int, meter: Meter
    ) -> tuple[np.ndarray, np.ndarray]:
        """Wᵀ (nodes, half) and Hᵀ (text_dim, half), solved for in turn."""
        half, ridge = (self.dim + 1) // 2, self.l2 / 2
        text_squares, text_axes = np.linalg.eigh(text.T @ text)
        directions = np.random.default_rng(seed).standard_normal((self.text_dim, half))
        nodes = np.zeros((half, len(text))).T  # as `solve` gives it: in another order BLAS may add up otherwise
        advice = f"raise l2={self.l2:g}, which keeps the equations apart from singular ones"
        loop = Loop(self._stages.stage("factors"), meter, self.epochs, advice=advice)

        def step(epoch: int) -> None:
            seen = text @ directions
            targets = by_slabs(lambda table: _two_steps(walk, table), seen, threads=self.threads)
            nodes[:] = solve(seen.T @ seen + ridge * np.eye(half), targets, loop, epoch)
            # WWᵀ H TTᵀ + λ/2 H = W M Tᵀ is one equation per number along the axes of both squares.
            squares, axes = np.linalg.eigh(nodes.T @ nodes)
            targets = by_slabs(lambda table: _two_steps(walk.T, table), nodes, threads=self.threads)
            along = text_axes.T @ (text.T @ targets) @ axes
            along /= np.maximum(np.outer(text_squares, squares), 0) + ridge
            directions[:] = text_axes @ along @ axes.T
            loop.require_finite(epoch, H=directions)

        meter.resume(REPORTS)  # also where the text was kept
        loop.run({"W": nodes.T, "H": directions}, step)
        return nodes, directions


def solve(squares: np.ndarray, targets: np.ndarray, loop: Loop, epoch: int) -> np.ndarray:
    """Wᵀ, from the squares of HT beside the regularisation."""
    try:
        nodes: np.ndarray = np.linalg.solve(squares, targets.T).T
    except np.linalg.LinAlgError as error:
        diverged(f"in epoch {epoch + 1}: W cannot be solved for ({error})", **loop.remedies)
    loop.require_finite(epoch, W=nodes.T @ nodes)  # and so all of W is finite
    return nodes


def _two_steps(walk: sparse.csr_array, table: np.ndarray) -> np.ndarray:
    """(P + P²)/2 times a table."""
    once = walk @ table
    return (once + walk @ once) / 2


BLOCK_EDGES = 16_384  # edges whose differences are held at a time: 20 MB at dim 150


class Data(NamedTuple):
    """The graph as AANE reads it."""

    profiles: sparse.csr_array  # X: attributes in rows of length one, so that the cosines are S = XXᵀ
    links: sparse.csr_array

    def affinity(self, table: np.ndarray) -> np.ndarray:
        """S times a table; S itself is never formed."""
        return self.profiles @ (self.profiles.T @ table)


class AANE(Factorisation):
    """Accelerated attributed network embedding (Huang, Li, Hu; 2017).

    Minimises ‖S − HHᵀ‖² + λ Σ w_uv ‖h_u − h_v‖ over the edges, each in both directions; S holds the cosines between
    nodes' attributes. H and a copy Z of it are solved for in turn and drawn together (ADMM), starting from the SVD.
    All nodes of a turn share the matrix ZᵀZ, so one eigendecomposition solves them all.

    Examples
    --------
    >>> from neural_brane import load
    >>> AANE(dim=16, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "aane"
    uses = ("links", "attributes")
    growth = "time: epochs × ((edges + attribute entries) × dim + nodes × dim²); memory: entries + nodes × dim"
    paper = "Huang, Li, Hu: Accelerated attributed network embedding, 2017"
    shortlisted = True

    l2: float = number("Weight of the links, the paper's λ.", default=0.05, least=0)
    rho: float = number("How strongly H and Z are drawn together.", default=5.0, above=0)
    epochs: int = shared("epochs", default=10, about="How many times H and Z are solved for.")

    def memory(self, sizes: Sizes) -> Moments:
        table = DOUBLE * sizes.nodes * self.dim
        matrices = {"matrices": WEIGHED * (sizes.attribute_entries + sizes.links)}
        decomposition = {
            name: {part: size + (matrices["matrices"] if part == "spectral part" else 0) for part, size in one.items()}
            for name, one in spectral_moments(sizes, self.dim, hops=1).items()
        }
        turn = matrices | {"tables": 8 * table, "pulls of the links": 28 * sizes.links}
        return {**decomposition, "training": turn}

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied: the SVD of the attributes, and every turn of both copies."""
        n, width = sizes.nodes, spectral_width(sizes.nodes, self.dim)
        decomposition = width * (14 * sizes.attribute_entries + 14 * n * width)
        turn = self.dim * (4 * sizes.attribute_entries + 6 * sizes.links + 6 * n * self.dim)
        return float(decomposition + 2 * self.epochs * turn)

    def _factorise(self, graph: AttributedGraph, seed: int) -> Vectors:
        data = Data(weigh(graph.attributes, np.ones(graph.attributes.shape[1])), graph.adjacency.astype(np.float64))
        meter = Meter(self.progress, REPORTS + self.epochs, "steps", epochs=self.epochs)
        stage, shape = self._stages.stage("factors"), (len(graph), self.dim)
        vectors = np.zeros(shape) if stage.kept else self._start(data, seed, meter)
        copy, gap = vectors.copy(), np.zeros_like(vectors)
        loop = Loop(stage, meter, self.epochs, advice=f"lower l2={self.l2:g} or raise rho={self.rho:g}")

        def turn(moving: np.ndarray, fixed: np.ndarray, anchor: np.ndarray, epoch: int) -> None:
            products = 2 * fixed.T @ fixed
            loop.require_finite(epoch, **{"H or Z": products})
            moving[:] = self._solve(data, moving, fixed, anchor, products)

        def step(epoch: int) -> None:
            turn(vectors, copy, copy - gap, epoch)
            turn(copy, vectors, vectors + gap, epoch)
            gap[:] = gap + vectors - copy

        meter.resume(REPORTS)  # also where the start was kept
        loop.run({"H": vectors, "Z": copy, "U": gap}, step)
        return Vectors(vectors)

    def _start(self, data: Data, seed: int, meter: Meter) -> np.ndarray:
        """Find the best HHᵀ without links; a few turns settle from here."""
        found = decompose(Hops(data.profiles), self.dim, seed=seed, threads=self.threads, report=meter.advance)
        return found.vectors.astype(np.float64)

    def _solve(
        self, data: Data, moving: np.ndarray, fixed: np.ndarray, anchor: np.ndarray, products: np.ndarray
    ) -> np.ndarray:
        """The next H (moving) given Z (fixed), or the next Z given H; `rho` draws it to the anchor."""
        pull = self._pull(data.links, moving, fixed)
        targets = 2 * by_slabs(data.affinity, fixed, threads=self.threads) + self.rho * anchor
        targets += by_slabs(lambda table: pull @ table, fixed, threads=self.threads)
        squares, axes = np.linalg.eigh(products)
        along = targets @ axes
        along /= np.maximum(squares, 0) + (pull.sum(axis=1) + self.rho)[:, None]
        return along @ axes.T

    def _pull(
        self, links: sparse.csr_array, moving: np.ndarray, fixed: np.ndarray, block_edges: int = BLOCK_EDGES
    ) -> sparse.csr_array:
        """λ w_uv / ‖h_u − z_v‖ for every edge; 0 where the two coincide, or are one node."""
        entries = links.tocoo()
        blocks = [slice(at, at + block_edges) for at in range(0, entries.nnz, block_edges)]
        apart = np.zeros(entries.nnz)

        def measure(block: slice) -> None:
            apart[block] = np.linalg.norm(moving[entries.row[block]] - fixed[entries.col[block]], axis=1)

        list(map_threads(measure, blocks, self.threads))
        pulls = (apart > 0) & (entries.row != entries.col)
        weights = np.divide(self.l2 * entries.data, apart, out=np.zeros_like(apart), where=pulls)
        return sparse.csr_array((weights, links.indices, links.indptr), links.shape)
