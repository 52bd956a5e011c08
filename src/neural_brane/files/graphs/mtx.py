"""Matrix Market (.mtx): the adjacency as text, and attributes in a second file of the same kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.io import mmwrite

from neural_brane.errors import GraphError
from neural_brane.files.graphs.draft import Rules, graph_name
from neural_brane.files.reading import read_unpacked, recognise
from neural_brane.files.storage import atomic
from neural_brane.files.text import fail, read_table
from neural_brane.graph import AttributedGraph

if TYPE_CHECKING:
    import polars as pl


# Matrix Market files to sparse matrices. SciPy's reader ends the whole program at some damaged numbers; this refuses.
#
# After the banner, `%%MatrixMarket matrix coordinate|array FIELD SYMMETRY`, come comments and a line of sizes. Then a
# coordinate file has a line `row column value` for every entry (counted from 1, without a value where the field is
# `pattern`), and an array file all numbers, column by column; of a symmetric matrix both have the lower triangle alone.

BANNER = b"%%MatrixMarket"
FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
ROWS = 10_000_000  # that a file of any size may claim
ROWS_PER_BYTE = 10


class MatrixMarket(NamedTuple):
    """A matrix and the comments that stand before it, each with its line."""

    matrix: sparse.coo_array
    comments: list[tuple[int, str]]


class _Head(NamedTuple):
    """What stands before the numbers: the sizes, what the banner says, the comments and where the numbers begin."""

    sizes: list[int]
    layout: str
    field: str
    symmetric: bool
    comments: list[tuple[int, str]]
    line: int
    start: int


def read_matrix_market(path: Path) -> MatrixMarket:
    """Read a file; sizes that it merely claims are judged before memory is taken for them."""
    content = read_unpacked(path, "Matrix Market file").replace(b"\r\n", b"\n")
    if not content.startswith(BANNER):
        found = recognise(content[:4096]).kind if content else "nothing"
        raise GraphError(f"{path}: found {found}, not Matrix Market, which begins with {BANNER.decode()}; rename it")
    head = _read_head(path, content)
    rows, columns = head.sizes[:2]
    entries = head.sizes[2] if head.layout == "coordinate" else rows * columns
    needed = entries // 2 if head.symmetric else entries
    if needed > len(content) or max(rows, columns) > max(ROWS, ROWS_PER_BYTE * len(content)):
        raise GraphError(
            f"{path}: claims {rows:,} x {columns:,} with {entries:,} entries and has {len(content):,} bytes; it is cut "
            "off, or its sizes are wrong"
        )
    read = _read_coordinates if head.layout == "coordinate" else _read_array
    at_row, at_column, values = read(path, content[head.start :], head)
    if head.symmetric:
        off = at_row != at_column
        mirrored = at_column[off], at_row[off], values[off]
        at_row, at_column, values = (
            np.concatenate(both) for both in zip((at_row, at_column, values), mirrored, strict=True)
        )
    return MatrixMarket(sparse.coo_array((values, (at_row, at_column)), shape=(rows, columns)), head.comments)


def _read_head(path: Path, content: bytes) -> _Head:
    comments: list[tuple[int, str]] = []
    start, line, banner = 0, 0, [""]
    while start < len(content):
        stop = content.find(b"\n", start) + 1 or len(content)
        text = content[start:stop].decode("utf-8", "replace").rstrip("\n")
        start, line = stop, line + 1
        if line == 1:
            banner = _check_banner(path, text)
        elif text.startswith("%"):
            comments.append((line, text))
        elif text.strip():
            sizes = text.split()
            expected = 3 if banner[0] == "coordinate" else 2
            if len(sizes) != expected or not all(word.isascii() and word.isdecimal() for word in sizes):
                fail(path, line, f"found {text[:60]!r}, where the {expected} sizes of the matrix should stand")
            if any(len(word) > 18 for word in sizes):
                fail(path, line, f"claims {text[:60]}, which no memory holds; its sizes are wrong")
            symmetric = banner[2] == "symmetric"
            return _Head([int(word) for word in sizes], banner[0], banner[1], symmetric, comments, line, start)
    raise GraphError(f"{path}: the file ends before the sizes of the matrix; it is cut off")


def _check_banner(path: Path, text: str) -> list[str]:
    """The layout, the field and the symmetry that the first line names."""
    words = text.lower().split()[1:]
    if len(words) != 4 or words[0] != "matrix" or words[1] not in ("coordinate", "array"):
        fail(path, 1, f"found {text[:80]!r}; expected '{BANNER.decode()} matrix coordinate real general'")
    if words[2] not in FIELDS:
        fail(path, 1, f"holds {words[2]} numbers; give one of {', '.join(FIELDS)}")
    if words[3] not in ("general", "symmetric"):
        fail(path, 1, f"is {words[3]}; give a general or a symmetric matrix, whose weights are all above 0")
    return words[1:]


def _numbers(path: Path, table: pl.DataFrame, column: str, kind: type, head: _Head) -> np.ndarray:
    numbers = table[column].cast(kind, strict=False)
    if numbers.null_count():
        at = int(numbers.is_null().arg_max() or 0)
        fail(path, head.line + table["line"][at], f"found {table[column][at]!r}, where the {column} should stand")
    return numbers.to_numpy()


def _table(path: Path, body: bytes, columns: list[str], entries: int, head: _Head) -> pl.DataFrame:
    if not body.isascii():
        raise GraphError(f"{path}: the numbers hold other characters; write it again")
    table = read_table(body, [*columns, "more"])
    if table["more"].count():
        at = int(table["more"].is_not_null().arg_max() or 0)
        fail(path, head.line + table["line"][at], f"found {table['more'][at]!r} behind the {columns[-1]}; remove it")
    if len(table) != entries:
        raise GraphError(f"{path}: announces {entries:,} entries, and {len(table):,} follow; it is cut off or wrong")
    return table


def _read_coordinates(path: Path, body: bytes, head: _Head) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    columns = ["row", "column"] if head.field == "pattern" else ["row", "column", "value"]
    table = _table(path, body, columns, head.sizes[2], head)
    places = []
    for column, size in zip(("row", "column"), head.sizes, strict=False):
        numbers = _numbers(path, table, column, int, head)
        outside = (numbers < 1) | (numbers > size)
        if outside.any():
            at = int(np.argmax(outside))
            fail(path, head.line + table["line"][at], f"the {column} is {numbers[at]}; expected 1 to {size}")
        places.append(numbers - 1)
    values = np.ones(len(table)) if head.field == "pattern" else _numbers(path, table, "value", float, head)
    return places[0], places[1], values


def _read_array(path: Path, body: bytes, head: _Head) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns = head.sizes
    if head.symmetric and rows != columns:
        raise GraphError(f"{path}: a symmetric matrix of {rows} x {columns} cannot be; make it square, or general")
    at_column, at_row = np.divmod(np.arange(rows * columns), max(rows, 1))
    if head.symmetric:
        lower = at_row >= at_column
        at_row, at_column = at_row[lower], at_column[lower]
    values = _numbers(path, _table(path, body, ["value"], len(at_row), head), "value", float, head)
    return at_row, at_column, values


# Matrix Market (.mtx): the adjacency as text, and attributes in a second file of the same kind.
#
# The format knows numbers alone, so what else a graph has is written as comments of the adjacency's file: `% node` with
# the id and the label of every node as JSON, in the order of the rows, and `% attributes` with the name of the second
# file, which stands beside it and has a comment `% attribute` with the name of every column.

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
