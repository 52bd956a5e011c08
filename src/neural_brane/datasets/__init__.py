"""Graphs by name: published ones, one that comes with the package, and made-up ones of any size."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from neural_brane.datasets.fetch import fetch, find
from neural_brane.datasets.registry import Dataset, registry
from neural_brane.datasets.synthetic import synthetic
from neural_brane.errors import DatasetError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, SelfLoops
from neural_brane.io import read_graph

__all__ = ["Record", "describe", "load", "read", "synthetic"]

SYNTHETIC = "synthetic:"


@dataclass(frozen=True, slots=True)
class Record:
    """A line of the list of datasets; a count is None where it is not known."""

    name: str
    nodes: int | None
    edges: int | None
    attributes: int | None
    classes: int | None
    state: str
    where: str
    about: str


def load(name: str, *, duplicates: Duplicates = "max", self_loops: SelfLoops = "keep") -> AttributedGraph:
    """Load a dataset by name, or make one with `synthetic:NODES`.

    Files are looked for in the folder that the environment variable NEURAL_BRANE_DATA names, then in the
    cache, and then downloaded to the cache.

    >>> "asyncio" in load("stdlib").ids
    True
    """
    if name.startswith(SYNTHETIC):
        return synthetic(_nodes(name))
    if name not in registry():
        raise DatasetError(f"there is no dataset '{name}'{_nearest(name)}; choose from {_names()}")
    dataset = registry()[name]
    paths = {file.role: fetch(dataset, file) for file in dataset.files}
    graph = read_graph(paths.pop("graph"), **paths, duplicates=duplicates, self_loops=self_loops)
    return replace(graph, name=name, labels=_cut(graph.labels, dataset.label_separator))


def read(
    source: str | Path,
    *,
    attributes: str | Path | None = None,
    labels: str | Path | None = None,
    duplicates: Duplicates = "max",
    self_loops: SelfLoops = "keep",
) -> AttributedGraph:
    """Load a dataset if the source is the name of one, or else read the graph file it names.

    For a file called like a dataset, write ./NAME. `attributes` and `labels` go with a graph file only.
    """
    name = str(source)
    if name in registry() or name.startswith(SYNTHETIC):
        for what, given in (("attributes", attributes), ("labels", labels)):
            if given is not None:
                raise DatasetError(f"dataset '{name}' has its own {what}; leave out {given}")
        return load(name, duplicates=duplicates, self_loops=self_loops)
    if not Path(source).exists():
        raise DatasetError(
            f"'{name}' is neither a file nor a dataset{_nearest(name)}; "
            f"give the path of a graph file, or one of {_names()}"
        )
    return read_graph(source, attributes=attributes, labels=labels, duplicates=duplicates, self_loops=self_loops)


def describe() -> list[Record]:
    """List the datasets, and where their files are: opens none of them.

    A state is "in the package", "here" (in the folder NEURAL_BRANE_DATA), "cached" or "not downloaded".
    """
    about = "Attributed block model of any size, for tests of scale: synthetic:1000000"
    made = Record(f"{SYNTHETIC}NODES", None, None, None, None, "in the package", "made on demand", about)
    return [_record(dataset) for dataset in registry().values()] + [made]


def _record(dataset: Dataset) -> Record:
    found = [find(dataset, file) for file in dataset.files]
    # A dataset is only as near as the farthest of its files.
    order = ["not downloaded", "cached", "here", "in the package"]
    state = min((state for state, _ in found), key=order.index)
    where = sorted({str(path.parent) for _, path in found if path is not None}) if state != order[0] else []
    counts = (dataset.nodes, dataset.edges, dataset.attributes, dataset.classes)
    return Record(dataset.name, *counts, state, ", ".join(where), dataset.about)


def _cut(labels: np.ndarray | None, separator: str) -> np.ndarray | None:
    """Keep what stands before the separator in each label."""
    if labels is None or not separator:
        return labels
    return np.array([label.partition(separator)[0] for label in labels.tolist()])


def _nodes(name: str) -> int:
    digits = name.removeprefix(SYNTHETIC)
    if not digits.isdecimal():
        raise DatasetError(f"'{name}' does not say how many nodes; write a number, as in {SYNTHETIC}10000")
    return int(digits)


def _names() -> str:
    return ", ".join([*registry(), f"{SYNTHETIC}NODES"])


def _nearest(name: str) -> str:
    close = difflib.get_close_matches(name, registry(), n=1)
    return f" (did you mean '{close[0]}'?)" if close else ""
