"""Matrix Market (.mtx): the adjacency as text, and attributes in a second file of the same kind.

The format knows numbers alone, so what else a graph has is written as comments of the adjacency's file: `% node` with
the id and the label of every node as JSON, in the order of the rows, and `% attributes` with the name of the second
file, which stands beside it and has a comment `% attribute` with the name of every column.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import mmwrite

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.io.atomic import atomic
from neural_brane.io.graph_draft import Rules, graph_name
from neural_brane.io.matrix_market import read_matrix_market

NODE, ATTRIBUTE, SECOND = "% node ", "% attribute ", "% attributes "


def read_mtx(path: Path, rules: Rules, attributes: Path | None = None) -> AttributedGraph:
    """Read an adjacency and, where one is given or the file names one beside it, a file of attributes."""
    adjacency, notes = _read(path)
    if attributes is None and SECOND in notes:
        attributes = path.with_name(_plain_name(path, notes[SECOND][-1]))
    matrix, second = (None, {}) if attributes is None else _read(attributes)
    nodes = notes.get(NODE)
    ids = None if nodes is None else [node[0] for node in nodes]
    labels = None if nodes is None or any(len(node) < 2 for node in nodes) else [node[1] for node in nodes]
    try:
        return AttributedGraph.from_sparse(
            adjacency,
            matrix,
            ids=ids,
            labels=labels,
            attribute_names=second.get(ATTRIBUTE),
            duplicates=rules.duplicates,
            self_loops=rules.self_loops,
            name=graph_name(path),
        )
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error


def _read(path: Path) -> tuple[Any, dict[str, list[Any]]]:
    """The matrix of a file, and what its comments say, by the word they begin with."""
    matrix, comments = read_matrix_market(path)
    notes: dict[str, list[Any]] = {}
    for line, comment in comments:
        word = next((word for word in (SECOND, ATTRIBUTE, NODE) if comment.startswith(word)), None)
        if word is None:
            continue
        try:
            note = json.loads(comment.removeprefix(word))
        except (ValueError, RecursionError) as error:
            raise GraphError(f"{path}:{line}: the comment does not hold JSON ({error}); mend it") from None
        if word == NODE and not (isinstance(note, list) and len(note) in (1, 2)):
            raise GraphError(f"{path}:{line}: the comment has no [id] or [id, label]; mend it")
        notes.setdefault(word, []).append(note)
    return matrix, notes


def _plain_name(path: Path, name: Any) -> str:
    """The name of a file in the same folder; one that leads elsewhere is refused."""
    if not isinstance(name, str) or not name or Path(name).name != name:
        raise GraphError(f"{path}: attributes are in {name!r}, which is not the name of a file beside it")
    return name


def write_mtx(graph: AttributedGraph, path: Path) -> None:
    """Write the adjacency to a file and, where there are attributes, these to NAME.attributes.mtx beside it."""
    labels = [None] * len(graph) if graph.labels is None else graph.labels.tolist()
    nodes = [[node] if label is None else [node, label] for node, label in zip(graph.ids.tolist(), labels, strict=True)]
    notes = [NODE + json.dumps(node) for node in nodes]
    if graph.attributes.shape[1]:
        second = path.with_name(f"{path.stem}.attributes.mtx")
        names = [ATTRIBUTE + json.dumps(name) for name in graph.attribute_names.tolist()]
        _write(graph.attributes, second, names, "general")
        notes.append(SECOND + json.dumps(second.name))
    _write(graph.adjacency, path, notes, "symmetric")


def _write(matrix: sparse.csr_array, path: Path, notes: list[str], symmetry: str) -> None:
    comment = "\n".join(note.removeprefix("%") for note in notes)
    with atomic(path) as draft, open(draft, "wb") as file:
        # In double precision all digits of a float32 are written.
        mmwrite(file, matrix.astype(np.float64).tocoo(), comment=comment, symmetry=symmetry)
