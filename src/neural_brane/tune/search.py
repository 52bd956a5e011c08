"""Choose a method's parameters by grid search, on a validation part of the training labels."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid

from neural_brane.errors import GraphError
from neural_brane.evaluate.splits import random_splits
from neural_brane.graph import AttributedGraph
from neural_brane.progress import Meter, Reporter
from neural_brane.trainings.compute import compute_missing
from neural_brane.trainings.store import Store
from neural_brane.trainings.training import Record, Training

SEED = 1_000_003  # of the splits: none of the small seeds that methods are compared on
TRAINING, FITTED, SPLITS = 0.7, 0.8, 5
SCORING = {"classes": {"train": [FITTED], "splits": SPLITS, "seed": SEED}}


@dataclass(frozen=True, slots=True)
class Candidate:
    """One setting of the grid and its scores; `failure` says why there are none."""

    parameters: dict[str, Any]
    macro: tuple[float, ...] = ()  # Macro-F1 of each validation part
    seconds: float = 0.0  # of the training
    failure: str = ""

    @property
    def score(self) -> float:
        """The mean over the validation parts; below every score where there is none."""
        return float(np.mean(self.macro)) if self.macro else -1.0


def candidates(grid: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """All settings of a grid: parameters in alphabetical order, the last one changing fastest.

    >>> candidates({"window": [5], "l2": [0.1, 0.01]})
    [{'l2': 0.1, 'window': 5}, {'l2': 0.01, 'window': 5}]
    """
    return list(ParameterGrid(grid))


def hide_test_labels(graph: AttributedGraph) -> AttributedGraph:
    """The graph with the labels of its training part alone: 70 % of the labelled nodes, drawn at random.

    Tuning sees no other graph, so the labels of the test part cannot matter. A class with a single node in the
    training part cannot be validated and is left out.
    """
    if graph.labels is None:
        raise GraphError(f"graph '{graph.name}' has no labels to tune on; give one that has")
    labelled = np.flatnonzero(graph.labels != "")
    training, _ = next(random_splits(labelled, TRAINING, splits=1, seed=SEED))
    labels = np.zeros_like(graph.labels)
    labels[labelled[training]] = graph.labels[labelled[training]]
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
    jobs: int = 1,
    folder: str | Path | None = None,
    progress: Reporter | None = None,
) -> list[Candidate]:
    """Train a method once at every point of a grid and score it within the training labels; best first.

    Of candidates with the same score, the one that `candidates` lists first comes first.

    fixed: parameters with the same value in every training. seed: of every training, unless fixed or searched.
    jobs: trainings at a time. One runs in this process on all threads; more run in processes, on one thread each.
    folder: keeps every finished training, so that a stopped search goes on; with None nothing is kept.
    progress: told how many trainings are done.
    """
    hidden = hide_test_labels(graph)
    digest, points = hidden.digest(), candidates(grid)
    trainings = [_training(method, {"seed": seed} | (fixed or {}) | point, graph.name) for point in points]
    with nullcontext(folder) if folder else TemporaryDirectory() as place:
        store = Store(place, digest=lambda dataset: digest)
        missing, failures = store.missing(trainings), {}
        meter = Meter(progress, len(points), "trainings", done=len(points) - len(missing))
        for ended in compute_missing(missing, store, graph=hidden, jobs=jobs, isolated=False):
            failures[store.path(ended.task)] = ended.failure
            meter.advance()
        found = [
            _candidate(point, store.get(training), failures.get(store.path(training), ""))
            for point, training in zip(points, trainings, strict=True)
        ]
    return sorted(found, key=lambda one: -one.score)


def _training(method: str, parameters: dict[str, Any], dataset: str) -> Training:
    others = {name: value for name, value in parameters.items() if name != "seed"}
    return Training(method, others, dataset, parameters["seed"], SCORING)


def _candidate(point: dict[str, Any], record: Record | None, failure: str) -> Candidate:
    if record is None:
        return Candidate(point, failure=failure)
    return Candidate(point, tuple(record["macro_f1"][f"{FITTED:g}"]), record["seconds"])
