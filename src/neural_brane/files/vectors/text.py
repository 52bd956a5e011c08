"""Vectors as text: word2vec's text and binary form, tables, lines for pgvector, TensorBoard's folder.

None of them has a place for a checksum: a changed digit is not noticed, nor are lines that a table by tabs or commas
has lost at its end.
"""

from __future__ import annotations

import csv
import json
import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Literal

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.files.reading import check_file, read_bytes
from neural_brane.files.vectors.table import (
    Content,
    VectorFormat,
    VectorTable,
    as_frames,
    column_names,
    is_field,
    lacks,
    number_lines,
    parse_ids,
    parse_provenance,
)
from neural_brane.graph.frames import PAIRS


def write_lines(content: Content, path: Path, head: str, separator: str, quotes: Literal["never", "necessary"]) -> None:
    """Write a first line, then the id and the numbers of each node; there is no place for the provenance."""
    with open(path, "wb") as file:
        file.write(f"{head}\n".encode())
        for frame in as_frames(content):
            frame.write_csv(file, include_header=False, separator=separator, quote_style=quotes)


def write_table(content: Content, path: Path, separator: str, quotes: Literal["never", "necessary"]) -> None:
    """Write a table with a header."""
    write_lines(content, path, separator.join(["id", *column_names(content.dim)]), separator, quotes)


def write_word2vec_binary(content: Content, path: Path) -> None:
    """Write `nodes dim`, then for each node its id, a space, its float32 numbers and, as the original, a new line."""
    with open(path, "wb") as file:
        file.write(f"{len(content.ids)} {content.dim}\n".encode())
        for ids, block in content.with_ids():
            rows = zip(ids.tolist(), block, strict=True)
            file.write(b"".join(b"%b %b\n" % (str(node).encode(), row.tobytes()) for node, row in rows))


def read_word2vec(path: Path) -> VectorTable:
    """Read word2vec text, also gensim's, whose ids may hold spaces."""
    with open(path, encoding="utf-8") as file:
        nodes, dim = _read_header(path, file.readline())
        rows = ((line, _split_line(text, dim)) for line, text in enumerate(file, 2) if not text.isspace())
        table = parse_rows(path, rows, dim)
    if len(table.ids) != nodes:
        raise _cut_off(path, nodes, len(table.ids))
    return table


def read_word2vec_binary(path: Path) -> VectorTable:
    """Read word2vec's binary form: `nodes dim`, then an id, a space and the float32 numbers of each node."""
    data = read_bytes(path, EmbeddingError)
    at = data.find(b"\n") + 1
    nodes, dim = _read_header(path, data[:at].decode("utf-8", "replace"))
    held = len(data) // (4 * dim + 1)  # vectors at most: before each stands a space
    ids, vectors = [], np.empty((min(nodes, held), dim), dtype=np.float32)
    for row in range(nodes):
        space = data.find(b" ", at)
        end = space + 1 + 4 * dim
        if space < 0 or end > len(data):
            raise _cut_off(path, nodes, row)
        ids.append(data[at:space].decode().lstrip("\n"))  # the original program ends a vector with a new line
        vectors[row] = np.frombuffer(data, "<f4", dim, space + 1)
        at = end
    return VectorTable(vectors, parse_ids(ids), {})


def read_tsv(path: Path) -> VectorTable:
    """Read a table by tabs, with or without a header."""
    with open(path, encoding="utf-8") as file:
        lines = ((line, text.rstrip("\n").split("\t")) for line, text in enumerate(file, 1) if not text.isspace())
        return _read_table(path, lines, "tabs")


def read_csv(path: Path) -> VectorTable:
    """Read a table by commas, with or without a header, whose fields may be quoted."""
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            return _read_table(path, ((reader.line_num, fields) for fields in reader if fields), "commas")
        except csv.Error as error:
            raise EmbeddingError(f'{path}:{reader.line_num}: {error}; quote ids as in "a,b"') from None


def _read_table(path: Path, lines: Iterator[tuple[int, list[str]]], separators: str) -> VectorTable:
    """Read lines of an id and its numbers; the first of them may be a header."""
    number, first = next(lines, (1, []))
    if len(first) < 2:
        raise EmbeddingError(f"{path}:{number}: a line must be an id and its numbers, separated by {separators}")
    source, target = first[:2]
    if len(first) <= 3 and (source.strip().lower(), target.strip().lower()) in PAIRS:
        raise EmbeddingError(f"{path}:{number}: '{source}' and '{target}' are the ends of edges{_seems_graph(path)}")
    has_header = first[0] in ("", "id") or not _are_numbers(first[1:])
    return parse_rows(path, lines if has_header else chain([(number, first)], lines), len(first) - 1)


