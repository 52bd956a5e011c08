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


@dataclass(frozen=True, slots=True)
class Shared:
    """Attributes and neighbours that two nodes share, each with what it adds to their likeness, the largest first."""

    attributes: list[tuple[Any, float]]
    neighbours: list[tuple[Any, float]]

    def __str__(self) -> str:
        parts = (("both linked to", self.neighbours), ("both near", self.attributes))
        said = [f"{how} {', '.join(printable(name) for name, _ in listed)}" for how, listed in parts if listed]
        return "; ".join(said) or "nothing in common"


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


# How likely links are, by a method's own score, by the similarity of vectors, and by common neighbours.

BLOCK_ROWS = 8_192  # compared at a time
LINKS, BATCH = 256, 64  # links that weights are found by, and how many of them at a time
FIRST = 10  # a link counts as found if fewer nodes than this come before it
BY = ("all", "score", "similarity", "neighbours")

Compare = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (asked, dim) and (rows, dim) to (asked, rows)


class LinkWeights(NamedTuple):
    """How links of a graph are ranked: the better of two scores by vectors, and the weight of common neighbours."""

    vectors: str  # "score" or "similarity"
    neighbours: float


class LinkScorer(NamedTuple):
    """Scores links of a graph by vectors of its nodes, which are compared by `similarity`, and by common neighbours."""

    embedding: Embedding
    graph: AttributedGraph
    similarity: str  # "cosine", "dot" or "distance"

    def weigh(self) -> LinkWeights:
        """Find what ranks links well by some of the graph's own: each is looked for among ten nodes as if unknown.

        The other candidates are the nodes that are not linked to the first. Of the method's own score and the
        similarity of the vectors, the one that finds more is taken. Common neighbours weigh as the odds of finding a
        link by them, divided by the odds of that one. They do not know the link itself; vectors were learned from it,
        and so weigh rather too much.
        """
        scores = ["similarity"] if self.embedding.layer is None else ["score", "similarity"]
        adjacency = self.graph.adjacency
        places = np.random.default_rng(0).permutation(adjacency.nnz)[:LINKS]  # always the same ones of a graph
        ends = np.searchsorted(adjacency.indptr, places, side="right") - 1
        links = np.column_stack([ends, adjacency.indices[places]])
        links = links[links[:, 0] != links[:, 1]]
        odds = {by: self._odds(links, by) for by in (*scores, "neighbours")}
        best = max(scores, key=odds.__getitem__)
        return LinkWeights(best, odds["neighbours"] / odds[best])

    def score(self, rows: np.ndarray, by: str) -> np.ndarray:
        """Score links of each of some nodes with all nodes by one of the scores: (asked, nodes) float64."""
        if by == "neighbours":
            return np.array([common_neighbours(self.graph.adjacency, int(row)) for row in rows])
        compare: Compare = SIMILAR[self.similarity]
        if by == "score":
            if self.embedding.layer is None:
                raise ParameterError(
                    "by='score' needs a method that scores pairs, and this one does not; give by='all'"
                )
            compare = _by_layer(self.embedding.layer)
        vectors = self.embedding.vectors
        asked = vectors[rows]
        with one_blas_thread():  # the order of sums, and so the last bits, would follow the threads
            blocks = [compare(asked, vectors[at : at + BLOCK_ROWS]) for at in range(0, len(vectors), BLOCK_ROWS)]
        return np.concatenate(blocks, axis=1).astype(np.float64)

    def rank(
        self, row: int, k: int, *, by: str, weights: Callable[[], LinkWeights], exclude: Iterable[int] = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the k likeliest nodes, and their scores; never the node, a neighbour or one of `exclude`.

        With by="all", two numbers of each node are brought to mean 0 and deviation 1 over the nodes that could be
        linked, and added: a score by vectors, and the resource that common neighbours allocate, Σ 1 / degree. Only then
        `weights` is called, which says how much they count. The memory is that of a few numbers per node.
        """
        if by not in BY:
            raise ParameterError(f"by={by!r} makes no sense; give one of {', '.join(BY)}")
        free, asked = candidates(self.graph.adjacency, row), np.array([row])
        if by == "all":
            chosen = weights()
            scores = _standard(self.score(asked, chosen.vectors)[0], free)
            scores = scores + chosen.neighbours * _standard(self.score(asked, "neighbours")[0], free)
        else:
            scores = self.score(asked, by)[0]
        scores[~free] = -np.inf
        scores[np.fromiter(exclude, np.int64)] = -np.inf
        count = min(k, int(np.count_nonzero(scores > -np.inf)))
        best = np.argsort(-scores, kind="stable")[:count]
        return best, scores[best]

    def _odds(self, links: np.ndarray, by: str) -> float:
        """Divide the links that are found by those that are not; one more of each keeps the odds finite."""
        found = 0
        for at in range(0, len(links), BATCH):
            batch = links[at : at + BATCH]
            for (row, other), scores in zip(batch.tolist(), self.score(batch[:, 0], by), strict=True):
                rivals = scores[candidates(self.graph.adjacency, row)]
                ahead = np.count_nonzero(rivals > scores[other]) + np.count_nonzero(rivals == scores[other]) / 2
                found += int(ahead < FIRST)
        return (found + 1) / (len(links) - found + 1)


def common_neighbours(adjacency: sparse.csr_array, row: int) -> np.ndarray:
    """Σ 1 / degree over the neighbours that each node has in common with one: (nodes,) float64."""
    near = adjacency[[row]].indices
    theirs = adjacency[near]
    degrees = np.diff(theirs.indptr)
    allocated = np.bincount(theirs.indices, np.repeat(1 / np.maximum(degrees, 1), degrees), adjacency.shape[0])
    return allocated.astype(np.float64)  # without neighbours NumPy returns whole numbers


def candidates(adjacency: sparse.csr_array, row: int) -> np.ndarray:
    """The nodes that a node could be linked to, all but itself and its neighbours: (nodes,) bool."""
    free = np.ones(adjacency.shape[0], bool)
    free[adjacency[[row]].indices] = False
    free[row] = False
    return free


def _by_layer(layer: Layer) -> Compare:
    """⟨h(u), h(v)⟩."""

    def hide(block: np.ndarray) -> np.ndarray:
        return np.maximum(block @ layer.weight.T + layer.bias, 0)

    return lambda asked, block: hide(asked) @ hide(block).T


def _cosine(asked: np.ndarray, block: np.ndarray) -> np.ndarray:
    lengths = np.outer(np.linalg.norm(asked, axis=1), np.linalg.norm(block, axis=1))
    return np.divide(asked @ block.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)


SIMILAR: dict[str, Compare] = {
    "cosine": _cosine,
    "dot": lambda asked, block: asked @ block.T,
    "distance": lambda asked, block: np.array([-np.linalg.norm(block - one, axis=1) for one in asked]),
}


def _standard(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Values brought to mean 0 and deviation 1, both of some of them."""
    deviation = float(values[among].std()) if among.any() else 0.0
    return (values - values[among].mean()) / deviation if deviation > 0 else np.zeros_like(values)


# What two nodes share.


def shared_in_graph(graph: AttributedGraph, weights: np.ndarray, row: int, other: int, top: int) -> Shared:
    """Find what two nodes share in the graph, the rarest first, for a method that cannot explain its vectors.

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
