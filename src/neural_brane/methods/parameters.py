"""Declare a parameter once: a method's field says its name, type, default, range and purpose."""

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

# The kinds of values that parameters have: what is accepted, as what it is used, and how it is written as text.
#
# NumPy's numbers are numbers, and True is none. `plain` gives the Python value of whatever is accepted, and raises
# ValueError for the rest; `parse` does the same for a text; `str(kind)` says in words what is accepted.

TRUTH = dict.fromkeys(("true", "yes", "on"), True) | dict.fromkeys(("false", "no", "off"), False)


class Kind(ABC):
    """A kind of value; `words` say what is accepted."""

    words: str

    @abstractmethod
    def plain(self, value: Any) -> Any:
        """The value in Python's own types."""

    def parse(self, text: str) -> Any:
        """The value that a text spells."""
        return self.plain(text)

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True, slots=True)
class Whole(Kind):
    """A whole number from `least` to `most`; `words` say what the most is, where it is worth saying."""

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
    """A whole number, or a RandomState of NumPy, from which every fit draws one."""

    def plain(self, value: Any) -> Any:
        return value if type(value).__name__ == "RandomState" else Whole.plain(self, value)


@dataclass(frozen=True, slots=True)
class Number(Kind):
    """A finite number from `least` on, or above `above`, and below `below`."""

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


class Numbers(Kind):
    """Some numbers from 0, not all of them 0."""

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

    words = "true or false"

    def plain(self, value: Any) -> bool:
        if type(value).__name__ not in ("bool", "bool_"):  # the second is NumPy's
            raise ValueError
        return bool(value)

    def parse(self, text: str) -> bool:
        return self.plain(TRUTH.get(text.lower()))


class File(Kind):
    """The path of a file."""

    words = "the path of a file"

    def plain(self, value: Any) -> str:
        if not isinstance(value, str | Path):
            raise ValueError
        return str(value)


class Function(Kind):
    """A function, which no text can spell."""

    words = "a function"

    def plain(self, value: Any) -> Any:
        if not callable(value):
            raise ValueError
        return value


def cores() -> int:
    """How many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Parameters, declared once: a method's field says a parameter's name, type, default, range and what it is for.
#
# The constructor, the check before a training, `get_params`, the command line, `brane methods NAME` and the reference
# page are all made from that one line::
#
#     class Walker(Embedder):
#         length: int = whole("Nodes in a walk.", default=80)
#
# This module imports no numerical library, so that the command line shows its help at once.

RUN = ("seed", "threads", "device", "deterministic", "checkpoint", "progress")  # are listed after all others


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as it was declared. None is accepted where it is the default."""

    kind: Kind
    about: str
    decides: bool = True  # whether vectors depend on it; on the number of threads, for one, they do not
    name: str = ""
    default: Any = None

    def check(self, value: Any) -> Any:
        """The value in Python's own types; refused, with what may be given, where it makes no sense."""
        if value is None and self.default is None:
            return None
        try:
            return self.kind.plain(value)
        except ValueError:
            raise ParameterError(f"{self.name}={value!r} makes no sense; give {self.expects()}") from None

    def parse(self, text: str) -> Any:
        """The value that a text stands for; refused, with an example, where it stands for none."""
        if text.lower() == "none" and self.default is None:
            return None
        try:
            return self.kind.parse(text)
        except ValueError:
            message = f"{self.name}={text}: give {self.expects()}, as in {self.name}={self.example()}"
            raise ParameterError(message) from None

    def expects(self) -> str:
        """What may be given, in words."""
        return f"{self.kind}, or None" if self.default is None else str(self.kind)

    def example(self) -> str:
        """A text that can be parsed: the default where there is one."""
        if self.default is None:
            examples = ((Number, "0.1"), (Whole, "1"), (Flag, "true"))
            return next((text for kind, text in examples if isinstance(self.kind, kind)), "none")
        return ",".join(map(str, self.default)) if isinstance(self.default, tuple) else str(self.default).lower()


# The example in a method's docstring, unless it has one of its own: a training that takes a moment.
EXAMPLE = """

    Examples
    --------
    >>> from neural_brane import {name}, load
    >>> method = {name}(dim=16, {values}seed=0)
    >>> method.fit_transform(load("stdlib")).vectors.shape
    (554, 16)"""

DIM = 150  # the width of a vector, unless another is asked for

# A parameter that several methods have means the same in all of them.
SHARED = {
    "dim": Parameter(Whole(), "Width of a vector."),
    "epochs": Parameter(Whole(), "Passes over the data."),
    "learning_rate": Parameter(Number(above=0), "Length of a gradient step."),
    "seed": Parameter(
        Seed(0),
        "The same seed gives the same vectors, on the CPU bit for bit. None draws one. `random_state` is another name "
        "for it, which tools of scikit-learn use.",
    ),
    "threads": Parameter(
        Whole(1, cores(), "the number of cores here"), "CPU threads; all cores when None.", decides=False
    ),
    "device": Parameter(
        Choice(("cpu", "cuda", "auto")),
        "Where to train: cpu, cuda (an NVIDIA GPU) or auto, the GPU where there is one.",
    ),
    "checkpoint": Parameter(
        File(),
        "A file that keeps the state of the run; where it exists, training goes on from it, to the same vectors.",
        decides=False,
    ),
    "progress": Parameter(Function(), "Called with a `Progress` a few times a second.", decides=False),
}


