"""Rank the nodes that one is not linked to, by how likely a link is."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.reasons.contributions import Terms
from neural_brane.reasons.likelihood import LinkWeights, candidates, score_links
from neural_brane.reasons.suggestion import Shared

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
