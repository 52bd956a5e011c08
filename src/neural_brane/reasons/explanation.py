"""What an explanation says, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from typing import Any

from neural_brane.errors import printable

WIDTH = 32  # letters of a name that are shown in text


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """What a node's vector, or the likeness of two, is made of.

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
        The same by part; they sum to the similarity. What comes through a neighbour is listed twice: as an attribute
        that it tells and as the neighbour who tells it; here it counts once.
    shared
        What all attributes and all neighbours that could be listed add, beyond those that are.
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
        """What is explained, in a line."""
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
