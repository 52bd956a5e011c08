"""The kinds of values that parameters have: what is accepted, as what it is used, and how it is written as text.

NumPy's numbers are numbers, and True is none. `plain` gives the Python value of whatever is accepted, and raises
ValueError for the rest; `parse` does the same for a text; `str(kind)` says in words what is accepted.
"""

import math
import numbers
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRUTH = dict.fromkeys(("true", "yes", "on"), True) | dict.fromkeys(("false", "no", "off"), False)


class Kind(ABC):
    """A kind of value."""

    @abstractmethod
    def plain(self, value: Any) -> Any:
        """The value in Python's own types."""

    def parse(self, text: str) -> Any:
        """The value that a text spells."""
        return self.plain(text)


@dataclass(frozen=True, slots=True)
class Whole(Kind):
    """A whole number from `least` to `most`; `words` say what the most is, where it is worth saying."""

    least: int = 1
    most: int = 2**63 - 1
    words: str = ""

    def plain(self, value: Any) -> int:
        if not isinstance(value, numbers.Integral) or isinstance(value, bool):
            raise ValueError
        if not self.least <= int(value) <= self.most:
            raise ValueError
        return int(value)

    def parse(self, text: str) -> int:
        return self.plain(int(text))

    def __str__(self) -> str:
        return f"a whole number from {self.least}" + (f" to {self.words}" if self.words else "")


class Seed(Whole):
    """A whole number, or a RandomState of NumPy, from which every fit draws one."""

    def plain(self, value: Any) -> Any:
        return value if type(value).__name__ == "RandomState" else Whole.plain(self, value)


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """A finite number from `least` on, or above `above`."""

    least: float = -math.inf
    above: float = -math.inf

    def plain(self, value: Any) -> float:
        if not isinstance(value, numbers.Real) or isinstance(value, bool) or not math.isfinite(value):
            raise ValueError
        if value < self.least or value <= self.above:
            raise ValueError
        return float(value)

    def parse(self, text: str) -> float:
        return self.plain(float(text))

    def __str__(self) -> str:
        return f"a number above {self.above:g}" if math.isfinite(self.above) else f"a number from {self.least:g}"


class Numbers(Kind):
    """Some numbers from 0, not all of them 0."""

    def plain(self, value: Any) -> tuple[float, ...]:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ValueError
        found = tuple(Number(least=0).plain(one) for one in value)
        if not any(found):
            raise ValueError
        return found

    def parse(self, text: str) -> tuple[float, ...]:
        return self.plain([float(part) for part in text.strip("(), ").split(",")])

    def __str__(self) -> str:
        return "numbers from 0, separated by commas, not all 0"


@dataclass(frozen=True, slots=True)
class Choice(Kind):
    """One of some options."""

    options: Sequence[Any]

    def plain(self, value: Any) -> Any:
        if isinstance(value, bool) or value not in self.options:
            raise ValueError
        return self.options[self.options.index(value)]

    def parse(self, text: str) -> Any:
        return self.plain(next((option for option in self.options if str(option) == text.lower()), None))

    def __str__(self) -> str:
        return f"one of {', '.join(map(str, self.options))}"


class Flag(Kind):
    """True or false."""

    def plain(self, value: Any) -> bool:
        if type(value).__name__ not in ("bool", "bool_"):  # the second is NumPy's
            raise ValueError
        return bool(value)

    def parse(self, text: str) -> bool:
        return self.plain(TRUTH.get(text.lower()))

    def __str__(self) -> str:
        return "true or false"


class File(Kind):
    """The path of a file."""

    def plain(self, value: Any) -> str:
        if not isinstance(value, str | Path):
            raise ValueError
        return str(value)

    def __str__(self) -> str:
        return "the path of a file"


class Function(Kind):
    """A function, which no text can spell."""

    def plain(self, value: Any) -> Any:
        if not callable(value):
            raise ValueError
        return value

    def __str__(self) -> str:
        return "a function"


def cores() -> int:
    """How many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
