"""Text files to columns of words, with the number of the line each came from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Never

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.io.compressed import Unpacked
from neural_brane.io.content import recognise
from neural_brane.io.text_blocks import HEAD, read_blocks

if TYPE_CHECKING:
    import polars as pl

_SEPARATORS = bytes.maketrans(b"\t,", b"  ")
_BLANK = b" \t,\n\r\v\f"  # between words
_UNIT = "\x1f"  # ASCII's unit separator: splits columns that may hold spaces; text files do not hold it


def fail(path: Path, line: int, message: str) -> Never:
    """Raise a GraphError that points at a line of a file."""
    raise GraphError(f"{path}:{line}: {message}")


def read_text(path: Path | Unpacked, kind: str) -> bytes:
    """Read a whole text file; every line ends in a line feed, and comment lines are blank.

    The file may be compressed, in UTF-16, or opened before. Refuses one that is missing, empty or not text. `kind`
    names it in the message, as in "label file".
    """
    with path if isinstance(path, Unpacked) else Unpacked(path, kind) as file:
        content = recognise(file.head(HEAD))
        if content.kind not in ("text", "binary"):
            raise GraphError(f"{file.path}: the {kind} is a {content.kind} file; {content.advice}")
        data = b"".join(block.data for block in read_blocks(file, content.encoding))
    data = without_comments(data, file.path, kind)
    if not data.strip(_BLANK):
        raise empty(file.path, kind)
    return data


def without_comments(data: bytes, path: Path, kind: str, line: int = 1) -> bytes:
    """Make comment lines blank; refuse what no text holds. `line` is the number of the first."""
    if (odd := data.find(_UNIT.encode())) >= 0:
        fail(path, data.count(b"\n", 0, odd) + line, f"the file is binary; save the {kind} as UTF-8 text")
    return re.sub(rb"(?m)^[ \t]*#.*$", b"", data) if b"#" in data else data


def empty(path: Path, kind: str) -> GraphError:
    """The error for a file without a word in it."""
    return GraphError(f"{path}: the {kind} is empty; write one entry per line")


def read_table(data: bytes, columns: list[str]) -> pl.DataFrame:
    """Split lines into columns of words and a column `line`; leaves out blank lines.

    A word is null where its line is too short. Words beyond the last column are dropped.
    """
    import polars as pl

    table = _read_columns(_single_spaced(data), columns, " ").with_row_index("line", offset=1)
    return table.filter(pl.col(columns[0]).is_not_null())


def read_words(data: bytes) -> pl.DataFrame:
    """Split lines of any length into words: one row per word, with `line`, `first`, `name` and `value`.

    `first` marks the first word of a line. A word NAME:VALUE is cut at its last colon; in others, value is
    null. Leaves out blank lines.
    """
    import polars as pl

    raw = np.frombuffer(_single_spaced(data).rstrip(b"\n") + b"\n", dtype=np.uint8).copy()
    stops = np.flatnonzero((raw == ord(" ")) | (raw == ord("\n")) | (raw == ord(":")))
    kinds = raw[stops]
    ends = kinds != ord(":")
    first = np.concatenate([[True], kinds[ends][:-1] == ord("\n")])
    # The last colon of a word: the next stop is the word's end, and at least one character stands before that.
    cuts = stops[:-1][~ends[:-1] & ends[1:] & (np.diff(stops) > 1)]
    raw[stops[ends]] = ord("\n")
    raw[cuts] = ord(_UNIT)
    words = _read_columns(raw.tobytes(), ["name", "value"], _UNIT)
    words = words.with_columns(first=pl.Series(first), line=pl.Series(np.cumsum(first)))
    return words.filter(pl.col("name").is_not_null() | pl.col("value").is_not_null())


def read_lines(data: bytes) -> pl.DataFrame:
    """Return whole lines, in columns `line` (the number) and `text`; leaves out blank lines."""
    import polars as pl

    table = _read_columns(data, ["text"], _UNIT).with_row_index("line", offset=1)
    return table.filter(pl.col("text").str.strip_chars() != "")


def _single_spaced(data: bytes) -> bytes:
    """Put exactly one space between words, whatever stood there: spaces, tabs or commas."""
    data = data.translate(_SEPARATORS)
    if b"  " in data:
        data = re.sub(rb" {2,}", b" ", data)
    if b"\n " in data or data.startswith(b" "):
        data = data.replace(b"\n ", b"\n").removeprefix(b" ")
    if b" \n" in data or data.endswith(b" "):
        data = data.replace(b" \n", b"\n").removesuffix(b" ")
    return data


def _read_columns(data: bytes, columns: list[str], separator: str) -> pl.DataFrame:
    """Split every line into named columns of strings."""
    import polars as pl

    # The heading fixes the number of columns: without it, Polars would take the first line's.
    heading = separator.join(columns).encode() + b"\n"
    return pl.read_csv(
        heading + data, separator=separator, quote_char=None, infer_schema=False, truncate_ragged_lines=True
    )
