"""Read text files as columns of words, and table files (CSV, Parquet, JSON lines, Arrow) as data frames."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Never, Self

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.files.reading import BLOCK, HEAD, Block, Unpacked, read_blocks, recognise
from neural_brane.files.trial import why_unreadable
from neural_brane.graph import frames
from neural_brane.graph.frames import Place
from neural_brane.graph.lazy import pl

_SEPARATORS = bytes.maketrans(b"\t,", b"  ")
_BLANK = b" \t,\n\r\v\f"  # characters between words
_UNIT = "\x1f"  # the ASCII unit separator, which text files do not contain; splits columns that may contain spaces


def fail(path: Path, line: int, message: str) -> Never:
    """Raise a GraphError that begins with a file and a line number."""
    raise GraphError(f"{path}:{line}: {message}")


def read_text(path: Path | Unpacked, kind: str) -> bytes:
    """Return a text file as UTF-8 with line feeds and blank comment lines; raise GraphError if it is no text."""
    with path if isinstance(path, Unpacked) else Unpacked(path, kind) as file:
        data = b"".join(block.data for block in text_blocks(file))
    if not data.strip(_BLANK):
        raise empty_error(file.path, kind)
    return data


def text_blocks(file: Unpacked) -> Iterator[Block]:
    """Yield the lines of a text file in blocks, with comment lines made blank; refuse other files."""
    content = recognise(file.head(HEAD))
    if content.kind not in ("text", "binary"):
        raise GraphError(f"{file.path}: the {file.what} is a {content.kind} file; {content.advice}")
    for block in read_blocks(file, content.encoding):
        data = block.data
        if (odd := data.find(_UNIT.encode())) >= 0:
            line = data.count(b"\n", 0, odd) + block.line
            fail(file.path, line, f"the file is binary; save the {file.what} as UTF-8 text")
        yield block._replace(data=re.sub(rb"(?m)^[ \t]*#.*$", b"", data)) if b"#" in data else block


def empty_error(path: Path, kind: str) -> GraphError:
    """Return the error for a file without words."""
    return GraphError(f"{path}: the {kind} is empty; write one entry per line")


def read_table(data: bytes, columns: list[str]) -> pl.DataFrame:
    """Split lines into columns of words and `line`, without blank lines; missing words are null, others dropped."""
    table = _read_columns(_single_spaced(data), columns, " ").with_row_index("line", offset=1)
    return table.filter(pl.col(columns[0]).is_not_null())


def read_words(data: bytes) -> pl.DataFrame:
    """Return a row per word: `line`, `first` in it or not, and NAME:VALUE cut at the last colon, `name`, `value`."""
    raw = np.frombuffer(_single_spaced(data).rstrip(b"\n") + b"\n", dtype=np.uint8).copy()
    stops = np.flatnonzero((raw == ord(" ")) | (raw == ord("\n")) | (raw == ord(":")))
    kinds = raw[stops]
    ends = kinds != ord(":")
    first = np.concatenate([[True], kinds[ends][:-1] == ord("\n")])
    # A colon is the last of its word if the next stop is the end of the word, with a character between them.
    cuts = stops[:-1][~ends[:-1] & ends[1:] & (np.diff(stops) > 1)]
    raw[stops[ends]] = ord("\n")
    raw[cuts] = ord(_UNIT)
    words = _read_columns(raw.tobytes(), ["name", "value"], _UNIT)
    words = words.with_columns(first=pl.Series(first), line=pl.Series(np.cumsum(first)))
    return words.filter(pl.col("name").is_not_null() | pl.col("value").is_not_null())


def read_lines(data: bytes) -> pl.DataFrame:
    """Return a table of the lines that are not blank, with the columns `line` (the number) and `text`."""
    table = _read_columns(data, ["text"], _UNIT).with_row_index("line", offset=1)
    return table.filter(pl.col("text").str.strip_chars() != "")


def _single_spaced(data: bytes) -> bytes:
    """Replace the spaces, tabs and commas between two words by one space."""
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
    # The heading fixes the number of columns. Without it, Polars would use that of the first line.
    data = separator.join(columns).encode() + b"\n" + data
    return pl.read_csv(data, separator=separator, quote_char=None, infer_schema=False, truncate_ragged_lines=True)


SEPARATORS = {",": "','", "\t": "a tab", ";": "';'", "|": "'|'"}
SAMPLE = 500  # lines from which they are recognised
# Common titles of columns. A single letter could be a node, so it counts only in a pair, such as u and v.
TITLES = frozenset(title for pair in frames.PAIRS for title in pair if len(title) > 1) | {
    *("weight", "value", "id", "node", "nodeid", "name", "label", "class", "type", "category"),
    *("age", "country", "text", "description", "title", "user", "userid"),
}
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?|nan|[+-]?inf", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The separator of a table, the number of its columns, and their titles, () if there is no header."""

    separator: str
    columns: int
    titles: tuple[str, ...]

    @property
    def description(self) -> str:
        """The dialect in words, for reports."""
        if self.columns == 1:
            return f"one column, {'with' if self.titles else 'without'} a header"
        return f"separated by {SEPARATORS.get(self.separator, repr(self.separator))}, " + (
            "with a header" if self.titles else "without a header"
        )


