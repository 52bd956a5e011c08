"""How long a training takes here: parts of its work are done for a moment, and what there is of them is counted.

No figure of another machine is used, and none is kept.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

from neural_brane.datasets import synthetic
from neural_brane.estimation.probes import Probes
from neural_brane.graph import AttributedGraph
from neural_brane.graph.sizes import Sizes
from neural_brane.methods.base import Embedder

MINIATURE = 5_000  # nodes of the graph on which other methods are tried
# What a trial of a method does less of; its own measure of work says how much less.
SHORTER = {
    "walks_per_node": 1,
    "samples": 200_000,
    "nnmf_epochs": 3,
}
SHORTER_EPOCHS = {"ep": 2} | dict.fromkeys(("nnmf", "graph2gauss", "sdne", "dngr", "dgi", "cca-ssg", "graphmae"), 3)


def seconds_of(method: Embedder, sizes: Sizes) -> dict[str, float]:
    """The seconds of each part of a training, if it goes to its last epoch."""
    if method.title == "neural-brane":
        return Probes(method, sizes).seconds()
    return {"training": _scaled_up(method, sizes)}


def _scaled_up(method: Embedder, sizes: Sizes) -> float:
    """The time of a short training on a small graph of the same shape, times how much more work there is."""
    graph = miniature(sizes)
    values = method.get_params(deep=False) | {"seed": 0, "progress": None}
    values |= {name: value for name, value in SHORTER.items() if name in values}
    if method.title in SHORTER_EPOCHS:
        values["epochs"] = SHORTER_EPOCHS[method.title]
    short = type(method)(**values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so short a training learns little
        short.fit(miniature(sizes, 200))  # compiles the kernels, or loads them
        seconds = timed(lambda: short.fit(graph))
    return seconds * method.work(sizes) / short.work(Sizes.of(graph))


def miniature(sizes: Sizes, nodes: int = MINIATURE) -> AttributedGraph:
    """A small graph with as many edges and attributes a node."""
    few = max(min(nodes, sizes.nodes), 20)
    degree = min(max(round(sizes.links / max(sizes.nodes, 1)), 1), few // 4)
    each = round(sizes.attribute_entries / max(sizes.nodes, 1))
    attributes = max(round(few * sizes.attributes / max(sizes.nodes, 1)), 2 * each, 10)
    return synthetic(few, degree=degree, attributes=attributes, attributes_per_node=each, classes=2)


def timed(task: Callable[[], Any]) -> float:
    """The seconds that a task takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start
