"""A likely link, with the reasons for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from neural_brane.errors import printable


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
