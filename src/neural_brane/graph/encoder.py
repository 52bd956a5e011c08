"""Encode the columns of a table of nodes as attributes: fitted to one table, then the same for every other."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError, ParameterError
from neural_brane.graph.adjacency import compact
from neural_brane.graph.columns import (
    ENCODED,
    MISSING,
    Column,
    as_days,
    as_flags,
    as_numbers,
    as_texts,
    hold_dates,
    plain,
)
from neural_brane.graph.ids import as_ids, locate, repeated
from neural_brane.graph.lazy import pl

# Columns that give a node one attribute at most: a category, a bin of numbers, or a flag.

DIGITS = range(4, 18)  # of the numbers in the names of bins; 17 tell any two float64 apart


class Entries(NamedTuple):
    """The entries of a column: rows in order, the attribute of each within it, and values that have none."""

    rows: np.ndarray  # (entries,) int32, rising
    codes: np.ndarray  # (entries,) int32, rising within a row
    unknown: pl.Series  # values that are not missing and yet have no attribute


def _entries(values: pl.Series, codes: np.ndarray) -> Entries:
    """The entries of one code per row, negative where a row has none."""
    rows = np.flatnonzero(codes >= 0)
    unknown = values.filter((codes < 0) & values.is_not_null().to_numpy())
    return Entries(rows.astype(np.int32), codes[rows].astype(np.int32), unknown)


class Kept:
    """A part of an encoder, learned from one column: it names its attributes, and becomes plain JSON and back."""

    __slots__ = ()
    spelling: ClassVar[tuple[str, str]] = ("=", "values")  # what follows a column's name, and the field that comes then

    def names(self, column: str) -> list[str]:
        """Return the attributes' names."""
        mark, field = self.spelling
        return [f"{column}{mark}{value}" for value in getattr(self, field)]

    def as_dict(self) -> dict[str, Any]:
        """Return what `from_dict` needs."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Self:
        """Make the same again."""
        values = {field.name: kept[field.name] for field in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


@dataclass(frozen=True, slots=True)
class Categories(Kept):
    """One attribute per value: `country=IN`."""

    values: tuple[str, ...]

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """Take every value that occurs, in the order of the alphabet."""
        return cls(tuple(as_texts(values).drop_nulls().unique().sort().to_list()))

    def encode(self, values: pl.Series) -> Entries:
        """The attribute of each row."""
        texts = as_texts(values)
        return _entries(texts, locate(pl.Series(self.values, dtype=pl.String), texts))


@dataclass(frozen=True, slots=True)
class Bins(Kept):
    """Ranges of numbers, or of dates, with about as many nodes each: `age=31..38`, `since=2019-05-01..2020-02-29`.

    A number belongs to the first bin whose edge is not below it, or else to the last; numbers beyond those seen are
    in the first or the last bin.
    """

    spelling: ClassVar[tuple[str, str]] = ("=", "ranges")
    edges: tuple[float, ...]  # the largest number of every bin but the last
    ranges: tuple[str, ...]
    dates: bool = False  # the numbers are days since 1970

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """Cut at quantiles, which are numbers that occur; equal numbers share a bin."""
        dates = hold_dates(values.drop_nulls())
        known = (as_days(values) if dates else as_numbers(values)).drop_nulls()
        found = np.sort(known.filter(known.is_finite()).to_numpy())
        if len(found) == 0:
            return cls((), ())
        bins = int(column.option or 1)
        distinct = np.unique(found)
        if len(distinct) <= bins:
            tops = distinct
        else:
            tops = np.unique(found[np.ceil(len(found) * np.arange(1, bins + 1) / bins).astype(int) - 1])
        lows = distinct[np.concatenate([[0], np.searchsorted(distinct, tops[:-1], side="right")])]
        return cls(tuple(tops[:-1].tolist()), _spell_ranges(lows, tops, dates), dates)

    def encode(self, values: pl.Series) -> Entries:
        """The bin of each row."""
        numbers = as_days(values) if self.dates else as_numbers(values)
        codes = np.searchsorted(self.edges, numbers.fill_null(0).to_numpy(), side="left")
        codes[numbers.is_null().to_numpy() | (not self.ranges)] = -1
        return _entries(values, codes)


def _spell_ranges(lows: np.ndarray, tops: np.ndarray, dates: bool) -> tuple[str, ...]:
    """Write the ranges with as few digits as tell them apart: 31..38, or 4 where both ends are equal."""

    def spell(number: float, digits: int) -> str:
        if dates:
            return date.fromordinal(date(1970, 1, 1).toordinal() + int(number)).isoformat()
        return f"{int(number)}" if number.is_integer() and abs(number) < 1e15 else f"{number:.{digits}g}"

    for digits in DIGITS:
        ends = [[spell(number, digits) for number in side.tolist()] for side in (lows, tops)]
        ranges = [low if low == top else f"{low}..{top}" for low, top in zip(*ends, strict=True)]
        if len(set(ranges)) == len(ranges) and len({*ends[1]}) == len(tops):
            break
    return tuple(ranges)


@dataclass(frozen=True, slots=True)
class Flag(Kept):
    """One attribute, named like the column, of the nodes where it is true."""

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """There is nothing to learn."""
        return cls()

    def names(self, column: str) -> list[str]:
        """The attribute's name."""
        return [column]

    def encode(self, values: pl.Series) -> Entries:
        """The rows that are true."""
        flags = as_flags(values)
        unknown = as_texts(values).filter(flags.is_null() & values.is_not_null())
        rows = np.flatnonzero(flags.fill_null(False).to_numpy())
        return Entries(rows.astype(np.int32), np.zeros(len(rows), np.int32), unknown)


