"""Read table files as data frames: CSV and its kin, Parquet, JSON lines and Arrow, plain or compressed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.files.reading import BLOCK, HEAD, Block, Unpacked, read_blocks, recognise
from neural_brane.files.text import SEPARATORS, Dialect, find_separator, is_header, name_columns, split
from neural_brane.files.trial import why_unreadable
from neural_brane.graph.frames import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import polars as pl


# Tables as text to data frames of strings, block by block.


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


# Tables whose format has types of its own: Parquet, Arrow and JSON lines.


def read_typed(file: Unpacked, kind: str) -> pl.DataFrame:
    """Read a Parquet file, an Arrow file (also called Feather) or an Arrow stream, tried in another process first."""
    import polars as pl

    data = file.read()
    if reason := why_unreadable(kind, data):
        raise _unreadable(file, kind, reason)
    read = {"Parquet": pl.read_parquet, "Arrow": pl.read_ipc, "Arrow stream": pl.read_ipc_stream}[kind]
    return _guarded(file, kind, lambda: read(BytesIO(data)))


def read_json_lines(file: Unpacked, blocks: Iterable[Block]) -> tuple[pl.DataFrame, int, np.ndarray]:
    """Read lines that are each a JSON object; the types follow from all of them. Return also their line numbers."""
    import polars as pl

    data = b"".join(block.data for block in blocks)
    lines = np.flatnonzero([bool(line.strip()) for line in data.split(b"\n")]) + 1
    try:
        frame = _guarded(file, "JSON lines", lambda: pl.read_ndjson(data, infer_schema_length=None))
    except GraphError:
        _check_json_lines(file, data)
        raise
    if len(frame) != len(lines):
        _check_json_lines(file, data)
        raise GraphError(f"{file.path}: {len(lines)} lines hold {len(frame)} objects; write one object per line")
    return frame, int(lines[0]), lines


def _check_json_lines(file: Unpacked, data: bytes) -> None:
    """Refuse the first line that is not a JSON object."""
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            if not line.strip() or isinstance(json.loads(line), dict):
                continue
            found = "is no object"
        except (ValueError, RecursionError) as error:
            found = f"is no JSON ({error})"
        raise GraphError(
            f"{file.path}:{number}: the line {found}; write one object per line, as in "
            '{"source": "ann", "target": "bob"}'
        )


def _guarded(file: Unpacked, kind: str, read: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Turn what Polars raises for a damaged file, panics included, into an error that says what to do."""
    try:
        return read()
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:  # a panic of Polars is no Exception
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise _unreadable(file, kind, reason) from None


def _unreadable(file: Unpacked, kind: str, reason: str) -> GraphError:
    return GraphError(f"{file.path}: the {file.what} cannot be read as {kind} ({reason}); write the file again")


# Table files to data frames: CSV and its kin, Parquet, JSON lines and Arrow, plain or compressed.
#
# What a file is, its first bytes say; its name decides only where they leave a choice. Text gives columns of strings,
# so that 007, UUIDs and integers of any size stay as written. `neural_brane.graph.frames` and
# `neural_brane.graph.columns` make edges and attributes of them.

ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather", ".ipc")
PACKINGS = (".gz", ".zst")
NAMED: dict[str, tuple[str, ...]] = {".csv": (",", ";"), ".tsv": ("\t",)}  # what a name suggests as a separator
TYPED = {"parquet": "Parquet", "arrow": "Arrow", "arrow stream": "Arrow stream", "JSON lines": "JSON lines"}


