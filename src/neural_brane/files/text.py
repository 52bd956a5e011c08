"""Text files as columns of words, with line numbers, and the dialect of a table: its separator and its titles."""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Never

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.files.reading import HEAD, Unpacked, read_blocks, recognise
from neural_brane.graph import frames

if TYPE_CHECKING:
    import polars as pl


# Text files to columns of words, with the number of the line each came from.

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


# How a table is written as text: its separator, and whether its first line holds titles.

SEPARATORS = {",": "','", "\t": "a tab", ";": "';'", "|": "'|'"}
SAMPLE = 500  # lines that are looked at
# Titles that people give to columns. A single letter may as well be a node: it counts in a pair, such as u and v.
TITLES = frozenset(title for pair in frames.PAIRS for title in pair if len(title) > 1) | {
    *("weight", "value", "id", "node", "node_id", "nodeid", "name", "label", "class", "type", "category"),
    *("age", "country", "text", "description", "title", "user", "user_id"),
}
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|nan|[+-]?inf", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A separator, the number of columns, and the titles; no titles where the file has none."""

    separator: str
    columns: int
    titles: tuple[str, ...]

    @property
    def told(self) -> str:
        """The dialect in words."""
        if self.columns == 1:
            return f"one column, {'with' if self.titles else 'without'} a header"
        return f"separated by {SEPARATORS.get(self.separator, repr(self.separator))}, " + (
            "with a header" if self.titles else "without a header"
        )


def split(text: str, separator: str, limit: int = SAMPLE) -> list[list[str]]:
    """Split the first records of a text; the last one, which may be cut off, is left out if there are enough."""
    lines = text.split("\n")
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator)
    try:
        rows = [[field.strip() for field in row] for row in islice(reader, limit)]
    except csv.Error:
        return []
    return [row for row in rows if any(row)]


def find_separator(text: str, names: tuple[str, ...] = ()) -> str | None:
    """Return the separator that gives every record the same number of fields, more than one; None if none does.

    `names` are separators to prefer, as the name of the file suggests. In files with a record of another length,
    the separator that most records agree on is taken, so that the odd one can be shown; one of `names` is taken
    where half of the records have it.
    """
    scores, suggested = [], None
    for separator in SEPARATORS:
        rows = split(text, separator)
        if not rows or len(rows[0]) < 2:
            continue
        if separator in names and sum(len(row) > 1 for row in rows) >= len(rows) / 2:
            suggested = separator
        width, agree = len(rows[0]), sum(len(row) == len(rows[0]) for row in rows) / len(rows)
        if agree > 0.9 or (len(rows) < 10 and agree > 0.5):
            decimal = separator == "," and _only_decimals(text)
            scores.append((agree == 1, not decimal, separator in names, width, separator))
    return max(scores, key=lambda score: score[:4])[4] if scores else suggested


def _only_decimals(text: str) -> bool:
    """Tell whether commas stand in numbers alone, as in 'ann;bob;1,5'."""
    rows = split(text, ";")
    with_comma = [field for row in rows[1:] or rows for field in row if "," in field]
    return len(rows[0]) > 1 and bool(with_comma) and all(_NUMBER.fullmatch(field) for field in with_comma)


def is_header(rows: list[list[str]]) -> bool | None:
    """Tell whether the first of some records holds titles; None where nothing speaks for either.

    Titles are no numbers. A well-known title, a column of numbers (or of ids with digits) under a word, or words
    that never come again while others do, make a header; a value that comes again makes data.
    """
    first, rest = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    if any(_NUMBER.fullmatch(field) for field in first) or "" in first[1:] or len(set(first)) < len(first):
        return False
    if not rest:
        return any(_is_title(field) for field in first) and len(first) > 1
    columns = [[field for field in column if field] for column in zip(*rest, strict=True)]
    seen = Counter(field for column in columns for field in column)
    if any(_is_title(title) and title not in column for title, column in zip(first, columns, strict=True)):
        return True
    if any(seen[field] for field in first):
        return False
    if known_pair(first):
        return True
    if any(c and not _has_digit(title) and all(map(_has_digit, c)) for title, c in zip(first, columns, strict=True)):
        return True
    if any(c and _has_digit(title) and all(map(_has_digit, c)) for title, c in zip(first, columns, strict=True)):
        return False
    recurring = [sum(seen[field] > 1 for field in column) / max(len(column), 1) for column in columns]
    return True if len(rest) >= 4 and max(recurring) > 0.5 else None


def known_pair(fields: list[str]) -> bool:
    """Tell whether two of the fields are titles that go together, such as source and target."""
    return bool(frames.known_pair(fields))


def _is_title(field: str) -> bool:
    return field.lower().replace(" ", "_") in TITLES


def _has_digit(field: str) -> bool:
    return any(letter.isdigit() for letter in field)


def name_columns(titles: list[str]) -> tuple[str, ...]:
    """Return titles as distinct, non-empty names."""
    names: list[str] = []
    for at, title in enumerate(titles, 1):
        name = title.strip() or f"column_{at}"
        while name in names:
            name = f"{name}_{at}"
        names.append(name)
    return tuple(names)


def is_word2vec(text: str) -> bool:
    """Tell word2vec text by its first two lines: `nodes dim`, and a line with a word more than dim."""
    first, _, rest = text.partition("\n")
    words = first.split()
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return False
    return len(rest.partition("\n")[0].split()) == int(words[1]) + 1 > 3
