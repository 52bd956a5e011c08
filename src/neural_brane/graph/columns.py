"""Normalise the columns of a table of nodes, and infer the kind of each column."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from neural_brane.errors import GraphError, KindError, ParameterError
from neural_brane.graph.ids import MISSING as MISSING_WORDS
from neural_brane.graph.lazy import pl

MISSING = ("", *MISSING_WORDS)
UNKNOWN = ("NA", "N/A", "n/a", "-", "?")  # missing among numbers; among words NA may be Namibia
# More words that are missing among numbers and dates, in any case; the table of columns says so.
NOTED = r"unknown|none|missing|nan?|null|n\.a\.|n/a|-|--|\.|\?|[+-]?inf(?:inity)?|#[a-z0-9/]+[!?]?"
TRUE, FALSE = ("true", "yes", "y", "t", "on", "1"), ("false", "no", "n", "f", "off", "0")
NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"  # \d would match the digits of every script
WHOLE = r"^[+-]?[0-9]+$"
CODE = r"^[+-]?0\d"  # 02139 is a postal code, not a number
LONG = r"^[+-]?[0-9]{16,}$"  # such a number is a code
STAMP = (
    r"^(?P<day>[0-9]{4}-[0-9]{1,2}-[0-9]{1,2})"
    r"(?:[T ](?P<hour>[01]?[0-9]|2[0-3]):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9](?:\.[0-9]+)?))?"
    r"\s?(?:[A-Z]{3,4}|Z|(?P<zone>[+-][0-9]{2}):?(?P<past>[0-9]{2})?)?)?$"
)
DAY = 86400  # seconds
CLOCK = "1970-01-01T"  # times of day become times of this day
LARGEST_WHOLE = 2**53  # float64 represents all integers up to this number


class Notation(NamedTuple):
    """How the texts of a column are written. An encoder keeps it, so that it reads later values by the same rule."""

    pattern: str  # texts that are rewritten
    steps: tuple[tuple[str, str], ...]  # patterns, and what replaces them
    missing: str = "^$"  # words that stand for no value

    def fits(self, texts: pl.Series) -> pl.Series:
        """Return which texts have this notation."""
        fits = texts.str.contains(self.pattern)
        return fits & as_seconds(self.rewrite(texts)).is_not_null() if self.pattern in DATES else fits

    def rewrite(self, texts: pl.Series) -> pl.Series:
        """Return texts with numbers as 1234.5, dates as 2024-02-29, and null for words that mean a missing value."""
        text = short = pl.col("text")
        for pattern, replacement in self.steps:
            short = short.str.replace_all(pattern, replacement)
        text = pl.when(text.str.contains(self.pattern)).then(short).otherwise(text)
        return texts.to_frame("text").select(pl.when(~text.str.contains(self.missing)).then(text)).to_series()


LATEST = 200_000 * 365 * 86_400_000  # milliseconds from 1970; Polars panics when it writes much later dates


def plain(series: pl.Series, notation: Notation | None = None) -> pl.Series | None:
    """Return a column of any source as Boolean, Int64, UInt64, Float64, String, List(String), or None if impossible."""
    kind = series.dtype
    if kind == pl.Duration:
        return _plain_numbers(series.dt.total_microseconds() / 1e6)
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
    if kind == pl.Datetime("ms") and bool((series.to_physical().abs() > LATEST).any()):
        raise KindError(f"column '{series.name}': has a date after the year 200,000; mend it, or leave the column out")
    words = without_missing(series.cast(pl.String).str.strip_chars())
    words = notation.rewrite(words) if notation else words
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
    numbers = series.cast(pl.Float64).replace(dict.fromkeys([np.nan, np.inf, -np.inf]))
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
        return None  # as floats, they would lose digits
    return _plain_numbers(texts.cast(pl.Float64))


def as_texts(values: pl.Series) -> pl.Series:
    """Return plain values as text."""
    return values.cast(pl.String)


def as_numbers(values: pl.Series) -> pl.Series:
    """Return plain values as Float64; text that is not a number becomes null."""
    return values.cast(pl.Float64, strict=False).fill_nan(None)


def as_days(values: pl.Series) -> pl.Series:
    """Return dates as days since 1970, in Float64; values that are not dates become null."""
    days = as_texts(values).str.extract("^([0-9]+-[0-9]+-[0-9]+)").str.to_date("%Y-%m-%d", strict=False)
    return days.cast(pl.Int32).cast(pl.Float64)


def as_seconds(values: pl.Series) -> pl.Series:
    """Return dates with times of day as seconds since 1970 in UTC; values that are not dates become null."""
    parts = as_texts(values).str.extract_groups(STAMP).struct.unnest()
    hour, minute, second, zone, past = (pl.col(name).cast(pl.Float64).fill_null(0) for name in parts.columns[1:])
    clock = parts.select((hour - zone) * 3600 + (minute - zone.sign() * past) * 60 + second).to_series()
    return as_days(parts["day"]) * DAY + clock


def as_flags(values: pl.Series) -> pl.Series:
    """Return plain values as Boolean; values that are neither true nor false become null."""
    if values.dtype == pl.Boolean:
        return values
    words = as_texts(values).str.to_lowercase().to_frame("word")
    true, false = pl.col("word").is_in(list(TRUE)), pl.col("word").is_in(list(FALSE))
    return words.select(pl.when(true).then(True).when(false).then(False)).to_series()


LISTED = "[]"  # separator of lists in JSON
_MEMBER = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([^,'"\[\]]+)""")  # of a list as Python prints it


