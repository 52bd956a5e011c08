"""Encode the columns of a table of nodes as attributes: fit an encoder to one table, then use it for others."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError, ParameterError, ReadingWarning
from neural_brane.graph import columns as kinds
from neural_brane.graph.adjacency import compact
from neural_brane.graph.columns import CLOCK, DATES, DAY, ENCODED, Column, Notation, as_seconds, as_texts, odd_columns
from neural_brane.graph.ids import as_ids, locate, repeated
from neural_brane.graph.lazy import pl

DIGITS = range(4, 18)  # numbers of digits to try in the names of bins; 17 distinguish all float64
DETAILS = ("D", "m", "s", "ms", "us")  # last digits of times to try: days, minutes, seconds, …


class Entries(NamedTuple):
    """The entries of one column: the row of each, the number of its attribute, and the values without an attribute."""

    rows: np.ndarray  # (entries,) int32, increasing
    codes: np.ndarray  # (entries,) int32, increasing within a row
    unknown: pl.Series  # values that are not missing but have no attribute


def _entries(values: pl.Series, codes: np.ndarray) -> Entries:
    """Return the entries for one code per row, which is negative if the row has no entry."""
    rows = np.flatnonzero(codes >= 0)
    unknown = values.filter((codes < 0) & values.is_not_null().to_numpy())
    return Entries(rows.astype(np.int32), codes[rows].astype(np.int32), unknown)


class ColumnEncoder:
    """The base class of encoders of one column: they name its attributes, and can be saved as JSON."""

    __slots__ = ()
    named_by: ClassVar[tuple[str, str]] = ("=", "values")  # the separator in an attribute's name, and a field

    def names(self, column: str) -> list[str]:
        """Return the attributes' names: the column's name, a separator and a value."""
        separator, field = self.named_by
        return [f"{column}{separator}{value}" for value in getattr(self, field)]

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, for JSON."""
        saved = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in saved.items()}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Return the encoder that `as_dict` described; older versions saved fewer fields."""
        values = {field.name: saved[field.name] for field in fields(cls) if field.name in saved}  # type: ignore[arg-type]
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


@dataclass(frozen=True, slots=True)
class Categories(ColumnEncoder):
    """One attribute per value: `country=IN`."""

    values: tuple[str, ...]

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """Return an encoder of all values that occur, sorted."""
        return cls(tuple(as_texts(values).drop_nulls().unique().sort().to_list()))

    def encode(self, values: pl.Series) -> Entries:
        """Return the entries of a column's values."""
        texts = as_texts(values)
        return _entries(texts, locate(pl.Series(self.values, dtype=pl.String), texts))


@dataclass(frozen=True, slots=True)
class Bins(ColumnEncoder):
    """One attribute per range of numbers or dates, `age=31..38`, with equally many nodes, or per recurring word."""

    named_by: ClassVar[tuple[str, str]] = ("=", "ranges")
    edges: tuple[float, ...]  # the largest number of every bin except the last
    ranges: tuple[str, ...]  # the words come last
    dates: bool = False  # True if the numbers are days since 1970
    times: bool = False  # True if they are seconds since 1970
    notation: Notation | None = None  # how texts are written

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """Return bins that end at quantiles, which are numbers of the column; equal numbers share a bin."""
        dates = column.notation is not None and column.notation.pattern in DATES
        times = dates and bool((as_seconds(values) % DAY != 0).any())
        numbers = cls((), (), dates, times)._numbers(values)
        words = as_texts(values).filter(numbers.is_null() & values.is_not_null()) if column.notation else ()
        found = np.sort(numbers.filter(numbers.is_finite()).to_numpy())
        if len(found) == 0:
            return cls((), ())
        bins = int(column.option or 1)
        distinct = np.unique(found)
        if len(distinct) <= bins:
            tops = distinct
        else:
            tops = np.unique(found[np.ceil(len(found) * np.arange(1, bins + 1) / bins).astype(int) - 1])
        lows = distinct[np.concatenate([[0], np.searchsorted(distinct, tops[:-1], side="right")])]
        ranges = _spell_ranges(lows, tops, (1 if times else DAY) if dates else None)
        return cls(tuple(tops[:-1].tolist()), (*ranges, *sorted(set(words))), dates, times, column.notation)

    def _numbers(self, values: pl.Series) -> pl.Series:
        return as_seconds(values) if self.times else kinds.as_days(values) if self.dates else kinds.as_numbers(values)

    def encode(self, values: pl.Series) -> Entries:
        """Return the entries of a column's values."""
        # A number belongs to the first bin whose edge is not below it, else to the last bin.
        numbers = self._numbers(values)
        codes = np.searchsorted(self.edges, numbers.fill_null(0).to_numpy(), side="left")
        others = np.flatnonzero(numbers.is_null().to_numpy() | (not self.ranges))
        codes[others] = locate(pl.Series(self.ranges, dtype=pl.String), as_texts(values.gather(others)))
        return _entries(values, codes)


