"""Declare a parameter once: one field of a method has its name, type, default, range and purpose.

The constructor, the check before a training, `get_params`, the command line, `brane methods NAME` and the reference
pages are all made from that field::

    class Walker(Embedder):
        length: int = whole("Nodes in a walk.", default=80)

This module imports no numerical library, so that the command line shows its help at once.
"""

from __future__ import annotations

import difflib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, ClassVar, Self, dataclass_transform

from neural_brane.errors import ParameterError

TRUTH = dict.fromkeys(("true", "yes", "on"), True) | dict.fromkeys(("false", "no", "off"), False)


class ValueKind(ABC):
    """A kind of value, described by `words`; `plain` and `parse` raise ValueError for others. True is not a number."""

    words: str

    @abstractmethod
    def plain(self, value: Any) -> Any:
        """Return the value as a type of Python's own."""

    def parse(self, text: str) -> Any:
        """Return the value that a text stands for."""
        return self.plain(text)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class Whole(ValueKind):
    """A whole number from `least` to `most`. words: a description of `most` for messages, if they should name it."""

    least: int = 1
    most: int = 2**63 - 1
    words: str = ""

    def plain(self, value: Any) -> int:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not whole or not self.least <= int(value) <= self.most:
            raise ValueError
        return int(value)

    def parse(self, text: str) -> int:
        return self.plain(int(text))

    def __str__(self) -> str:
        return f"a whole number from {self.least}" + (f" to {self.words}" if self.words else "")


class Seed(Whole):
    """A whole number, or a RandomState of NumPy from which every fit draws one."""

    def plain(self, value: Any) -> Any:
        return value if type(value).__name__ == "RandomState" else Whole.plain(self, value)


@dataclass(frozen=True, slots=True)
class Number(ValueKind):
    """A finite number that is at least `least`, above `above` and below `below`."""

    least: float = -math.inf
    above: float = -math.inf
    below: float = math.inf

    def plain(self, value: Any) -> float:
        if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
            raise ValueError
        if value < self.least or not self.above < float(value) < self.below:
            raise ValueError
        return float(value)

    def parse(self, text: str) -> float:
        return self.plain(float(text))

    def __str__(self) -> str:
        from_ = f"above {self.above:g}" if math.isfinite(self.above) else f"from {self.least:g}"
        return f"a number {from_}" + (f" and below {self.below:g}" if math.isfinite(self.below) else "")


class Numbers(ValueKind):
    """Several numbers of at least 0, not all of them 0."""

    words = "numbers from 0, separated by commas, not all 0"

    def plain(self, value: Any) -> tuple[float, ...]:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ValueError
        found = tuple(Number(least=0).plain(one) for one in value)
        if not any(found):
            raise ValueError
        return found

    def parse(self, text: str) -> tuple[float, ...]:
        return self.plain([float(part) for part in text.strip("(), ").split(",")])


@dataclass(frozen=True, slots=True)
class Choice(ValueKind):
    """One of several options."""

    options: Sequence[Any]

    def plain(self, value: Any) -> Any:
        if isinstance(value, bool) or value not in self.options:
            raise ValueError
        return self.options[self.options.index(value)]

    def parse(self, text: str) -> Any:
        return self.plain(next((option for option in self.options if str(option) == text.lower()), None))

    def __str__(self) -> str:
        return f"one of {', '.join(map(str, self.options))}"


class Flag(ValueKind):
    """True or false."""

    words = "true or false"

    def plain(self, value: Any) -> bool:
        if type(value).__name__ not in ("bool", "bool_"):  # `bool_` is NumPy's
            raise ValueError
        return bool(value)

    def parse(self, text: str) -> bool:
        return self.plain(TRUTH.get(text.lower()))


class File(ValueKind):
    """The path of a file."""

    words = "the path of a file"

    def plain(self, value: Any) -> str:
        if not isinstance(value, str | Path):
            raise ValueError
        return str(value)


class Function(ValueKind):
    """A function; it cannot be given as text."""

    words = "a function"

    def plain(self, value: Any) -> Any:
        if not callable(value):
            raise ValueError
        return value