def split_records(text: str, separator: str, limit: int = SAMPLE) -> list[list[str]]:
    """Return the fields of the first `limit` records, without blank ones; [] if the text is not valid CSV."""
    lines = text.split("\n")
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator)
    try:
        rows = [[field.strip() for field in row] for row in islice(reader, limit)]
    except csv.Error:
        return []
    return [row for row in rows if any(row)]


def find_separator(text: str, names: tuple[str, ...] = ()) -> str | None:
    """Return the separator that gives all records the same number of fields, two or more; None if there is none.

    `names` are the separators that the name of the file suggests; they are preferred. If a few records differ, the
    separator that most records agree on is returned, so that a later check can report the others. If no separator
    qualifies, one of `names` that half of the records contain is returned.
    """
    scores, suggested = [], None
    for separator in SEPARATORS:
        rows = split_records(text, separator)
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
    """Return whether commas occur only inside numbers, as in 'ann;bob;1,5'."""
    rows = split_records(text, ";")
    with_comma = [field for row in rows[1:] or rows for field in row if "," in field]
    return len(rows[0]) > 1 and bool(with_comma) and all(_NUMBER.fullmatch(field) for field in with_comma)


def is_header(rows: list[list[str]]) -> bool | None:
    """Return whether the first record is a header; None if that cannot be decided.

    Titles may be blank or doubled; a number is a title only beside a title of ids. The record is a header if it
    contains a common title, if a word without digits stands above a column with digits, or if none of its words recurs
    while those below do. It is data if a word recurs.
    """
    first, rest = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    if any(_NUMBER.fullmatch(field) for field in first) and frames.squash(first[0]) not in frames.ID_TITLES:
        return False
    if not rest:
        return any(_is_title(field) for field in first) and len(first) > 1
    columns = [[field for field in column if field] for column in zip(*rest, strict=True)]
    seen = Counter(field for column in columns for field in column)
    if any(_is_title(title) and title not in column for title, column in zip(first, columns, strict=True)):
        return True
    if first[0] == "" and columns[0] and all(map(str.isdecimal, columns[0])):  # row numbers
        return True
    if any(seen[field] for field in first if field):
        return False
    if frames.known_pair(first):
        return True
    counted = [title for title, own in zip(first, columns, strict=True) if title and own and all(map(_has_digit, own))]
    if counted:
        return not all(map(_has_digit, counted))
    if "" in first[1:] or len(set(first)) < len(first):
        return False
    recurring = [sum(seen[field] > 1 for field in column) / max(len(column), 1) for column in columns]
    return True if len(rest) >= 4 and max(recurring) > 0.5 else None


def _is_title(field: str) -> bool:
    return frames.squash(field) in TITLES or (field != "" and frames.lacks_title(field))


def _has_digit(field: str) -> bool:
    return any(letter.isdigit() for letter in field)


def name_columns(titles: list[str]) -> tuple[str, ...]:
    """Return distinct, non-empty names for columns with these titles."""
    names: list[str] = []
    for at, title in enumerate(titles, 1):
        name = title.strip() or f"column_{at}"
        while name in names:
            name = f"{name}_{at}"
        names.append(name)
    return tuple(names)