def _read_header(path: Path, first: str) -> tuple[int, int]:
    """The number of nodes and the width that a first line announces."""
    try:
        nodes, dim = map(int, first.split())
    except ValueError:
        words = first.split()[1:2]
        seems = "" if not words or "\ufffd" in first or _are_numbers(words) else _seems_graph(path)
        raise EmbeddingError(f"{path}:1: the first line must be 'nodes dim', as in '3312 150'{seems}") from None
    if nodes < 0 or dim < 1:
        raise EmbeddingError(f"{path}:1: announces {nodes} nodes of width {dim}; at least one number each is needed")
    return nodes, dim


def _cut_off(path: Path, announced: int, found: int) -> EmbeddingError:
    return EmbeddingError(f"{path}: the first line announces {announced} nodes, {found} follow; is it cut off?")


def _split_line(text: str, dim: int) -> list[str]:
    """The id of a line and its numbers; words between the two that are no numbers belong to the id."""
    fields = text.split()
    if len(fields) <= dim + 1 or _are_numbers(fields[1:-dim]):
        return fields
    return text.strip().rsplit(maxsplit=dim)


def parse_rows(path: Path, rows: Iterable[tuple[int, list[str]]], dim: int) -> VectorTable:
    """Turn lines, split into an id and numbers, into a table; an error names the line."""
    ids: list[str] = []
    values = array("f")
    for line, (node, *numbers) in rows:
        if len(numbers) != dim:
            seems = _seems_graph(path) if len(numbers) in (1, 2) and dim > 2 else ""  # a pair and its weight
            raise EmbeddingError(
                f"{path}:{line}: {len(numbers)} numbers after id '{node}', {dim} were expected on every line{seems}"
            )
        try:
            values.extend(map(float, numbers))
        except ValueError:
            at = next(at for at, word in enumerate(numbers) if not _are_numbers([word]))
            raise EmbeddingError(
                f"{path}:{line}: '{numbers[at]}' is not a number; a line of vectors is an id, then its numbers"
                + ("" if at else _seems_graph(path))
            ) from None
        ids.append(node)
    return VectorTable(np.frombuffer(values, dtype=np.float32).reshape(len(ids), dim), parse_ids(ids), {})


def _seems_graph(path: Path) -> str:
    """The end of an error about a file with words, or few numbers, in the places of a vector's numbers."""
    return f"; this seems to be a graph, not vectors: make them with 'brane embed {path.name} -o vectors.npz'"


def _are_numbers(words: list[str]) -> bool:
    try:
        list(map(float, words))
    except ValueError:
        return False
    return True


WORD2VEC = VectorFormat(
    ".txt .w2v .vec .emb",
    "word2vec text: 'nodes dim', then 'id v1 v2 …' per node",
    read_word2vec,
    lambda content, path: write_lines(content, path, f"{len(content.ids)} {content.dim}", " ", "never"),
    refuses="with spaces",
    holds=lambda node: node.split() == [node],
)
BINARY = VectorFormat(
    ".bin",
    "word2vec binary: 'nodes dim', then id, space, float32",
    read_word2vec_binary,
    write_word2vec_binary,
    refuses="that are empty, or with spaces or line ends",
    holds=lambda node: bool(node) and lacks(" ", "\n")(node),
    number_bytes=4,
)
TABS = VectorFormat(
    ".tsv",
    "a header 'id d0 d1 …', then a line per node, by tabs",
    read_tsv,
    lambda content, path: write_table(content, path, "\t", "never"),
    refuses="that are empty, or with tabs or line ends",
    holds=is_field,
)
COMMAS = VectorFormat(
    ".csv",
    "a header 'id d0 d1 …', then a line per node, by commas",
    read_csv,
    lambda content, path: write_table(content, path, ",", "necessary"),
)

# Lines as PostgreSQL's COPY reads them, for a table of the extension pgvector: `id<TAB>[v1,v2,…]`.
#
# COPY writes a backslash before what would end a field or a line; a value that is missing is `\N`.

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
    """Write a line per node."""
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


PGVECTOR = VectorFormat(
    ".pgvector",
    "lines for PostgreSQL's COPY and its extension pgvector",
    read_pgvector,
    write_pgvector,
    usage=load_lines,
)

