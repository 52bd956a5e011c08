"""Vectors as text: word2vec's format, which many programs write, and tab-separated tables; word2vec's binary form."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError

if TYPE_CHECKING:
    import polars


def write_word2vec(path: Path, ids: np.ndarray, blocks: Iterator[np.ndarray], dim: int, provenance: str) -> None:
    """Write `nodes dim`, then a line `id v1 v2 …` per node."""
    with open(path, "wb") as file:
        file.write(f"{len(ids)} {dim}\n".encode())
        for frame in frames(ids, blocks):
            frame.write_csv(file, include_header=False, separator=" ", quote_style="never")


def write_tsv(path: Path, ids: np.ndarray, blocks: Iterator[np.ndarray], dim: int, provenance: str) -> None:
    """Write a header, then a line per node, by tabs."""
    with open(path, "wb") as file:
        file.write(("\t".join(["id", *columns(dim)]) + "\n").encode())
        for frame in frames(ids, blocks):
            frame.write_csv(file, include_header=False, separator="\t", quote_style="never")


def read_word2vec(path: Path) -> Embedding:
    """Read word2vec text, also gensim's, whose ids may hold spaces."""
    with open(path, encoding="utf-8") as file:
        nodes, dim = _announced(path, file.readline())
        rows = ((line, _fields(text, dim)) for line, text in enumerate(file, 2) if not text.isspace())
        found = _parse(path, rows, dim)
    if len(found) != nodes:
        raise EmbeddingError(f"{path}: the first line announces {nodes} nodes, {len(found)} follow; is it cut off?")
    return found


def read_word2vec_binary(path: Path) -> Embedding:
    """Read word2vec's binary form: `nodes dim`, then an id, a space and the float32 numbers of each node."""
    data = path.read_bytes()
    at = data.find(b"\n") + 1
    nodes, dim = _announced(path, data[:at].decode("utf-8", "replace"))
    ids, vectors = [], np.empty((min(nodes, len(data)), dim), dtype=np.float32)
    for row in range(nodes):
        space = data.find(b" ", at)
        end = space + 1 + 4 * dim
        if space < 0 or end > len(data):
            raise EmbeddingError(f"{path}: the first line announces {nodes} nodes, {row} follow; is it cut off?")
        ids.append(data[at:space].decode().lstrip("\n"))  # the original program ends a vector with a new line
        vectors[row] = np.frombuffer(data, "<f4", dim, space + 1)
        at = end
    return Embedding(vectors, typed(ids))


def read_tsv(path: Path) -> Embedding:
    """Read a table by tabs, with or without a header."""
    with open(path, encoding="utf-8") as file:
        first = file.readline().rstrip("\n").split("\t")
        if len(first) < 2:
            raise EmbeddingError(f"{path}:1: a line must be an id and its numbers, separated by tabs")
        headed = first[0] in ("", "id") or not _numeric(first[1:])
        if not headed:
            file.seek(0)
        lines = enumerate(file, 2 if headed else 1)
        rows = ((line, text.rstrip("\n").split("\t")) for line, text in lines if not text.isspace())
        return _parse(path, rows, len(first) - 1)


def _announced(path: Path, first: str) -> tuple[int, int]:
    """The number of nodes and the width that a first line promises."""
    try:
        nodes, dim = map(int, first.split())
    except ValueError:
        raise EmbeddingError(f"{path}:1: the first line must be 'nodes dim', as in '3312 150'") from None
    if nodes < 0 or dim < 1:
        raise EmbeddingError(f"{path}:1: announces {nodes} nodes of width {dim}; at least one number each is needed")
    return nodes, dim


def _fields(text: str, dim: int) -> list[str]:
    """The id and the numbers of a line; words between them that are no numbers belong to the id."""
    fields = text.split()
    if len(fields) <= dim + 1 or _numeric(fields[1:-dim]):
        return fields
    return text.strip().rsplit(maxsplit=dim)


def _parse(path: Path, rows: Iterable[tuple[int, list[str]]], dim: int) -> Embedding:
    ids: list[str] = []
    values = array("f")
    for line, (node, *numbers) in rows:
        if len(numbers) != dim:
            raise EmbeddingError(
                f"{path}:{line}: {len(numbers)} numbers after id '{node}', {dim} were expected on every line"
            )
        try:
            values.extend(map(float, numbers))
        except ValueError as error:
            raise EmbeddingError(f"{path}:{line}: {error}; a line is an id, then {dim} numbers") from None
        ids.append(node)
    return Embedding(np.frombuffer(values, dtype=np.float32).reshape(len(ids), dim), typed(ids))


def typed(ids: list[str]) -> np.ndarray:
    """Integers where every id is one as Python would write it ('007' is not), else the strings."""
    try:
        numbers = [int(node) for node in ids]
        if all(str(number) == node for number, node in zip(numbers, ids, strict=True)):
            return np.array(numbers, dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return np.array(ids, dtype=str)


def _numeric(fields: list[str]) -> bool:
    try:
        return all(isinstance(float(field), float) for field in fields)
    except ValueError:
        return False


def frames(ids: np.ndarray, blocks: Iterator[np.ndarray]) -> Iterator[polars.DataFrame]:
    """Blocks of vectors as tables, with their ids."""
    import polars

    done = 0
    for block in blocks:
        names = polars.Series("id", ids[done : done + len(block)])
        yield polars.DataFrame([names, *map(polars.Series, columns(block.shape[1]), block.T)])
        done += len(block)


def columns(dim: int) -> list[str]:
    """The names of the numbers."""
    return [f"d{i}" for i in range(dim)]
