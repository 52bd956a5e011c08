"""NNMF: factorise links and attributes together, with factors that are never negative."""

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

BLOCK_ROWS = 8_192  # rows that one thread updates at a time
SMALLEST = np.float32(1e-12)  # smaller numbers become zero; as denormals they would be a hundred times slower
ADVICE = "scale weights of edges and values of attributes down, because their squares overflow, and use none below 0"
Blocks = list[tuple[slice, sparse.csr_array]]


class NNMFFactors(NamedTuple):
    """The vectors W, and the components H."""

    vectors: np.ndarray  # W (nodes, dim)
    parts: np.ndarray  # H (dim, nodes + attributes)


class NNMF(Factorisation):
    """Describe each node as a sum of `dim` components of links and attributes, none of them negative.

    Algorithms for non-negative matrix factorization (Lee, Seung; 2001). It is good if the columns of vectors should
    have a meaning. [A, X] ≈ WH, where A are links and X tf-idf attributes, each with rows of length one. The rows of H,
    the components, have length one, so a vector, the node's row of W, gives the amount of each component. The steps are
    those of scikit-learn's NMF(solver="mu"), with several threads.
    """

    title = "nnmf"
    growth = "time: epochs × ((edges + attribute entries) × dim + nodes × dim²); memory: entries + nodes × dim"
    paper = "Lee, Seung: Algorithms for non-negative matrix factorization, 2001"
    trial = {"epochs": 3}
    holds = {"nnmf parts": NNMFFactors}
    learns = {"parts_": "ndarray of shape (dim, nodes + attributes), float32: The components H."}

    epochs: int = shared("epochs", default=200, about="Number of times that W and H are updated.")

    def memory(self, sizes: Sizes) -> Moments:
        n, entries = sizes.nodes, sizes.links + sizes.attribute_entries
        tables = SINGLE * self.dim * (2 * n + sizes.attributes)
        return {
            "weighing": {"matrices": (2 * WEIGHED + 8) * entries},
            "training": {"matrices": 32 * entries, "tables": tables},
            "vectors": {"matrices": 24 * entries, "tables": tables, "vectors": 2 * SINGLE * n * self.dim},
        }

    def _factorise(self, graph: AttributedGraph, seed: int) -> NNMFFactors:
        require_no_negatives(graph, self.title)
        loop = Loop.over_epochs(self, "factors", advice=ADVICE)
        nodes, parts = factorise(stacked(graph), self.dim, seed, loop, self.threads)
        return NNMFFactors(nodes * np.linalg.norm(parts, axis=0), parts.T)


def require_no_negatives(graph: AttributedGraph, title: str) -> None:
    """Raise an error if an attribute is below zero, because no sum of components can be negative."""
    entries = graph.attributes
    if entries.nnz == 0 or entries.data.min() >= 0:
        return
    at = int(np.argmin(entries.data))
    row = int(np.searchsorted(entries.indptr, at, side="right")) - 1
    found = f"attribute {graph.attribute_names[entries.indices[at]].item()!r} of node {graph.ids[row].item()!r} is"
    advice = "shift the attributes above 0, cut them into bins, or choose another method"
    raise GraphError(f"{found} {entries.data[at]}, but {title} cannot represent negative values; {advice}")


def factorise(
    matrix: sparse.csr_array, rank: int, seed: int, loop: Loop, threads: int | None, block_rows: int = BLOCK_ROWS
) -> tuple[np.ndarray, np.ndarray]:
    """Return W (rows, rank) and Hᵀ (columns, rank) after all steps; each step updates W, then H."""
    nodes, parts = start(matrix, rank, seed)
    rows, columns = _blocks(matrix, block_rows), _blocks(matrix.T.tocsr(), block_rows)

    def step(epoch: int) -> None:
        squares = _update(nodes, parts, rows, threads)
        _update(parts, nodes, columns, threads)
        loop.require_finite(epoch, **{"the squares of H": squares})  # finite only if all of H is

    loop.run({"W": nodes, "H": parts}, step)
    return nodes, parts


def stacked(graph: AttributedGraph) -> sparse.csr_array:
    """Return [A, X] in float32: rows of links, then rows of tf-idf attributes, each of length one."""
    links = weigh(graph.adjacency, np.ones(len(graph)))
    words = weigh(graph.attributes, inverse_frequency(graph.attributes))
    return sparse.hstack([links, words], format="csr").astype(np.float32)


def start(matrix: sparse.csr_array, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random initial W (rows, rank) and Hᵀ (columns, rank), float32, at the scale of scikit-learn."""
    scale = np.float32(np.sqrt(matrix.mean(dtype=np.float64) / rank))
    rng = np.random.default_rng(seed)
    nodes, parts = (np.abs(rng.standard_normal((size, rank), np.float32)) * scale for size in matrix.shape)
    return nodes, parts


def _blocks(matrix: sparse.csr_array, rows: int) -> Blocks:
    """Return the matrix in blocks of rows, each with its range of rows."""
    places = [slice(at, at + rows) for at in range(0, matrix.shape[0], rows)]
    return [(place, matrix[place]) for place in places]


def _update(factor: np.ndarray, other: np.ndarray, blocks: Blocks, threads: int | None) -> np.ndarray:
    """Update one factor in place by the multiplicative rule, and return the other's squares (rank, rank)."""
    squares = other.T @ other

    def update(block: tuple[slice, sparse.csr_array]) -> None:
        place, matrix = block
        divisor = factor[place] @ squares
        divisor[divisor == 0] = np.finfo(np.float32).eps  # scikit-learn's value
        updated = factor[place] * ((matrix @ other) / divisor)
        factor[place] = np.where(updated < SMALLEST, 0, updated)

    list(map_threads(update, blocks, threads))
    return squares
