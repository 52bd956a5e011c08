"""The tuned parameters kept for each dataset, and the grids they are searched on: data, read from TOML."""

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from neural_brane.errors import ParameterError
from neural_brane.methods.base import Embedder


@dataclass(frozen=True, slots=True)
class Tuned:
    """Parameters chosen for a method on a dataset."""

    parameters: dict[str, Any]
    validation: float  # their Macro-F1 on the validation parts
    candidates: int  # how many settings were tried

    def as_toml(self, method: str, dataset: str) -> str:
        """The lines to keep in tuned.toml."""
        values = ", ".join(f"{name} = {_toml(value)}" for name, value in self.parameters.items() if value is not None)
        return (
            f"[{_key(dataset)}.{_key(method)}]\nparameters = {{ {values} }}\n"
            f"validation = {self.validation:.4f}\ncandidates = {self.candidates}\n"
        )


@cache
def tuned() -> dict[str, dict[str, Tuned]]:
    """All tuned parameters, by dataset and then by method."""
    return {
        dataset: {method: _tuned(entry) for method, entry in methods.items()}
        for dataset, methods in _read("tuned.toml").items()
    }


def tuned_datasets(method: str) -> list[str]:
    """The datasets that a method has tuned parameters for."""
    return [dataset for dataset, methods in tuned().items() if method in methods]


def tuned_parameters(method: str, dataset: str) -> dict[str, Any]:
    """The tuned parameters of a method for a dataset; an error where none are kept."""
    if method in tuned().get(dataset, {}):
        return dict(tuned()[dataset][method].parameters)
    there = ", ".join(tuned_datasets(method))
    raise ParameterError(
        f"no tuned parameters of '{method}' are kept for '{dataset}'"
        + (f", only for {there}" if there else f", nor for any other dataset; find some with 'brane tune {method}'")
    )


def grid(method: type[Embedder]) -> dict[str, list[Any]]:
    """The values to try of each parameter that a method has and the paper searches; its own default is among them."""
    table = _read("grids.toml")
    lists = table["every"] | table["method"].get(method.title, {})
    defaults = method().get_params()
    return {
        name: values if defaults[name] is None or defaults[name] in values else [*values, defaults[name]]
        for name, values in lists.items()
        if name in defaults
    }


@cache
def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("neural_brane.tune").joinpath(name).read_text(encoding="utf-8"))


def _tuned(entry: dict[str, Any]) -> Tuned:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in entry["parameters"].items()}
    return Tuned(values, entry["validation"], entry["candidates"])


def _toml(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() else json.dumps(name)
