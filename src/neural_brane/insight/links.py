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
    """Attributes and neighbours that two nodes share, each with what it adds to their similarity, largest first."""

    attributes: list[tuple[Any, float]]
    neighbours: list[tuple[Any, float]]

    def __str__(self) -> str:
        parts = (("both linked to", self.neighbours), ("attributes of both or of their neighbours:", self.attributes))
        texts = [f"{how} {', '.join(printable(name) for name, _ in listed)}" for how, listed in parts if listed]
        return "; ".join(texts) or "nothing in common"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A likely new neighbour of a node; `suggest` of a fitted method returns a list of them.

    Attributes
    ----------
    id : str or int
        The id of the suggested node.
    score : float
        Higher is likelier. Only the scores of one call can be compared with each other.
    reasons : Shared
        The `attributes` and `neighbours` that both nodes share, two lists of (name, share), best first.

    Examples
    --------
    >>> print(Suggestion("Bela", 3.14159, Shared([("chess", 0.2)], [("Anna", 0.3)])))
    Bela (3.14): both linked to Anna; attributes of both or of their neighbours: chess
    """

    id: Any
    score: float
    reasons: Shared

    def __str__(self) -> str:
        return f"{printable(self.id)} ({self.score:.2f}): {self.reasons}"

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, for JSON."""
        return {
            "id": self.id,
            "score": self.score,
            "attributes": [{"attribute": name, "share": share} for name, share in self.reasons.attributes],
            "neighbours": [{"id": name, "share": share} for name, share in self.reasons.neighbours],
        }


BLOCK_ROWS = 8_192  # vectors compared at a time
LINKS, BATCH = 256, 64  # links used to find the weights, and how many of them at a time
FIRST = 10  # a link counts as found if fewer candidates rank above it
BY = ("all", "score", "similarity", "neighbours")

Compare = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (queries, dim) and (rows, dim) to (queries, rows)


class LinkWeights(NamedTuple):
    """The rule that ranks links of a graph: which score of vectors to use, and the weight of common neighbours."""

    vectors: str  # "score" or "similarity"
    neighbours: float


