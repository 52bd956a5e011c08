"""Normalise the columns of a table of nodes, and infer the kind of each column."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from neural_brane.errors import GraphError, ParameterError
from neural_brane.graph.ids import MISSING as MISSING_WORDS
from neural_brane.graph.lazy import pl

MISSING = ("", *MISSING_WORDS)
UNKNOWN = ("NA", "N/A", "n/a", "-", "?")  # missing among numbers; among words NA may be Namibia
TRUE, FALSE = ("true", "yes", "y", "t", "on", "1"), ("false", "no", "n", "f", "off", "0")
NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"  # \d would match the digits of every script
WHOLE = r"^[+-]?[0-9]+$"
CODE = r"^[+-]?0\d"  # 02139 is a postal code, not a number
DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"
LARGEST_WHOLE = 2**53  # float64 represents all integers up to this number


def plain(series: pl.Series) -> pl.Series | None:
    """Return a column as Boolean, Int64, UInt64, Float64, String or List(String), or None if that is impossible.

    The same table gives the same result from a CSV file, which holds only text, from a Parquet file, and from pandas,
    which converts integers with missing values to floats.
    """
    kind = series.dtype
    if kind == pl.Boolean:
        return series
    if kind.is_numeric():
        return _plain_numbers(series)
    if isinstance(kind, pl.List | pl.Array):
        if kind.inner.is_nested():
            return None
        texts = series.cast(pl.List(pl.String)).to_frame("list")  # empty lists count as missing
        return texts.select(pl.when(pl.col("list").list.len() > 0).then("list")).to_series()
    if not (kind == pl.Null or kind.is_temporal() or kind in (pl.String, pl.Categorical, pl.Enum)):
        return None
    words = without_missing(series.cast(pl.String).str.strip_chars())
    known = words.drop_nulls()
    if len(known) and bool(known.str.to_lowercase().is_in(["true", "false"]).all()):
        return words.str.to_lowercase() == "true"
    numbers = _numbers_in(words)
    return words if numbers is None else numbers


def _plain_numbers(series: pl.Series) -> pl.Series:
    if series.dtype == pl.UInt64 and series.max() is not None and series.max() > 2**63 - 1:  # type: ignore[operator]
        return series
    if series.dtype.is_integer():
        return series.cast(pl.Int64)
    numbers = series.cast(pl.Float64).fill_nan(None)
    known = numbers.drop_nulls()
    whole = len(known) > 0 and bool((known.abs() < LARGEST_WHOLE).all()) and bool((known == known.floor()).all())
    return numbers.cast(pl.Int64) if whole else numbers


def without_missing(texts: pl.Series, words: tuple[str, ...] = MISSING) -> pl.Series:
    """Return texts with null for words that mean a missing value."""
    column = texts.to_frame("text")
    return column.select(pl.when(~pl.col("text").is_in(list(words))).then("text")).to_series()


def _numbers_in(texts: pl.Series) -> pl.Series | None:
    """Return texts as numbers, or None if a text is not a number or has leading zeros."""
    texts = without_missing(texts, UNKNOWN)
    known = texts.drop_nulls()
    if len(known) == 0 or not known.str.contains(NUMBER).all() or known.str.contains(CODE).any():
        return None
    if known.str.contains(WHOLE).all():
        for kind in (pl.Int64, pl.UInt64):
            whole = texts.cast(kind, strict=False)
            if whole.null_count() == texts.null_count():
                return whole
    return _plain_numbers(texts.cast(pl.Float64))


def as_texts(values: pl.Series) -> pl.Series:
    """Return plain values as text."""
    return values.cast(pl.String)


def as_numbers(values: pl.Series) -> pl.Series:
    """Return plain values as Float64; text that is not a number becomes null."""
    return values.cast(pl.Float64, strict=False).fill_nan(None)


def hold_dates(known: pl.Series) -> bool:
    """Return whether plain values, none missing, are dates such as 2024-02-29, with or without a time of day."""
    if known.dtype != pl.String or len(known) == 0 or not known.str.contains(DATE).all():
        return False
    return as_days(known).null_count() == 0


def as_days(values: pl.Series) -> pl.Series:
    """Return dates as days since 1970, in Float64; values that are not dates become null."""
    days = as_texts(values).str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    return days.cast(pl.Int32).cast(pl.Float64)


def as_flags(values: pl.Series) -> pl.Series:
    """Return plain values as Boolean; values that are neither true nor false become null."""
    if values.dtype == pl.Boolean:
        return values
    words = as_texts(values).str.to_lowercase().to_frame("word")
    true, false = pl.col("word").is_in(list(TRUE)), pl.col("word").is_in(list(FALSE))
    return words.select(pl.when(true).then(True).when(false).then(False)).to_series()


ENCODED = ("category", "number", "boolean", "list", "text")  # kinds that become attributes
KINDS = (*ENCODED, "id", "label", "ignored")
EXPECTED = (
    "write NAME:KIND or NAME:KIND:OPTION, as in age:number:8 (bins), tags:list:; (separator), bio:text:2 (least nodes "
    f"per word), country:category, member:boolean; kinds are {', '.join(ENCODED)} and ignored"
)
_GIVEN = re.compile(rf"^(?P<name>.+?):(?P<kind>{'|'.join((*ENCODED, 'ignored'))})(?::(?P<option>.+))?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of nodes."""

    name: str
    kind: str  # one of KINDS; only the kinds in ENCODED become attributes
    why: str  # reason for the kind
    option: int | str | None = None  # bins of numbers, separator of a list, or least nodes per word
    missing: int = 0  # rows without a value
    distinct: int = 0  # different values
    examples: tuple[str, ...] = ()  # some values to print; files do not keep them


