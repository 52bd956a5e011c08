"""Graphs by name: published ones, one that comes with the package, and synthetic ones of any size."""

from __future__ import annotations

import difflib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from neural_brane.errors import DatasetError, GraphError
from neural_brane.files.datasets.registry import fetch, find, registry
from neural_brane.files.graphs.formats import TEXT, find_format, read_graph
from neural_brane.files.nodes import (
    Kind,
    ReadOptions,
    Targets,
    as_series,
    is_table,
    kind_of,
    plain_lines,
    read_file_lines,
    read_label_lines,
    read_label_table,
    to_targets,
)
from neural_brane.files.nodes import read_labels as read_label_file
from neural_brane.files.reading import STANDARD_INPUT
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, SelfLoops
from neural_brane.graph.synthetic import synthetic

__all__ = ["Listing", "list_datasets", "load", "read", "read_labels", "read_targets", "source_files", "synthetic"]

SYNTHETIC = "synthetic:"


@dataclass(frozen=True, slots=True)
class Listing:
    """A dataset in the list of them; a count is None where it is not known."""

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
    cache, and then downloaded to the cache. Of arnetminer-15753, links and labels are loaded without the attributes
    where their file cannot be had; a warning says so.

    >>> "asyncio" in load("stdlib").ids
    True
    """
    if name.startswith(SYNTHETIC):
        return synthetic(synthetic_nodes(name))
    if name not in registry():
        raise DatasetError(f"there is no dataset '{name}'{_hint(name, 'choose from')}")
    dataset = registry()[name]
    paths = {}
    for file in dataset.files:
        try:
            paths[file.role] = fetch(dataset, file)
        except DatasetError as error:
            if not file.optional or find(dataset, file)[1] is not None:
                raise
            warnings.warn(f"'{name}' is loaded without its {file.role}: {error}", stacklevel=2)
    graph = read_graph(
        paths["graph"],
        attributes=paths.get("attributes"),
        labels=paths.get("labels"),
        duplicates=duplicates,
        self_loops=self_loops,
    )
    labels = graph.labels
    if labels is not None and dataset.label_separator:
        labels = np.array([label.partition(dataset.label_separator)[0] for label in labels.tolist()])
    return graph.renamed(name).relabelled(labels)


def read(source: str | Path, /, **options: Unpack[ReadOptions]) -> AttributedGraph:
    """Load a dataset if the source is the name of one, or else read the graph file it names.

    For a file that is named like a dataset, write ./NAME. The options are those of `read_graph`: `duplicates` and
    `self_loops`; for a graph file alone `attributes`, `labels` and `nodes`, files that go with it, and the columns of
    tables. A dataset has its own.
    """
    name = str(source)
    if name in registry() or name.startswith(SYNTHETIC):
        rules: Any = {rule: options[rule] for rule in ("duplicates", "self_loops") if rule in options}
        for what, given in options.items():
            if given is not None and what not in rules:
                raise DatasetError(f"dataset '{name}' has its own {what}; leave out {given}")
        return load(name, **rules)
    if name != STANDARD_INPUT and not Path(source).exists():
        raise DatasetError(
            f"'{name}' is neither a file nor a dataset{_hint(name, 'give the path of a graph file, or one of')}"
        )
    if Path(source).suffix == ".brane":
        raise DatasetError(f"{name}: is a model, not a graph; give the graph that it was fitted to")
    return read_graph(source, **options)


def source_files(source: str | Path) -> dict[str, Path]:
    """The files that `read` would open, each by how to call it in a message; of a dataset those that are here."""
    if dataset := registry().get(str(source)):
        found = {f"{file.role} of {dataset.name}": find(dataset, file)[1] for file in dataset.files}
        return {name: path for name, path in found.items() if path is not None}
    path = Path(source)
    return {"SOURCE": path} | ({"its .content file": path.with_suffix(".content")} if path.suffix == ".cites" else {})


def read_labels(
    source: str | Path, *, id: str | None = None, label: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids and labels of a dataset (by name), of a graph file, of a table of nodes or of a label file.

    A graph file is .npz, .graphml, .gexf, .gml, .mtx, .cites or .content (each of the last two needs the other beside
    it). A table has its ids in the column `id` and the labels in the column `label`. Any other file is a label file.
    """
    path = Path(source)
    if _is_label_table(path, id, label):
        return read_label_table(path, id=id, label=label)
    return read_label_file(path) if _is_label_file(path) else _graph_labels(source)