def split_list(values: pl.Series, separator: str | None) -> pl.Series:
    """Return a list of members per value. Without a separator, a text is one member."""
    if isinstance(values.dtype, pl.List):
        return values
    texts = as_texts(values)
    if separator == LISTED:
        return pl.Series([text if text is None else _members(text) for text in texts], dtype=pl.List(pl.String))
    return texts.str.split(separator) if separator else texts.reshape((-1, 1)).cast(pl.List(pl.String))


def _members(text: str) -> list[str]:
    with suppress(ValueError, RecursionError):
        if isinstance(found := json.loads(text), list):
            return [one if isinstance(one, str) else json.dumps(one) for one in found]
    return [max(groups) for groups in _MEMBER.findall(text)]


ENCODED = ("category", "number", "boolean", "list", "text")  # kinds that become attributes
EXPECTED = (
    "write NAME:KIND or NAME:KIND:OPTION, as in age:number:8 (bins), tags:list:; (separator), bio:text:2 (least nodes "
    f"per word), country:category, member:boolean; kinds are {', '.join(ENCODED)} and ignored"
)
_GIVEN = re.compile(rf"^(?P<name>.+?):(?P<kind>{'|'.join((*ENCODED, 'ignored'))})(?::(?P<option>.+))?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of nodes."""

    name: str
    kind: str = ""  # one of ENCODED, which become attributes, or id, label, ignored or vector
    why: str = ""  # reason for the kind
    option: int | str | None = None  # bins of numbers, separator of a list, or least nodes per word
    missing: int = 0  # rows without a value
    distinct: int = 0  # different values
    examples: tuple[str, ...] = ()  # some values to print; files do not keep them
    notation: Notation | None = None  # how its texts are written, unless plainly; files do not keep it here
    odd: str = ""  # what a person should know about how it is read; files do not keep it


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
# - Words that mean yes and no, or 1 and 0, are boolean.
# - Numbers, and dates such as 2024-02-29, are number, if nine in ten values have the same notation and the others are
#   few different words: those that repeat get an attribute each, others are missing. Numbers are cut into bins; if
#   there are few different numbers, each gets its own bin, so that stars from 1 to 5 become five attributes.
# - Integers of 16 digits or more are codes, which are category.
# - Text in JSON lists, or whose values contain `;` or `|`, or commas between short words that repeat, is list.
# - Lists of floats are vector, which cannot be encoded.
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
AMOUNT = r"^\p{Sc}|^0[0-9]"  # pieces of an amount such as $59,000 are no members of a list
LIST = r"(?s)^\[.*\]$"  # as JSON and Python print a list
VECTOR = r"^\[[\s\[0-9,eE+-]*\.[\s\[\]0-9.,eE+-]*\]$"


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
    kinds = {name: ColumnKind(roles[name]) if name in roles else given.get(name) for name in frame.columns}
    return [_describe(frame[name], kind) for name, kind in kinds.items()]


def odd_columns(columns: Iterable[Column]) -> list[str]:
    """Return what a person should know about how columns are read, a sentence per column; usually nothing."""
    return [f"column '{column.name}' {column.odd}" for column in columns if column.odd]


def _describe(series: pl.Series, given: ColumnKind | None) -> Column:
    """Return a column with its counts and its kind, which is given or else inferred from the values."""
    written = _find_type(series, given)
    values = plain(series, written.notation)
    if values is None or written.kind == "vector":
        return written
    known = values.drop_nulls()
    missing, distinct, first = values.null_count(), known.n_unique(), known.head(50)
    texts = first.list.join("; ") if isinstance(first.dtype, pl.List) else as_texts(first)
    few = texts.unique(maintain_order=True).head(EXAMPLES).to_list()
    examples = tuple(text if len(text) <= EXAMPLE_LENGTH else f"{text[: EXAMPLE_LENGTH - 1]}…" for text in few)
    if given is None:
        column = _judge(known, missing, distinct, written)
    else:
        option = given.option
        if option is None and given.kind == "list" and known.dtype == pl.String:
            separators = [*SEPARATORS] if _share(known, LIST) < NEARLY_ALL else [LISTED]
            option = max(separators, key=lambda separator: known.str.contains(separator, literal=True).sum())
        elif option is None:
            option = {"number": BINS, "text": WORD_NODES}.get(given.kind)
        column = replace(written, kind=given.kind, why="as given", option=option, odd=written.kind and written.odd)
    return replace(column, missing=missing, distinct=distinct, examples=examples, notation=written.notation)


def _find_type(series: pl.Series, given: ColumnKind | None) -> Column:
    """Return a column of vectors, of numbers that are not written plainly, or of no kind yet."""
    name, values = series.name, plain(series)
    vectors = isinstance(series.dtype, pl.List | pl.Array) and "Float" in str(series.dtype)
    texts = pl.Series([], dtype=pl.String) if values is None or values.dtype != pl.String else values.drop_nulls()
    if (vectors or _share(texts, VECTOR) >= NEARLY_ALL) and (given is None or given.kind in ENCODED):
        mend = f"leave it out with --ignore {name} or ignore=['{name}'], or reduce the vectors to categories"
        odd = f"holds vectors of numbers, which attributes cannot hold yet; {mend}"
        return Column(name, "vector", "holds vectors of numbers", odd=odd)
    if values is None:
        return Column(name, "ignored", f"holds {series.dtype}, which cannot be encoded")
    if len(texts) and (given is None or given.kind == "number"):
        return _find_notation(name, texts)
    if series.dtype.is_float() and series.is_infinite().any():
        why = "numbers, with infinite ones as missing"
        return Column(name, "number", why, BINS, odd=f"is read as {why}")
    return Column(name, "number", "durations in seconds", BINS) if series.dtype == pl.Duration else Column(name)


def _judge(known: pl.Series, missing: int, distinct: int, written: Column) -> Column:
    """Return a column of a kind that its values decide, without counts. `written` describes texts that are numbers."""
    name, column = written.name, partial(Column, written.name)
    if len(known) == 0:
        return column("ignored", "no row has a value")
    if isinstance(known.dtype, pl.List):
        return column("list", "holds lists")
    if distinct == 1 and missing == 0:
        return column("ignored", "every row has the same value")
    if _hold_flags(known):
        return column("boolean", "two values, yes and no")
    if known.dtype.is_float() and known.abs().is_between(LARGEST_WHOLE, 1e20).all():
        odd = "holds codes that lost their last digits as floats, and is ignored; store them as text or integers"
        return column("ignored", "long codes that lost digits as floats", odd=odd)
    if not known.dtype.is_float() and _share(as_texts(known), LONG) >= MOSTLY:
        if distinct <= NEARLY_ALL * len(known):
            return column("category", f"{distinct:,} long codes that repeat")
        odd = f"holds long codes and is ignored; give '{name}:number' for bins"
        return column("ignored", "long codes, different in nearly every row", odd=odd)
    if written.kind:
        return written
    if not known.dtype.is_numeric():
        return replace(_judge_texts(name, known, distinct), odd=written.odd)
    own = known.dtype.is_integer() and missing == 0 and distinct == len(known) >= NUMBERED_ROWS
    if own and bool((known.diff().drop_nulls() == 1).all()):
        return column("ignored", "numbers the rows")
    named = name.lower() == "id" or name.lower().endswith(("_id", "-id", " id")) or name.endswith("Id")
    if own and named:
        return column("ignored", "every row has a different id")
    odd = f"is named like an id but read as numbers; give '{name}:category' if they are codes" if named else ""
    why = f"{distinct} different numbers, a bin each" if distinct <= BINS else "all values are numbers"
    return column("number", why, BINS, odd=odd)


def _judge_texts(name: str, known: pl.Series, distinct: int) -> Column:
    column = partial(Column, name)
    if _share(known, LIST) >= NEARLY_ALL:
        return column("list", "lists in JSON", LISTED)
    for separator, share in SEPARATORS.items():
        if _share(known, re.escape(separator)) < share:
            continue
        parts = known.str.split(separator).explode().str.strip_chars()
        parts = parts.filter(parts != "")
        if len(parts) == 0 or _share(parts, r"^[0-9]*\.[0-9]+$") == 1 or _share(parts, AMOUNT) > 0:
            continue
        repeated = parts.n_unique() <= len(parts) * (MOSTLY if separator == "," else NEARLY_ALL)
        if repeated and _words(parts) < PROSE_WORDS:
            return column("list", f"short values between '{separator}'", separator)
    words = _words(known)
    different = distinct / len(known)
    if (different > MOSTLY and words >= PROSE_WORDS) or (words >= LONG_PROSE_WORDS and distinct > BINS):
        return column("text", f"{words:.0f} words in a value, most of them different", WORD_NODES)
    if different > NEARLY_ALL:
        return column("ignored", "nearly every row has a different value")
    return column("category", f"{distinct:,} values that repeat")


def _words(texts: pl.Series) -> float:
    """Return the mean number of words per text."""
    return float(texts.str.count_matches(r"\S+").mean() or 0)  # type: ignore[arg-type]


def _share(texts: pl.Series, pattern: str) -> float:
    """Return the share of texts that contain a pattern."""
    return float(texts.str.contains(pattern).mean() or 0)  # type: ignore[arg-type]


def _hold_flags(known: pl.Series) -> bool:
    """Return whether values mean true and false; spellings may be mixed, but one pair, such as yes and no, is whole."""
    words = set(as_texts(known.unique().head(100)).str.to_lowercase())
    whole = any({*pair} <= words <= {*TRUE, *FALSE} for pair in zip(TRUE, FALSE, strict=True))
    return whole or known.dtype == pl.Boolean or words in ({"yes"}, {"true"})  # the others are missing


NUMBER_LIKE = r"^\P{Nd}{0,5}[0-9][0-9\s.,:/'\u2019+TeE-]*\P{Nd}{0,5}$"
UNIT = r"^([A-Z]{0,2}\p{Sc}|[%‰]|[a-zA-Z°µ]{1,3}[²³]?)$"
MARKS = {r"\.": ("", ",", r"\s", "['\u2019]"), ",": (r"\.", r"\s", "['\u2019]")}  # decimal marks, thousands separators
DATES = {  # patterns, how the text becomes a date such as 2024-02-29, and what it is
    "^[0-9]{4}-": ("", "dates"),
    "^([0-9]{4})[/.]([0-9]{1,2})[/.]([0-9]{1,2})": ("$1-$2-$3", "dates"),
    "^([0-9]{1,2})[-/.]([0-9]{1,2})[-/.]([0-9]{4})": ("$3-$2-$1", "dates, the day first"),
    "^([0-9]{1,2})[-/]([0-9]{1,2})[-/]([0-9]{4})": ("$3-$1-$2", "dates, the month first"),
    r"^([0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)$": (f"{CLOCK}$1", "times of day"),
}


def _find_notation(name: str, words: pl.Series) -> Column:
    """Return a column of numbers with the notation of nearly all its texts, none missing, or a column of no kind."""
    unknown = words.str.contains(rf"(?i)^(?:{NOTED})$")
    known = words.filter(~unknown)
    some = known.gather_every(len(known) // 1000 + 1)  # a few show what most are
    if _share(some, NUMBER_LIKE) < MOSTLY or _share(some, LONG) >= MOSTLY:
        return Column(name)
    tried = [(one.fits(known), what, one) for what, one in _notations(known, some) if one.fits(some).any()]
    fits, what, notation = max(tried, key=lambda one: one[0].sum(), default=(known.is_null(), "", Notation("", ())))
    others = known.filter(~fits)
    codes = notation.pattern not in DATES and _share(known.filter(fits), "^[^0-9.,]*0[0-9]") > 0
    if len(others) > MOSTLY * len(known) or codes:
        return Column(name)
    if fits.sum() < NEARLY_ALL * len(known) or others.n_unique() > BINS:
        few = ", ".join(map(repr, others.unique(maintain_order=True).head(EXAMPLES)))
        return Column(name, odd=f"is not read as {what}, because some values, such as {few}, are not")
    if [one.sum() for one, other, _ in tried if "first" in other] == [fits.sum()] * 2:
        return Column(name, odd="may hold dates with the day or the month first; write dates as 2024-02-29")
    kept = others.filter(others.is_duplicated() & ~others.str.contains("[0-9]")).unique().sort()
    gone = pl.concat([words.filter(unknown & ~words.is_in(UNKNOWN)), others.filter(~others.is_in(kept.implode()))])
    notes = [
        f"{', '.join(map(repr, found.unique(maintain_order=True).head(EXAMPLES)))} as {meaning}"
        for found, meaning in ((gone, "missing"), (kept, "a category"))
        if len(found)
    ]
    why = f"{what}, with {' and '.join(notes)}" if notes else what
    notation = notation._replace(missing=rf"(?i)^(?:{'|'.join([NOTED, *map(re.escape, gone.unique().sort())])})$")
    return Column(name, "number", why, BINS, odd=f"is read as {why}" if notes else "", notation=notation)


def _notations(texts: pl.Series, some: pl.Series) -> Iterator[tuple[str, Notation]]:
    """Yield the notations that texts may have, and what they hold in words."""
    for pattern, (date, what) in DATES.items():
        yield what, Notation(pattern, ((pattern, date),) if date else ())
    unit = str(some.str.replace_all("[0-9][eE][+-]?[0-9]|[0-9\\s.,'\u2019+−-]", "").mode().sort()[0])
    own = re.escape(unit) if _share(pl.Series([unit]), UNIT) else ""
    before = rf"(?:{own}\s{'+' if own[-1:].isalpha() else '*'})?" if own else ""  # A1 is a name
    what = f"numbers in {unit}" if own else "numbers"
    comma, lists = (_share(texts, pattern) > 0 for pattern in (",", ",.*,"))
    for mark, group in ((mark, group) for mark, groups in MARKS.items() for group in groups):
        grouped = group and _share(texts, rf"[0-9]{group}[0-9]") > 0
        if (mark == "," and (lists or not (comma or grouped))) or (mark != "," and group and not grouped):
            continue
        pieces = r"(?:,[0-9]{2,3})*,[0-9]{3}" if group == "," else rf"(?:{group}[0-9]{{3}})+"  # 1,00,000 is a lakh
        whole = rf"(?:[1-9][0-9]{{0,2}}{pieces}|[0-9]+)" if group else "[0-9]+"
        number = rf"(?:{whole}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?"
        pattern = rf"^[+−-]?\s?{before}[+−-]?{number}(?:\s?{own})?$"
        steps = *((one, "") for one in (r"\s", group, own) if one), ("−", "-"), (",", ".")
        marks = [*["thousands separators"] * bool(grouped), *["a decimal comma"] * (mark == "," and comma)]
        yield f"{what} with {' and '.join(marks)}" if marks else what, Notation(pattern, steps)
