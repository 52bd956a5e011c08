"""ProNE, GraRep and FastRP: links alone, by the spectrum and the powers of a random walk."""

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
from scipy import sparse
from scipy.special import iv

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import SLAB_COLUMNS, map_threads, one_blas_thread
from neural_brane.linalg.eigenvectors import ITERATIONS, NEGLIGIBLE, REPORTS, leading_eigenvectors
from neural_brane.linalg.tables import BLOCK_ROWS, Rows, Table, Tables, TorchRows, tables_on
from neural_brane.linalg.weights import transition, unit_rows, without_self_loops
from neural_brane.methods.base import Embedder, Vectors
from neural_brane.methods.parameters import cores, number, numbers, shared, whole
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


BLOCK_NUMBERS = 2_000_000  # numbers of Pᵏ held at a time, if none of them were 0: 24 MB
KEPT_NUMBERS, KEPT_IN_A_ROW = 25_000_000, 200  # numbers of Xᵏ that are kept, 16 bytes each with the transpose


class GraRep(Embedder):
    """Learning graph representations with global structural information (Cao, Lu, Xu; 2015).

    For each k up to `steps`, Pᵏ holds the chances of a random walk from u to be at v after k steps, and Xᵏ holds
    max(ln(Pᵏ_uv / Σ_w Pᵏ_wv) − ln(λ / nodes), 0). The left singular vectors of Xᵏ times the roots of the singular
    values, with rows of length one as in the authors' program, are one part of the vectors. All parts are equally
    wide, except that the first ones take what is left over of dim.

    No matrix is ever dense. Rows of Pᵏ are computed block by block, and only what is above 0 in Xᵏ is kept. Both are
    exact where rows have at most `row_entries` numbers: with the default that is so on every graph of up to 5,000
    nodes. This differs from the paper, and bounds memory and time: a longer row of Pᵏ goes on to the next step with its
    largest chances, and a longer row of Xᵏ keeps its largest numbers.
    """

    title = "grarep"
    uses = ("links",)
    growth = "time: steps × nodes × row_entries × (mean degree + dim); memory: nodes × (row_entries + dim)"
    paper = "Cao, Lu, Xu: GraRep, 2015"
    grid = {"steps": [1, 2, 3, 4, 5, 6]}  # the walks whose lengths its paper compares
    why_not = "its factors are solved for all nodes at once"

    steps: int = whole("Steps of the longest walk, the paper's K.", default=4)
    shift: float = number("Chances below this times the mean count as 0, the paper's λ.", default=1.0, above=0)
    row_entries: int | None = whole(
        "Numbers kept of each row of a matrix; when None 25 million among all nodes, and 200 at least.", default=None
    )

    def memory(self, sizes: Sizes) -> Moments:
        n, width = sizes.nodes, spectral_width(sizes.nodes, -(-self.dim // self.steps))
        kept = n * min(n, self._row_entries(n))
        vectors = {"vectors": SINGLE * n * self.dim, "matrices": WEIGHED * sizes.links}
        blocks = 8 * WEIGHED * max(BLOCK_NUMBERS, n) * cores()
        return {
            "powers": vectors | {"kept numbers": 2 * 8 * kept, "blocks": blocks},
            "factors": vectors | {"kept numbers": 2 * 8 * kept, "tables": 3 * SINGLE * n * width},
        }

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied: the rows of the powers, and the products of the SVD."""
        n, degree = sizes.nodes, 1 + sizes.links / max(sizes.nodes, 1)
        kept = [min(degree**k, n, self._row_entries(n)) for k in range(1, self.steps + 1)]
        powers = 10 * degree * sum(accumulate(kept))
        products = 2 * ITERATIONS * self.dim / self.steps * sum(kept)
        return float(n * (powers + products))

    def _learn(self, graph: AttributedGraph, seed: int) -> Vectors:
        tables = tables_on("cpu", self.threads)
        walk, size = transition(graph.adjacency), len(graph)
        rows = max(1, BLOCK_NUMBERS // size)
        blocks = [slice(at, at + rows) for at in range(0, size, rows)]
        widths = [len(part) for part in np.array_split(np.arange(self.dim), self.steps)]
        meter = Meter(self.progress, self.steps * (len(blocks) + REPORTS), "steps")
        vectors, arrived = np.zeros((size, self.dim), np.float32), np.ones(size)
        for step, width in enumerate(widths, start=1):
            arrived = walk.T @ arrived
            if width == 0:
                break
            operator = SparseProduct(self._matrix(walk, step, arrived, blocks, meter.advance), tables)
            values, found = leading_eigenvectors(operator, width, tables=tables, seed=seed, report=meter.advance)
            at = sum(widths[: step - 1])
            vectors[:, at : at + width] = rooted_unit_rows(found, values)
            del operator  # before the next is there
        return Vectors(vectors)

    def _matrix(
        self, walk: sparse.csr_array, step: int, arrived: np.ndarray, blocks: list[slice], report: Callable[[], object]
    ) -> sparse.csr_array:
        """Xᵏ for k = step; arrived holds the sums of the columns of Pᵏ."""
        most = self._row_entries(len(arrived))
        least = arrived * (self.shift / len(arrived))  # chances at and below this become 0

        def compute(block: slice) -> sparse.csr_array:
            rows = walk[block]
            for _ in range(step - 1):
                rows = largest_of_rows(rows, most) @ walk
            return largest_of_rows(above(rows, least), most)

        parts = []
        for part in map_threads(compute, blocks, self.threads):
            parts.append(part)
            report()
        return sparse.vstack(parts, format="csr")

    def _row_entries(self, nodes: int) -> int:
        return self.row_entries or max(KEPT_IN_A_ROW, KEPT_NUMBERS // nodes)


def above(rows: sparse.csr_array, least: np.ndarray) -> sparse.csr_array:
    """ln(chance / least) of its column where that is above 0, float32."""
    kept = rows.data > least[rows.indices]
    ends = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
    columns = rows.indices[kept]
    logarithms = np.log(rows.data[kept] / least[columns]).astype(np.float32)
    return sparse.csr_array((logarithms, columns, ends), shape=rows.shape)


def largest_of_rows(matrix: sparse.csr_array, most: int) -> sparse.csr_array:
    """The matrix, sorted, with at most so many entries in a row: the largest ones."""
    long = np.flatnonzero(np.diff(matrix.indptr) > most)
    if len(long):
        kept = np.ones(matrix.nnz, bool)
        for row in long:
            numbers = matrix.data[slice(*matrix.indptr[row : row + 2])]
            least = np.partition(numbers, -most)[-most]
            taken = numbers > least
            equal = np.flatnonzero(numbers == least)  # the first ones of these are taken
            taken[equal[: most - np.count_nonzero(taken)]] = True
            kept[slice(*matrix.indptr[row : row + 2])] = taken
        ends = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
        matrix = sparse.csr_array((matrix.data[kept], matrix.indices[kept], ends), shape=matrix.shape)
    matrix.sort_indices()  # late: few are left of a long row
    return matrix


class FastRP(Embedder):
    """Fast and accurate network embeddings via very sparse random projection (Chen, Sultan, Tian, Chen, Skiena; 2019).

    The vectors are the rows of Σ αₖ PᵏLR. P = D⁻¹A holds the chances of a random walk's steps, and L = diag((d/2m)^β)
    takes weight from hubs, where d are degrees and 2m is their sum. R (nodes, dim) is random: an entry is ±⁴√nodes
    with chance 1/(2√nodes) each, and otherwise 0. The powers are never formed: PᵏLR is P times Pᵏ⁻¹LR. As in the
    authors' search on BlogCatalog, the rows of each PᵏLR have length one before they are added, and the columns of the
    sum are scaled to mean 0 and variance 1. Nodes without neighbours share one vector.

    The authors search the fourth weight from 1 to 64 after (0, 0, 1), and β from −1 to 0. The defaults are in that
    range, and were chosen by the classes of citeseer, cora, reed98 and wiki.
    """

    title = "fastrp"
    uses = ("links",)
    growth = "time: powers × edges × dim; memory: edges + nodes × dim"
    paper = (
        "Chen, Sultan, Tian, Chen, Skiena: Fast and accurate network embeddings via very sparse random projection, 2019"
    )
    grid = {"hub_discount": [0.0, 0.25, 0.5, 0.75, 1.0]}  # its authors search from 0 to 1
    why_not = "it is computed anew in moments"

    weights: Sequence[float] = numbers(
        "Weights of the first, second, … power of a walk's steps, one per power.", default=(0.0, 0.0, 1.0, 1.0)
    )
    hub_discount: float = number("How much less hubs count: the paper's −β.", default=0.2, least=0)
    device: str = shared("device", default="cpu")

    def memory(self, sizes: Sizes) -> Moments:
        n = sizes.nodes
        table = SINGLE * n * self.dim
        matrices = {"matrices": 8 * sizes.links + 40 * n}
        return {"powers": matrices | {"tables": 2 * table, "slabs": 3 * SINGLE * n * SLAB_COLUMNS}}

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied: the links with every column, power by power."""
        return float(len(self.weights) * self.dim * (sizes.links + 3 * sizes.nodes))

    def _learn(self, graph: AttributedGraph, seed: int) -> Vectors:
        tables = tables_on(self.device, self.threads)
        degrees = graph.adjacency @ np.ones(len(graph))
        walk = tables.matrix(graph.adjacency).scaled(rows=_power(degrees, -1.0))
        scales = _power(degrees / degrees.sum(), -self.hub_discount)
        projection = random_projection(len(graph), self.dim, seed).multiply(scales[:, None]).astype(np.float32)
        table = tables.table(projection.toarray())
        total = tables.zeros(len(graph), self.dim)
        meter = Meter(self.progress, len(self.weights), "powers")
        for weight in self.weights:
            table = tables.by_slabs(lambda slab: walk @ slab, table, reuse=True)
            for at in range(0, len(graph) if weight else 0, BLOCK_ROWS):
                rows = table[at : at + BLOCK_ROWS]
                lengths = ((rows * rows).sum(1) ** 0.5)[:, None]
                total[at : at + BLOCK_ROWS] += weight * rows / (lengths + (lengths == 0))
            meter.advance()
        vectors = tables.array(total)
        for column in vectors.T:
            values = column.astype(np.float64)
            values -= values.mean()
            deviation = np.sqrt(np.mean(values**2))
            column[:] = values / deviation if deviation > 0 else 0
        return Vectors(vectors)


def random_projection(nodes: int, dim: int, seed: int) -> sparse.csr_array:
    """R (nodes, dim): entries are ±√s with chance 1/2s each and otherwise 0, with s = √nodes; float64.

    >>> sorted(set(random_projection(16, 50, seed=0).toarray().ravel().tolist()))
    [-2.0, 0.0, 2.0]
    """
    rng, spread = np.random.default_rng(seed), np.sqrt(nodes)
    counts = rng.binomial(nodes, 1 / spread, size=dim)
    rows = [rng.choice(nodes, count, replace=False, shuffle=False) for count in counts]
    signs = rng.choice([-1.0, 1.0], counts.sum())
    columns = np.repeat(np.arange(dim), counts)
    return sparse.csr_array((np.sqrt(spread) * signs, (np.concatenate(rows), columns)), shape=(nodes, dim))


def _power(degrees: np.ndarray, exponent: float) -> np.ndarray:
    """Degrees to a power; 0 where there are no neighbours."""
    return np.power(degrees, exponent, out=np.zeros_like(degrees), where=degrees > 0)
