"""NNMF: links and attributes as sums of the same non-negative parts."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import map_threads
from neural_brane.linalg.weights import inverse_frequency, weigh
from neural_brane.methods.factorisation import Factorisation
from neural_brane.methods.parameters import shared
from neural_brane.methods.training import SINGLE, WEIGHED, Loop, Moments

BLOCK_ROWS = 8_192  # updated at a time by one thread
FADED = np.float32(1e-12)  # below, a number becomes zero: it would shrink on to a denormal, a hundred times slower
ADVICE = "scale the weights of edges and the values of attributes, whose squares are too large, and use none below 0"
Blocks = list[tuple[slice, sparse.csr_array]]


class Parts(NamedTuple):
    """The vectors W, and the parts H that they are amounts of."""

    vectors: np.ndarray  # W (nodes, dim)
    parts: np.ndarray  # H (dim, nodes + attributes)


class NNMF(Factorisation):
    """Algorithms for non-negative matrix factorization (Lee, Seung; 2001), of links and attributes side by side.

    [A, X] ≈ WH: a node's row of links and its tf-idf attributes, each of length one, are sums of `dim` parts of both
    kinds. The parts have length one, so a vector, the node's row of W, says how much of each part the node holds.
    The steps are those of scikit-learn's NMF(solver="mu"), on many threads.
    """

    title = "nnmf"
    growth = "time: epochs × ((edges + attribute entries) × dim + nodes × dim²); memory: entries + nodes × dim"
    paper = "Lee, Seung: Algorithms for non-negative matrix factorization, 2001"
    trial = {"epochs": 3}
    holds = {"nnmf parts": Parts}

    epochs: int = shared("epochs", default=200, about="How many times W and H are updated.")

    def memory(self, sizes: Sizes) -> Moments:
        n, entries = sizes.nodes, sizes.links + sizes.attribute_entries
        tables = SINGLE * self.dim * (2 * n + sizes.attributes)
        return {
            "weighing": {"matrices": (2 * WEIGHED + 8) * entries},
            "training": {"matrices": 32 * entries, "tables": tables},
            "vectors": {"matrices": 24 * entries, "tables": tables, "vectors": 2 * SINGLE * n * self.dim},
        }

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied: with entries, and among the columns of both factors."""
        entries, rows = sizes.links + sizes.attribute_entries, 2 * sizes.nodes + sizes.attributes
        return float(self.epochs * self.dim * (2 * entries + 2 * rows * self.dim))

    def _factorise(self, graph: AttributedGraph, seed: int) -> Parts:
        require_no_negatives(graph, self.title)
        loop = Loop.over_epochs(self, "factors", advice=ADVICE)
        nodes, parts = factorise(stacked(graph), self.dim, seed, loop, self.threads)
        return Parts(nodes * np.linalg.norm(parts, axis=0), parts.T)


def require_no_negatives(graph: AttributedGraph, title: str) -> None:
    """Refuse attributes below zero: parts that are never negative cannot add up to one."""
    entries = graph.attributes
    if entries.nnz == 0 or entries.data.min() >= 0:
        return
    at = int(np.argmin(entries.data))
    row = int(np.searchsorted(entries.indptr, at, side="right")) - 1
    raise GraphError(
        f"attribute {graph.attribute_names[entries.indices[at]].item()!r} of node {graph.ids[row].item()!r} is "
        f"{entries.data[at]}, and {title} adds up parts that are never negative; shift the attributes above 0, cut "
        "them into bins, or choose another method"
    )


def factorise(
    matrix: sparse.csr_array, rank: int, seed: int, loop: Loop, threads: int | None, block_rows: int = BLOCK_ROWS
) -> tuple[np.ndarray, np.ndarray]:
    """W (rows, rank) and Hᵀ (columns, rank) after all steps, each of which updates W and then H."""
    nodes, parts = start(matrix, rank, seed)
    rows, columns = _blocks(matrix, block_rows), _blocks(matrix.T.tocsr(), block_rows)

    def step(epoch: int) -> None:
        squares = _update(nodes, parts, rows, threads)
        _update(parts, nodes, columns, threads)
        loop.require_finite(epoch, **{"the squares of H": squares})  # and so all of H is finite

    loop.run({"W": nodes, "H": parts}, step)
    return nodes, parts


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


def _blocks(matrix: sparse.csr_array, rows: int) -> Blocks:
    """The matrix in blocks of rows, each with its place."""
    places = [slice(at, at + rows) for at in range(0, matrix.shape[0], rows)]
    return [(place, matrix[place]) for place in places]


def _update(factor: np.ndarray, other: np.ndarray, blocks: Blocks, threads: int | None) -> np.ndarray:
    """Multiply one factor, in place, by the ratio of the matrix to the product of both factors."""
    squares = other.T @ other

    def update(block: tuple[slice, sparse.csr_array]) -> None:
        place, matrix = block
        given = factor[place] @ squares
        given[given == 0] = np.finfo(np.float32).eps  # as scikit-learn does
        updated = factor[place] * ((matrix @ other) / given)
        factor[place] = np.where(updated < FADED, 0, updated)

    list(map_threads(update, blocks, threads))
    return squares
