"""How likely links are: by a method's own score, by the similarity of vectors, and by common neighbours."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.blas import one_blas_thread
from neural_brane.embedding import Embedding, Layer
from neural_brane.errors import ParameterError
from neural_brane.graph import AttributedGraph

BLOCK_ROWS = 8_192  # compared at a time
LINKS, BATCH = 256, 64  # links that weights are found by, and how many of them at a time
FIRST = 10  # a link is found that is among so many

Compare = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (asked, dim) and (rows, dim) to (asked, rows)


class LinkWeights(NamedTuple):
    """What ranks links in a graph: the better of two scores by vectors, and how much common neighbours count beside."""

    vectors: str  # "score" or "similarity"
    neighbours: float


def weigh_links(embedding: Embedding, graph: AttributedGraph, similarity: str) -> LinkWeights:
    """Find what ranks links well by some of the graph's own: each is taken as unknown and looked for among ten nodes.

    The other candidates are the nodes that are not linked to the first. The method's own score or the similarity of the
    vectors is taken, whichever finds more. Common neighbours weigh as the odds of finding a link by them, divided by
    the odds of that one. They do not know the link itself; vectors were learned from it, and so weigh rather too much.
    """
    scores = ["similarity"] if embedding.layer is None else ["score", "similarity"]
    links = _some_links(graph.adjacency)
    odds = {by: _odds(embedding, graph, links, by, similarity) for by in (*scores, "neighbours")}
    best = max(scores, key=odds.__getitem__)
    return LinkWeights(best, odds["neighbours"] / odds[best])


def score_links(embedding: Embedding, graph: AttributedGraph, rows: np.ndarray, by: str, similarity: str) -> np.ndarray:
    """How likely each of some nodes is to be linked to each node, by one of the scores: (asked, nodes) float64."""
    if by == "neighbours":
        return np.array([common_neighbours(graph.adjacency, int(row)) for row in rows])
    compare: Compare = SIMILAR[similarity]
    if by == "score":
        if embedding.layer is None:
            raise ParameterError("by='score' needs a method that scores pairs, and this one does not; give by='all'")
        compare = _by_layer(embedding.layer)
    vectors = embedding.vectors
    asked = vectors[rows]
    with one_blas_thread():  # the order of sums, and so the last bits, would follow the threads
        blocks = [compare(asked, vectors[at : at + BLOCK_ROWS]) for at in range(0, len(vectors), BLOCK_ROWS)]
    return np.concatenate(blocks, axis=1).astype(np.float64)


def common_neighbours(adjacency: sparse.csr_array, row: int) -> np.ndarray:
    """Σ 1 / degree over the neighbours that each node has in common with one: (nodes,) float64."""
    near = adjacency[[row]].indices
    theirs = adjacency[near]
    degrees = np.diff(theirs.indptr)
    allocated = np.bincount(theirs.indices, np.repeat(1 / np.maximum(degrees, 1), degrees), adjacency.shape[0])
    return allocated.astype(np.float64)  # NumPy counts nobody's neighbours in whole numbers


def candidates(adjacency: sparse.csr_array, row: int) -> np.ndarray:
    """Which nodes a node is not linked to and is not itself: (nodes,) bool."""
    free = np.ones(adjacency.shape[0], bool)
    free[adjacency[[row]].indices] = False
    free[row] = False
    return free


def _some_links(adjacency: sparse.csr_array) -> np.ndarray:
    """(k, 2) rows of both ends, always the same ones of the same graph."""
    places = np.random.default_rng(0).permutation(adjacency.nnz)[:LINKS]
    ends = np.searchsorted(adjacency.indptr, places, side="right") - 1
    links = np.column_stack([ends, adjacency.indices[places]])
    return links[links[:, 0] != links[:, 1]]


def _odds(embedding: Embedding, graph: AttributedGraph, links: np.ndarray, by: str, similarity: str) -> float:
    """How many links are found for one that is not; one of each is added, so that there are odds at all."""
    found = 0
    for at in range(0, len(links), BATCH):
        batch = links[at : at + BATCH]
        for (row, other), scores in zip(
            batch.tolist(), score_links(embedding, graph, batch[:, 0], by, similarity), strict=True
        ):
            rivals = scores[candidates(graph.adjacency, row)]
            ahead = np.count_nonzero(rivals > scores[other]) + np.count_nonzero(rivals == scores[other]) / 2
            found += int(ahead < FIRST)
    return (found + 1) / (len(links) - found + 1)


def _by_layer(layer: Layer) -> Compare:
    """⟨h(u), h(v)⟩."""

    def hide(block: np.ndarray) -> np.ndarray:
        return np.maximum(block @ layer.weight.T + layer.bias, 0)

    return lambda asked, block: hide(asked) @ hide(block).T


def _cosine(asked: np.ndarray, block: np.ndarray) -> np.ndarray:
    lengths = np.outer(np.linalg.norm(asked, axis=1), np.linalg.norm(block, axis=1))
    return np.divide(asked @ block.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _dot(asked: np.ndarray, block: np.ndarray) -> np.ndarray:
    return asked @ block.T


def _distance(asked: np.ndarray, block: np.ndarray) -> np.ndarray:
    return np.array([-np.linalg.norm(block - one, axis=1) for one in asked])


SIMILAR: dict[str, Compare] = {"cosine": _cosine, "dot": _dot, "distance": _distance}
