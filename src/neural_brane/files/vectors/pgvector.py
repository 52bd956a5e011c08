r"""Vectors as PostgreSQL's COPY reads them, for a table of the extension pgvector: `id<TAB>[v1,v2,…]` per line.

COPY's text format writes a backslash before what would end a field or a line; a value that is missing is `\N`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.files.vectors.table import Content, VectorFormat, VectorTable, number_lines
from neural_brane.files.vectors.text import parse_rows

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_WRITTEN = str.maketrans(_ESCAPES)
_MEANT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}  # a backslash keeps all else as it is
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def load_lines(path: Path, ids: np.ndarray, dim: int) -> str:
    """What to type into psql to make a table of the file."""
    kind = "bigint" if ids.dtype.kind == "i" else "text"
    name = str(path).replace("'", "''")
    return (
        "load it with psql:\n"
        "  CREATE EXTENSION IF NOT EXISTS vector;\n"
        f"  CREATE TABLE nodes (id {kind} PRIMARY KEY, embedding vector({dim}));\n"
        f"  \\copy nodes FROM '{name}'"
    )


def write_pgvector(content: Content, path: Path) -> None:
    """Write a line per node; the format has no place for the provenance."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for ids, block in content.with_ids():
            rows = zip(ids.tolist(), number_lines(block, ","), strict=True)
            file.writelines(f"{str(node).translate(_WRITTEN)}\t[{numbers}]\n" for node, numbers in rows)


def read_pgvector(path: Path) -> VectorTable:
    """Read lines of an id and a vector in brackets, as `COPY (SELECT id, embedding FROM …) TO` writes them too."""
    with open(path, encoding="utf-8") as file:
        rows = _split_lines(path, file)
        first = next(rows, None)
        if first is None:
            raise EmbeddingError(f"{path}: is empty; a line 'id<TAB>[0.5,1]' per node was expected")
        return parse_rows(path, chain([first], rows), len(first[1]) - 1)


def _split_lines(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """The number of each line, its id and the words of its numbers."""
    for number, line in enumerate(lines, 1):
        text = line.removesuffix("\n")
        if text == "\\.":  # where dumps of a database end their data
            return
        node, tab, vector = text.partition("\t")
        if not (tab and vector.startswith("[") and vector.endswith("]")) or node == "\\N":
            raise EmbeddingError(f"{path}:{number}: a line must be an id, a tab and a vector, as in 'a<TAB>[0.5,1]'")
        yield number, [_ESCAPED.sub(lambda found: _MEANT.get(found[1], found[1]), node), *vector[1:-1].split(",")]


FORMAT = VectorFormat(
    ".pgvector",
    "lines for PostgreSQL's COPY and its extension pgvector",
    read_pgvector,
    write_pgvector,
    usage=load_lines,
)
