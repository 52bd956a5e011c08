"""Labels of any kind into one string per node, "" where a node has none."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph.ids import as_ids, locate
from neural_brane.graph.missing import as_array, is_missing
from neural_brane.graph.pandas_index import by_index, is_series


def node_labels(labels: Any, ids: np.ndarray) -> np.ndarray | None:
    """Return one string per id, "" where there is none.

    None, NaN, NaT and what an array masks are no labels; those that are not None are counted in a warning. Whole
    numbers that are stored as floats, as beside NaN, are spelled as whole numbers.
    """
    if labels is None:
        return None
    if is_series(labels):
        labels = by_index(labels, ids, "labels").to_numpy(dtype=object)
    elif isinstance(labels, Mapping):
        labels = _in_order(labels, ids)
    hidden = np.ma.getmaskarray(labels) if np.ma.isMaskedArray(labels) else False
    array = as_array(np.ma.getdata(labels) if np.ma.isMaskedArray(labels) else labels, "labels")
    if array.shape != (len(ids),):
        raise GraphError(f"labels have shape {array.shape} for {len(ids)} nodes; give one label per node")
    missing = hidden | _missing(array)
    if told := sum(value is not None for value in array[missing].tolist()) if array.dtype == object else missing.sum():
        warnings.warn(
            f"{told} of the {len(ids)} labels are NaN, NaT or masked: these nodes are taken to have none", stacklevel=2
        )
    words = np.full(len(ids), "", dtype=object)
    words[~missing] = _spell(array[~missing])
    return words.astype(str)


def _in_order(labels: Mapping[Any, Any], ids: np.ndarray) -> list[Any]:
    """The labels of a dict from an id to its label, in the order of the ids."""
    places = locate(ids, as_ids(list(labels)))
    if (places < 0).any():
        stranger = list(labels)[int(np.argmin(places))]
        raise GraphError(f"labels name node {stranger!r}, which the graph lacks; add it to ids or drop it")
    given = dict(zip(places.tolist(), labels.values(), strict=True))
    return [given.get(place) for place in range(len(ids))]


def _missing(array: np.ndarray) -> np.ndarray:
    """Which entries stand for nothing."""
    if array.dtype == object:
        return np.array([is_missing(value) for value in array], dtype=bool)
    return array != array if array.dtype.kind in "fmMc" else np.zeros(len(array), dtype=bool)


def _spell(labels: np.ndarray) -> list[str]:
    """Labels that are all there, as words."""
    if labels.dtype == object and len(labels) and all(isinstance(value, Real) for value in labels):
        labels = np.array([value if isinstance(value, int) else float(value) for value in labels])
    kind = labels.dtype.kind
    if kind == "c" or (kind == "f" and np.isinf(labels).any()):
        raise GraphError(f"labels are {labels.dtype} and hold complex or infinite numbers; give names or whole numbers")
    if kind == "S":
        try:
            return [label.decode() for label in labels.tolist()]
        except UnicodeDecodeError as error:
            raise GraphError(f"labels are bytes that are not UTF-8 ({error}); decode them first") from None
    if kind == "f" and (labels == np.floor(labels)).all():
        return [f"{label:.0f}" for label in labels.tolist()]
    return [str(label) for label in (labels.astype(str) if kind in "mM" else labels).tolist()]
