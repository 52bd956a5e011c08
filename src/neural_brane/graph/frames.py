"""Data frames of pandas, polars and Arrow, all as polars data frames of the same values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph.edge_columns import Place, edge_columns

if TYPE_CHECKING:
    import polars as pl

EDGES = Place("edges")
EXPECTED = "give a DataFrame of pandas or polars, or an Arrow table"


class Frame(NamedTuple):
    """A table as a polars data frame; `index_name` is its column that was the index of a pandas DataFrame."""

    table: pl.DataFrame
    index_name: str | None = None


def as_frame(given: Any, what: str) -> Frame:
    """Turn a data frame of any library into one of polars; `what` names it in messages.

    A pandas index that was set becomes a column; the one that only counts the rows does not. pandas and pyarrow are
    not imported: whoever gives a frame of theirs has them.
    """
    import polars as pl

    if isinstance(given, pl.DataFrame):
        return Frame(given)
    if isinstance(given, pl.LazyFrame):
        return Frame(given.collect())
    if type(given).__module__.split(".")[0] == "pandas" and hasattr(given, "columns"):
        return _from_pandas(given, what)
    if hasattr(given, "__arrow_c_stream__"):
        return Frame(pl.DataFrame(given))
    raise GraphError(f"{what} are {type(given).__name__}, which is not a table; {EXPECTED}")


def _from_pandas(given: Any, what: str) -> Frame:
    import polars as pl

    index = None
    names = [str(name) for name in given.columns]
    counted = type(given.index).__name__ == "RangeIndex" and given.index.name is None
    if not counted:
        index = str(given.index.names[0] if given.index.names[0] is not None else "index")
        given = given.reset_index(names=[str(name if name is not None else "index") for name in given.index.names])
        names = [str(name) for name in given.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise GraphError(f"{what} have two columns '{twice}'; rename one (an index that was set counts as a column)")
    return Frame(pl.DataFrame([_series(name, given.iloc[:, at]) for at, name in enumerate(names)]), index)


def _series(name: str, column: Any) -> pl.Series:
    """A pandas column of any kind as a polars series, null where it is missing."""
    import polars as pl

    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufM":
        return pl.Series(name, column.to_numpy())
    return series_of(name, column.astype(object).where(column.notna(), None).tolist())


def series_of(name: str, values: list[Any]) -> pl.Series:
    """Values of any kind, None where one is missing, as a polars series of numbers, truths, text or lists of text."""
    import polars as pl

    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {list, tuple, set, frozenset, np.ndarray}:
        return pl.Series(name, [value if value is None else [str(one) for one in value] for value in values])
    alike = any(kinds <= one for one in ({str}, {bool, np.bool_}, {int, np.int64}, {int, float}))
    return pl.Series(name, values if alike else [value if value is None else str(value) for value in values])


def frame_edges(
    edges: Any,
    place: Place = EDGES,
    *,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ends (2, edges) of a table's edges as positions among ids, their weights, and the ids."""
    found = edge_columns(
        as_frame(edges, place.where).table,
        source=source,
        target=target,
        weight=weight,
        where=place.where,
        first_line=place.first_line,
        lines=place.lines,
    )
    ends, ids = found.number()
    weights = np.ones(len(ends), np.float32) if found.weights is None else found.weights
    return ends.T, weights, ids