def shared(name: str, *, default: Any, about: str = "") -> Any:
    """Declare a parameter that several methods have; `about` says more where this method needs it."""
    return _declare(replace(SHARED[name], about=about or SHARED[name].about), default)


def whole(about: str, *, default: int | None, least: int = 1) -> Any:
    """Declare a whole number."""
    return _declare(Parameter(Whole(least), about), default)


def number(about: str, *, default: float | None, **bounds: float) -> Any:
    """Declare a number; bounds are `least=` or `above=`, and `below=`."""
    return _declare(Parameter(Number(**bounds), about), default)


def numbers(about: str, *, default: tuple[float, ...]) -> Any:
    """Declare some numbers from 0."""
    return _declare(Parameter(Numbers(), about), default)


def choice(about: str, *, default: Any, options: Sequence[Any]) -> Any:
    """Declare one of some options."""
    return _declare(Parameter(Choice(tuple(options)), about), default)


def flag(about: str, *, default: bool | None) -> Any:
    """Declare something that is true or false."""
    return _declare(Parameter(Flag(), about), default)


def _declare(parameter: Parameter, default: Any) -> Any:
    return field(default=default, metadata={"parameter": parameter})


@dataclass_transform(
    kw_only_default=True, eq_default=False, field_specifiers=(shared, whole, number, numbers, choice, flag)
)
class Parametrised:
    """An estimator as scikit-learn knows it. Its annotated fields are its parameters, stored as they are given."""

    title: ClassVar[str]
    learns: ClassVar[dict[str, str]] = {}  # attributes of a fitted object: name_ -> "type: sentence."; bases add theirs

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
        section = "\n".join(f"    {line}" if line else "" for line in lines)  # numpydoc expects it before the examples
        text, found, examples = (cls.__doc__ or "").rstrip().partition("\n\n    Examples\n")
        if not found and "title" in vars(cls) and cls.__module__.startswith(__package__):
            values = "".join(f"{name}={value!r}, " for name, value in getattr(cls, "small", {}).items())
            examples = EXAMPLE.format(name=cls.__name__, values=values)
        cls.__doc__ = f"{text}\n\n{section}{found}{examples}\n    "
        if "random_state" in cls.__dict__:  # the default that dataclass has put there
            cls.random_state = property(lambda self: self.seed)  # type: ignore[attr-defined]

    def __post_init__(self, random_state: Any = None) -> None:
        """Take `random_state` for the seed, of which it is another name."""
        seed = vars(self).get("seed")
        if random_state is None or random_state is seed or random_state == seed:
            return
        if seed is not None:
            raise ParameterError(f"seed={seed!r} and random_state={random_state!r} are one thing; give one of them")
        vars(self)["seed"] = random_state

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """The parameters by name, in the order they are declared; those of the run come last.

        >>> from neural_brane import Attributes
        >>> list(Attributes.parameters())
        ['dim', 'seed', 'threads', 'device', 'progress']
        """
        ordered = sorted(fields(cls), key=lambda one: RUN.index(one.name) if one.name in RUN else -1)  # type: ignore[arg-type]
        return {one.name: replace(one.metadata["parameter"], name=one.name, default=one.default) for one in ordered}

    @classmethod
    def parameter(cls, name: str) -> Parameter:
        """A parameter by its name; where there is none, the error names the likeliest one."""
        known = cls.parameters()
        if name in known:
            return known[name]
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        raise ParameterError(f"method '{cls.title}' has no parameter '{name}'{hint}; it has {', '.join(known)}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter's value as given; with `deep` also the seed's other name, which scikit-learn looks for."""
        values = {name: getattr(self, name) for name in self.parameters()}
        return values | ({"random_state": values["seed"]} if deep and "seed" in values else {})

    def set_params(self, **values: Any) -> Self:
        """Change some parameters. Returns self."""
        for name, value in values.items():
            setattr(self, self.parameter("seed" if name == "random_state" else name).name, value)
        return self

    def parameters_in_force(self) -> dict[str, Any]:
        """Every parameter's value as training uses it, checked, and in Python's own types."""
        return {name: one.check(getattr(self, name)) for name, one in self.parameters().items()}

    def deciding_parameters(self) -> dict[str, Any]:
        """The parameters in force that decide the vectors, fit for JSON: all but the seed and those of the run."""
        known, values = self.parameters(), self.parameters_in_force()
        return {name: value for name, value in values.items() if known[name].decides and name != "seed"}

    def __repr__(self) -> str:
        known = self.parameters()
        values = self.get_params(deep=False)
        changed = {name: value for name, value in values.items() if repr(value) != repr(known[name].default)}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_is_fitted__(self) -> bool:
        """Whether `fit` has put in place what it learned."""
        return "_fitted" in vars(self)

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator in a pipeline or a search: it is there to ask."""
        from sklearn.base import BaseEstimator
        from sklearn.utils import TransformerTags

        tags = BaseEstimator.__sklearn_tags__(self)
        if hasattr(type(self), "transform"):
            tags.transformer_tags = TransformerTags(preserves_dtype=["float32"])
            tags.input_tags.sparse = True
        tags.non_deterministic = vars(self).get("seed") is None
        return tags
