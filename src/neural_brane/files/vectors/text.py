"""Vectors in text files, which have no checksums: word2vec's two forms, tables, pgvector, TensorBoard's folder."""

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
from neural_brane.files.vectors import table as shared
from neural_brane.files.vectors.table import Content, VectorFormat, VectorTable, is_field, number_lines, parse_ids
from neural_brane.graph.frames import PAIRS


def write_lines(content: Content, path: Path, head: str, separator: str, quotes: Literal["never", "necessary"]) -> None:
    """Write a first line, then one line per node with its id and its numbers; the provenance is lost."""
    with open(path, "wb") as file:
        file.write(f"{head}\n".encode())
        for frame in shared.as_frames(content):
            frame.write_csv(file, include_header=False, separator=separator, quote_style=quotes)


def write_table(content: Content, path: Path, separator: str, quotes: Literal["never", "necessary"]) -> None:
    """Write a table with the header `id d0 d1 …`."""
    write_lines(content, path, separator.join(["id", *shared.column_names(content.dim)]), separator, quotes)


def write_word2vec_binary(content: Content, path: Path) -> None:
    """Write `nodes dim`, then for each node its id, a space, its float32 numbers and, like word2vec, a new line."""
    with open(path, "wb") as file:
        file.write(f"{len(content.ids)} {content.dim}\n".encode())
        for ids, block in content.with_ids():
            rows = zip(ids.tolist(), block, strict=True)
            file.write(b"".join(b"%b %b\n" % (str(node).encode(), row.tobytes()) for node, row in rows))


def read_word2vec(path: Path) -> VectorTable:
    """Read word2vec text, also from gensim, whose ids may contain spaces."""
    with open(path, encoding="utf-8") as file:
        nodes, dim = _read_header(path, file.readline())
        rows = ((line, _split_line(text, dim)) for line, text in enumerate(file, 2) if not text.isspace())
        table = parse_rows(path, rows, dim)
    if len(table.ids) != nodes:
        raise _too_short(path, nodes, len(table.ids))
    return table


def read_word2vec_binary(path: Path) -> VectorTable:
    """Read word2vec's binary form: `nodes dim`, then the id, a space and the float32 numbers of each node."""
    data = read_bytes(path, EmbeddingError)
    at = data.find(b"\n") + 1
    nodes, dim = _read_header(path, data[:at].decode("utf-8", "replace"))
    most = len(data) // (4 * dim + 1)  # vectors that fit into the file, each after a space
    ids, vectors = [], np.empty((min(nodes, most), dim), dtype=np.float32)
    for row in range(nodes):
        space = data.find(b" ", at)
        end = space + 1 + 4 * dim
        if space < 0 or end > len(data):
            raise _too_short(path, nodes, row)
        ids.append(data[at:space].decode().lstrip("\n"))  # word2vec ends a vector with a new line
        vectors[row] = np.frombuffer(data, "<f4", dim, space + 1)
        at = end
    if rest := len(data) - at - data.endswith(b"\n", at):
        raise EmbeddingError(f"{path}: {rest:,} bytes follow the {nodes} nodes of the first line; make it again")
    return VectorTable(vectors, parse_ids(ids), {})


def read_tsv(path: Path) -> VectorTable:
    """Read a tab-separated table with or without a header."""
    with open(path, encoding="utf-8") as file:
        lines = ((line, text.rstrip("\n").split("\t")) for line, text in enumerate(file, 1) if not text.isspace())
        return _read_table(path, lines, "tabs")


def read_csv(path: Path) -> VectorTable:
    """Read a comma-separated table with or without a header; fields may be quoted."""
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.reader(file, strict=True)
        try:
            return _read_table(path, ((reader.line_num, fields) for fields in reader if fields), "commas")
        except csv.Error as error:
            raise EmbeddingError(f'{path}:{reader.line_num}: {error}; quote ids as in "a,b"') from None


def _read_table(path: Path, lines: Iterator[tuple[int, list[str]]], separators: str) -> VectorTable:
    """Read lines that are already split into an id and its numbers; the first may be a header."""
    number, first = next(lines, (1, []))
    if len(first) < 2:
        raise EmbeddingError(f"{path}:{number}: a line must be an id and its numbers, separated by {separators}")
    source, target = first[:2]
    if len(first) <= 3 and (source.strip().lower(), target.strip().lower()) in PAIRS:
        raise EmbeddingError(f"{path}:{number}: '{source}' and '{target}' are columns of edges{_graph_advice(path)}")
    has_header = first[0] in ("", "id") or not _are_numbers(first[1:])
    if has_header:
        shared.check_titles(path, first[1:])
    return parse_rows(path, lines if has_header else chain([(number, first)], lines), len(first) - 1)