def _spell_ranges(lows: np.ndarray, tops: np.ndarray, seconds: int | None) -> tuple[str, ...]:
    """Return ranges of numbers, or of dates in some seconds, as text with the fewest digits that keep them distinct."""
    clock = seconds == 1 and lows[0] >= 0 and tops[-1] < DAY  # times of day, without a date

    def spell(number: float, detail: Any) -> str:
        if seconds:
            date = np.datetime64(round(number * seconds * 1e6), "us")
            return str(np.datetime_as_string(date, unit=detail)).removeprefix(CLOCK if clock else "")
        short = number if number.is_integer() else float(f"{number:.{detail}g}")
        return f"{int(short)}" if short.is_integer() and abs(short) < 1e15 else f"{number:.{detail}g}"

    for detail in DETAILS[int(clock) :] if seconds == 1 else DETAILS[:1] if seconds else DIGITS:
        ends = [[spell(number, detail) for number in side.tolist()] for side in (lows, tops)]
        ranges = [low if low == top else f"{low}..{top}" for low, top in zip(*ends, strict=True)]
        apart = not seconds or all(low != top for low, top in zip(ends[0][1:], ends[1], strict=False))
        if apart and len({*ranges}) == len({*ends[1]}) == len(tops):
            break
    return tuple(ranges)


@dataclass(frozen=True, slots=True)
class Flag(ColumnEncoder):
    """One attribute, with the name of the column, for the nodes whose value is true."""

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """Return an encoder; it depends on no value."""
        return cls()

    def names(self, column: str) -> list[str]:
        """Return the attribute's name."""
        return [column]

    def encode(self, values: pl.Series) -> Entries:
        """Return one entry per row that is true."""
        flags = kinds.as_flags(values)
        unknown = as_texts(values).filter(flags.is_null() & values.is_not_null())
        rows = np.flatnonzero(flags.fill_null(False).to_numpy())
        return Entries(rows.astype(np.int32), np.zeros(len(rows), np.int32), unknown)


# A value may also have several pieces: the members of a list, or the words of a text. Words are in lower case and have
# two letters or more, as in scikit-learn's `CountVectorizer`; words of too few or too many nodes are left out.

WORD = r"\b\w{2,40}\b"  # longer ones are keys and hashes, not words
LARGEST_SHARE = 0.5  # most nodes with text that may have the same word; a more common word distinguishes few nodes
CODES = 2**32  # more than the number of distinct pieces
BLOCK_ROWS = 100_000  # rows split at a time; the pieces of all rows would need too much memory


@dataclass(frozen=True, slots=True)
class Members(ColumnEncoder):
    """One attribute per member of a list: `tags=role::program`."""

    separator: str | None  # None if the column holds lists
    values: tuple[str, ...]

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """Return an encoder of all members that occur, sorted."""
        empty = cls(None if column.option is None else str(column.option), ())
        return cls(empty.separator, tuple(_count(empty, values)["piece"].to_list()))

    def split(self, values: pl.Series) -> pl.Series:
        """Return a list of members per row."""
        return kinds.split_list(values, self.separator)

    def encode(self, values: pl.Series) -> Entries:
        """Return one entry per distinct member of each row."""
        return _encode(self, values, self.values)


@dataclass(frozen=True, slots=True)
class Words(ColumnEncoder):
    """One attribute per word of a text: `description:game`."""

    named_by: ClassVar[tuple[str, str]] = (":", "words")
    words: tuple[str, ...]

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """Return an encoder of the words that enough nodes have, but not too many; sorted."""
        counts = _count(cls(()), values)
        most = LARGEST_SHARE * (len(values) - values.null_count())
        useful = counts.filter((pl.col("nodes") >= int(column.option or 1)) & (pl.col("nodes") <= most))
        return cls(tuple(useful["piece"].to_list()))

    def split(self, values: pl.Series) -> pl.Series:
        """Return a list of words per row."""
        texts = values.list.join(" ") if isinstance(values.dtype, pl.List) else as_texts(values)
        return texts.str.to_lowercase().str.extract_all(WORD)

    def encode(self, values: pl.Series) -> Entries:
        """Return one entry per distinct word of each row; it is no problem if other words are unknown."""
        entries = _encode(self, values, self.words)
        return entries._replace(unknown=entries.unknown.clear())


