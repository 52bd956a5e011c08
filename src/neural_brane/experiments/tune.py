"""Choose a method's parameters by grid search, on labels that no comparison uses for testing."""

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

# The paper gives these lists (section 4, parameter setting) for every method that has the parameter. A method's own
# `grid` adds lists or replaces them.
EVERY: dict[str, list[Any]] = {"learning_rate": [0.01, 0.05, 0.1, 0.5], "l2": [0.01, 0.001, 0.0001]}


def grid(method: type[Embedder]) -> dict[str, list[Any]]:
    """Return the values to try for each parameter of a method, always including the default."""
    defaults = method().get_params(deep=False)
    return {
        name: values if defaults[name] is None or defaults[name] in values else [*values, defaults[name]]
        for name, values in (EVERY | method.grid).items()
        if name in defaults
    }


@dataclass(frozen=True, slots=True)
class Tuned:
    """Parameters chosen for a method on a dataset."""

    parameters: dict[str, Any]
    validation: float  # mean Macro-F1 on the validation parts
    candidates: int  # number of settings tried
    runs: int = 1  # trainings of each setting
    seen: str = ""  # digest of the graph with the labels that the search saw

    def as_toml(self, method: str, dataset: str) -> str:
        """Return the lines for tuned.toml.

        >>> print(Tuned({"l2": 0.1}, 0.5, 4, 3, "1f2e3d4c5b6a7988").as_toml("tadw", "cora"))
        [cora.tadw]
        parameters = { l2 = 0.1 }
        validation = 0.5000
        candidates = 4
        runs = 3
        seen = "1f2e3d4c5b6a7988"
        <BLANKLINE>
        """
        values = ", ".join(f"{name} = {json.dumps(one)}" for name, one in self.parameters.items() if one is not None)
        return (
            f"[{_key(dataset)}.{_key(method)}]\nparameters = {{ {values} }}\n"
            f"validation = {self.validation:.4f}\ncandidates = {self.candidates}\nruns = {self.runs}\n"
            f'seen = "{self.seen}"\n'
        )


@cache
def tuned() -> dict[str, dict[str, Tuned]]:
    """Return all tuned parameters, by dataset and then by method."""
    return parse(resources.files(__package__).joinpath("tuned.toml").read_text(encoding="utf-8"))


def parse(text: str) -> dict[str, dict[str, Tuned]]:
    """Parse TOML as tuned parameters, by dataset and then by method; arrays become tuples."""
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
    """Return the tuned parameters of a method for a dataset, or raise an error if there are none."""
    if method in tuned().get(dataset, {}):
        return dict(tuned()[dataset][method].parameters)
    others = ", ".join(name for name, methods in tuned().items() if method in methods)
    raise ParameterError(
        f"there are no tuned parameters of '{method}' for '{dataset}'"
        + (f", only for {others}" if others else f" or any other dataset; search for them with 'brane tune {method}'")
    )


def _key(name: str) -> str:
    """Return a name as a TOML key, in quotes if it needs them."""
    return name if name.replace("-", "").replace("_", "").isalnum() else json.dumps(name)


TUNING = 0.2  # share of the labelled nodes that tuning sees; less than the smallest training share, 0.3
FITTED, SPLITS = 0.8, 10
SCORING = {"classes": {"train": [FITTED], "splits": SPLITS, "seed": 0}}
RUNS = 3  # trainings of each candidate, because the best single one may be luck


@dataclass(frozen=True, slots=True)
class Candidate:
    """One setting of the grid and its scores; if it has none, `failure` says why."""

    parameters: dict[str, Any]
    macro: tuple[float, ...] = ()  # one per run: its mean Macro-F1 over the validation parts
    seconds: float = 0.0  # mean over runs of the seconds of a training
    failure: str = ""

    @property
    def score(self) -> float:
        """The mean over runs, or -1 if the candidate failed."""
        return Repeats(self.macro).mean if self.macro else -1.0

    @property
    def sd(self) -> float:
        """The standard deviation over runs."""
        return Repeats(self.macro).sd


def candidates(grid: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Return all settings of a grid: parameters in alphabetical order, the last one changing fastest.

    >>> candidates({"window": [5], "l2": [0.1, 0.01]})
    [{'l2': 0.1, 'window': 5}, {'l2': 0.01, 'window': 5}]
    """
    return list(ParameterGrid(grid))


def hide_test_labels(graph: AttributedGraph) -> AttributedGraph:
    """Return the graph with only the labels of its tuning part, a fixed fifth of the labelled nodes.

    Splits drawn with `tuning=TUNING` never test on this part. A class with one node in it is left out.
    """
    if graph.labels is None:
        raise GraphError(f"graph '{graph.name}' has no labels; tuning needs a labelled graph")
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
    """Train a method with every setting of a grid, score it within the tuning part, and return the best first.

    Candidates with equal scores keep the order of `candidates`.

    fixed: parameters with the same value in every training. seed: seed of the first run of every candidate, unless it
    is fixed or searched; each further run adds 1. runs: trainings of each candidate; their mean score decides.
    jobs: trainings at a time. With one, trainings run in this process on all threads; with more, each runs in a
    separate process on one thread. folder: keeps finished trainings, so that a stopped search can resume; None keeps
    nothing. progress: receives the number of finished trainings.
    """
    if runs < 1:
        raise ParameterError(f"runs={runs}: must be at least 1")
    hidden, points = hide_test_labels(graph), candidates(grid)
    trainings = []
    for point in points:
        others = {"seed": seed} | (fixed or {}) | point
        first = others.pop("seed")
        trainings.append([Training(method, others, graph.name, first + run, SCORING) for run in range(runs)])
    with nullcontext(folder) if folder else TemporaryDirectory() as place:
        store = Store(place, graph=hidden)
        distinct = store.distinct(training for repeats in trainings for training in repeats)
        missing = store.missing(distinct)
        meter = Meter(progress, len(distinct), "trainings")
        meter.resume(len(distinct) - len(missing))
        failures = failures_of(missing, store, meter.advance, jobs=jobs, isolated=False)
        found = []
        for point, repeats in zip(points, trainings, strict=True):
            records = [record for one in repeats if (record := store.get(one)) is not None]
            macro = tuple(float(np.mean(record["macro_f1"][f"{FITTED:g}"])) for record in records)
            if len(records) == runs:
                found.append(Candidate(point, macro, float(np.mean([record["seconds"] for record in records]))))
            else:  # if one run fails, the candidate fails
                why = next(failures[path] for one in repeats if (path := store.path(one)) in failures)
                found.append(Candidate(point, failure=why))
    return sorted(found, key=lambda one: -one.score)
