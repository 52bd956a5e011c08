"""The grids that parameters are searched on, read from grids.toml."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from neural_brane.methods.base import Embedder


def grid(method: type[Embedder]) -> dict[str, list[Any]]:
    """The values to try of each parameter that a method has and the paper searches; its own default is among them."""
    table = _read()
    lists = table["every"] | table["method"].get(method.title, {})
    defaults = method().get_params(deep=False)
    return {
        name: values if defaults[name] is None or defaults[name] in values else [*values, defaults[name]]
        for name, values in lists.items()
        if name in defaults
    }


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(resources.files("neural_brane.tune").joinpath("grids.toml").read_text(encoding="utf-8"))