class LinkScorer(NamedTuple):
    """Score links of a graph by the vectors of its nodes and by common neighbours."""

    embedding: Embedding
    graph: AttributedGraph
    similarity: str  # how to compare vectors: "cosine", "dot" or "distance"

    def weigh(self) -> LinkWeights:
        """Measure on links of the graph which scores rank links well, and return the weights.

        A score finds a link u-v if it ranks fewer than ten of the nodes that are not linked to u above v. Of the
        method's own score and the similarity of vectors, the better one is used. The weight of common neighbours is
        their odds of finding a link divided by the odds of that score. Vectors were learned from these links and
        common neighbours ignore the link itself, so vectors weigh somewhat too much.
        """
        scores = ["similarity"] if self.embedding.layer is None else ["score", "similarity"]
        adjacency = self.graph.adjacency
        places = np.random.default_rng(0).permutation(adjacency.nnz)[:LINKS]  # the same links at every call
        ends = np.searchsorted(adjacency.indptr, places, side="right") - 1
        links = np.column_stack([ends, adjacency.indices[places]])
        links = links[links[:, 0] != links[:, 1]]
        odds = {by: self._odds(links, by) for by in (*scores, "neighbours")}
        best = max(scores, key=odds.__getitem__)
        return LinkWeights(best, odds["neighbours"] / odds[best])

    def score(self, rows: np.ndarray, by: str) -> np.ndarray:
        """Return one kind of score of each given row with all nodes, (rows, nodes) float64."""
        if by == "neighbours":
            return np.array([common_neighbours(self.graph.adjacency, int(row)) for row in rows])
        compare: Compare = SIMILAR[self.similarity]
        if by == "score":
            if self.embedding.layer is None:
                raise ParameterError("by='score' needs a method that scores pairs, such as neural-brane; give by='all'")
            compare = _by_layer(self.embedding.layer)
        vectors = self.embedding.vectors
        queries = vectors[rows]
        with one_blas_thread():  # with more threads the order of sums, and so the last bits, would vary
            blocks = [compare(queries, vectors[at : at + BLOCK_ROWS]) for at in range(0, len(vectors), BLOCK_ROWS)]
        return np.concatenate(blocks, axis=1).astype(np.float64)

    def rank(
        self, row: int, k: int, *, by: str, weights: Callable[[], LinkWeights], exclude: Iterable[int] = ()
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k likeliest new neighbours of a node and their scores; rows in `exclude` are left out.

        With by="all", the score of the vectors and the score of common neighbours, Σ 1 / degree, are each scaled to
        mean 0 and deviation 1 over the candidates, and added with the weights that `weights` returns.
        """
        if by not in BY:
            raise ParameterError(f"by={by!r} makes no sense; give one of {', '.join(BY)}")
        free, query = candidates(self.graph.adjacency, row), np.array([row])
        if by == "all":
            chosen = weights()
            scores = _standard(self.score(query, chosen.vectors)[0], free)
            scores = scores + chosen.neighbours * _standard(self.score(query, "neighbours")[0], free)
        else:
            scores = self.score(query, by)[0]
        scores[~free] = -np.inf
        scores[np.fromiter(exclude, np.int64)] = -np.inf
        count = min(k, int(np.count_nonzero(scores > -np.inf)))
        best = np.argsort(-scores, kind="stable")[:count]
        return best, scores[best]

    def _odds(self, links: np.ndarray, by: str) -> float:
        """Return the odds that a score finds a link; adding one to both counts keeps the odds finite."""
        found = 0
        for at in range(0, len(links), BATCH):
            batch = links[at : at + BATCH]
            for (row, other), scores in zip(batch.tolist(), self.score(batch[:, 0], by), strict=True):
                rivals = scores[candidates(self.graph.adjacency, row)]
                ahead = np.count_nonzero(rivals > scores[other]) + np.count_nonzero(rivals == scores[other]) / 2
                found += int(ahead < FIRST)
        return (found + 1) / (len(links) - found + 1)


def common_neighbours(adjacency: sparse.csr_array, row: int) -> np.ndarray:
    """Return, for each node, Σ 1 / degree over the neighbours that it shares with node `row`, (nodes,) float64."""
    near = adjacency[[row]].indices
    theirs = adjacency[near]
    degrees = np.diff(theirs.indptr)
    allocated = np.bincount(theirs.indices, np.repeat(1 / np.maximum(degrees, 1), degrees), adjacency.shape[0])
    return allocated.astype(np.float64)  # NumPy returns integers if there are no neighbours


def candidates(adjacency: sparse.csr_array, row: int) -> np.ndarray:
    """Return which nodes could be new neighbours: all but the node and its neighbours, (nodes,) bool."""
    free = np.ones(adjacency.shape[0], bool)
    free[adjacency[[row]].indices] = False
    free[row] = False
    return free


def _by_layer(layer: Layer) -> Compare:
    """Return the function that computes the score ⟨h(u), h(v)⟩ of a learned layer."""

    def hide(block: np.ndarray) -> np.ndarray:
        return np.maximum(block @ layer.weight.T + layer.bias, 0)

    return lambda queries, block: hide(queries) @ hide(block).T


def _cosine(queries: np.ndarray, block: np.ndarray) -> np.ndarray:
    lengths = np.outer(np.linalg.norm(queries, axis=1), np.linalg.norm(block, axis=1))
    return np.divide(queries @ block.T, lengths, out=np.zeros_like(lengths), where=lengths > 0)


SIMILAR: dict[str, Compare] = {
    "cosine": _cosine,
    "dot": lambda queries, block: queries @ block.T,
    "distance": lambda queries, block: np.array([-np.linalg.norm(block - one, axis=1) for one in queries]),
}


def _standard(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Return the values scaled so that those in the mask `among` have mean 0 and deviation 1."""
    deviation = float(values[among].std()) if among.any() else 0.0
    return (values - values[among].mean()) / deviation if deviation > 0 else np.zeros_like(values)


def shared_in_graph(graph: AttributedGraph, weights: np.ndarray, row: int, other: int, top: int) -> Shared:
    """Return the attributes and neighbours that two nodes share, rarest first; for methods that cannot explain.

    weights: (attributes,) the share of each attribute. The share of a neighbour is 1 / degree.
    """
    attributes = np.intersect1d(graph.attributes[[row]].indices, graph.attributes[[other]].indices)
    neighbours = np.intersect1d(graph.adjacency[[row]].indices, graph.adjacency[[other]].indices)
    degrees = np.diff(graph.adjacency.indptr)[neighbours]
    return Shared(
        largest(Terms(attributes, weights[attributes][:, None]), graph.attribute_names, top),
        largest(Terms(neighbours, 1 / degrees[:, None]), graph.ids, top),
    )


def largest(terms: Terms, names: np.ndarray, top: int) -> list[tuple[Any, float]]:
    """Return the names of the `top` rows that add most to the first target, each with what it adds, largest first."""
    order = np.argsort(-terms.values[:, 0], kind="stable")[:top]
    return list(zip(names[terms.rows[order]].tolist(), terms.values[order, 0].tolist(), strict=True))