def is_word2vec(text: str) -> bool:
    """Return whether text is in the format of word2vec: first `nodes dim`, then a line of dim + 1 words."""
    first, _, rest = text.partition("\n")
    words = first.split()
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return False
    return len(rest.partition("\n")[0].split()) == int(words[1]) + 1 > 3


def parse_block(path: Path, block: Block, dialect: Dialect) -> tuple[pl.DataFrame, np.ndarray | None]:
    """Return the records of a block, with null for empty fields, and their line numbers, None if consecutive."""
    data = _without_quotes(block.data, dialect.separator) if b'"' in block.data else block.data
    if data is not None and data.count(dialect.separator.encode()) == block.lines * (dialect.columns - 1):
        frame = _parse_plain(data, dialect)
        if frame is not None:
            return frame, None
    return _parse_carefully(path, block, dialect)


def column_names(dialect: Dialect) -> list[str]:
    """Return the titles of the columns, or column_1, column_2, … without a header."""
    return list(dialect.titles) or [f"column_{at}" for at in range(1, dialect.columns + 1)]


def _without_quotes(data: bytes, separator: str) -> bytes | None:
    """Return a block without its quotes; None if a field needs them, for example because it contains a separator."""
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
    """Parse records without quotes; return None if a record has too many fields or is blank."""
    names = column_names(dialect)
    if dialect.columns == 1 and (data.startswith(b"\n") or b"\n\n" in data):
        return None
    try:
        frame = pl.read_csv(
            data, has_header=False, separator=dialect.separator, quote_char=None, schema=dict.fromkeys(names, pl.String)
        )
    except pl.exceptions.PolarsError:
        return None
    separator = dialect.separator.encode()
    spaced = (separator + b" ", b" " + separator, b" \n", b"\n ")
    if data.startswith(b" ") or any(pattern in data for pattern in spaced):
        return strip_spaces(frame)
    return frame


def strip_spaces(frame: pl.DataFrame) -> pl.DataFrame:
    """Remove the spaces around strings; an empty string becomes null."""
    stripped = pl.col(pl.String).str.strip_chars()
    return frame.with_columns(pl.when(stripped != "").then(stripped))


def _parse_carefully(path: Path, block: Block, dialect: Dialect) -> tuple[pl.DataFrame, np.ndarray]:
    """Parse records one by one, with quotes, line feeds in fields and blank lines; refuse wrong lengths."""
    reader = csv.reader(io.StringIO(block.data.decode(), newline=""), delimiter=dialect.separator, strict=True)
    rows, lines, line = [], [], block.line
    try:
        for row in reader:
            if len(row) == dialect.columns and (dialect.columns > 1 or row[0].strip()):
                rows.append(row)
                lines.append(line)
            elif len(row) > 1 or (row and row[0].strip()):
                shown = dialect.separator.join(row)
                shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
                separator = SEPARATORS.get(dialect.separator, repr(dialect.separator))
                found = f"the line has {len(row)} field{'s' if len(row) > 1 else ''} ({shown!r}), but the first has"
                advice = f"give all lines the same number, or put quotes around a field that contains {separator}"
                fail(path, line, f"{found} {dialect.columns}, separated by {separator}; {advice}")
            line = block.line + reader.line_num
    except csv.Error as error:
        advice = "close every quoted field, and write a quote inside one as two"
        raise GraphError(f"{path}:{line}: the quotes of this line do not match ({error}); {advice}") from None
    frame = pl.DataFrame(rows, schema=dict.fromkeys(column_names(dialect), pl.String), orient="row")
    return strip_spaces(frame), np.array(lines, dtype=np.int64)


def read_typed(file: Unpacked, kind: str) -> pl.DataFrame:
    """Read a Parquet file, an Arrow (Feather) file or an Arrow stream, first in another process, which may crash."""
    data = file.read()
    if reason := why_unreadable(kind, data):
        raise _unreadable(file, kind, reason)
    read = {"Parquet": pl.read_parquet, "Arrow": pl.read_ipc, "Arrow stream": pl.read_ipc_stream}[kind]
    return _guarded(file, kind, lambda: read(BytesIO(data)))