def _pieces(encoder: Members | Words, values: pl.Series) -> Iterator[pl.DataFrame]:
    """Yield the pieces of each row, with repeats, as columns `row` and `piece`, for a block of rows at a time."""
    for start in range(0, len(values), BLOCK_ROWS):
        block = values.slice(start, BLOCK_ROWS)
        rows = pl.Series("row", np.arange(start, start + len(block)))
        lists = pl.DataFrame({"row": rows, "piece": encoder.split(block)}).filter(pl.col("piece").list.len() > 0)
        pieces = lists.explode("piece").with_columns(pl.col("piece").str.strip_chars())
        yield pieces.filter(~pl.col("piece").is_in(list(kinds.MISSING)))


def _distinct(rows: pl.Series, codes: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct pairs of row and code, sorted. Sorting one integer per pair is faster than two columns."""
    return np.divmod(np.unique((rows.cast(pl.Int64) * CODES + codes.cast(pl.Int64)).to_numpy()), CODES)


def _count(encoder: Members | Words, values: pl.Series) -> pl.DataFrame:
    """Return all pieces, sorted, and the number of rows that have each, as columns `piece` and `nodes`."""
    counts = [pl.DataFrame(schema={"piece": pl.String, "nodes": pl.UInt32})]
    for block in _pieces(encoder, values):
        # Equal strings have the same category, and comparing integers is faster than comparing strings.
        coded = block.with_columns(code=block["piece"].cast(pl.Categorical).to_physical())
        _, codes = _distinct(coded["row"], coded["code"])
        nodes = pl.Series("code", codes).cast(coded["code"].dtype).value_counts(name="nodes")
        words = coded.select("code", "piece").unique("code")
        counts.append(words.join(nodes, on="code").select("piece", pl.col("nodes").cast(pl.UInt32)))
    return pl.concat(counts).group_by("piece").agg(pl.col("nodes").sum()).sort("piece")


def _encode(encoder: Members | Words, values: pl.Series, known: tuple[str, ...]) -> Entries:
    """Return the entries of the pieces of each row; the code of a piece is its position in `known`."""
    kind = pl.Enum(pl.Series(known, dtype=pl.String))
    unknown = [pl.Series("piece", [], dtype=pl.String)]
    rows, codes = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for block in _pieces(encoder, values):
        coded = block.with_columns(code=block["piece"].cast(kind, strict=False).to_physical())
        unknown.append(coded.filter(pl.col("code").is_null())["piece"])
        coded = coded.drop_nulls("code")
        for blocks, numbers in zip((rows, codes), _distinct(coded["row"], coded["code"]), strict=True):
            blocks.append(numbers.astype(np.int32))
    return Entries(np.concatenate(rows), np.concatenate(codes), pl.concat(unknown))


Missing = Literal["none", "attribute"]
AnyEncoder = Categories | Bins | Flag | Members | Words
ENCODERS: dict[str, type[AnyEncoder]] = {
    "category": Categories, "number": Bins, "boolean": Flag, "list": Members, "text": Words,
}  # fmt: skip
SAVED = ("name", "kind", "why", "option", "missing", "distinct")  # fields of a column that files contain


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """The rule that turns the columns of a table of nodes into attributes. It is fitted to one table.

    It encodes new nodes in the same way: numbers outside the known range belong to the first or last bin, and unknown
    categories are left out with a warning. `as_dict` and `from_dict` convert it to plain values for JSON and back.

    >>> import polars as pl
    >>> from neural_brane.graph.columns import infer_columns
    >>> people = pl.DataFrame({"age": [31, 45, 22, 31], "country": ["IN", "FR", None, "IN"]})
    >>> encoder = Encoder.fit(people, infer_columns(people))
    >>> encoder.names.tolist()
    ['age=22', 'age=31', 'age=45', 'country=FR', 'country=IN']
    >>> encoder.encode(pl.DataFrame({"age": [99], "country": ["IN"]}))[0].toarray().tolist()
    [[0.0, 0.0, 1.0, 0.0, 1.0]]
    """

    columns: tuple[Column, ...]  # all columns of the table
    parts: dict[str, AnyEncoder]  # the encoder of each column that becomes attributes, in the order of columns
    marked: frozenset[str] = frozenset()  # columns for which a missing value is an attribute such as `age=missing`

    @classmethod
    def fit(cls, frame: pl.DataFrame, columns: Sequence[Column], *, missing: Missing = "none") -> Self:
        """Return an encoder fitted to a table, whose columns `infer_columns` has described."""
        if missing not in ("none", "attribute"):
            raise ParameterError(f"missing is {missing!r}; give 'none', or 'attribute' for attributes like age=missing")
        if vectors := odd_columns(column for column in columns if column.kind == "vector"):
            raise GraphError(f"nodes: {'; '.join(vectors)}")
        if odd := odd_columns(columns):
            warnings.warn(f"nodes: {'; '.join(odd)}", ReadingWarning, stacklevel=4)
        used = [column for column in columns if column.kind in ENCODED]
        parts = {column.name: ENCODERS[column.kind].fit(_plain(frame[column.name], column), column) for column in used}
        marked = frozenset(column.name for column in used if column.missing and missing == "attribute")
        return cls(tuple(columns), parts, marked)

    def __post_init__(self) -> None:
        if (twice := repeated(self.names)) is not None:
            homes = [column for column in self.parts if twice in self.names_of(column)]
            found = f"columns {' and '.join(map(repr, homes))} of the nodes both give an attribute '{twice}';"
            raise GraphError(f"{found} rename a column or the value")

    @property
    def names(self) -> np.ndarray:
        """The names of all attributes, in the order of the matrix's columns."""
        return as_ids([name for column in self.parts for name in self.names_of(column)] or [], what="attribute names")

    def names_of(self, column: str) -> list[str]:
        """Return the names of the attributes of one column of the table."""
        own = self.parts[column].names(column) if column in self.parts else []
        return [*own, f"{column}=missing"] if column in self.marked else own

    def encode(self, frame: pl.DataFrame) -> tuple[sparse.csr_array, np.ndarray]:
        """Return the attributes of a table's rows (rows, attributes) as float32 CSR, and the attributes' names."""
        absent = [name for name in self.parts if name not in frame.columns]
        if absent:
            advice = f"it has {', '.join(map(repr, frame.columns))}"
            raise GraphError(f"the table of nodes has no column '{absent[0]}', which the encoder needs; {advice}")
        widths = [len(self.names_of(name)) for name in self.parts]
        starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        found = [self._encode_column(name, frame[name], start) for name, start in zip(self.parts, starts, strict=False)]
        rows = np.concatenate([np.empty(0, np.int32), *(rows for rows, _ in found)])
        codes = np.concatenate([np.empty(0, np.int32), *(codes for _, codes in found)])
        del found  # it may be large
        # The entries of each column are in order, and so are the columns; so the rows of the matrix are sorted.
        entries = sparse.coo_array((np.ones(len(rows), np.float32), (rows, codes)), (len(frame), int(starts[-1])))
        return compact(entries.tocsr()), self.names

    def _encode_column(self, name: str, series: pl.Series, start: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and the attributes of a column's entries, both increasing."""
        values, part = _plain(series, self.parts[name]), self.parts[name]
        entries = part.encode(values)
        if len(unknown := entries.unknown):
            what = {Bins: "not numbers or dates as the others are", Flag: "neither true nor false"}.get(
                type(part), "unknown to the encoder"
            )
            examples = ", ".join(repr(value) for value in unknown.head(100).unique(maintain_order=True).head(3))
            found = f"{len(unknown):,} values of column '{name}' of the nodes are left out,"
            warnings.warn(f"{found} because they are {what} (such as {examples})", stacklevel=3)
        rows, codes = entries.rows, entries.codes
        if name in self.marked:
            empty = np.flatnonzero(values.is_null().to_numpy())
            last = np.full(len(empty), len(part.names(name)), np.int32)
            rows, codes = np.concatenate([rows, empty]), np.concatenate([codes, last])
            order = np.argsort(rows, kind="stable")
            rows, codes = rows[order], codes[order]
        return rows, codes + int(start)

    def check_gives(self, names: np.ndarray) -> None:
        """Raise an error if the encoder's attributes have other names than these."""
        if not np.array_equal(self.names, names):
            found = f"the encoder's {len(self.names):,} attributes are not the {len(names):,} attributes of the graph;"
            raise GraphError(f"{found} encode the table again, or leave out the encoder")

    def as_dict(self) -> dict[str, Any]:
        """Return the encoder as plain values, for JSON, without the examples of the columns."""
        columns = [
            {key: value for key, value in asdict(column).items() if key in SAVED}
            | (self.parts[column.name].as_dict() if column.name in self.parts else {})
            for column in self.columns
        ]
        return {"columns": columns, "marked": sorted(self.marked)}

    @classmethod
    def from_dict(cls, saved: Any) -> Self:
        """Return the encoder that `as_dict` described."""
        try:
            columns = tuple(Column(**{key: column[key] for key in SAVED}) for column in saved["columns"])
            parts = {
                column["name"]: ENCODERS[column["kind"]].from_dict(column)
                for column in saved["columns"]
                if column["kind"] in ENCODED
            }
            return cls(columns, parts, frozenset(map(str, saved["marked"])))
        except GraphError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            advice = "give the dict of Encoder.as_dict"
            raise GraphError(f"not a description of an encoder ({type(error).__name__}: {error}); {advice}") from None


def _plain(series: pl.Series, rule: Column | AnyEncoder) -> pl.Series:
    notation = getattr(rule, "notation", None)
    values = kinds.plain(series, notation and Notation(*notation))  # a saved one is a tuple
    if values is None:
        raise GraphError(f"column '{series.name}' of nodes has type {series.dtype}; ignore it or convert it to text")
    return values
