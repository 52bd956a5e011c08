"""Choose a method's parameters by grid search, on labels that no comparison tests."""

from __future__ import annotations

import json
import tomllib
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from neural_brane.errors import GraphError, ParameterError
from neural_brane.evaluate.labelled import Repeats, tuning_part
from neural_brane.experiments.compute import failures_of
from neural_brane.experiments.store import Store, Training
from neural_brane.graph import AttributedGraph
from neural_brane.methods.base import Embedder
from neural_brane.progress import Meter, Reporter

# What a search tries of each method.

# The lists of the paper (section 4, parameter setting) for every method that has the parameter. A method's own `grid`
# adds lists or takes their place.
EVERY: dict[str, list[Any]] = {"learning_rate": [0.01, 0.05, 0.1, 0.5], "l2": [0.01, 0.001, 0.0001]}


def grid(method: type[Embedder]) -> dict[str, list[Any]]:
    """The values to try of each parameter of a method; its own default is among them."""
    defaults = method().get_params(deep=False)
    return {
        name: values if defaults[name] is None or defaults[name] in values else [*values, defaults[name]]
        for name, values in (EVERY | method.grid).items()
        if name in defaults
    }


# The parameters that the search found for each dataset, read from tuned.toml.


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
        values = ", ".join(
            f"{name} = {json.dumps(value)}" for name, value in self.parameters.items() if value is not None
        )
        return (
            f"[{_key(dataset)}.{_key(method)}]\nparameters = {{ {values} }}\n"
            f"validation = {self.validation:.4f}\ncandidates = {self.candidates}\nruns = {self.runs}\n"
            f'seen = "{self.seen}"\n'
        )


@cache
def tuned() -> dict[str, dict[str, Tuned]]:
    """All tuned parameters, by dataset and then by method."""
    return parse(resources.files("neural_brane.experiments").joinpath("tuned.toml").read_text(encoding="utf-8"))


def parse(text: str) -> dict[str, dict[str, Tuned]]:
    """Tuned parameters by dataset and then by method, from TOML; an array is a tuple."""
    return {
        dataset: {
            method: Tuned(**entry | {"parameters": {
                name: tuple(value) if isinstance(value, list) else value for name, value in entry["parameters"].items()
            }})
            for method, entry in methods.items()
        }
        for dataset, methods in tomllib.loads(text).items()
    }  # fmt: skip


def tuned_parameters(method: str, dataset: str) -> dict[str, Any]:
    """The tuned parameters of a method for a dataset; an error where there are none."""
    if method in tuned().get(dataset, {}):
        return dict(tuned()[dataset][method].parameters)
    others = ", ".join(name for name, methods in tuned().items() if method in methods)
    raise ParameterError(
        f"no tuned parameters of '{method}' are kept for '{dataset}'"
        + (f", only for {others}" if others else f", nor for any other dataset; find some with 'brane tune {method}'")
    )


def _key(name: str) -> str:
    """A name as a key of TOML, in quotes where it needs them."""
    return name if name.replace("-", "").replace("_", "").isalnum() else json.dumps(name)


# Choose a method's parameters by grid search, on labels that no comparison tests.

TUNING = 0.2  # the share of the labelled nodes that tuning sees: less than the smallest training share, 0.3
FITTED, SPLITS = 0.8, 10
SCORING = {"classes": {"train": [FITTED], "splits": SPLITS, "seed": 0}}
RUNS = 3  # trainings of each candidate: one alone may be the best by luck


@dataclass(frozen=True, slots=True)
class Candidate:
    """One setting of the grid and its scores; `failure` says why there are none."""

    parameters: dict[str, Any]
    macro: tuple[float, ...] = ()  # one per run: its mean Macro-F1 over the validation parts
    seconds: float = 0.0  # of a training, the mean over runs
    failure: str = ""

    @property
    def score(self) -> float:
        """The mean over runs; below every score where there is none."""
        return Repeats(self.macro).mean if self.macro else -1.0

    @property
    def sd(self) -> float:
        """The standard deviation over runs."""
        return Repeats(self.macro).sd


def candidates(grid: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """All settings of a grid: parameters in alphabetical order, the last one changing fastest.

    >>> candidates({"window": [5], "l2": [0.1, 0.01]})
    [{'l2': 0.1, 'window': 5}, {'l2': 0.01, 'window': 5}]
    """
    return list(ParameterGrid(grid))


def hide_test_labels(graph: AttributedGraph) -> AttributedGraph:
    """The graph with the labels of its tuning part alone: a fixed fifth of the labelled nodes.

    Tuning sees no other graph. Splits that are drawn with `tuning=TUNING` train on this part and never test it, so no
    label that is predicted there was seen here. A class with a single node in this part cannot be validated and is left
    out.
    """
    if graph.labels is None:
        raise GraphError(f"graph '{graph.name}' has no labels to tune on; give one that has")
    labelled = np.flatnonzero(graph.labels != "")
    shown = labelled[tuning_part(len(labelled), TUNING)]
    labels = np.zeros_like(graph.labels)
    labels[shown] = graph.labels[shown]
    names, counts = np.unique(labels, return_counts=True)
    labels[np.isin(labels, names[counts < 2])] = ""
    return graph.relabelled(labels)


def tune(
    method: str,
    graph: AttributedGraph,
    grid: dict[str, list[Any]],
    *,
    fixed: dict[str, Any] | None = None,
    seed: int = 0,
    runs: int = RUNS,
    jobs: int = 1,
    folder: str | Path | None = None,
    progress: Reporter | None = None,
) -> list[Candidate]:
    """Train a method at every point of a grid and score it within the labels of the tuning part; best first.

    Of candidates with the same score, the one that `candidates` lists first comes first.

    fixed: parameters with the same value in every training. seed: of the first run of every candidate, unless fixed or
    searched; the next run has the next seed. runs: trainings of each candidate, of which the mean decides.
    jobs: trainings at a time. One runs in this process on all threads; more run in processes, on one thread each.
    folder: keeps every finished training, so that a stopped search goes on; with None nothing is kept.
    progress: told how many trainings are done.
    """
    if runs < 1:
        raise ParameterError(f"runs={runs}: at least one is needed")
    hidden, points = hide_test_labels(graph), candidates(grid)
    trainings = []
    for point in points:
        others = {"seed": seed} | (fixed or {}) | point
        first = others.pop("seed")
        trainings.append([Training(method, others, graph.name, first + run, SCORING) for run in range(runs)])
    with nullcontext(folder) if folder else TemporaryDirectory() as place:
        store = Store(place, graph=hidden)
        wanted = store.distinct(training for some in trainings for training in some)
        missing = store.missing(wanted)
        meter = Meter(progress, len(wanted), "trainings")
        meter.resume(len(wanted) - len(missing))
        failures = failures_of(missing, store, meter.advance, jobs=jobs, isolated=False)
        found = []
        for point, some in zip(points, trainings, strict=True):
            records = [record for one in some if (record := store.get(one)) is not None]
            macro = tuple(float(np.mean(record["macro_f1"][f"{FITTED:g}"])) for record in records)
            if len(records) == runs:
                found.append(Candidate(point, macro, float(np.mean([record["seconds"] for record in records]))))
            else:  # one run that fails makes the point fail
                why = next(failures[path] for one in some if (path := store.path(one)) in failures)
                found.append(Candidate(point, failure=why))
    return sorted(found, key=lambda one: -one.score)