class ColumnKind(NamedTuple):
    """The kind of a column and its option, as the user gave them."""

    kind: str
    option: int | str | None = None


def read_kinds(given: Mapping[str, str] | Iterable[str] | None) -> dict[str, ColumnKind]:
    """Return the kind of each column, given as a dict from name to kind or a list of `NAME:KIND:OPTION`.

    >>> read_kinds(["age:number:4", "tags:list:;"])
    {'age': ColumnKind(kind='number', option=4), 'tags': ColumnKind(kind='list', option=';')}
    >>> read_kinds({"age": "number"})
    {'age': ColumnKind(kind='number', option=None)}
    """
    if isinstance(given, Mapping):
        given = [f"{name}:{kind}" for name, kind in given.items()]
    kinds: dict[str, ColumnKind] = {}
    for text in [given] if isinstance(given, str) else given or ():
        match = _GIVEN.match(text)
        if match is None:
            raise ParameterError(f"column {text!r} is not valid; {EXPECTED}")
        name, kind, option = match["name"], match["kind"], match["option"]
        if name in kinds:
            raise ParameterError(f"column '{name}' is given twice, as {kinds[name].kind} and as {kind}; leave one out")
        if option is not None and kind in ("number", "text"):
            if not option.isdecimal() or int(option) < 1:
                raise ParameterError(f"column {text!r}: {option!r} is not a whole number above 0; {EXPECTED}")
            option = int(option)
        elif option is not None and kind != "list":
            raise ParameterError(f"column {text!r}: {kind} takes no option; write {text.rpartition(':')[0]}")
        kinds[name] = ColumnKind(kind, option)
    return kinds


# The values of a column decide its kind:
# - Two values that mean yes and no, or 1 and 0, are boolean.
# - Numbers, and dates such as 2024-02-29, are number. They are cut into bins; if there are few different numbers, each
#   gets its own bin, so that stars from 1 to 5 become five attributes.
# - Text whose values contain `;` or `|`, or commas between short words that repeat, is list.
# - Values that are mostly different and have three words or more are text.
# - Values that repeat are category.
# - A column is ignored if it is empty, has one value in all rows, or has a different value in nearly every row.

BINS = 8
WORD_NODES = 2  # least number of nodes per word
EXAMPLES, EXAMPLE_LENGTH = 3, 24
MOSTLY, NEARLY_ALL = 0.5, 0.9  # shares of distinct values
PROSE_WORDS, LONG_PROSE_WORDS = 3, 8  # mean number of words per value
SEPARATORS = {";": 0.2, "|": 0.2, ",": 0.3}  # least share of values that contain the separator, for a list
NUMBERED_ROWS = 10  # fewer consecutive numbers may be a coincidence