def _read_header(path: Path, first: str) -> tuple[int, int]:
    """Return the number of nodes and the dim from the first line."""
    try:
        nodes, dim = map(int, first.split())
    except ValueError:
        words = first.split()[1:2]
        advice = "" if not words or "\ufffd" in first or _are_numbers(words) else _graph_advice(path)
        raise EmbeddingError(f"{path}:1: the first line must be 'nodes dim', as in '3312 150'{advice}") from None
    if nodes < 0 or dim < 1:
        raise EmbeddingError(f"{path}:1: announces {nodes} nodes and dim {dim}; give at least 0 nodes and dim 1")
    return nodes, dim


def _too_short(path: Path, announced: int, found: int) -> EmbeddingError:
    return EmbeddingError(f"{path}: the first line announces {announced} nodes, but {found} follow; make it again")


def _split_line(text: str, dim: int) -> list[str]:
    """Return the id and the numbers of a line; words before the last `dim` that are no numbers belong to the id."""
    fields = text.split()
    if len(fields) <= dim + 1 or _are_numbers(fields[1:-dim]):
        return fields
    return text.strip().rsplit(maxsplit=dim)


def parse_rows(path: Path, rows: Iterable[tuple[int, list[str]]], dim: int) -> VectorTable:
    """Return a table from numbered lines that are split into an id and `dim` numbers; an error names the line."""
    ids: list[str] = []
    values = array("f")
    for line, (node, *numbers) in rows:
        if len(numbers) != dim:
            advice = _graph_advice(path) if len(numbers) in (1, 2) and dim > 2 else ""  # perhaps an edge and its weight
            raise EmbeddingError(f"{path}:{line}: {len(numbers)} numbers follow id '{node}', expected {dim}{advice}")
        try:
            values.extend(map(float, numbers))
        except ValueError:
            at = next(at for at, word in enumerate(numbers) if not _are_numbers([word]))
            raise EmbeddingError(
                f"{path}:{line}: '{numbers[at]}' is not a number; give an id and then its numbers on each line"
                + ("" if at else _graph_advice(path))
            ) from None
        ids.append(node)
    return VectorTable(np.frombuffer(values, dtype=np.float32).reshape(len(ids), dim), parse_ids(ids), {})


def _graph_advice(path: Path) -> str:
    """Return the end of the error message for a file that looks like a graph."""
    return f"; if this is a graph, make vectors of it with 'brane embed {path.name} -o vectors.npz'"


def _are_numbers(words: list[str]) -> bool:
    try:
        list(map(float, words))
    except ValueError:
        return False
    return True


WORD2VEC = VectorFormat(
    ".txt .w2v .vec .emb", "word2vec text: 'nodes dim', then 'id v1 v2 …' per node", read_word2vec,
    lambda content, path: write_lines(content, path, f"{len(content.ids)} {content.dim}", " ", "never"),
    refuses="with spaces", accepts=lambda node: node.split() == [node],
)  # fmt: skip
BINARY = VectorFormat(
    ".bin", "word2vec binary: 'nodes dim', then id, space, float32", read_word2vec_binary, write_word2vec_binary,
    refuses="that are empty or contain spaces or line ends",
    accepts=lambda node: bool(node) and shared.lacks(" ", "\n")(node), number_bytes=4,
)  # fmt: skip
TABS = VectorFormat(
    ".tsv", "tab-separated: header 'id d0 d1 …', a line per node", read_tsv,
    lambda content, path: write_table(content, path, "\t", "never"),
    refuses="that are empty or contain tabs or line ends", accepts=is_field,
)  # fmt: skip
COMMAS = VectorFormat(
    ".csv", "comma-separated: header 'id d0 d1 …', a line per node", read_csv,
    lambda content, path: write_table(content, path, ",", "necessary"),
)  # fmt: skip

# PostgreSQL's COPY reads lines `id<TAB>[v1,v2,…]` into a table of the extension pgvector. It escapes characters that
# would end a field or a line with a backslash; `\N` is a missing value.

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_UNESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}  # any other character means itself
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def psql_commands(path: Path, ids: np.ndarray, dim: int) -> str:
    """Return the psql commands that load the file into a table."""
    kind = "bigint" if ids.dtype.kind == "i" else "text"
    name = str(path).replace("'", "''")
    return (
        "load it with psql:\n"
        "  CREATE EXTENSION IF NOT EXISTS vector;\n"
        f"  CREATE TABLE nodes (id {kind} PRIMARY KEY, embedding vector({dim}));\n"
        f"  \\copy nodes FROM '{name}'"
    )


