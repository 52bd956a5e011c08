"""Numbers of any kind into float32: what would turn into NaN, infinity or nothing is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from neural_brane.errors import GraphError, KindError
from neural_brane.graph.missing import as_array

KINDS = "biuf"  # booleans, integers and floats


def as_real(values: Any, what: str, expected: str) -> np.ndarray:
    """Return values as an array of real numbers in the machine's byte order; refuse text, complex numbers and masks."""
    array = as_array(values, what)
    try:
        # None becomes NaN, which `to_single` refuses with its place.
        array = array.astype(np.float64) if array.dtype.kind in "OU" else array
    except (TypeError, ValueError) as error:
        kind = KindError if isinstance(error, TypeError) else GraphError
        raise kind(f"{what} cannot be read as numbers ({error}); give {expected}") from error
    if array.dtype.kind not in KINDS:
        raise GraphError(f"{what}: found {array.dtype}, not real numbers; give {expected}")
    return array.astype(plain_type(array.dtype), copy=False)


def plain_type(dtype: np.dtype) -> np.dtype:
    """The type in the machine's byte order, and of a width that SciPy's sparse matrices know."""
    if dtype.kind == "f" and dtype.itemsize not in (4, 8):
        return np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
    return dtype.newbyteorder("=")


def to_single(data: np.ndarray, where: Callable[[int], str]) -> np.ndarray:
    """Return real numbers as float32; `where` says of the one at a place which it is, for the error.

    A number that is not finite is refused, and so is one that would become infinite or zero.
    """
    with np.errstate(over="ignore", under="ignore"):
        single = data.astype(np.float32, copy=False)
    if np.count_nonzero(single) < np.count_nonzero(data):
        at = int(np.flatnonzero((single == 0) & (data != 0))[0])
        raise GraphError(f"{where(at)} is {data[at]}, which is 0 in single precision; multiply all by a large number")
    with np.errstate(over="ignore", invalid="ignore"):
        finite = len(single) == 0 or np.isfinite(single.sum(dtype=np.float64))
    if not finite:
        at = int(np.flatnonzero(~np.isfinite(single))[0])
        if np.isfinite(data[at]):
            raise GraphError(
                f"{where(at)} is {data[at]}, beyond single precision; divide all by a large number to give finite ones"
            )
        raise GraphError(f"{where(at)} is {'NaN' if np.isnan(data[at]) else data[at]}; give finite numbers")
    return single