def infer_columns(
    frame: pl.DataFrame,
    *,
    columns: Mapping[str, str] | Iterable[str] | None = None,
    ignore: Collection[str] = (),
    id: str | None = None,
    label: str | None = None,
) -> list[Column]:
    """Return a description of every column of a table of nodes, with its kind.

    `columns` gives the kinds of some columns (`{"age": "number:8"}` or `["age:number:8"]`), `ignore` names columns to
    ignore, and `id` and `label` name the columns of the nodes' ids and labels.

    >>> import polars as pl
    >>> people = pl.DataFrame({"age": [31, 45, 22, 31], "country": ["IN", "FR", None, "IN"]})
    >>> [(column.name, column.kind) for column in infer_columns(people)]
    [('age', 'number'), ('country', 'category')]
    """
    ignore = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    given = read_kinds(columns)
    roles = {name: role for name, role in ((id, "id"), (label, "label")) if name is not None}
    for name in (*roles, *given, *ignore):
        if name not in frame.columns:
            raise GraphError(f"the nodes have no column '{name}'; give one of {', '.join(map(repr, frame.columns))}")
    for name in (*given, *ignore):
        if name in roles:
            raise GraphError(f"column '{name}' is the {roles[name]} of the nodes, so it cannot be an attribute too")
    given |= {name: ColumnKind("ignored") for name in ignore}
    return [
        _describe(frame[name], ColumnKind(roles[name]) if name in roles else given.get(name)) for name in frame.columns
    ]


def _describe(series: pl.Series, given: ColumnKind | None) -> Column:
    """Return a column with its counts and its kind, which is given or else inferred from the values."""
    values = plain(series)
    if values is None:
        return Column(series.name, "ignored", f"holds {series.dtype}, which cannot be encoded")
    known = values.drop_nulls()
    missing, distinct, first = values.null_count(), known.n_unique(), known.head(50)
    texts = first.list.join("; ") if isinstance(first.dtype, pl.List) else as_texts(first)
    few = texts.unique(maintain_order=True).head(EXAMPLES).to_list()
    examples = tuple(text if len(text) <= EXAMPLE_LENGTH else f"{text[: EXAMPLE_LENGTH - 1]}…" for text in few)
    if given is None:
        kind, why, option = _judge(series.name, known, missing, distinct)
    else:
        kind, why, option = given.kind, "as given", given.option
        if option is None and kind == "list" and known.dtype == pl.String:
            option = max(SEPARATORS, key=lambda separator: known.str.contains(separator, literal=True).sum())
        elif option is None:
            option = {"number": BINS, "text": WORD_NODES}.get(kind)
    return Column(series.name, kind, why, option, missing, distinct, examples)


def _judge(name: str, known: pl.Series, missing: int, distinct: int) -> tuple[str, str, int | str | None]:
    """Return the kind of a column by its values, the reason, and the option."""
    if len(known) == 0:
        return "ignored", "no row has a value", None
    if isinstance(known.dtype, pl.List):
        return "list", "holds lists", None
    if distinct == 1 and missing == 0:
        return "ignored", "every row has the same value", None
    words = set(as_texts(known).str.to_lowercase().unique()) if distinct <= 2 else set()
    if known.dtype == pl.Boolean or any(words == {true, false} for true, false in zip(TRUE, FALSE, strict=True)):
        return "boolean", "two values, yes and no", None
    if not known.dtype.is_numeric():
        return _judge_texts(known, distinct)
    own = known.dtype.is_integer() and missing == 0 and distinct == len(known) >= NUMBERED_ROWS
    if own and bool((known.diff().drop_nulls() == 1).all()):
        return "ignored", "numbers the rows", None
    if own and (name.lower() == "id" or name.lower().endswith(("_id", "-id", " id")) or name.endswith("Id")):
        return "ignored", "every row has a different id", None
    return "number", f"{distinct} different numbers, a bin each" if distinct <= BINS else "all values are numbers", BINS


def _judge_texts(known: pl.Series, distinct: int) -> tuple[str, str, int | str | None]:
    if hold_dates(known):
        return "number", "all values are dates", BINS
    for separator, share in SEPARATORS.items():
        if known.str.contains(separator, literal=True).mean() < share:  # type: ignore[operator]
            continue
        parts = known.str.split(separator).explode().str.strip_chars()
        parts = parts.filter(parts != "")
        if len(parts) == 0 or parts.str.contains(r"^[\d.]+$").all():
            continue
        repeated = parts.n_unique() <= len(parts) * (MOSTLY if separator == "," else NEARLY_ALL)
        if repeated and _words(parts) < PROSE_WORDS:
            return "list", f"short values between '{separator}'", separator
    words = _words(known)
    different = distinct / len(known)
    if (different > MOSTLY and words >= PROSE_WORDS) or (words >= LONG_PROSE_WORDS and distinct > BINS):
        return "text", f"{words:.0f} words in a value, most of them different", WORD_NODES
    if different > NEARLY_ALL:
        return "ignored", "nearly every row has a different value", None
    return "category", f"{distinct:,} values that repeat", None


def _words(texts: pl.Series) -> float:
    """Return the mean number of words per text."""
    return float(texts.str.count_matches(r"\S+").mean() or 0)  # type: ignore[arg-type]
