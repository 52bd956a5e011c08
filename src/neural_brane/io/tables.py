"""Tables of nodes and of labels in files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, SelfLoops
from neural_brane.graph.columns.values import as_texts, plain
from neural_brane.graph.edge_columns import Place, find_column, id_column
from neural_brane.graph.nodes import NodeOptions, check_distinct
from neural_brane.io.edge_table import EdgeOptions
from neural_brane.io.frames import ENDINGS, FrameFile, read_frame, table_suffix
from neural_brane.io.targets import LabelLines, plain_lines

if TYPE_CHECKING:
    import polars as pl


class ReadOptions(EdgeOptions, NodeOptions, total=False):
    """What `neural_brane.io.read_graph` takes besides the file."""

    attributes: str | Path | None
    labels: str | Path | None
    nodes: str | Path | None
    duplicates: Duplicates
    self_loops: SelfLoops


def is_table(path: str | Path) -> bool:
    """Whether a name ends like that of a table file."""
    return table_suffix(path) in ENDINGS


def join_node_table(graph: AttributedGraph, path: str | Path, **options: Unpack[NodeOptions]) -> AttributedGraph:
    """Join the table of nodes in a file to a graph."""
    frame, place = read_node_frame(path)
    return graph.joined(frame, place=place, **options)


def read_node_frame(path: str | Path) -> tuple[pl.DataFrame, Place]:
    """The table of nodes in a file, and where it comes from, for messages."""
    file = read_frame(path, what="table of nodes", titled=True)
    return file.frame, _place(file)


def read_label_table(
    path: str | Path, *, id: str | None = None, label: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read ids and labels from two columns of a table; without their names, it must have two columns alone."""
    ids, column, place = _label_columns(path, id, label)
    check_distinct(ids, place)
    values = plain(column)
    if values is None:
        raise GraphError(f"{place.where}: column '{column.name}' holds {column.dtype}; labels are text or numbers")
    known = values.is_not_null()
    found, labels = ids.filter(known).to_numpy(), as_texts(values).filter(known).to_numpy()
    return found if found.dtype.kind == "i" else found.astype(str), labels.astype(str)


def read_label_lines(path: str | Path, *, id: str | None = None, label: str | None = None) -> LabelLines:
    """Read ids and labels of any kind from two columns of a table; a node may have several lines."""
    ids, column, place = _label_columns(path, id, label)
    found = ids.to_numpy()
    return plain_lines(place.where, found if found.dtype.kind == "i" else found.astype(str), column)


def _label_columns(path: str | Path, id: str | None, label: str | None) -> tuple[pl.Series, pl.Series, Place]:
    """The columns of ids and of labels, and where they are."""
    file = read_frame(path, what="table of labels", titled=True)
    place, frame = _place(file), file.frame
    names = [_choose(frame, given, role, place) for given, role in ((id, "id"), (label, "label"))]
    return id_column(frame[names[0]], place, needs="a label needs a node"), frame[names[1]], place


def _choose(frame: pl.DataFrame, given: str | None, role: str, place: Place) -> str:
    """The column of a role: as given, or the first of two for ids and the second for labels."""
    listed = ", ".join(map(repr, frame.columns))
    if given is None and len(frame.columns) == 2:
        return frame.columns[role == "label"]
    if given is None:
        raise GraphError(f"{place.where}: which column is the {role}? Say so with --{role} NAME; there are {listed}")
    return find_column(frame.columns, given, place.where)


def _place(file: FrameFile) -> Place:
    return Place(str(file.path), file.first_line, file.lines)


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that say something; missing="none" is the usual."""
    return {name: value for name, value in options.items() if value not in (None, (), [], {}, "none")}
