"""Names of nodes and attributes: integers or strings in, positions out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.errors import BraneError, GraphError
from neural_brane.forks import check_polars

if TYPE_CHECKING:
    import polars as pl


def as_ids(values: Any, *, what: str = "ids", error: type[BraneError] = GraphError) -> np.ndarray:
    """Turn any list of names into a flat int64 or string array; raise `error` where that cannot be.

    >>> as_ids(["bob", "ann"])
    array(['bob', 'ann'], dtype='<U3')
    """
    array = np.asarray(values)
    if array.dtype == object:
        integers = all(isinstance(value, int | np.integer) for value in array.flat)
        array = array.astype(np.int64 if integers else str)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iuUST":
        raise error(
            f"{what} are an array of {array.dtype} with shape {array.shape}; give a flat list of integers or of strings"
        )
    return array.astype(np.int64 if array.dtype.kind in "iu" else str, copy=False)


def encode(values: np.ndarray | pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct values: return a code per value, and the values in code order.

    Integers are numbered in increasing order, strings by first appearance.
    """
    import polars as pl

    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return _encode_integers(values)
    texts = pl.Series(values, dtype=pl.String)
    # Equal strings share a category, and integers sort far faster than strings do.
    categories = texts.cast(pl.Categorical).to_physical().to_numpy()
    _, first, codes = np.unique(categories, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], texts.gather(first[order]).to_numpy().astype(str)


def _encode_integers(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if high - low > 4 * len(values):
        distinct, codes = np.unique(values, return_inverse=True)
        return codes, distinct
    # Ids close together are numbered by table lookup, which is many times faster than sorting.
    present = np.zeros(high - low + 1, dtype=bool)
    present[values - low] = True
    return (np.cumsum(present) - 1)[values - low], np.flatnonzero(present) + low


def locate(ids: np.ndarray, wanted: np.ndarray | pl.Series) -> np.ndarray:
    """Find the position of each wanted id among ids, which are distinct; -1 where it is not among them.

    An integer matches the string that spells it, so node 7 is found under "7".

    >>> locate(np.array(["a", "b"]), np.array(["b", "z"]))
    array([ 1, -1])
    """
    import polars as pl

    check_polars()
    known, asked = pl.Series("id", ids), pl.Series("id", wanted)
    if known.dtype != asked.dtype:
        known, asked = known.cast(pl.String), asked.cast(pl.String)
    places = pl.DataFrame({"id": known, "place": np.arange(len(known))})
    found = asked.to_frame().join(places, on="id", how="left", maintain_order="left")
    return found["place"].fill_null(-1).to_numpy().astype(np.int64)


def repeated(ids: np.ndarray) -> Any | None:
    """Return an id that occurs twice, or None when all are distinct."""
    if len(ids) < 2 or (ids.dtype.kind == "i" and bool((ids[1:] > ids[:-1]).all())):
        return None
    ordered = np.sort(ids)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    return ordered[twice[0]].item() if len(twice) else None
