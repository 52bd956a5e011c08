"""Rank what a node's vector is made of, and what two nodes share."""

from collections.abc import Sequence

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.reasons.contributions import REST, Contributions, Reasons, Terms
from neural_brane.reasons.explanation import Explanation
from neural_brane.reasons.ranking import largest


def explain_node(reasons: Reasons, embedding: Embedding, graph: AttributedGraph, row: int, top: int) -> Explanation:
    """What a node's vector is made of: what each term adds to the vector's inner product with itself."""
    check_top(top)
    vector = embedding.vectors[[row]].astype(np.float64)
    found = reasons.of(row, vector)
    squared = float(vector[0] @ vector[0])
    return _explanation((row,), found, squared, squared, graph, top)


def explain_pairs(
    reasons: Reasons, embedding: Embedding, graph: AttributedGraph, row: int, others: Sequence[int], top: int
) -> list[Explanation]:
    """What makes a node alike to each of some others.

    ⟨x_u, x_v⟩ is taken apart twice: into the terms of u, each projected on x_v, and into those of v, projected on x_u.
    What an attribute or a neighbour adds is the mean of the two. Those are listed that both nodes have terms of.
    """
    check_top(top)
    vectors = embedding.vectors
    own, targets = vectors[[row]].astype(np.float64), vectors[np.asarray(others, np.int64)].astype(np.float64)
    forth = reasons.of(row, targets)
    explanations = []
    for at, other in enumerate(others):
        back = reasons.of(other, own)
        both = Contributions(
            _shared(_column(forth.attributes, at), back.attributes),
            _shared(_closed(_column(forth.neighbours, at), row), _closed(back.neighbours, other)),
            _mean_parts({name: values[[at]] for name, values in forth.parts.items()}, back.parts),
        )
        inner = float(own[0] @ targets[at])
        lengths = float(np.linalg.norm(own[0]) * np.linalg.norm(targets[at]))
        explanations.append(_explanation((row, other), both, inner, lengths, graph, top))
    return explanations


def check_top(top: int, name: str = "top") -> None:
    """Refuse a number of answers that is none."""
    if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
        raise ParameterError(f"{name}={top!r} makes no sense; give a whole number from 1, as in {name}=10")


def _explanation(
    rows: tuple[int, ...], found: Contributions, inner: float, unit: float, graph: AttributedGraph, top: int
) -> Explanation:
    """An explanation of an inner product whose shares are divided by `unit`; what is missing to it is the rest."""
    unit = unit or 1.0  # a vector of zeros has no shares
    shares = {name: float(values[0]) / unit for name, values in found.parts.items()}
    shares[REST] = shares.pop(REST, 0.0) + (inner - sum(float(values[0]) for values in found.parts.values())) / unit
    return Explanation(
        tuple(graph.ids[list(rows)].tolist()),
        inner / unit,
        largest(_divided(found.attributes, unit), graph.attribute_names, top),
        largest(_divided(found.neighbours, unit), graph.ids, top),
        shares,
        {
            "attributes": float(found.attributes.values.sum()) / unit,
            "neighbours": float(found.neighbours.values.sum()) / unit,
        },
    )


def _divided(terms: Terms, by: float) -> Terms:
    return Terms(terms.rows, terms.values / by)


def _column(terms: Terms, at: int) -> Terms:
    return Terms(terms.rows, terms.values[:, [at]])


def _closed(terms: Terms, row: int) -> Terms:
    """The neighbours and the node itself, which adds nothing as its own neighbour."""
    return Terms.sum([terms, Terms(np.array([row]), np.zeros((1, 1)))], 1)


def _shared(one: Terms, other: Terms) -> Terms:
    """The mean of what both add, of the rows that both have."""
    rows, left, right = np.intersect1d(one.rows, other.rows, assume_unique=True, return_indices=True)
    return Terms(rows, (one.values[left] + other.values[right]) / 2)


def _mean_parts(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    nothing = np.zeros(1)
    return {name: (one.get(name, nothing) + other.get(name, nothing)) / 2 for name in {**one, **other}}
