"""Choose a method's parameters by grid search, on a validation part of the training labels."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import active_children, get_context
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal
from typing import Any

import numpy as np

from neural_brane.errors import BraneError, GraphError, ParameterError
from neural_brane.evaluate.classify import classify
from neural_brane.evaluate.splits import random_splits
from neural_brane.graph import AttributedGraph
from neural_brane.io.atomic import atomic
from neural_brane.methods import METHODS

SEED = 1_000_003  # of the divisions: apart from the small seeds that methods are compared on
TRAINING, FITTED, DIVISIONS = 0.7, 0.8, 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """One setting of the grid and how it did; macro is empty and failure says why where it could not be trained."""

    parameters: dict[str, Any]
    macro: tuple[float, ...]  # Macro-F1 of each validation part
    seconds: float
    failure: str = ""

    @property
    def score(self) -> float:
        """The mean over the validation parts; below every score where there is none."""
        return float(np.mean(self.macro)) if self.macro else -1.0


Found = Callable[[list[Candidate]], None]


def candidates(grid: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """All settings of a grid, the last parameter changing fastest.

    >>> candidates({"l2": [0.1, 0.01], "window": [5]})
    [{'l2': 0.1, 'window': 5}, {'l2': 0.01, 'window': 5}]
    """
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def hide_test_labels(graph: AttributedGraph) -> AttributedGraph:
    """The graph with the labels of its training part alone: 70 % of the labelled nodes, drawn at random.

    Tuning sees no other graph, so the labels of the test part cannot matter. A class that the training part
    has one node of cannot be validated and is left out.
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
    path: str | Path | None = None,
    found: Found | None = None,
) -> list[Candidate]:
    """Train a method once at every point of a grid and score it within the training labels; best first.

    fixed: parameters that are the same for all. jobs: trainings side by side, each on one thread.
    path: a file that keeps every finished candidate, to go on from. found: called with those there are so far.
    """
    hidden = hide_test_labels(graph)
    fixed = {"seed": seed} | (fixed or {})
    kept = _Kept(path, _identity(method, hidden, fixed))
    found = found or (lambda results: None)
    points = candidates(grid)
    done = [one for one in kept.results if one.parameters in points]
    missing = [point for point in points if point not in [one.parameters for one in done]]
    found(done)
    for result in _run(method, hidden, fixed, missing, jobs):
        done.append(result)
        kept.add(result)
        found(done)
    return sorted(done, key=lambda one: (-one.score, points.index(one.parameters)))


def score(method: str, graph: AttributedGraph, fixed: dict[str, Any], point: dict[str, Any]) -> Candidate:
    """Train one candidate, and score it on validation parts of the labels that the graph has."""
    start = time.perf_counter()
    try:
        vectors = METHODS[method](**fixed | point).fit_transform(graph).vectors
        seconds = round(time.perf_counter() - start, 2)
        result = classify(vectors, graph.labels, train=[FITTED], splits=DIVISIONS, seed=SEED)
    except BraneError as error:
        return Candidate(point, (), round(time.perf_counter() - start, 2), str(error))
    return Candidate(point, result.at(FITTED).macro.values, seconds)


def _run(
    method: str, graph: AttributedGraph, fixed: dict[str, Any], points: list[dict[str, Any]], jobs: int
) -> Iterator[Candidate]:
    if jobs < 1:
        raise ParameterError(f"jobs={jobs}: at least one is needed")
    if min(jobs, len(points)) <= 1:
        yield from (score(method, graph, fixed, point) for point in points)
        return
    if "threads" in METHODS[method]().get_params():
        fixed = {"threads": 1} | fixed
    # Processes start afresh: one that is forked would inherit locks of the threads that read the graph.
    others = active_children()
    with ProcessPoolExecutor(min(jobs, len(points)), get_context("spawn"), _leave_interrupts) as pool:
        futures = [pool.submit(score, method, graph, fixed, point) for point in points]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:  # an interrupt, above all: nobody waits for trainings that are under way
            pool.shutdown(wait=False, cancel_futures=True)
            for process in active_children():
                if process not in others:
                    process.terminate()
            raise


def _leave_interrupts() -> None:
    """Let the parent alone answer an interrupt."""
    signal(SIGINT, SIG_IGN)


def _identity(method: str, graph: AttributedGraph, fixed: dict[str, Any]) -> dict[str, Any]:
    """What must be the same to go on with a file of candidates: all but the grid."""
    defaults = {name: value for name, value in METHODS[method]().get_params().items() if not callable(value)}
    without = {"threads", "progress"}  # change no vector
    settings = {name: value for name, value in (defaults | fixed).items() if name not in without}
    return {"method": method, "data": graph.digest(), **settings}


class _Kept:
    """The file of finished candidates; nothing is kept where there is no path."""

    def __init__(self, path: str | Path | None, identity: dict[str, Any]):
        self.path = None if path is None else Path(path)
        self.identity = json.loads(json.dumps(identity, default=str))
        self.results: list[Candidate] = []
        if self.path is not None and self.path.exists():
            self.results = self._read(self.path)

    def add(self, result: Candidate) -> None:
        """Keep one more."""
        self.results.append(result)
        if self.path is None:
            return
        with atomic(self.path) as draft:
            record = {"identity": self.identity, "candidates": [asdict(one) for one in self.results]}
            draft.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    def _read(self, path: Path) -> list[Candidate]:
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            identity, results = record["identity"], [_candidate(entry) for entry in record["candidates"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ParameterError(f"{path} holds no finished candidates ({error}); remove it or name another") from error
        for name in identity | self.identity:
            was, now = identity.get(name), self.identity.get(name)
            if was != now:
                raise ParameterError(
                    f"{path} is of another search ({name} was {was!r}, now {now!r}); remove it or name another file"
                )
        return results


def _candidate(entry: dict[str, Any]) -> Candidate:
    parameters = {name: tuple(one) if isinstance(one, list) else one for name, one in entry["parameters"].items()}
    return Candidate(parameters, tuple(entry["macro"]), entry["seconds"], entry["failure"])
