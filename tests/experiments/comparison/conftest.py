"""Make a small graph and invented comparisons, to test ranks, sentences and the page without training."""

from __future__ import annotations

import pytest

from neural_brane import synthetic
from neural_brane.evaluate.labelled import Repeats
from neural_brane.experiments.compare import Comparison, Standing, rank
from neural_brane.experiments.compute import TASKS

GRAPH = {"name": "town", "nodes": 12, "edges": 14, "attributes": 6, "classes": 2, "digest": "0123456789abcdef"}
MACHINE = {
    "processor": "Abacus 3000", "cores": 2, "memory_gb": 8, "python": "3.11.0", "packages": {"numpy": "2.0.0"},
}  # fmt: skip


@pytest.fixture(scope="session")
def graph():
    """Return a small graph whose links and attributes both reveal its two classes."""
    return synthetic(90, degree=8, attributes=30, attributes_per_node=5, classes=2, seed=1)


@pytest.fixture(scope="session")
def standing():
    """Return a function that invents the standing of a method in a task; every measure has the same scores."""

    def standing(task, method, *scores, seconds=1.0, **others):
        measures = dict.fromkeys(TASKS[task].measures, Repeats(scores)) | others
        named = {name: values for name, values in measures.items() if values is not None}
        ranked_by = max(TASKS[task].ranked_by, key=lambda name: named[name].mean if name in named else 0.0)
        return Standing(method, named, ranked_by, seconds=Repeats((seconds,) * len(scores)), peak_mb=100.0)

    return standing


@pytest.fixture(scope="session")
def comparison():
    """Return a function that makes a comparison from standings by task."""

    def comparison(notes=(), **standings):
        ranked = {task: rank(some) for task, some in standings.items()}
        methods = {one.method: {"dim": 8} for some in standings.values() for one in some}
        return Comparison(GRAPH, 3, ranked, methods, (MACHINE,), notes)

    return comparison
