"""Tables as text to data frames of strings, block by block."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.io.dialect import SEPARATORS, Dialect
from neural_brane.io.text_blocks import Block

if TYPE_CHECKING:
    import polars as pl


def parse_block(path: Path, block: Block, dialect: Dialect) -> tuple[pl.DataFrame, np.ndarray | None]:
    """Return the records of a block, and the number of each one's line where they do not follow each other.

    All columns are strings without spaces around them; an empty field is null. Blank lines do not count. A record
    with more or fewer fields than the dialect has columns is refused.
    """
    data = _without_quotes(block.data, dialect.separator) if b'"' in block.data else block.data
    if data is not None and data.count(dialect.separator.encode()) == block.lines * (dialect.columns - 1):
        frame = _parse_plain(data, dialect)
        if frame is not None:
            return frame, None
    return _parse_carefully(path, block, dialect)


def column_names(dialect: Dialect) -> list[str]:
    """Return the titles, or column_1, column_2, …"""
    return list(dialect.titles) or [f"column_{at}" for at in range(1, dialect.columns + 1)]


def _without_quotes(data: bytes, separator: str) -> bytes | None:
    """Take the quotes off where every quoted field needs none; None where one of them does."""
    raw = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(raw == ord('"'))
    if len(quotes) % 2:
        return None
    opening, closing = quotes[0::2], quotes[1::2]
    stop = (raw == ord(separator)) | (raw == ord("\n"))
    stops = np.flatnonzero(stop)
    whole = (
        stop[closing + 1].all()
        and (stop[opening - 1] | (opening == 0)).all()
        and np.array_equal(np.searchsorted(stops, opening), np.searchsorted(stops, closing))
    )
    return data.replace(b'"', b"") if whole else None


def _parse_plain(data: bytes, dialect: Dialect) -> pl.DataFrame | None:
    """Parse records without quotes; None where one has too many fields or, being blank, too few."""
    import polars as pl

    names = column_names(dialect)
    if dialect.columns == 1 and (data.startswith(b"\n") or b"\n\n" in data):
        return None
    try:
        frame = pl.read_csv(
            data,
            has_header=False,
            separator=dialect.separator,
            quote_char=None,
            schema=dict.fromkeys(names, pl.String),
        )
    except pl.exceptions.PolarsError:
        return None
    separator = dialect.separator.encode()
    spaced = (separator + b" ", b" " + separator, b" \n", b"\n ")
    if data.startswith(b" ") or any(pattern in data for pattern in spaced):
        return strip_spaces(frame)
    return frame


def strip_spaces(frame: pl.DataFrame) -> pl.DataFrame:
    """Take the spaces off around strings; what is empty then is null."""
    import polars as pl

    stripped = pl.col(pl.String).str.strip_chars()
    return frame.with_columns(pl.when(stripped != "").then(stripped))


def _parse_carefully(path: Path, block: Block, dialect: Dialect) -> tuple[pl.DataFrame, np.ndarray]:
    """Parse records one by one: fields with quotes or line feeds in them, blank lines, wrong lengths."""
    import polars as pl

    reader = csv.reader(io.StringIO(block.data.decode(), newline=""), delimiter=dialect.separator, strict=True)
    rows, lines, line = [], [], block.line
    try:
        for row in reader:
            if len(row) == dialect.columns and (dialect.columns > 1 or row[0].strip()):
                rows.append(row)
                lines.append(line)
            elif len(row) > 1 or (row and row[0].strip()):
                raise GraphError(f"{path}:{line}: {_wrong_length(row, dialect)}")
            line = block.line + reader.line_num
    except csv.Error as error:
        raise GraphError(
            f"{path}:{line}: the quotes of this line do not match ({error}); "
            "close every quoted field, and write a quote inside one as two"
        ) from None
    frame = pl.DataFrame(rows, schema=dict.fromkeys(column_names(dialect), pl.String), orient="row")
    return strip_spaces(frame), np.array(lines, dtype=np.int64)


def _wrong_length(row: list[str], dialect: Dialect) -> str:
    separator = SEPARATORS.get(dialect.separator, repr(dialect.separator))
    shown = dialect.separator.join(row)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    fields = f"{len(row)} field{'s' if len(row) > 1 else ''}"
    return (
        f"the line has {fields} ({shown!r}), the first has {dialect.columns}, separated by {separator}; "
        f"give every line as many, or put quotes around a field that holds {separator}"
    )
