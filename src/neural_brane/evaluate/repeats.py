"""A score measured several times: its values, their mean and their standard deviation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


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
