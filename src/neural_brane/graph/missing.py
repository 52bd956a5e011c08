"""What counts as missing in arrays and objects: None, NaN, NaT, NA and what an array's mask hides."""

from __future__ import annotations

from typing import Any

import numpy as np

from neural_brane.errors import BraneError, GraphError


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for nothing: None, NaN of any kind, NaT or pandas' NA.

    >>> is_missing(float("nan")), is_missing(np.datetime64("NaT")), is_missing("nan"), is_missing(0)
    (True, True, False, False)
    """
    if value is None or type(value).__name__ == "NAType":
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # an array, which is no single value
        return False


def as_array(
    values: Any, what: str, error: type[BraneError] = GraphError, expected: str = "a list or an array of one kind"
) -> np.ndarray:
    """Return values as an array whose entries are those given; refuse what a mask hides.

    NumPy makes one kind of several where a list mixes them: `["a", nan]` would become the strings "a" and "nan",
    `[2**63, -1]` floats, and True beside a 1 another 1. Here such a list becomes an array of objects.
    """
    if np.ma.isMaskedArray(values):
        if hidden := int(np.ma.count_masked(values)):
            raise error(f"{what}: {hidden} entries are masked; fill them, as with array.filled(...), or drop them")
        values = values.data
    try:
        array = np.asarray(values)
        if array.dtype.kind in "Ufiu" and isinstance(values, list | tuple):
            objects = np.array(values, dtype=object)
            mixed = array.dtype.kind in "Uf" or not {bool, np.bool_}.isdisjoint(map(type, objects.flat))
            array = objects if mixed else array
    except (TypeError, ValueError, OverflowError) as problem:
        raise error(f"{what} cannot be made a plain array ({problem}); give {expected}") from problem
    return array.astype(object) if array.dtype.kind == "T" else array
