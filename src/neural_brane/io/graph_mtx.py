"""Matrix Market (.mtx): the adjacency as text, and attributes in a second file of the same kind.

The format knows numbers alone, so what else a graph has is written as comments of the adjacency's file: `% node` with
the id and the label of every node as JSON, in the order of the rows, and `% attributes` with the name of the second
file, which stands beside it and has a comment `% attribute` with the name of every column.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import mminfo, mmread, mmwrite

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.io.atomic import atomic
from neural_brane.io.compressed import read_unpacked
from neural_brane.io.content import recognise
from neural_brane.io.graph_draft import Rules, graph_name

NODE, ATTRIBUTE, SECOND = "% node ", "% attribute ", "% attributes "
ROWS = 10_000_000  # that a file of any size may claim
ROWS_PER_BYTE = 10


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
    content = read_unpacked(path, "Matrix Market file")
    if not content.startswith(b"%%MatrixMarket"):
        found = recognise(content[:4096]).kind if content else "nothing"
        raise GraphError(f"{path}: found {found}, not Matrix Market, which begins with %%MatrixMarket; rename it")
    try:
        rows, columns, entries, layout, field, _ = mminfo(io.BytesIO(content))
        _judge(path, (rows, columns), entries, len(content))
        if field == "complex":
            raise GraphError(f"{path}: holds complex numbers; write real ones")
        matrix = mmread(io.BytesIO(content))
    except (ValueError, OverflowError, TypeError, IndexError, RuntimeError) as error:
        raise GraphError(f"{path}: this is not Matrix Market as it should be ({error}); write it again") from None
    return matrix if layout == "coordinate" else np.asarray(matrix), _notes(path, content)


def _judge(path: Path, shape: tuple[int, int], entries: int, size: int) -> None:
    """Refuse sizes that the file merely claims, before memory is taken for them."""
    if entries > size or max(shape) > max(ROWS, ROWS_PER_BYTE * size):
        raise GraphError(
            f"{path}: claims {shape[0]:,} x {shape[1]:,} with {entries:,} entries and has {size:,} bytes; it is cut "
            "off, or its sizes are wrong"
        )


def _notes(path: Path, content: bytes) -> dict[str, list[Any]]:
    notes: dict[str, list[Any]] = {}
    for number, line in enumerate(io.BytesIO(content), 1):
        if not line.startswith(b"%"):
            break
        for word in (SECOND, ATTRIBUTE, NODE):
            if line.startswith(word.encode()):
                try:
                    note = json.loads(line[len(word) :])
                except (ValueError, RecursionError) as error:
                    raise GraphError(f"{path}:{number}: the comment does not hold JSON ({error}); mend it") from None
                if word == NODE and not (isinstance(note, list) and len(note) in (1, 2)):
                    raise GraphError(f"{path}:{number}: the comment has no [id] or [id, label]; mend it")
                notes.setdefault(word, []).append(note)
                break
    return notes


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