# A folder that TensorBoard's projector shows: tables of numbers and of ids, and a config that names both.
#
# `vectors.tsv` has a vector per line and `metadata.tsv` an id per line, neither under titles: the projector takes the
# first line of a table with one column as data. `provenance.json` is ours.

CONFIG = "projector_config.pbtxt"  # what TensorBoard looks for
VECTORS, METADATA, PROVENANCE = "vectors.tsv", "metadata.tsv", "provenance.json"
_FIELD = r'\b{}\s*:\s*"([^"\\\n\0]*)"'
LONGEST = 1 << 20  # bytes of a config: it has a few lines


def write_projector(content: Content, vectors: Path, metadata: Path, provenance: Path, config: Path) -> None:
    """Write the four files of the folder."""
    with (
        open(vectors, "w", encoding="utf-8", newline="\n") as numbers,
        open(metadata, "w", encoding="utf-8", newline="\n") as names,
    ):
        for ids, block in content.with_ids():
            numbers.writelines(f"{line}\n" for line in number_lines(block, "\t"))
            names.writelines(f"{node}\n" for node in ids.tolist())
    provenance.write_text(content.provenance + "\n", encoding="utf-8")
    fields = {"tensor_name": "vectors", "tensor_path": VECTORS, "metadata_path": METADATA}
    lines = "".join(f"  {name}: {json.dumps(value)}\n" for name, value in fields.items())
    config.write_text(f"embeddings {{\n{lines}}}\n", encoding="utf-8")


def read_projector(path: Path) -> VectorTable:
    """Read the folder of a projector, ours or another program's: the first tables that its config names."""
    vectors, metadata = _named_tables(path)
    with open(metadata, encoding="utf-8") as file:
        named = [line.removesuffix("\n").split("\t") for line in file]
    titled = bool(named) and len(named[0]) > 1  # a table of several columns has titles, and ids in the first
    nodes = [line[0] for line in named[titled:]]
    with open(vectors, encoding="utf-8") as file:
        rows = ((line, text.split("\t")) for line, text in enumerate(file, 1) if not text.isspace())
        first = next(rows, None)

        def lines() -> Iterator[tuple[int, list[str]]]:
            for node, row in zip_longest(nodes, chain([] if first is None else [first], rows)):
                if node is None or row is None:
                    more, fewer = (metadata, vectors) if row is None else (vectors, metadata)
                    raise EmbeddingError(f"{more} has more lines than {fewer}; give one id per vector")
                yield row[0], [node, *row[1]]

        table = parse_rows(vectors, lines(), 1 if first is None else len(first[1]))
    known = path / PROVENANCE
    return table._replace(provenance=parse_provenance(known, _text(known)) if known.is_file() else {})


def _named_tables(path: Path) -> tuple[Path, Path]:
    """The files of numbers and of ids that a config names."""
    config = path / CONFIG
    if not config.is_file():
        raise EmbeddingError(f"{path}: has no {CONFIG}; give a folder that 'brane embed … -o {path}' wrote")
    text, found = _text(config), []
    for field in ("tensor_path", "metadata_path"):
        match = re.search(_FIELD.format(field), text)
        if match is None:
            raise EmbeddingError(f'{config}: names no {field}; write it as in {field}: "vectors.tsv"')
        table = path / match[1]
        if not table.resolve().is_relative_to(path.resolve()):
            raise EmbeddingError(
                f"{config}: names '{match[1]}', which is not in its folder; only files beside it are read"
            )
        if not table.is_file():
            raise EmbeddingError(f"{config}: names '{match[1]}', and there is no such file; write the folder again")
        check_file(table, EmbeddingError)
        found.append(table)
    return found[0], found[1]


def _text(path: Path) -> str:
    if path.stat().st_size > LONGEST:
        raise EmbeddingError(f"{path}: has {path.stat().st_size:,} bytes, far more than it takes; write it again")
    return path.read_text(encoding="utf-8")


PROJECTOR = VectorFormat(
    ".projector",
    "a folder for TensorBoard's projector",
    read_projector,
    write_projector,
    keeps=("provenance",),
    refuses="that are empty, or with tabs or line ends",
    holds=is_field,
    files=lambda path: [path / name for name in (VECTORS, METADATA, PROVENANCE, CONFIG)],
    folder=True,
    usage=lambda path, ids, dim: f"look at it with: tensorboard --logdir '{path}'",
)
