"""Score links and suggest likely ones, with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.embedding import Embedding, Layer
from neural_brane.errors import ParameterError, printable
from neural_brane.graph import AttributedGraph
from neural_brane.insight.contributions import Terms
from neural_brane.kernels.threads import one_blas_thread

# A likely link, with the reasons for it.


@dataclass(frozen=True, slots=True)
class Shared:
    """What two nodes share: attributes and neighbours, each with what it adds to their likeness, the largest first."""

    attributes: list[tuple[Any, float]]
    neighbours: list[tuple[Any, float]]

    def __str__(self) -> str:
        told = []
        if self.neighbours:
            told.append(f"both linked to {_names(self.neighbours)}")
        if self.attributes:
            told.append(f"both near {_names(self.attributes)}")
        return "; ".join(told) or "nothing in common"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A node that another is likely to be linked to, and is not."""

    id: Any
    score: float
    reasons: Shared

    def __str__(self) -> str:
        return f"{printable(self.id)} ({self.score:.2f}): {self.reasons}"

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "id": self.id,
            "score": self.score,
            "attributes": [{"attribute": name, "share": share} for name, share in self.reasons.attributes],
            "neighbours": [{"id": name, "share": share} for name, share in self.reasons.neighbours],
        }


def _names(listed: list[tuple[Any, float]]) -> str:
    return ", ".join(printable(name) for name, _ in listed)


# How likely links are: by a method's own score, by the similarity of vectors, and by common neighbours.

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


# Rank the nodes that one is not linked to, by how likely a link is.

BY = ("all", "score", "similarity", "neighbours")


def rank_links(
    embedding: Embedding,
    graph: AttributedGraph,
    row: int,
    k: int,
    *,
    by: str,
    similarity: str,
    weights: Callable[[], LinkWeights],
    exclude: Iterable[int] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of the k likeliest nodes, and their scores; never the node itself, a neighbour or one of `exclude`.

    With by="all", two numbers of each node are brought to mean 0 and deviation 1 over the nodes that could be linked,
    and added as `weights` says, which is asked for then alone: a score by vectors, and the resource that common
    neighbours allocate, Σ 1 / degree. The memory is that of a few numbers per node.
    """
    if by not in BY:
        raise ParameterError(f"by={by!r} makes no sense; give one of {', '.join(BY)}")
    free = candidates(graph.adjacency, row)
    if by == "all":
        chosen = weights()
        parts = [
            score_links(embedding, graph, np.array([row]), one, similarity)[0] for one in (chosen.vectors, "neighbours")
        ]
        scores = _standard(parts[0], free) + chosen.neighbours * _standard(parts[1], free)
    else:
        scores = score_links(embedding, graph, np.array([row]), by, similarity)[0]
    scores[~free] = -np.inf
    scores[np.fromiter(exclude, np.int64)] = -np.inf
    count = min(k, int(np.count_nonzero(scores > -np.inf)))
    best = np.argsort(-scores, kind="stable")[:count]
    return best, scores[best]


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


def _standard(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Values less their mean, in deviations, both of some of them."""
    deviation = float(values[among].std()) if among.any() else 0.0
    return (values - values[among].mean()) / deviation if deviation > 0 else np.zeros_like(values)
