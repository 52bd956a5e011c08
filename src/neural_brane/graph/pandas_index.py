"""pandas frames and series: rows are found by their index, never by their place. pandas itself is not imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph.ids import as_ids, locate


def package_of(value: Any) -> str:
    """The package that an object's class comes from.

    >>> package_of(np.ones(2))
    'numpy'
    """
    return type(value).__module__.partition(".")[0]


def is_frame(value: Any) -> bool:
    """Tell whether a value is a pandas DataFrame."""
    return package_of(value) == "pandas" and hasattr(value, "columns")


def is_series(value: Any) -> bool:
    """Tell whether a value is a pandas Series."""
    return package_of(value) == "pandas" and hasattr(value, "index") and not hasattr(value, "columns")


def by_index(rows: Any, ids: np.ndarray, what: str) -> Any:
    """The rows of a DataFrame or Series in the order of the ids that its index names; every id must have one."""
    index = as_ids(rows.index, what=f"the index of {what}")
    places = locate(ids, index)
    order = np.full(len(ids), -1)
    order[places[places >= 0]] = np.flatnonzero(places >= 0)
    if len(index) != len(ids) or (order < 0).any():
        lacking = ids[order < 0]
        found = f"node {lacking[0].item()!r} has no row" if len(lacking) else "some node has several rows, or none here"
        raise GraphError(
            f"{what} are a pandas {type(rows).__name__} of {len(index)} rows, joined to the {len(ids)} nodes by its "
            f"index: {found}; set its index to the nodes' ids, or give {what}.to_numpy() to go by position"
        )
    return rows.iloc[order]


def adjacency_frame(frame: Any) -> tuple[np.ndarray, np.ndarray]:
    """The weights of an adjacency whose index and columns name the same nodes, and these; columns in any order."""
    ids, columns = as_ids(frame.index, what="the index"), as_ids(frame.columns, what="the columns")
    order = locate(columns, ids) if ids.dtype.kind == columns.dtype.kind else np.full(len(ids), -1)
    if len(ids) != len(columns) or (order < 0).any():
        raise GraphError(
            f"a DataFrame of {len(ids)} rows and {len(columns)} columns is an adjacency only if its index and its "
            "columns name the same nodes; for a table of edges use AttributedGraph.from_frames(edges, nodes)"
        )
    return frame.iloc[:, order].to_numpy(), ids


def is_adjacency(frame: Any) -> bool:
    """Tell whether a DataFrame's index and columns name the same nodes."""
    return frame.shape[0] == frame.shape[1] and set(frame.index) == set(frame.columns)


def numeric_frame(frame: Any, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a DataFrame of attributes in the order of the ids, and the names of its columns."""
    rows = by_index(frame, ids, "attributes")
    for name, dtype in zip(frame.columns, frame.dtypes, strict=True):
        if getattr(dtype, "kind", "O") not in "biuf":
            raise GraphError(
                f"attribute column {name!r} holds {dtype}, not numbers; AttributedGraph.from_frames(edges, nodes) "
                "takes columns of every kind"
            )
    return rows.to_numpy(dtype=float), as_ids(frame.columns, what="attribute_names")
