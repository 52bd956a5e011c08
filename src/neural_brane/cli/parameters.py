"""A method and its parameters from what was typed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder


def find_method(name: str) -> type[Embedder]:
    """The class of a method by its name."""
    from neural_brane.methods import METHODS

    if name not in METHODS:
        close = difflib.get_close_matches(name, METHODS, n=1)
        hint = f" (did you mean '{close[0]}'?)" if close else ""
        raise ParameterError(f"method '{name}' is unknown{hint}; choose one of {', '.join(METHODS)}")
    return METHODS[name]


def gather(
    method: str, options: dict[str, Any], settings: Iterable[str] = (), tuned_for: str | None = None
) -> dict[str, Any]:
    """All parameters given: those tuned for a dataset, under the options and the name=value settings typed."""
    from neural_brane.methods.parameters import parse_settings
    from neural_brane.tune.tuned import tuned_parameters

    kind = find_method(method)
    typed = {name: value for name, value in options.items() if value is not None}
    parsed = parse_settings(kind, settings)
    if twice := sorted(typed.keys() & parsed.keys()):
        raise ParameterError(f"{twice[0]} is given by its option and by --set; leave one out")
    kept = {} if tuned_for is None else tuned_parameters(method, tuned_for)
    return kept | typed | parsed


def build(method: str, parameters: dict[str, Any]) -> Embedder:
    """The method by its name, set up with the parameters that were given."""
    model = find_method(method)()
    known = model.get_params()
    for name in parameters:
        if name not in known:
            option = "vector" if name == "output" else name.replace("_", "-")
            raise ParameterError(
                f"--{option}: method '{method}' has no such setting; leave it out (see 'brane methods {method}')"
            )
    return model.set_params(**parameters)
