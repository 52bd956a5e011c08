"""What each column of a table of nodes is, as a person would say who looks at its values.

- Two values that mean yes and no, or 1 and 0: boolean.
- Numbers, and dates such as 2024-02-29: number, cut into bins. Few different ones get a bin each, so that stars from 1
  to 5 are five attributes.
- Text whose values hold `;` or `|`, or commas between short words that come again and again: list.
- Values that are mostly different and have three words or more: text.
- Values that come again: category.
- Nothing, one value in all rows, or another value in nearly every row: ignored, as it tells no nodes apart or all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from neural_brane.errors import GraphError
from neural_brane.graph.columns.column import Column, Kind, read_kinds
from neural_brane.graph.columns.values import FALSE, TRUE, as_texts, hold_dates, plain

if TYPE_CHECKING:
    import polars as pl

BINS = 8
WORD_NODES = 2  # nodes that must have a word
EXAMPLES, EXAMPLE_LENGTH = 3, 24
MOSTLY, NEARLY_ALL = 0.5, 0.9  # shares of values that are different
PROSE_WORDS, LONG_PROSE_WORDS = 3, 8  # words of a value, on average
SEPARATORS = {";": 0.2, "|": 0.2, ",": 0.3}  # and the share of values that hold one, in a list
NUMBERED_ROWS = 10  # fewer numbers that follow one another may be chance


def infer_columns(
    frame: pl.DataFrame,
    *,
    columns: Mapping[str, str] | Iterable[str] | None = None,
    ignore: Collection[str] = (),
    id: str | None = None,
    label: str | None = None,
) -> list[Column]:
    """Say of every column of a table of nodes what it is.

    `columns` says it for some (`{"age": "number:8"}` or `["age:number:8"]`), `ignore` leaves some out, `id` and
    `label` name the columns that hold the nodes' ids and classes.

    Examples
    --------
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
            raise GraphError(f"there is no column '{name}' of nodes; there are {', '.join(map(repr, frame.columns))}")
    for name in (*given, *ignore):
        if name in roles:
            raise GraphError(f"column '{name}' is the {roles[name]} of the nodes and cannot be an attribute as well")
    given |= {name: Kind("ignored") for name in ignore}
    return [_describe(frame[name], Kind(roles[name]) if name in roles else given.get(name)) for name in frame.columns]


def _describe(series: pl.Series, given: Kind | None) -> Column:
    """A column with its counts and what it is: as given, or else by its values."""
    values = plain(series)
    if values is None:
        return Column(series.name, "ignored", f"holds {series.dtype}, which has no kind here")
    known = values.drop_nulls()
    counts = {"missing": values.null_count(), "distinct": known.n_unique(), "examples": _examples(known)}
    if given is not None:
        return Column(series.name, given.kind, "as given", _option(known, given), **counts)  # type: ignore[arg-type]
    kind, why, option = _judge(series.name, known, counts["missing"], counts["distinct"])  # type: ignore[arg-type]
    return Column(series.name, kind, why, option, **counts)  # type: ignore[arg-type]


def _option(known: pl.Series, given: Kind) -> int | str | None:
    """The option that goes with a kind, where none is given."""
    import polars as pl

    if given.option is not None:
        return given.option
    if given.kind == "list" and known.dtype == pl.String:
        counts = {separator: known.str.contains(separator, literal=True).sum() for separator in SEPARATORS}
        return max(counts, key=lambda separator: counts[separator])
    return {"number": BINS, "text": WORD_NODES}.get(given.kind)


def _examples(known: pl.Series) -> tuple[str, ...]:
    """The first different values, cut short."""
    import polars as pl

    first = known.head(50)
    texts = first.list.join("; ") if isinstance(first.dtype, pl.List) else as_texts(first)
    few = texts.unique(maintain_order=True).head(EXAMPLES).to_list()
    return tuple(text if len(text) <= EXAMPLE_LENGTH else f"{text[: EXAMPLE_LENGTH - 1]}…" for text in few)


def _judge(name: str, known: pl.Series, missing: int, distinct: int) -> tuple[str, str, int | str | None]:
    """The kind of a column by its values, why, and the option of that kind."""
    import polars as pl

    if len(known) == 0:
        return "ignored", "no row has a value", None
    if isinstance(known.dtype, pl.List):
        return "list", "holds lists", None
    if distinct == 1 and missing == 0:
        return "ignored", "every row has the same value", None
    if _is_boolean(known, distinct):
        return "boolean", "two values, yes and no", None
    if known.dtype.is_numeric():
        return _judge_numbers(name, known, missing, distinct)
    return _judge_texts(known, distinct)


def _is_boolean(known: pl.Series, distinct: int) -> bool:
    import polars as pl

    if known.dtype == pl.Boolean:
        return True
    if distinct > 2:
        return False
    words = set(as_texts(known).str.to_lowercase().unique().to_list())
    return any(words == {true, false} for true, false in zip(TRUE, FALSE, strict=True))


def _judge_numbers(name: str, known: pl.Series, missing: int, distinct: int) -> tuple[str, str, int | str | None]:
    own = known.dtype.is_integer() and missing == 0 and distinct == len(known) >= NUMBERED_ROWS
    if own and bool((known.diff().drop_nulls() == 1).all()):
        return "ignored", "numbers the rows", None
    if own and (name.lower() == "id" or name.lower().endswith(("_id", "-id", " id")) or name.endswith("Id")):
        return "ignored", "every row has an id of its own", None
    if distinct <= BINS:
        return "number", f"{distinct} different numbers, a bin each", BINS
    return "number", "all values are numbers", BINS


def _judge_texts(known: pl.Series, distinct: int) -> tuple[str, str, int | str | None]:
    if hold_dates(known):
        return "number", "all values are dates", BINS
    for separator, share in SEPARATORS.items():
        if _is_list(known, separator, share):
            return "list", f"short values between '{separator}'", separator
    words = _words(known)
    different = distinct / len(known)
    if (different > MOSTLY and words >= PROSE_WORDS) or (words >= LONG_PROSE_WORDS and distinct > BINS):
        return "text", f"{words:.0f} words in a value, most of them different", WORD_NODES
    if different > NEARLY_ALL:
        return "ignored", "nearly every row has a value of its own", None
    return "category", f"{distinct:,} values that come again", None


def _words(texts: pl.Series) -> float:
    """The number of words of a text, on average."""
    return float(texts.str.count_matches(r"\S+").mean() or 0)  # type: ignore[arg-type]


def _is_list(known: pl.Series, separator: str, share: float) -> bool:
    """Whether enough values hold the separator, and what stands between is short and comes again."""
    if known.str.contains(separator, literal=True).mean() < share:  # type: ignore[operator]
        return False
    parts = known.str.split(separator).explode().str.strip_chars()
    parts = parts.filter(parts != "")
    if len(parts) == 0 or parts.str.contains(r"^[\d.]+$").all():
        return False
    repeated = parts.n_unique() <= len(parts) * (MOSTLY if separator == "," else NEARLY_ALL)
    return repeated and _words(parts) < PROSE_WORDS