def read_targets(
    source: str | Path,
    *,
    id: str | None = None,
    label: str | None = None,
    kind: Kind | None = None,
    separator: str | None = None,
) -> tuple[np.ndarray, Targets]:
    """Return the ids of nodes and what is to be predicted of them, from anything that `read_labels` reads.

    kind: "class" (strings), "number" (float64) or "several" (`MultiLabels`); None goes by the labels of a file, as
    `neural_brane.files.nodes` says, and takes those of a graph for classes.
    separator: between several labels of a line; by default the one found there.
    """
    path = Path(source)
    table = _is_label_table(path, id, label)
    if not table and not _is_label_file(path):
        ids, labels = _graph_labels(source)
        known = labels != ""
        lines = plain_lines(str(source), ids[known], as_series(labels[known]))
        return (ids, labels) if kind in (None, "class") else to_targets(lines, kind, separator)
    lines = read_label_lines(path, id=id, label=label) if table else read_file_lines(path)
    kind = kind or ("several" if separator else kind_of(lines))
    # Classes are read by the reader of classes, which names the line of what it refuses.
    return read_labels(source, id=id, label=label) if kind == "class" else to_targets(lines, kind, separator)


def _is_label_table(path: Path, id: str | None, label: str | None) -> bool:
    return id is not None or label is not None or (path.is_file() and is_table(path))


def _is_label_file(path: Path) -> bool:
    return path.is_file() and path.suffix != ".content" and find_format(path) is TEXT


def _graph_labels(source: str | Path) -> tuple[np.ndarray, np.ndarray]:
    path = Path(source)
    graph = read(path.with_suffix(".cites") if path.suffix == ".content" else source)
    if graph.labels is None:
        raise GraphError(f"{source}: this graph has no labels; give a label file with lines of 'node<TAB>label'")
    return graph.ids, graph.labels


def list_datasets() -> list[Listing]:
    """List the datasets and say where their files are, without opening any.

    A state is "in the package", "here" (in the folder NEURAL_BRANE_DATA), "cached" or "not downloaded".
    """
    listed = []
    order = ["not downloaded", "cached", "here", "in the package"]
    for one in registry().values():
        found = [find(one, file) for file in one.files if not file.optional]
        state = min((state for state, _ in found), key=order.index)  # one file decides for the whole dataset
        where = sorted({str(path.parent) for _, path in found if path is not None}) if state != order[0] else []
        counts = (one.nodes, one.edges, one.attributes, one.classes)
        listed.append(Listing(one.name, *counts, state, ", ".join(where), one.about))
    about = "Attributed block model of any size, for tests of scale: synthetic:1000000"
    made = Listing(f"{SYNTHETIC}NODES", None, None, None, None, "in the package", "made on demand", about)
    return [*listed, made]


def synthetic_nodes(name: str) -> int:
    """The number of nodes that `synthetic:NODES` asks for."""
    digits = name.removeprefix(SYNTHETIC)
    if not digits.isdecimal():
        raise DatasetError(f"'{name}' does not say how many nodes; write a number, as in {SYNTHETIC}10000")
    return int(digits)


def _hint(name: str, choose: str) -> str:
    close = difflib.get_close_matches(name, registry(), n=1)
    mean = f" (did you mean '{close[0]}'?)" if close else ""
    return f"{mean}; {choose} {', '.join([*registry(), f'{SYNTHETIC}NODES'])}"