# Columns that give a node several attributes: the members of a list, or the words of a text.
#
# Words are those that scikit-learn's `CountVectorizer` finds (lower case, two letters or more), a node has one or has
# it not, and those that too few or too many nodes have are left out. Polars finds them, many rows at once.

WORD = r"\b\w{2,40}\b"  # longer ones are keys and hashes, not words
LARGEST_SHARE = 0.5  # of the nodes that have text: a word of more of them tells none apart
CODES = 2**32  # more than there are pieces
BLOCK_ROWS = 100_000  # split at a time: the pieces of all rows need far more memory than what is kept of them


@dataclass(frozen=True, slots=True)
class Members(Kept):
    """One attribute per member of a list: `tags=role::program`."""

    separator: str | None  # None where the column holds lists
    values: tuple[str, ...]

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """Take every member that occurs, in the order of the alphabet."""
        part = cls(None if column.option is None else str(column.option), ())
        return cls(part.separator, tuple(_count(part, values)["piece"].to_list()))

    def split(self, values: pl.Series) -> pl.Series:
        """A list of members per row."""
        if isinstance(values.dtype, pl.List):
            return values
        texts = as_texts(values)
        return texts.str.split(self.separator) if self.separator else texts.reshape((-1, 1)).cast(pl.List(pl.String))

    def encode(self, values: pl.Series) -> Entries:
        """The members of each row."""
        return _encode(self, values, self.values)


@dataclass(frozen=True, slots=True)
class Words(Kept):
    """One attribute per word of a text: `description:game`."""

    spelling: ClassVar[tuple[str, str]] = (":", "words")
    words: tuple[str, ...]

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """Take the words that enough nodes have and not too many, in the order of the alphabet."""
        counts = _count(cls(()), values)
        most = LARGEST_SHARE * (len(values) - values.null_count())
        kept = counts.filter((pl.col("nodes") >= int(column.option or 1)) & (pl.col("nodes") <= most))
        return cls(tuple(kept["piece"].to_list()))

    def split(self, values: pl.Series) -> pl.Series:
        """A list of words per row."""
        texts = values.list.join(" ") if isinstance(values.dtype, pl.List) else as_texts(values)
        return texts.str.to_lowercase().str.extract_all(WORD)

    def encode(self, values: pl.Series) -> Entries:
        """The words of each row; other words are nothing to tell of."""
        found = _encode(self, values, self.words)
        return found._replace(unknown=found.unknown.clear())