def cores() -> int:
    """Return the number of CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


RUN = ("seed", "threads", "device", "deterministic", "checkpoint", "progress")  # listed after all other parameters


@dataclass(frozen=True, slots=True)
class Parameter:
    """A declared parameter. None is accepted if it is the default."""

    kind: ValueKind
    about: str
    decides: bool = True  # False if vectors do not depend on it, such as the number of threads
    name: str = ""
    default: Any = None

    def check(self, value: Any) -> Any:
        """Return the value as a type of Python's own, or raise an error that says what may be given."""
        if value is None and self.default is None:
            return None
        try:
            return self.kind.plain(value)
        except ValueError:
            raise ParameterError(f"{self.name}={value!r} makes no sense; give {self.expects()}") from None

    def parse(self, text: str) -> Any:
        """Return the value that a text stands for, or raise an error with an example."""
        if text.lower() == "none" and self.default is None:
            return None
        try:
            return self.kind.parse(text)
        except ValueError:
            example = f"{self.name}={self.example()}"
            raise ParameterError(f"{self.name}={text}: give {self.expects()}, as in {example}") from None

    def expects(self) -> str:
        """Return a description of the accepted values."""
        return f"{self.kind}, or None" if self.default is None else str(self.kind)

    def example(self) -> str:
        """Return a text that can be parsed: the default, unless it is None."""
        if self.default is None:
            examples = ((Number, "0.1"), (Whole, "1"), (Flag, "true"))
            return next((text for kind, text in examples if isinstance(self.kind, kind)), "none")
        return ",".join(map(str, self.default)) if isinstance(self.default, tuple) else str(self.default).lower()


# The example in the docstring of a method that has none of its own: a training that takes a moment.
EXAMPLE = """

    Examples
    --------
    >>> from neural_brane import {name}, load
    >>> method = {name}(dim=16, {values}seed=0)
    >>> method.fit_transform(load("stdlib")).vectors.shape
    (554, 16)"""

DIM = 150  # the default width of a vector

# A parameter of several methods means the same in all of them.
SHARED = {
    "dim": Parameter(Whole(), "Width of a vector."),
    "epochs": Parameter(Whole(), "Passes over the data."),
    "learning_rate": Parameter(Number(above=0), "Length of a gradient step."),
    "seed": Parameter(
        Seed(0),
        "Seed of all random numbers. The same seed gives the same vectors, on the CPU bit for bit. None draws a seed. "
        "`random_state`, the name in scikit-learn, means the same.",
    ),
    "threads": Parameter(
        Whole(1, cores(), "the number of cores here"), "Number of CPU threads. None uses all cores.", decides=False
    ),
    "device": Parameter(
        Choice(("cpu", "cuda", "auto")),
        "Where to train: cpu, cuda (an NVIDIA GPU), or auto (the GPU if there is one).",
    ),
    "checkpoint": Parameter(
        File(),
        "A file that saves the state of the run. If it exists, training resumes from it and gives the same vectors.",
        decides=False,
    ),
    "progress": Parameter(Function(), "A function to call with a `Progress` a few times a second.", decides=False),
}


def shared(name: str, *, default: Any, about: str = "") -> Any:
    """Return the declaration of a parameter that several methods share; `about` replaces its sentence."""
    return _declare(replace(SHARED[name], about=about or SHARED[name].about), default)


def whole(about: str, *, default: int | None, least: int = 1) -> Any:
    """Return the declaration of a whole number."""
    return _declare(Parameter(Whole(least), about), default)


def number(about: str, *, default: float | None, **bounds: float) -> Any:
    """Return the declaration of a number. bounds: `least` or `above`, and `below`."""
    return _declare(Parameter(Number(**bounds), about), default)


def numbers(about: str, *, default: tuple[float, ...]) -> Any:
    """Return the declaration of several numbers of at least 0."""
    return _declare(Parameter(Numbers(), about), default)


def choice(about: str, *, default: Any, options: Sequence[Any]) -> Any:
    """Return the declaration of one of several options."""
    return _declare(Parameter(Choice(tuple(options)), about), default)


def flag(about: str, *, default: bool | None) -> Any:
    """Return the declaration of a parameter that is true or false."""
    return _declare(Parameter(Flag(), about), default)


def _declare(parameter: Parameter, default: Any) -> Any:
    return field(default=default, metadata={"parameter": parameter})


