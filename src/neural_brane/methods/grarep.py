"""GraRep: factorise the logarithms of a random walk's probabilities, once for each number of steps."""

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
from neural_brane.methods.base import VECTORS, Embedder, Vectors
from neural_brane.methods.parameters import cores, number, whole
from neural_brane.methods.prone import SparseProduct, rooted_unit_rows
from neural_brane.methods.training import SINGLE, WEIGHED, Moments, spectral_width
from neural_brane.progress import Meter

BLOCK_NUMBERS = 2_000_000  # numbers of Pᵏ in a block: 24 MB if none of them is 0
KEPT_NUMBERS, KEPT_IN_A_ROW = 25_000_000, 200  # numbers kept of Xᵏ and least of a row, 16 bytes each


class GraRep(Embedder):
    """Factorise the probabilities of reaching a node in exactly 1, 2, … steps of a random walk.

    Learning graph representations with global structural information (Cao, Lu, Xu; 2015). For each k up to `steps`, Pᵏ
    holds the probabilities that a random walk from u is at v after k steps, and Xᵏ holds max(ln(Pᵏ_uv / Σ_w Pᵏ_wv) −
    ln(λ / nodes), 0). Each Xᵏ gives one part of the vectors: its left singular vectors times the roots of the singular
    values, with rows of length one as in the authors' program. All parts have the same width; if dim cannot be divided
    evenly, the first parts are one column wider. It is good for small graphs without attributes.

    No matrix is ever dense: rows of Pᵏ are computed block by block, and Xᵏ keeps only numbers above 0. Both are exact
    if rows have at most `row_entries` numbers, which with the default holds for every graph of up to 5,000 nodes.
    Longer rows differ from the paper, to bound memory and time: a row of Pᵏ enters the next step with its largest
    probabilities, and a row of Xᵏ keeps its largest numbers.
    """

    title = "grarep"
    uses = ("links",)
    growth = "time: steps × nodes × row_entries × (mean degree + dim); memory: nodes × (row_entries + dim)"
    paper = "Cao, Lu, Xu: GraRep, 2015"
    grid = {"steps": [1, 2, 3, 4, 5, 6]}  # the lengths that the paper compares
    learns = VECTORS
    why_not = "it solves for the factors of all nodes at once"

    steps: int = whole("Largest number of steps, the paper's K.", default=4)
    shift: float = number("Probabilities below this times the mean count as 0; the paper's λ.", default=1.0, above=0)
    row_entries: int | None = whole(
        "Numbers kept of each row of a matrix. None: 25 million for all nodes together, at least 200 each.",
        default=None,
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
        """Return the number of multiplications in the powers and in the SVD."""
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
            matrix = self._matrix(walk, step, arrived, blocks, meter.advance)
            operator = SparseProduct(size, *tables.with_transpose(matrix))
            values, found = leading_eigenvectors(operator, width, tables=tables, seed=seed, report=meter.advance)
            at = sum(widths[: step - 1])
            vectors[:, at : at + width] = rooted_unit_rows(found, values)
            del matrix, operator  # Free their memory before the next ones are made.
        return Vectors(vectors)

    def _matrix(
        self, walk: sparse.csr_array, step: int, arrived: np.ndarray, blocks: list[slice], report: Callable[[], object]
    ) -> sparse.csr_array:
        """Return Xᵏ for k = step; `arrived` holds the sums of the columns of Pᵏ."""
        most = self._row_entries(len(arrived))
        least = arrived * (self.shift / len(arrived))  # probabilities up to this become 0

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
    """Return ln(entry / least of its column) as float32, where that is above 0."""
    kept = rows.data > least[rows.indices]
    ends = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
    columns = rows.indices[kept]
    logarithms = np.log(rows.data[kept] / least[columns]).astype(np.float32)
    return sparse.csr_array((logarithms, columns, ends), shape=rows.shape)


def largest_of_rows(matrix: sparse.csr_array, most: int) -> sparse.csr_array:
    """Return the matrix with only the `most` largest entries of each row, sorted by column."""
    long = np.flatnonzero(np.diff(matrix.indptr) > most)
    if len(long):
        kept = np.ones(matrix.nnz, bool)
        for row in long:
            numbers = matrix.data[slice(*matrix.indptr[row : row + 2])]
            least = np.partition(numbers, -most)[-most]
            taken = numbers > least
            equal = np.flatnonzero(numbers == least)  # ties: take the first ones
            taken[equal[: most - np.count_nonzero(taken)]] = True
            kept[slice(*matrix.indptr[row : row + 2])] = taken
        ends = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
        matrix = sparse.csr_array((matrix.data[kept], matrix.indices[kept], ends), shape=matrix.shape)
    matrix.sort_indices()  # Sorting is faster here, because no row is long any more.
    return matrix
