"""GraRep: the logarithms of a walk's chances, one factorisation for each number of steps."""

from collections.abc import Callable
from itertools import accumulate

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import map_threads
from neural_brane.linalg.eigenvectors import ITERATIONS, REPORTS, leading_eigenvectors
from neural_brane.linalg.tables import tables_on
from neural_brane.linalg.weights import transition
from neural_brane.methods.base import Embedder, Vectors
from neural_brane.methods.parameters import cores, number, whole
from neural_brane.methods.prone import SparseProduct, rooted_unit_rows
from neural_brane.methods.training import SINGLE, WEIGHED, Moments, spectral_width
from neural_brane.progress import Meter

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
