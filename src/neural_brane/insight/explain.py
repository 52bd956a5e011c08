"""Rank what a node's vector is made of, and what two nodes share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import Any

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import ParameterError, printable
from neural_brane.graph import AttributedGraph
from neural_brane.insight.contributions import REST, Contributions, Reasons, Terms
from neural_brane.insight.links import largest

WIDTH = 32  # letters of a name that are shown in text


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The share of each attribute and neighbour in a node's vector, or in the cosine of two.

    Shares of one node's vector sum to 1: what each adds to the squared length of the vector, divided by it. Shares of
    a pair sum to its cosine: what each adds to the inner product, divided by both lengths. A negative share makes two
    nodes less alike.

    Parameters
    ----------
    nodes
        The id, or both ids.
    similarity
        The cosine of both vectors; 1 for one node.
    attributes
        Names with their shares, the largest first. Of a pair, those that both have, themselves or by neighbours.
    neighbours
        Ids with their shares, likewise. Of a pair, common neighbours, and the two themselves where they are linked.
    shares
        The same by part; they sum to the similarity. What comes through a neighbour is listed twice, under the
        attribute and under the neighbour; here it counts once.
    shared
        What all attributes and all neighbours add, including those that are not listed.
    """

    nodes: tuple[Any, ...]
    similarity: float
    attributes: list[tuple[Any, float]]
    neighbours: list[tuple[Any, float]]
    shares: dict[str, float]
    shared: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "nodes": list(self.nodes),
            "similarity": self.similarity,
            "attributes": [{"attribute": name, "share": share} for name, share in self.attributes],
            "neighbours": [{"id": name, "share": share} for name, share in self.neighbours],
            "shares": dict(self.shares),
            "shared": dict(self.shared),
        }

    @property
    def title(self) -> str:
        """One line that says what is explained."""
        if len(self.nodes) == 1:
            return f"what the vector of {self.nodes[0]} is made of"
        return f"what makes {self.nodes[0]} and {self.nodes[1]} alike: cosine {self.similarity:.3f}"

    def __repr__(self) -> str:
        listed = [("share", "attribute", "share", "neighbour")]
        listed += [(*left, *right) for left, right in self._rows(lambda text: _cut(printable(text)))]
        widths = [max(len(row[at]) for row in listed) for at in range(4)]
        lines = [
            f"  {row[0]:>{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]}".rstrip()
            for row in listed
        ]
        return "\n".join([printable(self.title), *lines, f"  by part: {self._parts()}"])

    def _repr_html_(self) -> str:
        rows = [(*left, *right) for left, right in self._rows(lambda text: escape(str(text)))]
        head = "".join(f"<th>{one}</th>" for one in ("share", "attribute", "share", "neighbour"))
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        return (
            f"<p>{escape(self.title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>by part: {escape(self._parts())}</p>"
        )

    def _rows(self, shown: Any) -> Iterable[tuple[tuple[str, str], tuple[str, str]]]:
        """Attributes and neighbours side by side, each with its share."""
        for left, right in zip_longest(self.attributes, self.neighbours):
            yield (
                ("", "") if left is None else (f"{left[1]:.3f}", shown(left[0])),
                ("", "") if right is None else (f"{right[1]:.3f}", shown(right[0])),
            )

    def _parts(self) -> str:
        return ", ".join(f"{name} {share:.3f}" for name, share in self.shares.items())


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"


def explain_node(reasons: Reasons, embedding: Embedding, graph: AttributedGraph, row: int, top: int) -> Explanation:
    """Explain a node's vector: what each term adds to the vector's inner product with itself."""
    check_top(top)
    vector = embedding.vectors[[row]].astype(np.float64)
    found = reasons.of(row, vector)
    squared = float(vector[0] @ vector[0])
    return _explanation((row,), found, squared, squared, graph, top)


def explain_pairs(
    reasons: Reasons, embedding: Embedding, graph: AttributedGraph, row: int, others: Sequence[int], top: int
) -> list[Explanation]:
    """Explain what makes a node and each of some others alike.

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
        attributes, neighbours = (
            Terms(terms.rows, terms.values[:, [at]]) for terms in (forth.attributes, forth.neighbours)
        )
        parts = {name: np.zeros(1) for name in {**forth.parts, **back.parts}}
        parts |= {name: parts[name] + values[[at]] for name, values in forth.parts.items()}
        both = Contributions(
            _shared(attributes, back.attributes),
            _shared(_closed(neighbours, row), _closed(back.neighbours, other)),
            {name: (values + back.parts.get(name, 0)) / 2 for name, values in parts.items()},
        )
        inner = float(own[0] @ targets[at])
        lengths = float(np.linalg.norm(own[0]) * np.linalg.norm(targets[at]))
        explanations.append(_explanation((row, other), both, inner, lengths, graph, top))
    return explanations


def check_top(top: int, name: str = "top") -> None:
    """Refuse a number of answers that makes no sense."""
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
        largest(Terms(found.attributes.rows, found.attributes.values / unit), graph.attribute_names, top),
        largest(Terms(found.neighbours.rows, found.neighbours.values / unit), graph.ids, top),
        shares,
        {
            "attributes": float(found.attributes.values.sum()) / unit,
            "neighbours": float(found.neighbours.values.sum()) / unit,
        },
    )


def _closed(terms: Terms, row: int) -> Terms:
    """The neighbours and the node itself, which adds nothing as its own neighbour."""
    return Terms.sum([terms, Terms(np.array([row]), np.zeros((1, 1)))], 1)


def _shared(one: Terms, other: Terms) -> Terms:
    """The mean of what both add, of the rows that both have."""
    rows, left, right = np.intersect1d(one.rows, other.rows, assume_unique=True, return_indices=True)
    return Terms(rows, (one.values[left] + other.values[right]) / 2)
