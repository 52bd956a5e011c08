"""What is to be predicted of each node: a class, several labels or a number; read off the labels if nobody says it.

- Several: a node has several lines, a column holds lists, or short values stand between `;`, `|` or commas, as a table
  of nodes would take them for a list.
- Numbers: all labels are numbers, some have a fraction, and there are more than `MANY` different ones.
- Classes: anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph.columns.infer import SEPARATORS, infer_columns
from neural_brane.graph.columns.values import as_numbers, as_texts, plain
from neural_brane.graph.multilabels import MultiLabels

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["class", "several", "number"]
Targets = np.ndarray | MultiLabels
MANY = 20  # different numbers with fractions are no classes


class LabelLines(NamedTuple):
    """Labels as they were read: a node may have several lines."""

    where: str  # a file's name, for messages
    ids: np.ndarray  # (lines,)
    values: pl.Series  # of a kind that `plain` gives, none of them missing


def kind_of(lines: LabelLines) -> Kind:
    """What the labels are, as a person would say who looks at them.

    >>> import polars as pl
    >>> kind_of(LabelLines("tags.txt", np.array([1, 1, 2]), pl.Series(["net", "text", "net"])))
    'several'
    """
    if len(np.unique(lines.ids)) < len(lines.ids):
        return "several"
    if lines.values.dtype.is_float() and lines.values.n_unique() > MANY:
        return "number"
    return "class" if _separator(lines.values) is None else "several"


def _separator(values: pl.Series) -> str | None:
    """What stands between several labels; "" where they are lists, None where there is one label alone."""
    (column,) = infer_columns(values.alias("label").to_frame())
    if column.kind != "list":
        return None
    return "" if column.option is None else str(column.option)


def to_targets(lines: LabelLines, kind: Kind, separator: str | None = None) -> tuple[np.ndarray, Targets]:
    """Each node once, and what is to be predicted of it: classes (str), numbers (float64) or `MultiLabels`.

    separator: between several labels of a line.
    """
    ids, first, rows = np.unique(lines.ids, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # nodes stay in the order of the file
    if kind == "several":
        place = np.empty(len(ids), dtype=np.int64)
        place[order] = np.arange(len(ids))
        at, pieces = _split(lines, separator, repeated=len(ids) < len(rows))
        return ids[order], MultiLabels.of_pairs(place[rows][at], pieces, len(ids))
    if len(ids) < len(rows):
        twice = ids[np.argmax(np.bincount(rows) > 1)]
        raise GraphError(f"{lines.where}: node {twice.item()!r} has several labels; score several labels (multilabel)")
    return lines.ids, _numbers(lines) if kind == "number" else as_texts(_unlisted(lines)).to_numpy().astype(str)


def _unlisted(lines: LabelLines) -> pl.Series:
    import polars as pl

    if isinstance(lines.values.dtype, pl.List):
        raise GraphError(f"{lines.where}: the labels are lists; score several labels (multilabel)")
    return lines.values


def _numbers(lines: LabelLines) -> np.ndarray:
    """The labels as numbers."""
    numbers = as_numbers(_unlisted(lines))
    if numbers.null_count():
        at = int(numbers.is_null().arg_max() or 0)
        raise GraphError(
            f"{lines.where}: the label {lines.values[at]!r} of node {lines.ids[at].item()!r} is not a number; "
            "give numbers alone, or score classes"
        )
    return numbers.to_numpy().astype(np.float64)


def _split(lines: LabelLines, separator: str | None, *, repeated: bool) -> tuple[np.ndarray, np.ndarray]:
    """The line of each label, and the labels.

    Without a separator, it is the one that lists of a table would have; or a semicolon, bar, comma or tab that occurs
    anywhere; or, where no node has several lines, spaces.
    """
    import polars as pl

    values = lines.values
    if not isinstance(values.dtype, pl.List):
        texts = as_texts(values)
        between = separator or _separator(values) or _occurring(texts) or (None if repeated else " ")
        values = texts.str.split(between) if between else texts.to_frame().select(pl.concat_list(pl.all())).to_series()
    table = pl.DataFrame({"line": np.arange(len(values)), "label": values}).explode("label")
    table = table.with_columns(pl.col("label").cast(pl.String).str.strip_chars()).filter(pl.col("label") != "")
    if not len(table):
        raise GraphError(f"{lines.where}: no line has a label")
    return table["line"].to_numpy(), table["label"].to_numpy().astype(str)


def _occurring(texts: pl.Series) -> str | None:
    found = (mark for mark in (*SEPARATORS, "\t") if texts.str.contains(mark, literal=True).any())
    return next(found, None)


def plain_lines(where: str, ids: np.ndarray, values: pl.Series) -> LabelLines:
    """The lines that have a label, their values in one form."""
    found = plain(values)
    if found is None:
        raise GraphError(f"{where}: the labels hold {values.dtype}; give text, numbers or lists of text")
    known = found.is_not_null()
    return LabelLines(where, ids[known.to_numpy()], found.filter(known))


def as_series(labels: np.ndarray) -> pl.Series:
    """Labels that are words as a column."""
    import polars as pl

    return pl.Series("label", labels.tolist(), dtype=pl.String)
