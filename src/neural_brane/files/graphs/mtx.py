"""Matrix Market (.mtx): the adjacency as text, and attributes in a second file of the same format.

SciPy reads and writes the numbers. Its reader crashes on some damaged numbers and reads `5E-` as 5, so we check every
line first. The format stores only numbers. Ids, labels and names are comments. In the file of the adjacency, `% node`
gives the id and label of each node as JSON, in the order of the rows, and `% attributes` gives the name of the second
file in the same folder. In that file, `% attribute` gives the name of each column.
"""

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.io import mmread, mmwrite

from neural_brane.errors import GraphError
from neural_brane.files.reading import read_unpacked, recognise
from neural_brane.files.storage import atomic
from neural_brane.files.tables import fail, stem
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Rules

BANNER = b"%%MatrixMarket"
FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
ROWS = 10_000_000  # rows or columns that a file of any size may announce
ROWS_PER_BYTE = 10  # rows or columns that a larger file may announce for each of its bytes
NODE, ATTRIBUTE, SECOND = "% node ", "% attribute ", "% attributes "
PLACE, NUMBER = rb"[0-9]{1,18}", rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


class Head(NamedTuple):
    """The lines before the numbers: layout, field, sizes, comments with line numbers, last line and its end."""

    layout: str
    field: str
    sizes: list[int]
    comments: list[tuple[int, str]]
    line: int
    stop: int


def read_mtx(path: Path, rules: Rules, attributes: Path | None = None) -> AttributedGraph:
    """Read an adjacency and the file of attributes that is given or that a comment names."""
    adjacency, notes = _read(path)
    if attributes is None and SECOND in notes:
        name = notes[SECOND][-1]
        if not isinstance(name, str) or not name or Path(name).name != name:
            raise GraphError(f"{path}: the file of attributes is {name!r}; it must be a file name in the same folder")
        attributes = path.with_name(name)
    matrix, second = (None, {}) if attributes is None else _read(attributes)
    nodes = notes.get(NODE)
    ids = None if nodes is None else [node[0] for node in nodes]
    labels = None if nodes is None or any(len(node) < 2 for node in nodes) else [node[1] for node in nodes]
    try:
        given: dict[str, Any] = {"ids": ids, "labels": labels, "attribute_names": second.get(ATTRIBUTE)}
        return AttributedGraph.from_sparse(adjacency, matrix, **given, **rules._asdict(), name=stem(path))
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error


def _read(path: Path) -> tuple[Any, dict[str, list[Any]]]:
    """Return the matrix of a file, and the values in its comments by their first word."""
    content = read_unpacked(path, "Matrix Market file").replace(b"\r\n", b"\n")
    if not content.startswith(BANNER):
        found = recognise(content[:4096]).kind if content else "nothing"
        problem = f"{path}: found {found}, expected Matrix Market, which begins with {BANNER.decode()};"
        raise GraphError(f"{problem} rename or convert it")
    head = _read_head(path, content)
    _check_lines(path, content, head)
    try:
        matrix = mmread(BytesIO(content + b"\n"), spmatrix=False)
    except (ValueError, OverflowError) as error:
        found = re.sub(r"^Line (\d+): ", r":\1: ", str(error))
        place = path if found.startswith(":") else f"{path}: "
        raise GraphError(f"{place}{found}; correct it, or write it again") from None
    return matrix, _read_notes(path, head.comments)


def _read_head(path: Path, content: bytes) -> Head:
    comments: list[tuple[int, str]] = []
    start, line, words = 0, 0, [""]
    while start < len(content):
        stop = content.find(b"\n", start) + 1 or len(content)
        text = content[start:stop].decode("utf-8", "replace").rstrip("\n")
        start, line = stop, line + 1
        if line == 1:
            words = _check_banner(path, text)
        elif text.startswith("%"):
            comments.append((line, text))
        elif text.strip():
            expected = 3 if words[0] == "coordinate" else 2
            sizes = text.split()
            if len(sizes) != expected or not all(re.fullmatch("[0-9]+", word) for word in sizes):
                fail(path, line, f"found {text[:60]!r}, expected the {expected} sizes of the matrix")
            if any(len(word) > 18 for word in sizes):
                fail(path, line, f"the sizes {text[:60]} are too large for any memory; correct them")
            return Head(words[0], words[1], [int(word) for word in sizes], comments, line, start)
    raise GraphError(f"{path}: the file ends before the sizes of the matrix; copy or write it again")


def _check_banner(path: Path, text: str) -> list[str]:
    """Return the layout, the field and the symmetry that the first line names."""
    words = text.lower().split()[1:]
    if len(words) != 4 or words[0] != "matrix" or words[1] not in ("coordinate", "array"):
        fail(path, 1, f"found {text[:80]!r}; expected '{BANNER.decode()} matrix coordinate real general'")
    if words[2] not in FIELDS:
        fail(path, 1, f"the numbers are {words[2]}; they must be {', '.join(FIELDS[:-1])} or {FIELDS[-1]}")
    if words[3] not in ("general", "symmetric"):
        fail(path, 1, f"the matrix is {words[3]}; it must be general or symmetric, with weights above 0")
    return words[1:]


def _check_lines(path: Path, content: bytes, head: Head) -> None:
    """Refuse sizes that the file is too short for, before memory is allocated, and lines that are not numbers."""
    rows, columns = head.sizes[:2]
    entries = head.sizes[2] if head.layout == "coordinate" else rows * columns
    if entries // 2 > len(content) or max(rows, columns) > max(ROWS, ROWS_PER_BYTE * len(content)):
        problem = f"{path}: {rows:,} x {columns:,} with {entries:,} entries cannot fit in {len(content):,} bytes;"
        raise GraphError(f"{problem} copy the file again, or correct its sizes")
    words = [NUMBER] if head.layout == "array" else [PLACE, PLACE, *([] if head.field == "pattern" else [NUMBER])]
    line = rb"[ \t]+".join(words)
    odd = re.compile(rb"^(?![ \t]*(?:" + line + rb")?[ \t]*$).*$", re.MULTILINE).search(content, head.stop)
    if odd:
        at = head.line + content.count(b"\n", head.stop, odd.start()) + 1
        found = odd[0][:60].decode("utf-8", "replace")
        fail(path, at, f"found {found!r}; expected {len(words)} number{'s' if len(words) > 1 else ''}")


def _read_notes(path: Path, comments: list[tuple[int, str]]) -> dict[str, list[Any]]:
    """Return the values in our comments by the word they begin with."""
    notes: dict[str, list[Any]] = {}
    for line, comment in comments:
        word = next((word for word in (SECOND, ATTRIBUTE, NODE) if comment.startswith(word)), None)
        if word is None:
            continue
        try:
            note = json.loads(comment.removeprefix(word))
        except (ValueError, RecursionError) as error:
            raise GraphError(f"{path}:{line}: the comment is not JSON ({error}); correct it") from None
        if word == NODE and not (isinstance(note, list) and len(note) in (1, 2)):
            raise GraphError(f"{path}:{line}: the comment must be [id] or [id, label]; correct it")
        notes.setdefault(word, []).append(note)
    return notes


def write_mtx(graph: AttributedGraph, path: Path) -> None:
    """Write the adjacency to a file, and attributes, if any, to NAME.attributes.mtx in the same folder."""
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
        # SciPy writes all digits of a float32 only in double precision.
        mmwrite(file, matrix.astype(np.float64).tocoo(), comment=comment, symmetry=symmetry)