def read_json_lines(file: Unpacked, blocks: Iterable[Block]) -> tuple[pl.DataFrame, int, np.ndarray]:
    """Read JSON objects, one per line; return the table, the number of its first line and all line numbers."""
    data = b"".join(block.data for block in blocks)
    lines = np.flatnonzero([bool(line.strip()) for line in data.split(b"\n")]) + 1
    try:
        frame = _guarded(file, "JSON lines", lambda: pl.read_ndjson(data, infer_schema_length=None))
    except GraphError:
        _check_json_lines(file, data)
        raise
    if len(frame) != len(lines):
        _check_json_lines(file, data)
        raise GraphError(f"{file.path}: {len(lines)} lines contain {len(frame)} objects; write one object per line")
    return frame, int(lines[0]), lines


def _check_json_lines(file: Unpacked, data: bytes) -> None:
    """Refuse the first line that is not a JSON object."""
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            if not line.strip() or isinstance(json.loads(line), dict):
                continue
            found = "is not an object"
        except (ValueError, RecursionError) as error:
            found = f"is not JSON ({error})"
        example = '{"source": "ann", "target": "bob"}'
        fail(file.path, number, f"the line {found}; write one object per line, as in {example}")


def _guarded(file: Unpacked, kind: str, read: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Read a file; turn any error of Polars, even a panic, into an error that says what to do."""
    try:
        return read()
    except (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError):
        raise
    except BaseException as error:  # a panic of Polars is not an Exception
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise _unreadable(file, kind, reason) from None


def _unreadable(file: Unpacked, kind: str, reason: str) -> GraphError:
    return GraphError(f"{file.path}: the {file.what} cannot be read as {kind} ({reason}); write the file again")


# Table files become data frames: CSV and similar text, Parquet, JSON lines and Arrow, compressed or not.
#
# The first bytes of a file decide its format; the name counts only if they leave a choice. Columns of text stay
# strings, so that 007, UUIDs and integers of any size do not change. `neural_brane.graph.frames` and
# `neural_brane.graph.columns` turn them into edges and attributes.

ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather", ".ipc")
PACKINGS = (".gz", ".zst")
NAMED: dict[str, tuple[str, ...]] = {".csv": (",", ";"), ".tsv": ("\t",)}  # separators that a suffix suggests
TYPED = {"parquet": "Parquet", "arrow": "Arrow", "arrow stream": "Arrow stream", "JSON lines": "JSON lines"}


@dataclass(frozen=True, slots=True)
class FrameFile:
    """A table and how it was read; `first_line` is 0 without lines, `lines` is None if they are consecutive."""

    path: Path
    frame: pl.DataFrame
    description: str
    first_line: int
    lines: np.ndarray | None = None

    @property
    def place(self) -> Place:
        """The origin of the rows, for error messages."""
        return Place(str(self.path), self.first_line, self.lines)


@dataclass(frozen=True, slots=True)
class TablePiece:
    """Some rows of a table; `first_line` and `lines` are those of `FrameFile`."""

    frame: pl.DataFrame
    first_line: int
    lines: np.ndarray | None = None


def table_suffix(path: str | Path) -> str:
    """Return the suffix of a file name in lower case, without the suffix of a compression."""
    path = Path(path)
    return (path.with_suffix("") if path.suffix.lower() in PACKINGS else path).suffix.lower()


def is_table(path: str | Path) -> bool:
    """Return whether the suffix of a file name is that of a table."""
    return table_suffix(path) in ENDINGS


def stem(path: str | Path) -> str:
    """Return the name of a file without the suffixes of its format and its compression."""
    path = Path(path)
    return path.with_suffix("").stem if path.suffix.lower() in PACKINGS else path.stem


def read_frame(
    path: str | Path | Unpacked, *, what: str, header: bool | None = None, titled: bool = False
) -> FrameFile:
    """Read a table file.

    `path` may be an open file, or "-" for standard input. `what` names the table in errors, as in "node table".
    `header` says whether the first line is a header; None recognises it. If that cannot be decided, the line is a
    header if `titled` is true, else it is an error. Columns without titles are named column_1, column_2, …
    """
    with TableReader(path, what=what, header=header, titled=titled) as reader:
        pieces = list(reader.pieces())
        description, path, under = reader.description, reader.path, reader.dialect is not None and reader.dialect.titles
    if not sum(len(piece.frame) for piece in pieces):
        raise GraphError(f"{path}: the {what} has no rows{' below its header' if under else ''}; give at least one")
    lines = None
    if any(piece.lines is not None for piece in pieces):
        own = ((one.lines, one.first_line, one.first_line + len(one.frame)) for one in pieces)
        lines = np.concatenate([np.arange(first, end) if given is None else given for given, first, end in own])
    frame = pieces[0].frame if len(pieces) == 1 else pl.concat([piece.frame for piece in pieces])
    return FrameFile(path, frame, description, pieces[0].first_line, lines)


class TableReader:
    """An open table file, for a `with` statement; `pieces` yields its rows. `read_frame` has its parameters."""

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
            head = self._file.head(HEAD)
            self.content = recognise(head)
            if not head.strip():
                raise empty_error(self.path, what)
            if self.content.kind == "text":
                self.dialect, self._skipped = _find_dialect(self._file, self.content.text, header, titled)
            elif self.content.kind not in TYPED:
                raise GraphError(f"{self.path}: the {what} is a {self.content.kind} file; {self.content.advice}")
        except BaseException:
            self._file.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.__exit__()

    @property
    def description(self) -> str:
        """Format, separator, header, encoding and compression, in words."""
        words = [TYPED.get(self.content.kind, "text")]
        if self.dialect is not None:
            name = {",": "CSV", "\t": "TSV"}.get(self.dialect.separator, "text")
            words = [f"{name if self.dialect.columns > 1 else 'text in'} {self.dialect.description}"]
            comments = self._skipped - bool(self.dialect.titles)
            words += [f"after {comments} comment line{'s' if comments > 1 else ''}"] if comments else []
        if self.content.kind in ("text", "JSON lines"):
            words.append(self.content.encoding.description)
        return ", ".join(words + ([f"compressed with {self._file.packing}"] if self._file.packing else []))

    def pieces(self) -> Iterator[TablePiece]:
        """Yield the rows of the table in pieces."""
        kind = self.content.kind
        if self.dialect is not None:
            for block in self.blocks():
                frame, lines = parse_block(self.path, block, self.dialect)
                yield TablePiece(frame, block.line, lines)
        elif kind == "JSON lines":
            yield TablePiece(*read_json_lines(self._file, self._blocks()))
        else:
            yield TablePiece(read_typed(self._file, TYPED[kind]), 0)

    def _blocks(self) -> Iterator[Block]:
        return read_blocks(self._file, self.content.encoding, size=self._block)

    def blocks(self) -> Iterator[Block]:
        """Yield the records of a table of text in blocks of whole records, without first comments and titles."""
        skip = self._skipped
        for block in self._blocks():
            start = 0
            for _ in range(skip):
                start = block.data.index(b"\n", start) + 1
            rest, skip = Block(block.data[start:] if start else block.data, block.line + skip, block.lines - skip), 0
            if rest.data:
                yield rest


def _find_dialect(file: Unpacked, text: str, header: bool | None, titled: bool) -> tuple[Dialect, int]:
    """Return the dialect of a text, and the number of lines before the first row: comments and titles."""
    lines = text.split("\n")
    comments = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith("#")), 0)
    body = "\n".join(lines[comments:])
    found = find_separator(body, NAMED.get(table_suffix(file.path), ())) or ","
    rows = split_records(body, found)
    if not rows:
        raise GraphError(f"{file.path}: the {file.what} contains only comments; write one entry per line")
    header = is_header(rows) if header is None else header
    if header is None and not titled:
        problem = f"{file.path}:{comments + 1}: {found.join(rows[0])!r} may be column titles or the first row;"
        raise GraphError(f"{problem} choose with header=True or header=False (--header yes or --header no)")
    if header is False:
        return Dialect(found, len(rows[0]), ()), comments
    return Dialect(found, len(rows[0]), name_columns(rows[0])), comments + 1 + "".join(rows[0]).count("\n")
