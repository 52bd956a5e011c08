"""The parameters that the search found for each dataset, read from tuned.toml."""

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from neural_brane.errors import ParameterError


@dataclass(frozen=True, slots=True)
class Tuned:
    """Parameters chosen for a method on a dataset."""

    parameters: dict[str, Any]
    validation: float  # their Macro-F1 on the validation parts
    candidates: int  # how many settings were tried
    runs: int = 1  # trainings of each
    seen: str = ""  # the digest of the graph with the labels that the search saw

    def as_toml(self, method: str, dataset: str) -> str:
        """The lines to keep in tuned.toml.

        >>> print(Tuned({"l2": 0.1}, 0.5, 4, 3, "1f2e3d4c5b6a7988").as_toml("tadw", "cora"))
        [cora.tadw]
        parameters = { l2 = 0.1 }
        validation = 0.5000
        candidates = 4
        runs = 3
        seen = "1f2e3d4c5b6a7988"
        <BLANKLINE>
        """
        values = ", ".join(f"{name} = {_toml(value)}" for name, value in self.parameters.items() if value is not None)
        return (
            f"[{_key(dataset)}.{_key(method)}]\nparameters = {{ {values} }}\n"
            f"validation = {self.validation:.4f}\ncandidates = {self.candidates}\nruns = {self.runs}\n"
            f'seen = "{self.seen}"\n'
        )


@cache
def tuned() -> dict[str, dict[str, Tuned]]:
    """All tuned parameters, by dataset and then by method."""
    return parse(resources.files("neural_brane.tune").joinpath("tuned.toml").read_text(encoding="utf-8"))


def parse(text: str) -> dict[str, dict[str, Tuned]]:
    """Tuned parameters by dataset and then by method, from TOML; an array is a tuple."""
    return {
        dataset: {method: _tuned(entry) for method, entry in methods.items()}
        for dataset, methods in tomllib.loads(text).items()
    }


def tuned_parameters(method: str, dataset: str) -> dict[str, Any]:
    """The tuned parameters of a method for a dataset; an error where there are none."""
    if method in tuned().get(dataset, {}):
        return dict(tuned()[dataset][method].parameters)
    others = ", ".join(name for name, methods in tuned().items() if method in methods)
    raise ParameterError(
        f"no tuned parameters of '{method}' are kept for '{dataset}'"
        + (f", only for {others}" if others else f", nor for any other dataset; find some with 'brane tune {method}'")
    )


def _tuned(entry: dict[str, Any]) -> Tuned:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in entry["parameters"].items()}
    return Tuned(**entry | {"parameters": values})


def _toml(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _key(name: str) -> str:
    """A name as a key of TOML, in quotes where it needs them."""
    return name if name.replace("-", "").replace("_", "").isalnum() else json.dumps(name)