def _pieces(part: Members | Words, values: pl.Series) -> Iterator[pl.DataFrame]:
    """The pieces of each row, with repeats, as columns `row` and `piece`, for some rows at a time."""
    for start in range(0, len(values), BLOCK_ROWS):
        block = values.slice(start, BLOCK_ROWS)
        rows = pl.Series("row", np.arange(start, start + len(block)))
        lists = pl.DataFrame({"row": rows, "piece": part.split(block)}).filter(pl.col("piece").list.len() > 0)
        pieces = lists.explode("piece").with_columns(pl.col("piece").str.strip_chars())
        yield pieces.filter(~pl.col("piece").is_in(list(MISSING)))


def _distinct(rows: pl.Series, codes: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Rows and codes in order, each pair once. One integer per pair sorts far faster than two columns do."""
    return np.divmod(np.unique((rows.cast(pl.Int64) * CODES + codes.cast(pl.Int64)).to_numpy()), CODES)


def _count(part: Members | Words, values: pl.Series) -> pl.DataFrame:
    """Every piece and the number of rows that have it, in the order of the alphabet."""
    counts = [pl.DataFrame(schema={"piece": pl.String, "nodes": pl.UInt32})]
    for block in _pieces(part, values):
        # Equal strings share a category, and integers are compared faster than strings are.
        coded = block.with_columns(code=block["piece"].cast(pl.Categorical).to_physical())
        _, codes = _distinct(coded["row"], coded["code"])
        nodes = pl.Series("code", codes).cast(coded["code"].dtype).value_counts(name="nodes")
        words = coded.select("code", "piece").unique("code")
        counts.append(words.join(nodes, on="code").select("piece", pl.col("nodes").cast(pl.UInt32)))
    return pl.concat(counts).group_by("piece").agg(pl.col("nodes").sum()).sort("piece")


def _encode(part: Members | Words, values: pl.Series, known: tuple[str, ...]) -> Entries:
    """The codes of the pieces of each row, by their place in `known`."""
    codes = pl.Enum(pl.Series(known, dtype=pl.String))
    unknown = [pl.Series("piece", [], dtype=pl.String)]
    rows, places = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for block in _pieces(part, values):
        coded = block.with_columns(code=block["piece"].cast(codes, strict=False).to_physical())
        unknown.append(coded.filter(pl.col("code").is_null())["piece"])
        coded = coded.drop_nulls("code")
        for kept, found in zip((rows, places), _distinct(coded["row"], coded["code"]), strict=True):
            kept.append(found.astype(np.int32))
    return Entries(np.concatenate(rows), np.concatenate(places), pl.concat(unknown))


# The encoder: fitted to one table of nodes, and then the same for every other.

Missing = Literal["none", "attribute"]
Part = Categories | Bins | Flag | Members | Words
PARTS: dict[str, type[Part]] = {
    "category": Categories,
    "number": Bins,
    "boolean": Flag,
    "list": Members,
    "text": Words,
}
KEPT = ("name", "kind", "why", "option", "missing", "distinct")  # of a column; examples are for the screen alone


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """The rule that makes attributes of the columns of a table of nodes, fixed by the table that it was fitted to.

    New nodes are encoded alike: numbers beyond those seen belong to the first or the last bin, and a category that
    was not seen is left out, with a warning. `as_dict` and `from_dict` keep it as plain JSON.

    Examples
    --------
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
    parts: dict[str, Part]  # how each column that becomes attributes is encoded, in the order of columns
    marked: frozenset[str] = frozenset()  # columns whose missing values are an attribute, as in `age=missing`

    @classmethod
    def fit(cls, frame: pl.DataFrame, columns: Sequence[Column], *, missing: Missing = "none") -> Self:
        """Learn bins, values and words from a table, whose columns `infer_columns` has described."""
        if missing not in ("none", "attribute"):
            raise ParameterError(f"missing is {missing!r}; give 'none', or 'attribute' for attributes like age=missing")
        used = [column for column in columns if column.kind in ENCODED]
        parts = {column.name: PARTS[column.kind].fit(_plain(frame[column.name]), column) for column in used}
        marked = frozenset(column.name for column in used if column.missing and missing == "attribute")
        return cls(tuple(columns), parts, marked)

    def __post_init__(self) -> None:
        if (twice := repeated(self.names)) is not None:
            homes = [column for column in self.parts if twice in self.names_of(column)]
            raise GraphError(
                f"columns {' and '.join(map(repr, homes))} of the nodes both give an attribute '{twice}'; rename a "
                "column, or the value"
            )

    @property
    def names(self) -> np.ndarray:
        """The names of all attributes, in the order of the columns of the matrix."""
        return as_ids([name for column in self.parts for name in self.names_of(column)] or [], what="attribute names")

    def names_of(self, column: str) -> list[str]:
        """The names of the attributes of one column of the table."""
        own = self.parts[column].names(column) if column in self.parts else []
        return [*own, f"{column}=missing"] if column in self.marked else own

    def encode(self, frame: pl.DataFrame) -> tuple[sparse.csr_array, np.ndarray]:
        """The attributes (rows, attributes) of the rows of a table, and their names."""
        absent = [name for name in self.parts if name not in frame.columns]
        if absent:
            raise GraphError(
                f"the table of nodes lacks the column '{absent[0]}', which the encoder was fitted to; "
                f"it has {', '.join(map(repr, frame.columns))}"
            )
        widths = [len(self.names_of(name)) for name in self.parts]
        starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        found = [self._encode_column(name, frame[name], start) for name, start in zip(self.parts, starts, strict=False)]
        rows = np.concatenate([np.empty(0, np.int32), *(rows for rows, _ in found)])
        codes = np.concatenate([np.empty(0, np.int32), *(codes for _, codes in found)])
        del found  # it may be large
        # Each column's entries come in order, and so do the columns: rows of the matrix are sorted.
        entries = sparse.coo_array((np.ones(len(rows), np.float32), (rows, codes)), (len(frame), int(starts[-1])))
        return compact(entries.tocsr()), self.names

    def _encode_column(self, name: str, series: pl.Series, start: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows and the attributes of a column's entries, rising."""
        values, part = _plain(series), self.parts[name]
        entries = part.encode(values)
        if len(unknown := entries.unknown):
            what = {Bins: "are not numbers (or dates, where all others are)", Flag: "are neither true nor false"}.get(
                type(part), "were not seen before"
            )
            examples = ", ".join(repr(value) for value in unknown.head(100).unique(maintain_order=True).head(3))
            warnings.warn(
                f"{len(unknown):,} values of column '{name}' of the nodes {what} and are left out, such as {examples}",
                stacklevel=3,
            )
        rows, codes = entries.rows, entries.codes
        if name in self.marked:
            empty = np.flatnonzero(values.is_null().to_numpy())
            last = np.full(len(empty), len(part.names(name)), np.int32)
            rows, codes = np.concatenate([rows, empty]), np.concatenate([codes, last])
            order = np.argsort(rows, kind="stable")
            rows, codes = rows[order], codes[order]
        return rows, codes + int(start)

    def check_gives(self, names: np.ndarray) -> None:
        """Refuse attributes that this encoder does not give."""
        if not np.array_equal(self.names, names):
            raise GraphError(
                f"the encoder gives {len(self.names):,} attributes, which are not the {len(names):,} of the graph; "
                "encode the table again, or leave the encoder out"
            )

    def as_dict(self) -> dict[str, Any]:
        """All of it but the examples, as JSON holds it."""
        columns = [
            {key: value for key, value in asdict(column).items() if key in KEPT}
            | (self.parts[column.name].as_dict() if column.name in self.parts else {})
            for column in self.columns
        ]
        return {"columns": columns, "marked": sorted(self.marked)}

    @classmethod
    def from_dict(cls, kept: Any) -> Self:
        """The encoder that `as_dict` described."""
        try:
            columns = tuple(Column(**{key: column[key] for key in KEPT}) for column in kept["columns"])
            parts = {
                column["name"]: PARTS[column["kind"]].from_dict(column)
                for column in kept["columns"]
                if column["kind"] in ENCODED
            }
            return cls(columns, parts, frozenset(map(str, kept["marked"])))
        except GraphError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise GraphError(
                f"this is not an encoder of columns ({type(error).__name__}: {error}); give what Encoder.as_dict made"
            ) from None


def _plain(series: pl.Series) -> pl.Series:
    values = plain(series)
    if values is None:
        raise GraphError(f"column '{series.name}' of the nodes holds {series.dtype}; ignore it, or convert it to text")
    return values
