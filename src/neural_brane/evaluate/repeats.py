"""A score measured several times: its values, their mean and their standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from neural_brane.errors import EmbeddingError


class HasShare(Protocol):
    """A score that knows the share of the nodes that was trained on."""

    @property
    def train(self) -> float:
        """That share."""


AtShare = TypeVar("AtShare", bound=HasShare)


@dataclass(frozen=True, slots=True)
class Repeats:
    """The values of a score, one per split or per start.

    >>> f1 = Repeats((0.5, 0.75))
    >>> f1.mean, f1.values
    (0.625, (0.5, 0.75))
    """

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return float(np.mean(self.values))

    @property
    def sd(self) -> float:
        """The standard deviation of the sample; 0 for one value."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else 0.0

    def as_dict(self, each: str) -> dict[str, Any]:
        """Mean, deviation and, under the name of what was repeated, the values themselves: for JSON."""
        return {"mean": self.mean, "sd": self.sd, each: list(self.values)}


def score_at(scores: Sequence[AtShare], train: float) -> AtShare:
    """The score at one training share."""
    for score in scores:
        if score.train == train:
            return score
    raise EmbeddingError(f"no score at train={train}; there are {[score.train for score in scores]}")
