"""Continue training a fitted model on a changed graph: find its start, or refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural_brane.errors import NotFittedError, ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Changes, find_changes
from neural_brane.methods.parameters import RUN

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder, Fitted


class Start(NamedTuple):
    """The start of an update: what was learned before, and how the graph has changed since."""

    learned: Any
    changes: Changes
    updated: dict[str, Any]  # the provenance's entry


def find_start(method: Embedder, init: Any, graph: AttributedGraph) -> tuple[dict[str, Any], Start]:
    """Find the parameters and the start of an update, or refuse it.

    method: has its parameters as given. Those left as None keep the values of the earlier training, also where they
    followed from the size of its graph.
    """
    if not method.updates:
        raise ParameterError(
            f"{method.title} cannot go on from what it has learned: {method.why_not}; learn anew with fit(graph), or "
            "choose a method that 'brane methods' lists with updates"
        )
    if type(init) is not type(method):
        raise ParameterError(
            f"init={init!r} makes no sense; give a fitted {type(method).__name__}, whose tables this one can go on from"
        )
    before: Fitted | None = init.__dict__.get("_fitted")
    if before is None:
        raise NotFittedError(f"this {type(init).__name__} has not learned yet, so nothing can go on from it; fit it")
    values = _parameters(method, before.settings)
    updated = {"times": 1, "first": before.data, "before": before.data}
    if before.updated is not None:
        updated |= {"times": before.updated["times"] + 1, "first": before.updated["first"]}
    return values, Start(before.learned, find_changes(before.graph, graph), updated)


def _parameters(method: Embedder, before: dict[str, Any]) -> dict[str, Any]:
    """Merge the earlier parameters with those given of the run; refuse where another parameter differs."""
    given = {name: one.check(getattr(method, name)) for name, one in method.parameters().items()}
    for name, value in given.items():
        if name not in RUN and value is not None and value != before[name]:
            raise ParameterError(
                f"{name}={value!r} makes no sense where training goes on from a model that learned with "
                f"{name}={before[name]!r}; give that value, or learn anew with fit(graph)"
            )
    if given.get("checkpoint") is not None:
        raise ParameterError(
            f"checkpoint={str(given['checkpoint'])!r} makes no sense for an update, which is short and keeps no state; "
            "set_params(checkpoint=None) first"
        )
    run = {name: given[name] for name in RUN if name in given}
    if run["seed"] is None:
        run["seed"] = before["seed"]
    return before | run


def own_seed(seed: int, times: int) -> int:
    """Derive the seed of an update: it draws other numbers than the training and the updates before."""
    return int(np.random.SeedSequence((seed, times)).generate_state(1, np.uint64)[0] >> np.uint64(1))
