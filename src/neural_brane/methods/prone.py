"""ProNE: factorise a sparse matrix of links, then filter the factors in the graph's spectrum."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import iv

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import SLAB_COLUMNS, one_blas_thread
from neural_brane.linalg.eigenvectors import NEGLIGIBLE, REPORTS, leading_eigenvectors
from neural_brane.linalg.tables import ScaledMatrix, Table, Tables, TorchScaledMatrix, tables_on
from neural_brane.linalg.weights import transition, unit_rows, without_self_loops
from neural_brane.methods.base import VECTORS, Embedder, Vectors
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.training import SINGLE, WEIGHED, Moments, spectral_width
from neural_brane.progress import Meter


class SparseProduct:
    """Products with a sparse matrix M, which has `size` rows, and with its transpose."""

    def __init__(self, size: int, matrix: Any, transposed: Any):
        self.size, self.matrix, self.transposed = size, matrix, transposed

    def image(self, table: Table) -> Table:
        """Return M(Mᵀ table)."""
        return self.matrix @ (self.transposed @ table)

    def gram(self, table: Table) -> np.ndarray:
        """Return the inner products of the columns of Mᵀ table, float64."""
        return self.transposed.gram(table)


def rooted_unit_rows(vectors: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return singular vectors times roots of singular values, rows of length one, from `leading_eigenvectors`."""
    scales = np.divide(1, values**0.25, out=np.zeros_like(values), where=values > 0)
    return as_unit_rows(vectors * scales.astype(np.float32))


def as_unit_rows(table: np.ndarray) -> np.ndarray:
    """Return the table with rows of length one, contiguous float32."""
    return np.ascontiguousarray(unit_rows(table), np.float32)


NEGATIVE_POWER = 0.75  # exponent of the probability of negative samples, as in word2vec


class ProNE(Embedder):
    """Factorise a sparse matrix of links, then filter the factors in the graph's spectrum: fast on large graphs.

    ProNE: fast and scalable network representation learning (Zhang, Dong, Wang, Tang, Ding; 2019). A randomised SVD
    factorises the sparse matrix ln(p_uv / n_v) of the links. Here p_uv is the probability of a step from u to v, and
    n_v that of v as a negative sample, the sum of its column of p to the power 0.75. R is the left singular vectors
    times the roots of the singular values, with rows of length one. The filter gives (A + I)(R − exp(−θX)R), with
    X = ½(L − μI)² − I and the Laplacian with self-loops L = I − D⁻¹(A + I). The exponential is a Chebyshev series of
    `steps` terms. As in the authors' program, the result is rotated to its singular vectors. Only sparse matrices
    multiply tables (nodes, dim). Weights of links count; self-loops do not.
    """

    title = "prone"
    uses = ("links",)
    growth = "time: steps × edges × dim + nodes × dim²; memory: edges + nodes × dim"
    paper = "Zhang, Dong, Wang, Tang, Ding: ProNE, 2019"
    grid = {"mu": [0.0, 0.1, 0.2, 0.5, 1.0]}  # The authors advise values around 0.
    learns = VECTORS
    why_not = "it solves for the vectors of all nodes at once"

    steps: int = whole("Terms of the Chebyshev series; 1 leaves out the filter.", default=10)
    theta: float = number("Sharpness of the filter, the paper's θ.", default=0.5, above=0)
    mu: float = number("Eigenvalue of the Laplacian at the centre of the filter, the paper's μ.", default=0.2)
    device: str = shared("device", default="cpu")

    def memory(self, sizes: Sizes) -> Moments:
        n, width = sizes.nodes, spectral_width(sizes.nodes, self.dim)
        table, slab = SINGLE * n * self.dim, SINGLE * n * SLAB_COLUMNS
        matrices = {"matrices": 16 * sizes.links + 48 * n}
        return {
            "weighing links": {"matrices": 3 * WEIGHED * sizes.links},
            "factors": matrices | {"tables": SINGLE * n * width + table, "slabs": 3 * slab},
            "filter": matrices | {"tables": 2 * table, "slabs": 6 * slab},
        }

    def _learn(self, graph: AttributedGraph, seed: int) -> Vectors:
        tables = tables_on(self.device, self.threads)
        links = without_self_loops(graph.adjacency)
        meter = Meter(self.progress, REPORTS + self.steps * self.dim, "steps")
        operator = SparseProduct(len(graph), *tables.with_transpose(link_matrix(links)))
        values, vectors = leading_eigenvectors(operator, self.dim, tables=tables, seed=seed, report=meter.advance)
        del operator
        factors = rooted_unit_rows(vectors, values)
        if self.steps == 1:
            return Vectors(factors)
        ends = Filter(links, tables, steps=self.steps, theta=self.theta, mu=self.mu, meter=meter)
        filtered = tables.by_slabs(ends.apply, tables.table(factors), reuse=True)
        with one_blas_thread():  # gives singular vectors times the roots of the singular values
            values, axes = np.linalg.eigh(tables.gram(filtered))
            values, axes = values[::-1], axes[:, ::-1]
            kept = values > NEGLIGIBLE * values[0]
            axes = axes * np.divide(1, np.abs(values) ** 0.25, out=np.zeros(len(values)), where=kept)
            return Vectors(as_unit_rows(tables.array(tables.rotate(filtered, axes))))


class Filter:
    """(A + I)(R − exp(−θX)R) for slabs R of a table, by a Chebyshev series in X = ½(L − μI)² − I."""

    def __init__(self, links: sparse.csr_array, tables: Tables, *, steps: int, theta: float, mu: float, meter: Meter):
        degrees = links @ np.ones(links.shape[0]) + 1
        adjacency: ScaledMatrix | TorchScaledMatrix = tables.matrix(links)
        self.looped = adjacency.scaled(diagonal=np.ones_like(degrees))
        self.shifted = adjacency.scaled(rows=-1 / degrees, diagonal=1 - mu - 1 / degrees)  # L − μI
        self.shares = [float(iv(0, theta))] + [2 * (-1) ** k * float(iv(k, theta)) for k in range(1, steps)]
        self.meter = meter

    def apply(self, table: Table) -> Table:
        """Return the filtered slab."""
        before, now = table, self._twice(table) / 2
        total = self.shares[0] * before + self.shares[1] * now
        self.meter.advance(2 * table.shape[1])
        for share in self.shares[2:]:
            before, now = now, self._twice(now) - before
            total += share * now
            self.meter.advance(table.shape[1])
        return self.looped @ (table - total)

    def _twice(self, table: Table) -> Table:
        """Return 2X times a table."""
        return self.shifted @ (self.shifted @ table) - 2 * table


def link_matrix(links: sparse.csr_array) -> sparse.csr_array:
    """Return the sparse matrix ln(p_uv / n_v): the probability of a step over that of a negative sample."""
    matrix = transition(links)
    chances = np.power(np.bincount(matrix.indices, matrix.data, minlength=matrix.shape[1]), NEGATIVE_POWER)
    matrix.data = np.log(matrix.data) - np.log((chances / (chances.sum() or 1.0))[matrix.indices])
    return matrix
