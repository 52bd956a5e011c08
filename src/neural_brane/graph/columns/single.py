"""Columns that give a node one attribute at most: a category, a bin of numbers, or a flag."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from neural_brane.graph.columns.column import Column
from neural_brane.graph.columns.values import as_days, as_flags, as_numbers, as_texts, hold_dates
from neural_brane.graph.ids import locate

if TYPE_CHECKING:
    import polars as pl

DIGITS = range(4, 18)  # of the numbers in the names of bins; 17 tell any two float64 apart


class Entries(NamedTuple):
    """What a column gives: rows in order, the attribute of each within its column, and values that have none."""

    rows: np.ndarray  # (entries,) int32, rising
    codes: np.ndarray  # (entries,) int32, rising within a row
    unknown: pl.Series  # values that are not missing and yet have no attribute


def _entries(values: pl.Series, codes: np.ndarray) -> Entries:
    """The entries of one code per row, negative where a row has none."""
    rows = np.flatnonzero(codes >= 0)
    unknown = values.filter((codes < 0) & values.is_not_null().to_numpy())
    return Entries(rows.astype(np.int32), codes[rows].astype(np.int32), unknown)


@dataclass(frozen=True, slots=True)
class Categories:
    """One attribute per value: `country=IN`."""

    values: tuple[str, ...]

    @classmethod
    def fit(cls, values: pl.Series, column: Column) -> Self:
        """Take every value that occurs, in the order of the alphabet."""
        return cls(tuple(as_texts(values).drop_nulls().unique().sort().to_list()))

    def names(self, column: str) -> list[str]:
        """The attributes' names."""
        return [f"{column}={value}" for value in self.values]

    def encode(self, values: pl.Series) -> Entries:
        """The attribute of each row."""
        import polars as pl

        texts = as_texts(values)
        return _entries(texts, locate(pl.Series(self.values, dtype=pl.String), texts))

    def as_dict(self) -> dict[str, Any]:
        """What `from_dict` needs."""
        return {"values": list(self.values)}

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Self:
        """The same again."""
        return cls(tuple(map(str, kept["values"])))


@dataclass(frozen=True, slots=True)
class Bins:
    """Ranges of numbers, or of dates, with about as many nodes each: `age=31..38`, `since=2019-05-01..2020-02-29`.

    A number belongs to the first bin whose edge is not below it, or else to the last; numbers beyond those seen are
    in the first or the last bin.
    """

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

    def names(self, column: str) -> list[str]:
        """The attributes' names."""
        return [f"{column}={each}" for each in self.ranges]

    def encode(self, values: pl.Series) -> Entries:
        """The bin of each row."""
        numbers = as_days(values) if self.dates else as_numbers(values)
        codes = np.searchsorted(self.edges, numbers.fill_null(0).to_numpy(), side="left")
        codes[numbers.is_null().to_numpy() | (not self.ranges)] = -1
        return _entries(values, codes)

    def as_dict(self) -> dict[str, Any]:
        """What `from_dict` needs."""
        return {"edges": list(self.edges), "ranges": list(self.ranges), "dates": self.dates}

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Self:
        """The same again."""
        return cls(tuple(map(float, kept["edges"])), tuple(map(str, kept["ranges"])), bool(kept["dates"]))


def _spell_ranges(lows: np.ndarray, tops: np.ndarray, dates: bool) -> tuple[str, ...]:
    """Write the ranges with as few digits as tell them apart: 31..38, or 4 where both ends are equal."""
    for digits in DIGITS:
        ends = [
            [_spell_day(number) if dates else _spell(number, digits) for number in side.tolist()]
            for side in (lows, tops)
        ]
        ranges = [low if low == top else f"{low}..{top}" for low, top in zip(*ends, strict=True)]
        if len(set(ranges)) == len(ranges) and len({*ends[1]}) == len(tops):
            break
    return tuple(ranges)


def _spell(number: float, digits: int) -> str:
    """A number for people: whole ones in full, others with some digits."""
    return f"{int(number)}" if number.is_integer() and abs(number) < 1e15 else f"{number:.{digits}g}"


def _spell_day(days: float) -> str:
    """A day, given by its number since 1970."""
    return date.fromordinal(date(1970, 1, 1).toordinal() + int(days)).isoformat()


@dataclass(frozen=True, slots=True)
class Flag:
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

    def as_dict(self) -> dict[str, Any]:
        """Nothing is kept."""
        return {}

    @classmethod
    def from_dict(cls, kept: dict[str, Any]) -> Self:
        """The same again."""
        return cls()
