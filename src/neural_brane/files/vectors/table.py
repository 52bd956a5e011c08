"""Declare formats of vectors, the content that they read and write, and helpers that several formats share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.files.storage import parse_json
from neural_brane.graph.lazy import pl

if TYPE_CHECKING:
    from neural_brane.files.vectors.parts import StoredColumn

PROVENANCE, MADE_FROM = "provenance", "made_from"  # kept by some formats besides vectors and ids
EVERYTHING = (PROVENANCE, MADE_FROM)


class VectorTable(NamedTuple):
    """The content of a file of vectors after reading; fields that the format cannot keep are empty."""

    vectors: np.ndarray  # (nodes, dim)
    ids: np.ndarray  # (nodes,) integers or strings
    provenance: dict[str, Any]
    made_from: np.ndarray | None = None  # (nodes,) strings, see `Embedding`


class Content(NamedTuple):
    """The content of a file of vectors before writing; vectors come in blocks, ids may lie in a folder of parts."""

    ids: np.ndarray | StoredColumn  # (nodes,) integers or strings
    blocks: Iterable[np.ndarray]  # rows (k, dim), contiguous float32, in the order of the ids
    dim: int
    provenance: str  # JSON text of an object
    made_from: np.ndarray | StoredColumn | None = None

    def with_ids(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the ids of each block's rows, and the block."""
        done = 0
        for block in self.blocks:
            yield self.ids[done : done + len(block)], block
            done += len(block)


@dataclass(frozen=True, slots=True)
class VectorFormat:
    """A format of vectors, declared once in the module that reads and writes it.

    suffixes: separated by spaces. about: the contents of a file, for help and docs; both must be literal texts. write:
    takes the content and one path for each of `files`. refuses: describes the ids that the format cannot store, such
    as "with spaces". accepts: returns whether it can store a string as an id. folder: True if it is a folder of
    files; the last of `files` identifies it. takes_ids: True if `read` also takes a file of ids. usage: returns advice
    on using the file, from its path, ids and dim. require: raises an error if an optional package is missing.
    """

    suffixes: str
    about: str
    read: Callable[..., VectorTable]
    write: Callable[..., None]
    keeps: tuple[str, ...] = ()
    checksums: bool = False
    refuses: str = ""
    accepts: Callable[[str], bool] = lambda node: True
    number_bytes: float = 12  # approximate bytes of one number
    id_bytes: int = 0  # approximate bytes of one id besides its characters
    files: Callable[[Path], list[Path]] = lambda path: [path]  # readers look for the last one
    folder: bool = False
    takes_ids: bool = False
    usage: Callable[[Path, Any, int], str] = lambda path, ids, dim: ""
    require: Callable[[], object] = lambda: None


# Polars and HDF5 write no checksums. Our files contain this mark and the SHA-256 of all other bytes, in a place that
# these libraries skip.
MARK = b"neural-brane sha256 1:"  # 1 is the version of this format
RECORD = len(MARK) + 64  # bytes of the mark and the digest


def check_digest(path: Path, found: str, expected: bytes) -> None:
    """Raise an error unless the digest of a file's bytes is the one that the file contains."""
    if found.encode() != expected:
        problem = f"{path}: the file is damaged, cut off or changed: it does not match its checksum;"
        raise EmbeddingError(f"{problem} make it again, or copy it again")


def unreadable(path: Path, kind: str, reason: str) -> EmbeddingError:
    """Return the error for a file that cannot be read."""
    return EmbeddingError(f"{path}: is not a readable {kind} file, or is damaged ({reason}); make it again")


def lacks(*characters: str) -> Callable[[str], bool]:
    """Return a function that returns whether an id contains none of these characters."""
    return lambda node: not any(character in node for character in characters)


def is_field(node: str) -> bool:
    """Return whether an id can be a field of a tab-separated line."""
    return bool(node) and lacks("\t", "\n", "\r")(node)


def parse_ids(words: list[str]) -> np.ndarray:
    """Return integers if every word is one in Python's own form ('007' is not), else the words."""
    try:
        numbers = [int(word) for word in words]
        if all(str(number) == word for number, word in zip(numbers, words, strict=True)):
            return np.array(numbers, dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return np.array(words, dtype=str)


def parse_provenance(path: Path, text: Any) -> dict[str, Any]:
    """Return the provenance that a file contains as JSON text."""
    try:
        provenance = parse_json(text)
    except (ValueError, TypeError):
        provenance = None
    if not isinstance(provenance, dict):
        raise EmbeddingError(f"{path}: its 'provenance' is not the JSON text of an object; remove it")
    return provenance


def column_names(dim: int) -> list[str]:
    """Return the names of the columns of a vector: d0, d1 and so on."""
    return [f"d{i}" for i in range(dim)]


def check_titles(path: Path, titles: list[str]) -> None:
    """Raise an error if only some columns are numbered like the dimensions of a vector, such as d0 or dim_1."""
    numbered = re.compile(r"d\d+" if "d0" in titles else r".*\d", re.DOTALL)
    others = [title for title in titles if not numbered.fullmatch(title)]
    if 0 < len(others) < len(titles):
        found = f"{path}: columns {', '.join(map(repr, others[:4]))} are not numbered like the dimensions beside them;"
        raise EmbeddingError(f"{found} remove them, or rename them if they belong to the vectors")


def as_frames(content: Content) -> Iterator[pl.DataFrame]:
    """Yield each block as a data frame with the columns id, d0, d1 and so on."""
    for ids, block in content.with_ids():
        yield pl.DataFrame([pl.Series("id", ids), *map(pl.Series, column_names(content.dim), block.T)])


def number_lines(block: np.ndarray, separator: str) -> list[str]:
    """Return one line of text per row, with the shortest decimals that read back as the same float32."""
    frame = pl.DataFrame(list(map(pl.Series, column_names(block.shape[1]), block.T)))
    return frame.write_csv(include_header=False, separator=separator).split("\n")[: len(block)]
