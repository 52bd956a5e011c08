"""ProNE: links factorised sparsely, then filtered in the graph's spectrum."""

import numpy as np
from scipy import sparse
from scipy.special import iv

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import SLAB_COLUMNS, one_blas_thread
from neural_brane.linalg.eigenvectors import NEGLIGIBLE, REPORTS, leading_eigenvectors
from neural_brane.linalg.tables import Rows, Table, Tables, TorchRows, tables_on
from neural_brane.linalg.weights import transition, unit_rows, without_self_loops
from neural_brane.methods.base import Embedder, Vectors
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.training import SINGLE, WEIGHED, Moments, spectral_width
from neural_brane.progress import Meter


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


NEGATIVE_POWER = 0.75  # exponent of the chances of negative samples, as in word2vec


class ProNE(Embedder):
    """Fast and scalable network representation learning (Zhang, Dong, Wang, Tang, Ding; 2019).

    First the sparse matrix ln(p_uv / n_v) of the links is factorised by a randomised SVD: p_uv is the chance of a
    step from u to v, and n_v that of v as a negative sample, the sum of its column of p to the power 0.75. Left
    singular vectors times the roots of the singular values R, with rows of length one, are then filtered:
    (A + I)(R − exp(−θX)R), where X = ½(L − μI)² − I and L = I − D⁻¹(A + I) is the Laplacian with self-loops. The
    exponential is its Chebyshev series of `steps` terms, and the result is turned to its own singular vectors, as in
    the authors' program. Nothing but sparse matrices is multiplied with tables (nodes, dim). Links of the graph count
    with their weights; self-loops do not count.
    """

    title = "prone"
    uses = ("links",)
    growth = "time: steps × edges × dim + nodes × dim²; memory: edges + nodes × dim"
    paper = "Zhang, Dong, Wang, Tang, Ding: ProNE, 2019"
    grid = {"mu": [0.0, 0.1, 0.2, 0.5, 1.0]}  # its authors advise a search around 0
    why_not = "its factors are solved for all nodes at once"

    steps: int = whole("Terms of the Chebyshev series; 1 leaves the factors as they are.", default=10)
    theta: float = number("Sharpness of the filter, the paper's θ.", default=0.5, above=0)
    mu: float = number("Eigenvalue of the Laplacian at the filter's middle, the paper's μ.", default=0.2)
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

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied: the SVD's products and those of the series, and inner products of columns."""
        width = spectral_width(sizes.nodes, self.dim)
        return float(width * (14 * sizes.links + 14 * sizes.nodes * width) + 2 * self.steps * sizes.links * self.dim)

    def _learn(self, graph: AttributedGraph, seed: int) -> Vectors:
        tables = tables_on(self.device, self.threads)
        links = without_self_loops(graph.adjacency)
        meter = Meter(self.progress, REPORTS + self.steps * self.dim, "steps")
        operator = SparseProduct(link_matrix(links), tables)
        values, vectors = leading_eigenvectors(operator, self.dim, tables=tables, seed=seed, report=meter.advance)
        del operator
        factors = rooted_unit_rows(vectors, values)
        if self.steps == 1:
            return Vectors(factors)
        ends = Filter(links, tables, steps=self.steps, theta=self.theta, mu=self.mu, meter=meter)
        filtered = tables.by_slabs(ends.apply, tables.table(factors), reuse=True)
        with one_blas_thread():  # turned to its singular vectors, times the roots of the singular values
            values, axes = np.linalg.eigh(tables.gram(filtered))
            values, axes = values[::-1], axes[:, ::-1]
            kept = values > NEGLIGIBLE * values[0]
            axes = axes * np.divide(1, np.abs(values) ** 0.25, out=np.zeros(len(values)), where=kept)
            return Vectors(as_unit_rows(tables.array(tables.rotate(filtered, axes))))


class Filter:
    """(A + I)(R − exp(−θX)R) for slabs R of a table, by a Chebyshev series in X = ½(L − μI)² − I."""

    def __init__(self, links: sparse.csr_array, tables: Tables, *, steps: int, theta: float, mu: float, meter: Meter):
        degrees = links @ np.ones(links.shape[0]) + 1
        adjacency: Rows | TorchRows = tables.matrix(links)
        self.looped = adjacency.scaled(diagonal=np.ones_like(degrees))
        self.shifted = adjacency.scaled(rows=-1 / degrees, diagonal=1 - mu - 1 / degrees)  # L − μI
        self.shares = [float(iv(0, theta))] + [2 * (-1) ** k * float(iv(k, theta)) for k in range(1, steps)]
        self.meter = meter

    def apply(self, table: Table) -> Table:
        """The filtered slab."""
        before, now = table, self._twice(table) / 2
        total = self.shares[0] * before + self.shares[1] * now
        self.meter.advance(2 * table.shape[1])
        for share in self.shares[2:]:
            before, now = now, self._twice(now) - before
            total += share * now
            self.meter.advance(table.shape[1])
        return self.looped @ (table - total)

    def _twice(self, table: Table) -> Table:
        """2X times a table."""
        return self.shifted @ (self.shifted @ table) - 2 * table


def link_matrix(links: sparse.csr_array) -> sparse.csr_array:
    """ln(p_uv / n_v) at the links: the chance of a step from u to v against that of v as a negative sample."""
    matrix = transition(links)
    chances = np.power(np.bincount(matrix.indices, matrix.data, minlength=matrix.shape[1]), NEGATIVE_POWER)
    matrix.data = np.log(matrix.data) - np.log((chances / (chances.sum() or 1.0))[matrix.indices])
    return matrix
