"""PANE: factorise how close nodes and attributes are on random walks, in both directions."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import SLAB_COLUMNS, map_threads
from neural_brane.linalg.eigenvectors import REPORTS, leading_eigenvectors
from neural_brane.linalg.tables import BLOCK_ROWS, tables_on
from neural_brane.linalg.weights import restart_walk, spread, transition, unit_rows
from neural_brane.methods.factorisation import Factorisation
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.prone import SparseProduct
from neural_brane.methods.training import SINGLE, WEIGHED, Loop, Moments, spectral_width
from neural_brane.progress import Meter

KEPT_NUMBERS, KEPT_IN_A_ROW = 25_000_000, 50  # numbers kept of F and of B, and least of a row; 16 bytes each


class PANEFactors(NamedTuple):
    """The vectors and the factors."""

    vectors: np.ndarray  # (nodes, dim)
    forward: np.ndarray  # X_f (nodes, half)
    backward: np.ndarray  # X_b (nodes, half)
    attributes: np.ndarray  # Y (attributes, half)


class PANE(Factorisation):
    """Factorise how close nodes and attributes are on random walks, in both directions.

    Scaling attributed network embedding to massive graphs (Yang, Shi, Xiao, Yang, Liu, Bhowmick; 2020). It is good if
    links and attributes agree, as in citation graphs. A walk from a node ends with probability `restart` after each
    step, and then draws an attribute of the node where it ended. F is made from the probability of each attribute. B is
    made from walks in the other direction: they start at a node with the attribute, and the probability is that of each
    node where they end. Probabilities are scaled to mean 1, in F over all nodes and in B over all attributes; the
    entries are ln(1 + probability). X_f Yᵀ ≈ F and X_b Yᵀ ≈ B share Y. Coordinate descent improves them, starting from
    the SVD of F. A vector joins the node's rows of X_f and X_b, each of length one as in the authors' program; an odd
    dim drops the last column of X_b.

    F and B are exact if nodes × attributes is at most 25 million, or if no row has more than `row_entries` numbers.
    Otherwise rows keep only their largest numbers after each step, unlike in the paper, which limits memory; the scales
    stay exact. Edges have no direction here, so both walks take the same steps. The authors' program uses only B in the
    descent, and scales the columns of attributes after their rows. Here F counts too, and columns are those of the
    unscaled attributes, as in the paper. If a graph has no attributes, each node is its own attribute.
    """

    title = "pane"
    growth = "time: row_entries × (steps × edges + epochs × nodes × dim); memory: nodes × (row_entries + dim)"
    paper = "Yang, Shi, Xiao, Yang, Liu, Bhowmick: Scaling attributed network embedding to massive graphs, 2020"
    grid = {"restart": [0.1, 0.3, 0.5, 0.7, 0.9]}  # range of the paper
    holds = {"pane factors": PANEFactors}
    learns = {
        "forward_": "ndarray (nodes, half): X_f, where half is dim / 2, rounded up.",
        "backward_": "ndarray (nodes, half): X_b.",
        "attributes_": "ndarray (attributes, half): Y.",
    }

    restart: float = number("Probability that a step ends the walk, the paper's alpha.", default=0.5, above=0, below=1)
    error: float = number(
        "Share of walks that are longer than the steps computed, the paper's ε; the defaults compute 5 steps.",
        default=0.015, above=0, below=1,
    )  # fmt: skip
    epochs: int = shared("epochs", default=5, about="Rounds of coordinate descent over all factors.")
    row_entries: int | None = whole(
        "Numbers kept of each row of F and B. None: 25 million for all nodes together, at least 50 each.", default=None
    )

    def memory(self, sizes: Sizes) -> Moments:
        n, width = sizes.nodes, sizes.attributes or sizes.nodes
        entries, half = sizes.attribute_entries or n, (self.dim + 1) // 2
        kept = 8 * n * min(width, self._row_entries(n))
        factors = {"factors": SINGLE * half * (2 * n + width)}
        return {
            "walks": {"kept numbers": 3 * kept, "matrices": WEIGHED * (sizes.links + 3 * entries)},
            "decomposition": {
                "kept numbers": 4 * kept,
                "tables": 2 * SINGLE * width * spectral_width(width, half) + 3 * SINGLE * n * SLAB_COLUMNS,
            },
            "descent": factors | {"kept numbers": 4 * kept, "tables": SINGLE * half * max(n, 2 * width)},
            "vectors": factors | {"vectors": SINGLE * n * (2 * half + self.dim)},
        }

    def work(self, sizes: Sizes) -> float:
        """Return the number of multiplications in the walks, in the SVD of F and in the descent."""
        width, half = sizes.attributes or sizes.nodes, (self.dim + 1) // 2
        in_a_row = min(width, self._row_entries(sizes.nodes))
        products = 14 * spectral_width(width, half) + 4 * self.epochs * half
        descent = 2 * self.epochs * half**2 * (2 * sizes.nodes + width)
        return float(in_a_row * (10 * self._steps() * sizes.links + sizes.nodes * products) + descent)

    def _factorise(self, graph: AttributedGraph, seed: int) -> PANEFactors:
        tables = tables_on("cpu", self.threads)
        meter = Meter(self.progress, 2 * self._steps() + REPORTS + self.epochs, "steps", epochs=self.epochs)
        affinities = self._affinities(graph, meter)
        (forward, forward_t), (backward, backward_t) = map(tables.with_transpose, affinities)

        def find_axes() -> np.ndarray:  # leading right singular vectors of F, (attributes, half)
            operator = SparseProduct(forward_t.size, forward_t, forward)
            values, vectors = leading_eigenvectors(operator, half, tables=tables, seed=seed, report=meter.advance)
            scales = np.divide(1, np.sqrt(values), out=np.zeros(half), where=values > 0)
            return vectors * scales.astype(np.float32)

        half = (self.dim + 1) // 2
        axes = self._stages.once("axes", find_axes)
        attributes = axes.copy()
        nodes, others = forward @ axes, backward @ axes
        factors = {"X_f": nodes, "X_b": others, "Y": attributes}
        loop = Loop(self._stages.stage("factors"), meter, self.epochs, advice="give a smaller dim")

        def step(epoch: int) -> None:
            squares = tables.gram(attributes)
            for table, affinity in ((nodes, forward), (others, backward)):
                descend(table, affinity @ attributes, squares, self.threads)
            targets = forward_t @ nodes
            targets += backward_t @ others
            descend(attributes, targets, tables.gram(nodes) + tables.gram(others), self.threads)
            loop.require_finite(epoch, **factors)

        meter.resume(2 * self._steps() + REPORTS)  # also if the checkpoint held the axes
        loop.run(factors, step)
        scale = unit_rows if half > 1 else np.asarray  # A row of one number would always become 1 or -1.
        vectors = np.empty((len(graph), self.dim), np.float32)
        vectors[:, :half] = scale(nodes)
        vectors[:, half:] = scale(others)[:, : self.dim - half]
        return PANEFactors(vectors, nodes, others, attributes)

    def _affinities(self, graph: AttributedGraph, meter: Meter) -> tuple[sparse.csr_array, sparse.csr_array]:
        """Return F and B, sparse, float32."""
        walk = transition(graph.adjacency)
        degrees = graph.adjacency @ np.ones(len(graph))
        options: dict[str, Any] = {"restart": self.restart, "steps": self._steps()}
        kept: dict[str, Any] = {"most": self._row_entries(len(graph)), "threads": self.threads, "report": meter.advance}
        own = (
            graph.attributes.astype(np.float64) if graph.attributes.nnz else sparse.eye_array(len(graph), format="csr")
        )
        # Columns are scaled before the steps, which gives the same result, so that rows keep the largest numbers of F.
        start = scaled(own, rows=own.sum(axis=1))
        sums = restart_walk(walk.T, np.ones(len(graph)), **options) @ start
        forward = spread(walk, scaled(start, columns=sums / len(graph)), **options, **kept)
        # Pᵀ = DPD⁻¹, and D only scales the rows, which are scaled to mean 1 later; so P can take the steps.
        start = scaled(own, rows=np.where(degrees > 0, degrees, 1), columns=own.sum(axis=0))
        sums = restart_walk(walk, start.sum(axis=1), **options)
        backward = spread(walk, start, **options, **kept)
        means = np.where(sums > 0, sums, 1).astype(np.float32) / own.shape[1]
        backward.data /= np.repeat(means, np.diff(backward.indptr))
        for matrix in (forward, backward):
            np.log1p(matrix.data, out=matrix.data)
        return forward, backward

    def _steps(self) -> int:
        """Return the steps after which about a share `error` of the walks goes on, as in the authors' program."""
        return max(1, int(math.log(self.error) / math.log(1 - self.restart) - 1))

    def _row_entries(self, nodes: int) -> int:
        return self.row_entries or max(KEPT_IN_A_ROW, KEPT_NUMBERS // nodes)


def scaled(
    matrix: sparse.csr_array, *, rows: np.ndarray | None = None, columns: np.ndarray | None = None
) -> sparse.csr_array:
    """Return the matrix with rows or columns divided by numbers, which are above 0 if there is an entry."""
    data = matrix.data
    if rows is not None:
        data = data / np.repeat(rows, np.diff(matrix.indptr))
    if columns is not None:
        data = data / columns[matrix.indices]
    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def descend(table: np.ndarray, targets: np.ndarray, squares: np.ndarray, threads: int | None = 1) -> None:
    """Minimise ‖f − xYᵀ‖² over each number of each row x of a table in turn, in place.

    targets: rows fY (rows, half). squares: YᵀY (half, half). One turn over all numbers of a row solves a triangular
    system, because earlier numbers have their new values and later ones their old values. A number whose column of Y is
    zero becomes 0.
    """
    upper, lower = np.triu(squares), np.tril(squares, -1)
    np.fill_diagonal(upper, np.where(np.diag(squares) > 0, np.diag(squares), 1))

    def move(at: int) -> None:
        block = slice(at, at + BLOCK_ROWS)
        missing = targets[block].astype(np.float64) - table[block].astype(np.float64) @ lower
        table[block] = solve_triangular(upper, missing.T, trans="T").T

    list(map_threads(move, range(0, len(table), BLOCK_ROWS), threads))
