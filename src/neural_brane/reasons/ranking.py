"""Rank the nodes that one is not linked to, by how likely a link is."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.blas import one_blas_thread
from neural_brane.embedding import Embedding, Layer
from neural_brane.errors import ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.reasons.contributions import Terms
from neural_brane.reasons.suggestion import Shared

BLOCK_ROWS = 8_192  # scored at a time
SIMILARITY_WEIGHT, NEIGHBOURS_WEIGHT = 0.5, 1.0  # beside the own score; chosen on cora, stdlib and reed98
BY = ("all", "score", "similarity", "neighbours")


def rank_links(
    embedding: Embedding, graph: AttributedGraph, row: int, k: int, *, by: str, similarity: str, exclude: Iterable[int]
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the k likeliest nodes, and their scores; never the node itself, a neighbour or one of `exclude`.

    With by="all", three numbers of each node are brought to mean 0 and deviation 1 over all nodes and added: the
    method's own score if it has one, half the similarity of the vectors, and the resource that common neighbours
    allocate, Σ 1 / degree. The memory is that of a few numbers per node.
    """
    if by not in BY:
        raise ParameterError(f"by={by!r} makes no sense; give one of {', '.join(BY)}")
    scores = _scores(embedding, graph, row, by, similarity)
    scores[row] = -np.inf
    scores[graph.adjacency[[row]].indices] = -np.inf
    scores[np.fromiter(exclude, np.int64)] = -np.inf
    count = min(k, int(np.count_nonzero(scores > -np.inf)))
    best = np.argsort(-scores, kind="stable")[:count]
    return best, scores[best]


def _scores(embedding: Embedding, graph: AttributedGraph, row: int, by: str, similarity: str) -> np.ndarray:
    vectors, layer = embedding.vectors, embedding.layer
    if by == "score":
        if layer is None:
            raise ParameterError("by='score' needs a method that scores pairs, and this one does not; give by='all'")
        return _by_layer(layer, vectors, row)
    if by == "similarity":
        return SIMILAR[similarity](vectors, row)
    if by == "neighbours":
        return common_neighbours(graph.adjacency, row)
    total = SIMILARITY_WEIGHT * _standard(SIMILAR[similarity](vectors, row))
    if layer is not None:
        total += _standard(_by_layer(layer, vectors, row))
    return total + NEIGHBOURS_WEIGHT * _standard(common_neighbours(graph.adjacency, row))


def common_neighbours(adjacency: sparse.csr_array, row: int) -> np.ndarray:
    """Σ 1 / degree over the neighbours that each node has in common with one: (nodes,) float64."""
    near = adjacency[[row]].indices
    theirs = adjacency[near]
    degrees = np.diff(theirs.indptr)
    allocated = np.bincount(theirs.indices, np.repeat(1 / np.maximum(degrees, 1), degrees), adjacency.shape[0])
    return allocated.astype(np.float64)  # NumPy counts nobody's neighbours in whole numbers


def shared_in_graph(graph: AttributedGraph, weights: np.ndarray, row: int, other: int, top: int) -> Shared:
    """What two nodes share, where a method cannot say what its vectors are made of: the rarest first.

    weights: of every attribute. A neighbour counts 1 / degree.
    """
    attributes = np.intersect1d(graph.attributes[[row]].indices, graph.attributes[[other]].indices)
    neighbours = np.intersect1d(graph.adjacency[[row]].indices, graph.adjacency[[other]].indices)
    degrees = np.diff(graph.adjacency.indptr)[neighbours]
    return Shared(
        largest(Terms(attributes, weights[attributes][:, None]), graph.attribute_names, top),
        largest(Terms(neighbours, 1 / degrees[:, None]), graph.ids, top),
    )


def largest(terms: Terms, names: np.ndarray, top: int) -> list[tuple[Any, float]]:
    """The names of the rows that add most to the first target, with what they add, the largest first."""
    order = np.argsort(-terms.values[:, 0], kind="stable")[:top]
    return list(zip(names[terms.rows[order]].tolist(), terms.values[order, 0].tolist(), strict=True))


def _by_layer(layer: Layer, vectors: np.ndarray, row: int) -> np.ndarray:
    """⟨h(u), h(v)⟩ for all v."""

    def hide(block: np.ndarray) -> np.ndarray:
        return np.maximum(block @ layer.weight.T + layer.bias, 0)

    own = hide(vectors[[row]])[0]
    return _by_blocks(lambda block: hide(block) @ own, vectors)


def _cosine(vectors: np.ndarray, row: int) -> np.ndarray:
    own = vectors[row]

    def compare(block: np.ndarray) -> np.ndarray:
        lengths = np.sqrt(np.einsum("ij,ij->i", block, block)) * np.linalg.norm(own)
        return np.divide(block @ own, lengths, out=np.zeros_like(lengths), where=lengths > 0)

    return _by_blocks(compare, vectors)


def _dot(vectors: np.ndarray, row: int) -> np.ndarray:
    return _by_blocks(lambda block: block @ vectors[row], vectors)


def _distance(vectors: np.ndarray, row: int) -> np.ndarray:
    return _by_blocks(lambda block: -np.linalg.norm(block - vectors[row], axis=1), vectors)


SIMILAR: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {"cosine": _cosine, "dot": _dot, "distance": _distance}


def _by_blocks(compare: Callable[[np.ndarray], np.ndarray], vectors: np.ndarray) -> np.ndarray:
    with one_blas_thread():  # the order of sums, and so the last bits, would follow the threads
        blocks = [compare(vectors[at : at + BLOCK_ROWS]) for at in range(0, len(vectors), BLOCK_ROWS)]
    return np.concatenate(blocks).astype(np.float64)


def _standard(values: np.ndarray) -> np.ndarray:
    deviation = float(values.std())
    return (values - values.mean()) / deviation if deviation > 0 else np.zeros_like(values)
