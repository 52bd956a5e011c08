"""Rank the attributes and neighbours behind a node's vector, and those that two nodes share."""

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

WIDTH = 32  # characters of a name shown in text


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """The share of each attribute and neighbour in one node's vector, or in the cosine of two vectors.

    The shares of one vector are parts of its squared length and sum to 1. The shares of a pair sum to the cosine; a
    negative share makes the two nodes less alike. `explain` of a fitted method returns an Explanation.

    Attributes
    ----------
    nodes : tuple
        The id of the node, or the ids of both nodes.
    similarity : float
        The cosine of both vectors; 1 for one node.
    attributes : list of (name, share)
        The largest shares, best first; for a pair, of attributes that both have, themselves or through neighbours.
    neighbours : list of (id, share)
        The largest shares; for a pair, of common neighbours, and of the two nodes if they are linked.
    shares : dict of str to float
        The shares of all parts; they sum to `similarity`. A share that comes through a neighbour is listed both under
        its attribute and under the neighbour, but counts once here.
    shared : dict of str to float
        The sums of the shares of all "attributes" and of all "neighbours", listed or not.

    Examples
    --------
    >>> from neural_brane import PropagatedAttributes, load
    >>> model = PropagatedAttributes(dim=16, seed=0).fit(load("stdlib"))
    >>> [(id, round(share, 2)) for id, share in model.explain("json.decoder", "json.encoder").neighbours[:2]]
    [('_json', 0.25), ('json', 0.12)]
    """

    nodes: tuple[Any, ...]
    similarity: float
    attributes: list[tuple[Any, float]]
    neighbours: list[tuple[Any, float]]
    shares: dict[str, float]
    shared: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, for JSON."""
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
        """One line that names the nodes and, for a pair, their cosine."""
        if len(self.nodes) == 1:
            return f"shares in the vector of {self.nodes[0]}"
        return f"shares in the cosine of {self.nodes[0]} and {self.nodes[1]} ({self.similarity:.3f})"

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
        """Yield attributes and neighbours side by side, each with its share."""
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
    """Explain one node's vector by the terms of its squared length."""
    check_top(top)
    vector = embedding.vectors[[row]].astype(np.float64)
    contributions = reasons.contributions(row, vector)
    squared = float(vector[0] @ vector[0])
    return _explanation((row,), contributions, squared, squared, graph, top)


def explain_pairs(
    reasons: Reasons, embedding: Embedding, graph: AttributedGraph, row: int, others: Sequence[int], top: int
) -> list[Explanation]:
    """Explain why a node resembles each of `others`.

    The inner product ⟨x_u, x_v⟩ is split twice: into the terms of u projected on x_v, and into the terms of v projected
    on x_u. Each attribute or neighbour counts with the mean of both, and only if both nodes have a term for it.
    """
    check_top(top)
    vectors = embedding.vectors
    own, targets = vectors[[row]].astype(np.float64), vectors[np.asarray(others, np.int64)].astype(np.float64)
    forth = reasons.contributions(row, targets)
    explanations = []
    for at, other in enumerate(others):
        back = reasons.contributions(other, own)
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
    """Refuse a number of results that is not a whole number from 1."""
    if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
        raise ParameterError(f"{name}={top!r} makes no sense; give a whole number from 1, as in {name}=10")


def _explanation(
    rows: tuple[int, ...], terms: Contributions, inner: float, unit: float, graph: AttributedGraph, top: int
) -> Explanation:
    """Return the explanation of an inner product; shares are divided by `unit`, the unexplained remainder is REST."""
    unit = unit or 1.0  # a vector of zeros has no shares
    shares = {name: float(values[0]) / unit for name, values in terms.parts.items()}
    shares[REST] = shares.pop(REST, 0.0) + (inner - sum(float(values[0]) for values in terms.parts.values())) / unit
    return Explanation(
        tuple(graph.ids[list(rows)].tolist()),
        inner / unit,
        largest(Terms(terms.attributes.rows, terms.attributes.values / unit), graph.attribute_names, top),
        largest(Terms(terms.neighbours.rows, terms.neighbours.values / unit), graph.ids, top),
        shares,
        {
            "attributes": float(terms.attributes.values.sum()) / unit,
            "neighbours": float(terms.neighbours.values.sum()) / unit,
        },
    )


def _closed(terms: Terms, row: int) -> Terms:
    """Return the neighbours and the node itself, which adds nothing as its own neighbour."""
    return Terms.sum([terms, Terms(np.array([row]), np.zeros((1, 1)))], 1)


def _shared(one: Terms, other: Terms) -> Terms:
    """Return the terms of the rows that both have, with the mean of both values."""
    rows, left, right = np.intersect1d(one.rows, other.rows, assume_unique=True, return_indices=True)
    return Terms(rows, (one.values[left] + other.values[right]) / 2)