def write_pgvector(content: Content, path: Path) -> None:
    """Write one line per node."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for ids, block in content.with_ids():
            rows = zip(ids.tolist(), number_lines(block, ","), strict=True)
            file.writelines(f"{str(node).translate(_ESCAPES)}\t[{numbers}]\n" for node, numbers in rows)


def read_pgvector(path: Path) -> VectorTable:
    """Read lines with an id and a vector in brackets, which `COPY (SELECT id, embedding FROM …) TO` writes too."""
    with open(path, encoding="utf-8") as file:
        rows = _split_lines(path, file)
        first = next(rows, None)
        if first is None:
            raise EmbeddingError(f"{path}: is empty, expected one line 'id<TAB>[0.5,1]' per node")
        return parse_rows(path, chain([first], rows), len(first[1]) - 1)


def _split_lines(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line with its id and the words of its numbers."""
    for number, line in enumerate(lines, 1):
        text = line.removesuffix("\n")
        if text == "\\.":  # ends the data in a database dump
            return
        node, tab, vector = text.partition("\t")
        if not (tab and vector.startswith("[") and vector.endswith("]")) or node == "\\N":
            raise EmbeddingError(f"{path}:{number}: a line must be an id, a tab and a vector, as in 'a<TAB>[0.5,1]'")
        yield number, [_ESCAPED.sub(lambda match: _UNESCAPED.get(match[1], match[1]), node), *vector[1:-1].split(",")]


PGVECTOR = VectorFormat(
    ".pgvector", "lines for PostgreSQL's COPY and its extension pgvector", read_pgvector, write_pgvector,
    usage=psql_commands,
)  # fmt: skip

# TensorBoard's projector shows a folder: `vectors.tsv` has one vector per line, `metadata.tsv` one id per line, and a
# config names both. They have no header, because the projector takes the first line of a table with one column as
# data. `provenance.json` is our own addition.

CONFIG = "projector_config.pbtxt"  # TensorBoard looks for this name
VECTORS, METADATA, PROVENANCE = "vectors.tsv", "metadata.tsv", "provenance.json"
_FIELD = r'\b{}\s*:\s*"([^"\\\n\0]*)"'
LONGEST = 1 << 20  # bytes of a config or provenance; usual ones are far smaller


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
    """Read a projector's folder, also from another program: the first two tables that its config names."""
    vectors, metadata = _find_tables(path)
    with open(metadata, encoding="utf-8") as file:
        fields = [line.removesuffix("\n").split("\t") for line in file]
    has_header = bool(fields) and len(fields[0]) > 1  # tables of several columns have a header, and ids come first
    nodes = [line[0] for line in fields[has_header:]]
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
    source = path / PROVENANCE
    return table._replace(provenance=shared.parse_provenance(source, _read_short(source)) if source.is_file() else {})


def _find_tables(path: Path) -> tuple[Path, Path]:
    """Return the files of numbers and of ids that the config names."""
    config = path / CONFIG
    if not config.is_file():
        raise EmbeddingError(f"{path}: has no {CONFIG}; give a folder that 'brane embed … -o {path}' wrote")
    text, found = _read_short(config), []
    for field in ("tensor_path", "metadata_path"):
        match = re.search(_FIELD.format(field), text)
        if match is None:
            raise EmbeddingError(f'{config}: has no {field}; add one, such as {field}: "vectors.tsv"')
        table = path / match[1]
        if not table.resolve().is_relative_to(path.resolve()):
            raise EmbeddingError(f"{config}: names '{match[1]}' outside its folder; move that file into the folder")
        if not table.is_file():
            raise EmbeddingError(f"{config}: names '{match[1]}', which does not exist; write the folder again")
        check_file(table, EmbeddingError)
        found.append(table)
    return found[0], found[1]


def _read_short(path: Path) -> str:
    if path.stat().st_size > LONGEST:
        raise EmbeddingError(f"{path}: has {path.stat().st_size:,} bytes, expected at most {LONGEST:,}; write it again")
    return path.read_text(encoding="utf-8")


PROJECTOR = VectorFormat(
    ".projector", "a folder for TensorBoard's projector", read_projector, write_projector, keeps=("provenance",),
    refuses="that are empty or contain tabs or line ends", accepts=is_field,
    files=lambda path: [path / name for name in (VECTORS, METADATA, PROVENANCE, CONFIG)], folder=True,
    usage=lambda path, ids, dim: f"view it with: tensorboard --logdir '{path}'",
)  # fmt: skip
