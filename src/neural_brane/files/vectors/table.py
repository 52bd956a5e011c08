"""What all formats of vectors share: the declaration of a format, what is read, what is written, and small pieces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.graph.lazy import pl

if TYPE_CHECKING:
    from neural_brane.files.vectors.parts import StoredColumn

PROVENANCE, SCORES, MADE_FROM = "provenance", "layer", "made_from"  # what some formats keep besides vectors and ids
EVERYTHING = (PROVENANCE, SCORES, MADE_FROM)
LAYER = ("layer_weight", "layer_bias")  # the arrays of what scores pairs of vectors, in formats that keep it


class VectorTable(NamedTuple):
    """What a file of vectors holds; a format that has no place for something leaves it empty."""

    vectors: np.ndarray  # (nodes, dim)
    ids: np.ndarray  # (nodes,) integers or strings
    provenance: dict[str, Any]  # what made the vectors
    layer: tuple[np.ndarray, np.ndarray] | None = None  # weight and bias of what scores pairs
    made_from: np.ndarray | None = None  # (nodes,) strings: what the vectors of new nodes were made from


class Content(NamedTuple):
    """What goes into a file of vectors; the vectors come block by block, so that they need never exist as a whole.

    Ids, and `made_from`, may lie in a folder of parts: slices of them are read, and `np.asarray` reads all.
    """

    ids: np.ndarray | StoredColumn  # (nodes,) integers or strings
    blocks: Iterable[np.ndarray]  # rows (k, dim), contiguous float32, in the order of the ids
    dim: int
    provenance: str  # JSON text of an object
    layer: tuple[np.ndarray, np.ndarray] | None = None
    made_from: np.ndarray | StoredColumn | None = None

    def with_ids(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Each block with the ids of its rows."""
        done = 0
        for block in self.blocks:
            yield self.ids[done : done + len(block)], block
            done += len(block)


@dataclass(frozen=True, slots=True)
class VectorFormat:
    """A format of vectors, declared once: a variable of the module that reads and writes it.

    suffixes: of its files, by spaces, as a literal text. about: what is in a file, for help and documentation, as a
    literal text too. write: takes the content and a path for each of `files`. refuses: which ids it cannot hold, as in
    "with spaces"; `holds` tells it of one that is a string. folder: it is a folder of files, known by the last of
    `files`. takes_ids: `read` takes a file of ids as well. usage: what to do with the file, from its path, ids and
    width. require: raises where an optional package is missing.
    """

    suffixes: str
    about: str
    read: Callable[..., VectorTable]
    write: Callable[..., None]
    keeps: tuple[str, ...] = ()
    checksums: bool = False
    refuses: str = ""
    holds: Callable[[str], bool] = lambda node: True
    number_bytes: float = 12  # that a number takes, about
    id_bytes: int = 0  # that an id takes besides its characters
    files: Callable[[Path], list[Path]] = lambda path: [path]  # the last is what readers look for
    folder: bool = False
    takes_ids: bool = False
    usage: Callable[[Path, Any, int], str] = lambda path, ids, dim: ""
    require: Callable[[], object] = lambda: None


# Polars and HDF5 write no checksums: our files have this mark and the SHA-256 of all other bytes where those skip it.
MARK = b"neural-brane sha256 1:"  # 1 is the version of this format
RECORD = len(MARK) + 64  # bytes of the mark and the digest


def check_digest(path: Path, found: str, expected: bytes) -> None:
    """Refuse a file whose bytes are not those that its digest was made of."""
    if found.encode() != expected:
        raise EmbeddingError(
            f"{path}: the file is damaged, cut off or changed: it is not what its checksum says; make it again, or "
            "copy it anew"
        )


def lacks(*characters: str) -> Callable[[str], bool]:
    """Return a function that tells whether an id has none of these characters."""
    return lambda node: not any(character in node for character in characters)


def is_field(node: str) -> bool:
    """Whether an id can stand between tabs."""
    return bool(node) and lacks("\t", "\n", "\r")(node)


def parse_ids(words: list[str]) -> np.ndarray:
    """Return integers where every word is one as Python would write it ('007' is not), else the words."""
    try:
        numbers = [int(word) for word in words]
        if all(str(number) == word for number, word in zip(numbers, words, strict=True)):
            return np.array(numbers, dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return np.array(words, dtype=str)


def parse_provenance(path: Path, text: Any) -> dict[str, Any]:
    """The provenance that a file holds as JSON text."""
    try:
        provenance = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        provenance = None
    if not isinstance(provenance, dict):
        raise EmbeddingError(f"{path}: its 'provenance' is not the JSON text of an object; leave it out")
    return provenance


def column_names(dim: int) -> list[str]:
    """The titles of a vector's columns: d0, d1, ..."""
    return [f"d{i}" for i in range(dim)]


def as_frames(content: Content) -> Iterator[pl.DataFrame]:
    """Turn blocks of vectors into data frames with the columns id, d0, d1, ..."""
    for ids, block in content.with_ids():
        columns = map(pl.Series, column_names(content.dim), block.T)
        yield pl.DataFrame([pl.Series("id", ids), *columns])


def number_lines(block: np.ndarray, separator: str) -> list[str]:
    """A line of text per row, in the shortest decimals that read back as the same float32."""
    text = pl.DataFrame(list(map(pl.Series, column_names(block.shape[1]), block.T))).write_csv(
        include_header=False, separator=separator
    )
    return text.split("\n")[: len(block)]