@dataclass(frozen=True, slots=True)
class FrameFile:
    """A table, and how it was read.

    `told` says so in words. `first_line` is the line number of the first row, 0 where the format has no lines;
    `lines` has the number of every row where rows do not stand on consecutive lines.
    """

    path: Path
    frame: pl.DataFrame
    told: str
    first_line: int
    lines: np.ndarray | None = None

    @property
    def place(self) -> Place:
        """Return the origin of the rows, for messages."""
        return Place(str(self.path), self.first_line, self.lines)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a table; `lines` is as in `FrameFile`."""

    frame: pl.DataFrame
    first_line: int
    lines: np.ndarray | None = None


def table_suffix(path: str | Path) -> str:
    """Return the ending of a name that says which kind of table it is, without that of a compression."""
    path = Path(path)
    return (path.with_suffix("") if path.suffix.lower() in PACKINGS else path).suffix.lower()


def stem(path: str | Path) -> str:
    """Return the name of a file without the endings that say its format and its compression."""
    path = Path(path)
    return path.with_suffix("").stem if path.suffix.lower() in PACKINGS else path.stem


def read_frame(
    path: str | Path | Unpacked, *, what: str, header: bool | None = None, titled: bool = False
) -> FrameFile:
    """Read a table file; `what` names it in messages, as in "node table", and the path "-" is standard input.

    A file that has been opened may stand for its path.

    Whether there is a `header` is recognised where it is not given. Columns without titles are named column_1,
    column_2, … Where nothing tells whether a first line holds titles, it is an error, or, if `titled`, it does.
    """
    import polars as pl

    with TableReader(path, what=what, header=header, titled=titled) as reader:
        pieces = list(reader.pieces())
        told, path, under = reader.told, reader.path, reader.dialect is not None and reader.dialect.titles
    if not sum(len(piece.frame) for piece in pieces):
        raise GraphError(f"{path}: the {what} has no rows{' under its titles' if under else ''}; give at least one")
    lines = None
    if any(piece.lines is not None for piece in pieces):
        lines = np.concatenate([piece_lines(piece) for piece in pieces])
    frame = pieces[0].frame if len(pieces) == 1 else pl.concat([piece.frame for piece in pieces])
    return FrameFile(path, frame, told, pieces[0].first_line, lines)


def piece_lines(piece: Piece) -> np.ndarray:
    """Return the line number of every row of a piece."""
    if piece.lines is not None:
        return piece.lines
    return np.arange(piece.first_line, piece.first_line + len(piece.frame))


class TableReader:
    """A table file, opened and recognised; `pieces` gives its rows, and `told` says how they are read.

    The parameters are those of `read_frame`. Use it in a `with` statement.
    """

    def __init__(
        self,
        path: str | Path | Unpacked,
        *,
        what: str,
        header: bool | None = None,
        titled: bool = False,
        block: int = BLOCK,
    ) -> None:
        self._file = path if isinstance(path, Unpacked) else Unpacked(path, what)
        self._block = block
        self.path = self._file.path
        self.dialect: Dialect | None = None
        self._skipped = 0
        try:
            self._recognise(header, titled)
        except BaseException:
            self._file.__exit__()
            raise

    def _recognise(self, header: bool | None, titled: bool) -> None:
        """Find out what the file is and, of text, how it is written."""
        head = self._file.head(HEAD)
        self.content = recognise(head)
        if not head.strip():
            raise GraphError(f"{self.path}: the {self._file.what} is empty; write one entry per line")
        if self.content.kind == "text":
            self.dialect, self._skipped = _find_dialect(self._file, self.content.text, header, titled)
        elif self.content.kind not in TYPED:
            raise GraphError(f"{self.path}: the {self._file.what} is a {self.content.kind} file; {self.content.advice}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.__exit__()

    @property
    def told(self) -> str:
        """Say how the file is read: format, separator, header, encoding, compression."""
        words = [TYPED.get(self.content.kind, "text")]
        if self.dialect is not None:
            name = {",": "CSV", "\t": "TSV"}.get(self.dialect.separator, "text")
            words = [f"{name} {self.dialect.told}" if self.dialect.columns > 1 else f"text in {self.dialect.told}"]
            comments = self._skipped - bool(self.dialect.titles)
            words += [f"after {comments} comment line{'s' if comments > 1 else ''}"] if comments else []
        if self.content.kind in ("text", "JSON lines"):
            words.append(self.content.encoding.told)
        return ", ".join(words + ([f"compressed with {self._file.packing}"] if self._file.packing else []))

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows of the table, a piece of them at a time."""
        kind = self.content.kind
        if self.dialect is not None:
            for block in self.blocks():
                frame, lines = parse_block(self.path, block, self.dialect)
                yield Piece(frame, block.line, lines)
        elif kind == "JSON lines":
            yield Piece(*read_json_lines(self._file, self._blocks()))
        else:
            yield Piece(read_typed(self._file, TYPED[kind]), 0)

    def _blocks(self) -> Iterator[Block]:
        return read_blocks(self._file, self.content.encoding, size=self._block)

    def blocks(self) -> Iterator[Block]:
        """Yield the records of a table of text, without comments and titles, a block of whole records at a time."""
        skip = self._skipped
        for block in self._blocks():
            start = 0
            for _ in range(skip):
                start = block.data.index(b"\n", start) + 1
            rest, skip = Block(block.data[start:] if start else block.data, block.line + skip, block.lines - skip), 0
            if rest.data:
                yield rest


def _find_dialect(file: Unpacked, text: str, header: bool | None, titled: bool) -> tuple[Dialect, int]:
    """Return the dialect of a text, and how many lines stand before the first row: comments and titles."""
    lines = text.split("\n")
    comments = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    body = "\n".join(lines[comments:])
    found = find_separator(body, NAMED.get(table_suffix(file.path), ())) or ","
    rows = split(body, found)
    if not rows:
        raise GraphError(f"{file.path}: the {file.what} has nothing but comments; write one entry per line")
    if header is None:
        header = is_header(rows)
    if header is None and titled:
        header = True
    if header is None:
        raise GraphError(
            f"{file.path}:{comments + 1}: cannot tell whether {found.join(rows[0])!r} are the titles of columns or the "
            "first row; say which with header=True or header=False (--header yes or --header no)"
        )
    if not header:
        return Dialect(found, len(rows[0]), ()), comments
    return Dialect(found, len(rows[0]), name_columns(rows[0])), comments + 1 + sum(
        title.count("\n") for title in rows[0]
    )
