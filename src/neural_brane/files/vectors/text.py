"""Vectors as text: word2vec's format, which many programs write, tables by tabs or commas; and word2vec's binary form.

None of them has a place for a checksum: a changed digit is not noticed, nor are lines that a table by tabs or commas
has lost at its end.
"""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.files.reading import read_bytes
from neural_brane.files.vectors.table import (
    Content,
    VectorFormat,
    VectorTable,
    as_frames,
    column_names,
    is_field,
    lacks,
    parse_ids,
)
from neural_brane.graph.frames import PAIRS


def write_word2vec(content: Content, path: Path) -> None:
    """Write `nodes dim`, then a line `id v1 v2 …` per node; the format has no place for the provenance."""
    with open(path, "wb") as file:
        file.write(f"{len(content.ids)} {content.dim}\n".encode())
        for frame in as_frames(content):
            frame.write_csv(file, include_header=False, separator=" ", quote_style="never")


def write_word2vec_binary(content: Content, path: Path) -> None:
    """Write `nodes dim`, then for each node its id, a space, its float32 numbers and, as the original, a new line."""
    with open(path, "wb") as file:
        file.write(f"{len(content.ids)} {content.dim}\n".encode())
        for ids, block in content.with_ids():
            rows = zip(ids.tolist(), block, strict=True)
            file.write(b"".join(b"%b %b\n" % (str(node).encode(), row.tobytes()) for node, row in rows))


def write_tsv(content: Content, path: Path) -> None:
    """Write a header, then a line per node, by tabs; the format has no place for the provenance."""
    with open(path, "wb") as file:
        file.write(("\t".join(["id", *column_names(content.dim)]) + "\n").encode())
        for frame in as_frames(content):
            frame.write_csv(file, include_header=False, separator="\t", quote_style="never")


def write_csv(content: Content, path: Path) -> None:
    """Write a header, then a line per node, by commas; ids are quoted where they must be."""
    with open(path, "wb") as file:
        file.write((",".join(["id", *column_names(content.dim)]) + "\n").encode())
        for frame in as_frames(content):
            frame.write_csv(file, include_header=False, quote_style="necessary")


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
    write_word2vec,
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
    write_tsv,
    refuses="that are empty, or with tabs or line ends",
    holds=is_field,
)
COMMAS = VectorFormat(".csv", "a header 'id d0 d1 …', then a line per node, by commas", read_csv, write_csv)
