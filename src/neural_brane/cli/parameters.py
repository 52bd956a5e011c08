"""Methods and their parameters from what was typed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder
    from neural_brane.methods.parameters import Parameter


def split_names(names: list[str] | None) -> list[str]:
    """Names that were given by commas, by repeating the option, or both."""
    return [part.strip() for name in names or () for part in name.split(",") if part.strip()]


def parse_settings(method: type[Embedder], texts: Iterable[str]) -> dict[str, Any]:
    """The values of texts such as 'walk_length=80', by the declarations of a method's parameters.

    >>> from neural_brane import NeuralBrane
    >>> parse_settings(NeuralBrane, ["l2=1e-4", "bias=true", "tolerance=none"])
    {'l2': 0.0001, 'bias': True, 'tolerance': None}
    """
    settings: dict[str, Any] = {}
    for text in texts:
        parameter, value = split_setting(method, text)
        if parameter.name in settings:
            raise ParameterError(f"{text}: {parameter.name} is given twice; leave one out")
        settings[parameter.name] = parameter.parse(value)
    return settings


def parse_grid(method: type[Embedder], texts: Iterable[str]) -> dict[str, list[Any]]:
    """The values to try of texts such as 'walk_length=20,40'; a semicolon separates where a value has commas."""
    grid = {}
    for text in texts:
        parameter, values = split_setting(method, text)
        separator = ";" if ";" in values else ","
        grid[parameter.name] = [parameter.parse(value.strip()) for value in values.split(separator)]
    return grid


def split_setting(method: type[Embedder], text: str) -> tuple[Parameter, str]:
    """The parameter and the value of a text 'name=value'."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        first = next(iter(method.parameters().values()))
        raise ParameterError(f"'{text}' sets nothing; write name=value, as in {first.name}={first.example()}")
    return method.parameter(name.replace("-", "_")), value