@dataclass_transform(
    kw_only_default=True, eq_default=False, field_specifiers=(shared, whole, number, numbers, choice, flag)
)
class Parametrised:
    """An estimator in the form of scikit-learn's. Its annotated fields are its parameters, stored as they are given."""

    title: ClassVar[str]
    learns: ClassVar[dict[str, str]] = {}  # learned attributes: name_ -> "type: sentence."; bases add theirs

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        dataclass(kw_only=True, eq=False, repr=False)(cls)
        lines = ["Parameters", "----------"]
        for name, parameter in cls.parameters().items():
            lines += [f"{name} : {parameter.expects()}, default {parameter.default!r}", f"    {parameter.about}"]
        learned = {name: text for base in reversed(cls.__mro__) for name, text in vars(base).get("learns", {}).items()}
        lines += ["", "Attributes", "----------"] if learned else []
        for name, text in learned.items():
            kind, _, about = text.partition(": ")
            lines += [f"{name} : {kind}", f"    {about}"]
        section = "\n".join(f"    {line}" if line else "" for line in lines)  # numpydoc wants the examples last
        text, found, examples = (cls.__doc__ or "").rstrip().partition("\n\n    Examples\n")
        if not found and "title" in vars(cls) and cls.__module__.startswith(__package__):
            values = "".join(f"{name}={value!r}, " for name, value in getattr(cls, "small", {}).items())
            examples = EXAMPLE.format(name=cls.__name__, values=values)
        cls.__doc__ = f"{text}\n\n{section}{found}{examples}\n    "
        if "random_state" in cls.__dict__:  # the default that dataclass stored
            cls.random_state = property(lambda self: self.seed)  # type: ignore[attr-defined]

    def __post_init__(self, random_state: Any = None) -> None:
        """Store `random_state`, another name for the seed, as the seed."""
        seed = vars(self).get("seed")
        if random_state is None or random_state is seed or random_state == seed:
            return
        if seed is not None:
            raise ParameterError(f"seed={seed!r} and random_state={random_state!r} are the same; give one of them")
        vars(self)["seed"] = random_state

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """Return the parameters by name in the order of their declaration; those of the run come last.

        Examples
        --------
        >>> from neural_brane import Attributes
        >>> list(Attributes.parameters())
        ['dim', 'seed', 'threads', 'device', 'progress']
        """
        ordered = sorted(fields(cls), key=lambda one: RUN.index(one.name) if one.name in RUN else -1)  # type: ignore[arg-type]
        return {one.name: replace(one.metadata["parameter"], name=one.name, default=one.default) for one in ordered}

    @classmethod
    def parameter(cls, name: str) -> Parameter:
        """Return a parameter by its name; the error for an unknown name suggests the closest one."""
        known = cls.parameters()
        if name in known:
            return known[name]
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        raise ParameterError(f"method '{cls.title}' has no parameter '{name}'{hint}; it has {', '.join(known)}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return every parameter's value as given; `deep` adds `random_state`, the seed's name in scikit-learn."""
        values = {name: getattr(self, name) for name in self.parameters()}
        return values | ({"random_state": values["seed"]} if deep and "seed" in values else {})

    def set_params(self, **values: Any) -> Self:
        """Return the method itself after some of its parameters have been changed."""
        for name, value in values.items():
            setattr(self, self.parameter("seed" if name == "random_state" else name).name, value)
        return self

    def parameters_in_force(self) -> dict[str, Any]:
        """Return every parameter's value as training uses it: checked, and as a type of Python's own."""
        return {name: one.check(getattr(self, name)) for name, one in self.parameters().items()}

    def deciding_parameters(self) -> dict[str, Any]:
        """Return the parameters in force on which vectors depend, except the seed; all can be written as JSON."""
        known, values = self.parameters(), self.parameters_in_force()
        return {name: value for name, value in values.items() if known[name].decides and name != "seed"}

    def __repr__(self) -> str:
        known = self.parameters()
        values = self.get_params(deep=False)
        changed = {name: value for name, value in values.items() if repr(value) != repr(known[name].default)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether the method is fitted."""
        return "_fitted" in vars(self)

    def __sklearn_tags__(self) -> Any:
        """Return the tags by which scikit-learn's pipelines and searches know an estimator; they have imported it."""
        from sklearn.base import BaseEstimator
        from sklearn.utils import TransformerTags

        tags = BaseEstimator.__sklearn_tags__(self)
        if hasattr(type(self), "transform"):
            tags.transformer_tags = TransformerTags(preserves_dtype=["float32"])
            tags.input_tags.sparse = True
        tags.non_deterministic = vars(self).get("seed") is None
        return tags
