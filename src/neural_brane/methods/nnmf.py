"""NNMF: links and attributes as sums of the same non-negative parts."""

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.linalg import inverse_frequency, spread, weigh
from neural_brane.methods._factorisation import Factorisation
from neural_brane.methods.base import require
from neural_brane.methods.steps import Steps
from neural_brane.progress import Reporter

BLOCK_ROWS = 8_192  # updated at a time by one thread
FADED = np.float32(1e-12)  # what shrinks forever becomes zero before it is denormal, and a hundred times slower


class NNMF(Factorisation):
    """Algorithms for non-negative matrix factorization (Lee, Seung; 2001), of links and attributes side by side.

    [A, X] ≈ WH: a node's row of links and its tf-idf attributes, each of length one, are sums of `dim` parts of both
    kinds. The parts have length one, so a vector, the node's row of W, says how much of each part the node holds.
    The steps are those of scikit-learn's NMF(solver="mu"), on many threads.

    Parameters
    ----------
    dim : width of a vector.
    epochs : how many times W and H are updated.
    seed : of the first values; the same seed gives the same vectors, bit for bit. None draws one.
    threads : CPU threads; all when None.
    progress : called with a `Progress` a few times a second.

    Examples
    --------
    >>> from neural_brane import load
    >>> NNMF(dim=16, epochs=20, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "nnmf"
    uses = ("links", "attributes")
    inductive = False
    growth = "time: epochs × ((edges + attribute entries) × dim + nodes × dim²); memory: entries + nodes × dim"
    paper = "Lee, Seung: Algorithms for non-negative matrix factorization, 2001"

    def __init__(
        self,
        *,
        dim: int = 150,
        epochs: int = 200,
        seed: int | None = None,
        threads: int | None = None,
        progress: Reporter | None = None,
    ):
        self.dim = dim
        self.epochs = epochs
        self.seed = seed
        self.threads = threads
        self.progress = progress

    def _check(self) -> None:
        require(isinstance(self.epochs, int) and self.epochs >= 1, "epochs", self.epochs, "a whole number from 1")

    def _factorise(self, graph: AttributedGraph) -> np.ndarray:
        matrix = stacked(graph)
        nodes, parts = start(matrix, self.dim, self.seed_)
        rows, columns = _blocks(matrix), _blocks(matrix.T.tocsr())
        report = Steps(self.progress, self.epochs)
        for _ in range(self.epochs):
            _update(nodes, parts, rows, self.threads)
            _update(parts, nodes, columns, self.threads)
            report()
        self.parts_ = parts.T  # H
        return nodes * np.linalg.norm(parts, axis=0)


def stacked(graph: AttributedGraph) -> sparse.csr_array:
    """[A, X] in float32: rows of links beside rows of tf-idf attributes, each of length one."""
    links = weigh(graph.adjacency, np.ones(len(graph)))
    words = weigh(graph.attributes, inverse_frequency(graph.attributes))
    return sparse.hstack([links, words], format="csr").astype(np.float32)


def start(matrix: sparse.csr_array, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random first values of W (rows, rank) and Hᵀ (columns, rank), at the scale of scikit-learn's."""
    scale = np.float32(np.sqrt(matrix.mean(dtype=np.float64) / rank))
    rng = np.random.default_rng(seed)
    nodes, parts = (np.abs(rng.standard_normal((size, rank), np.float32)) * scale for size in matrix.shape)
    return nodes, parts


def _blocks(matrix: sparse.csr_array) -> list[tuple[slice, sparse.csr_array]]:
    """The matrix in blocks of rows, and where each begins and ends."""
    places = [slice(at, at + BLOCK_ROWS) for at in range(0, matrix.shape[0], BLOCK_ROWS)]
    return [(place, matrix[place]) for place in places]


def _update(
    factor: np.ndarray, other: np.ndarray, blocks: list[tuple[slice, sparse.csr_array]], threads: int | None
) -> None:
    """Multiply one factor, in place, by the ratio of what the matrix asks for to what the product gives."""
    squares = other.T @ other

    def update(block: tuple[slice, sparse.csr_array]) -> None:
        place, matrix = block
        given = factor[place] @ squares
        given[given == 0] = np.finfo(np.float32).eps  # as scikit-learn does
        updated = factor[place] * ((matrix @ other) / given)
        factor[place] = np.where(updated < FADED, 0, updated)

    list(spread(update, blocks, threads))
