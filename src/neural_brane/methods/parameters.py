"""The parameters of a method: their defaults, what its docstring says of them, and their values from text."""

import difflib
import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import GenericAlias, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from neural_brane.errors import ParameterError
from neural_brane.methods.base import Embedder

WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a word", Path: "a file"}
TRUE, FALSE = ("true", "yes", "on"), ("false", "no", "off")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that can be written as text."""

    name: str
    default: Any
    kinds: tuple[Any, ...]  # what its annotation allows, narrowest first
    about: str

    def expects(self) -> str:
        """What may be given, in words."""
        return " or ".join(_word(kind) for kind in sorted(self.kinds, key=lambda kind: kind is type(None)))

    def parse(self, text: str) -> Any:
        """The value that a text stands for."""
        for kind in self.kinds:
            try:
                return _parse(kind, text)
            except ValueError:
                continue
        raise ParameterError(f"{self.name}={text}: give {self.expects()}, as in {self.name}={self.example()}")

    def example(self) -> str:
        """A text that would do."""
        if self.default is not None:
            return ",".join(map(str, self.default)) if isinstance(self.default, tuple) else str(self.default)
        return next(
            (some for kind, some in ((int, "10"), (float, "0.1"), (bool, "true")) if kind in self.kinds), "none"
        )


def parameters(method: type[Embedder]) -> dict[str, Parameter]:
    """The parameters of a method by name, in the order of its signature; functions have no text and are left out.

    >>> from neural_brane.methods import Attributes
    >>> parameters(Attributes)["dim"].parse("16")
    16
    """
    hints = get_type_hints(method.__init__)
    about = described(method)
    found = {}
    for name, slot in list(inspect.signature(method.__init__).parameters.items())[1:]:
        kinds = _kinds(hints[name])
        if kinds:
            found[name] = Parameter(name, slot.default, kinds, about.get(name, ""))
    return found


def parse_settings(method: type[Embedder], texts: Iterable[str]) -> dict[str, Any]:
    """The values of texts such as 'walk_length=80', by the types of a method's parameters.

    >>> from neural_brane.methods import NeuralBrane
    >>> parse_settings(NeuralBrane, ["l2=1e-4", "bias=true", "tolerance=none"])
    {'l2': 0.0001, 'bias': True, 'tolerance': None}
    """
    known, settings = parameters(method), {}
    for text in texts:
        name, value = split_setting(method, text)
        if name in settings:
            raise ParameterError(f"{text}: {name} is given twice; leave one out")
        settings[name] = known[name].parse(value)
    return settings


def parse_grid(method: type[Embedder], texts: Iterable[str]) -> dict[str, list[Any]]:
    """The values to try of texts such as 'walk_length=20,40'; a semicolon separates where a value has commas."""
    known, grid = parameters(method), {}
    for text in texts:
        name, values = split_setting(method, text)
        grid[name] = [known[name].parse(value.strip()) for value in values.split(";" if ";" in values else ",")]
    return grid


def split_setting(method: type[Embedder], text: str) -> tuple[str, str]:
    """The name and the value of 'name=value'; the name is one of the method's parameters."""
    known = parameters(method)
    name, equals, value = (part.strip() for part in text.partition("="))
    name = name.replace("-", "_")
    first = next(iter(known.values()))
    if not equals:
        raise ParameterError(f"'{text}' sets nothing; write name=value, as in {first.name}={first.example()}")
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        example = known[close[0]] if close else first
        raise ParameterError(
            f"{text}: method '{method.title}' has no parameter '{name}'{hint}; it has {', '.join(known)}; "
            f"write it as in {example.name}={example.example()}"
        )
    return name, value


def described(method: type[Embedder]) -> dict[str, str]:
    """What the docstring's section 'Parameters' says of each of them."""
    section = re.search(r"\nParameters\n-+\n(.*?)(?:\n\n[A-Z]\w+\n-+\n|\Z)", inspect.getdoc(method) or "", re.DOTALL)
    about: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", section.group(1)) if section else []:
        names, _, text = entry.partition(" : ")
        about |= dict.fromkeys(re.split(r",\s*", names.strip()), " ".join(text.split()))
    return about


def summary(method: type[Embedder]) -> str:
    """What the docstring says before its parameters."""
    return (inspect.getdoc(method) or "").partition("\nParameters\n")[0].strip()


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The types of an annotation that text can be turned into, narrowest first."""
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    options = tuple(
        GenericAlias(tuple, (get_args(kind)[0], ...)) if get_origin(kind) is Sequence else kind for kind in options
    )
    order = [type(None), bool, int, float, Literal, tuple, str, Path]
    usable = [kind for kind in options if (get_origin(kind) or kind) in order]
    if usable == [type(None)]:
        return ()
    return tuple(sorted(usable, key=lambda kind: order.index(get_origin(kind) or kind)))


def _parse(kind: Any, text: str) -> Any:
    """A text as one type, or ValueError."""
    if kind is type(None):
        return _choose({"none": None}, text)
    if kind is bool:
        return _choose(dict.fromkeys(TRUE, True) | dict.fromkeys(FALSE, False), text)
    if get_origin(kind) is Literal:
        return _choose({str(value): value for value in get_args(kind)}, text)
    if (get_origin(kind) or kind) is tuple:
        return _parse_tuple(get_args(kind), [part.strip() for part in text.strip("() ").split(",") if part.strip()])
    return kind(text)


def _parse_tuple(members: tuple[Any, ...], parts: list[str]) -> tuple[Any, ...]:
    if len(members) == 2 and members[1] is Ellipsis:
        members = (members[0],) * len(parts)
    return tuple(_parse(member, part) for member, part in zip(members, parts, strict=True))


def _choose(values: dict[str, Any], text: str) -> Any:
    if text.lower() not in values:
        raise ValueError(text)
    return values[text.lower()]


def _word(kind: Any) -> str:
    if kind is type(None):
        return "none"
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(map(str, get_args(kind)))
    if (get_origin(kind) or kind) is tuple:
        members = get_args(kind)
        some = _word(members[0]).removeprefix("a ")
        return f"{some}s by commas" if members[1:] == (Ellipsis,) else f"{len(members)} {some}s by commas"
    return WORDS[kind]
