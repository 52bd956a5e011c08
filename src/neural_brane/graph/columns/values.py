"""The values of a column in one form, whichever kind of table they came from.

A CSV file has text alone, a Parquet file has numbers, and pandas turns whole numbers into fractions where one is
missing. `plain` makes all of them the same: booleans, whole numbers where all are whole, other numbers, text or lists
of text, and null for what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural_brane.graph.ids import MISSING as MISSING_WORDS

if TYPE_CHECKING:
    import polars as pl

MISSING = ("", *MISSING_WORDS)
UNKNOWN = ("NA", "N/A", "n/a", "-", "?")  # missing among numbers; a value, such as Namibia, among other words
TRUE, FALSE = ("true", "yes", "y", "t", "on", "1"), ("false", "no", "n", "f", "off", "0")
NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"  # \d would take the digits of every script
WHOLE = r"^[+-]?[0-9]+$"
CODE = r"^[+-]?0\d"  # 02139 is a postal code, not a number
DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"
LARGEST_WHOLE = 2**53  # up to here a float64 holds every whole number


def plain(series: pl.Series) -> pl.Series | None:
    """A column as Boolean, Int64, UInt64, Float64, String or List(String); None where it holds none of these."""
    import polars as pl

    kind = series.dtype
    if kind == pl.Boolean:
        return series
    if kind.is_numeric():
        return _plain_numbers(series)
    if isinstance(kind, pl.List | pl.Array):
        return None if kind.inner.is_nested() else _plain_lists(series)
    if kind == pl.Null or kind.is_temporal() or kind in (pl.String, pl.Categorical, pl.Enum):
        return _plain_texts(series.cast(pl.String))
    return None


def _plain_numbers(series: pl.Series) -> pl.Series:
    import polars as pl

    if series.dtype == pl.UInt64 and series.max() is not None and series.max() > 2**63 - 1:  # type: ignore[operator]
        return series
    if series.dtype.is_integer():
        return series.cast(pl.Int64)
    numbers = series.cast(pl.Float64).fill_nan(None)
    known = numbers.drop_nulls()
    whole = len(known) > 0 and bool((known.abs() < LARGEST_WHOLE).all()) and bool((known == known.floor()).all())
    return numbers.cast(pl.Int64) if whole else numbers


def _plain_lists(series: pl.Series) -> pl.Series:
    """Lists of text, an empty one as missing."""
    import polars as pl

    texts = series.cast(pl.List(pl.String))
    return texts.to_frame("list").select(pl.when(pl.col("list").list.len() > 0).then("list")).to_series()


def _plain_texts(series: pl.Series) -> pl.Series:
    texts = without_missing(series.str.strip_chars())
    known = texts.drop_nulls()
    if len(known) and bool(known.str.to_lowercase().is_in(["true", "false"]).all()):
        return texts.str.to_lowercase() == "true"
    numbers = _numbers_in(texts)
    return texts if numbers is None else numbers


def without_missing(texts: pl.Series, words: tuple[str, ...] = MISSING) -> pl.Series:
    """The same texts, with null for those that say that a value is missing."""
    import polars as pl

    column = texts.to_frame("text")
    return column.select(pl.when(~pl.col("text").is_in(list(words))).then("text")).to_series()


def _numbers_in(texts: pl.Series) -> pl.Series | None:
    """The numbers that texts spell, if all of them spell one and none is a code with leading zeros."""
    import polars as pl

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
    """Plain values as text: true and false, 3 for 3.0, anything else as it is."""
    import polars as pl

    return values.cast(pl.String)


def as_numbers(values: pl.Series) -> pl.Series:
    """Plain values as Float64; null also where a text is not a number."""
    import polars as pl

    return values.cast(pl.Float64, strict=False).fill_nan(None)


def hold_dates(known: pl.Series) -> bool:
    """Whether plain values, none of them missing, are dates such as 2024-02-29, with or without a time of day."""
    import polars as pl

    if known.dtype != pl.String or len(known) == 0 or not known.str.contains(DATE).all():
        return False
    return as_days(known).null_count() == 0


def as_days(values: pl.Series) -> pl.Series:
    """Dates as days since 1970, in Float64; null where a value is no date."""
    import polars as pl

    days = as_texts(values).str.slice(0, 10).str.to_date("%Y-%m-%d", strict=False)
    return days.cast(pl.Int32).cast(pl.Float64)


def as_flags(values: pl.Series) -> pl.Series:
    """Plain values as Boolean; null also where one is neither true nor false."""
    import polars as pl

    if values.dtype == pl.Boolean:
        return values
    words = as_texts(values).str.to_lowercase().to_frame("word")
    true, false = pl.col("word").is_in(list(TRUE)), pl.col("word").is_in(list(FALSE))
    return words.select(pl.when(true).then(True).when(false).then(False)).to_series()
