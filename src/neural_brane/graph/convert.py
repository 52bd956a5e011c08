"""Whatever converts to a graph, by what it is: the one door through which methods take their input."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph.attributed import AttributedGraph
from neural_brane.graph.pandas_index import is_adjacency, is_frame, package_of

TABLES = ("pandas", "polars", "pyarrow")
ACCEPTED = (
    "an AttributedGraph; a graph of NetworkX or igraph, or a Data of PyTorch Geometric; an adjacency (SciPy, NumPy, or "
    "a pandas DataFrame whose index and columns name the nodes); a pair (adjacency, attributes); or a pair of tables "
    "(edges, nodes) of pandas, polars or Arrow"
)


def as_graph(source: Any) -> AttributedGraph:
    """Make a graph of anything that holds one; what is a graph already is returned itself.

    >>> as_graph((np.eye(2)[::-1], [[1, 0], [1, 1]]))
    AttributedGraph('graph': 2 nodes, 1 edges, 2 attributes)
    """
    if isinstance(source, AttributedGraph):
        return source
    package = package_of(source)
    if package == "networkx" and hasattr(source, "adjacency"):
        return AttributedGraph.from_networkx(source)
    if package == "igraph" and hasattr(source, "get_edgelist"):
        return AttributedGraph.from_igraph(source)
    if package == "torch_geometric":
        return AttributedGraph.from_geometric(source)
    if _is_matrix(source):
        return AttributedGraph.from_sparse(source)
    if isinstance(source, tuple | list) and len(source) == 2:
        return _of_pair(*source)
    if isinstance(source, str | PathLike):
        raise GraphError(f"cannot learn from a path; read the graph first: neural_brane.read({str(source)!r})")
    raise GraphError(f"cannot learn from {_spell(source)}; give {ACCEPTED}")


def _of_pair(first: Any, second: Any) -> AttributedGraph:
    """A graph of (adjacency, attributes) or of two tables (edges, nodes)."""
    if _is_matrix(first) and (second is None or _is_matrix(second) or is_frame(second) or isinstance(second, list)):
        return AttributedGraph.from_sparse(first, second)
    if all(package_of(part) in TABLES for part in (first, second)):
        return AttributedGraph.from_frames(first, second)
    raise GraphError(f"cannot learn from a pair of {_spell(first)} and {_spell(second)}; give {ACCEPTED}")


def _is_matrix(value: Any) -> bool:
    """Tell whether a value is a matrix: sparse, an array, or a DataFrame that names its nodes twice."""
    return sparse.issparse(value) or isinstance(value, np.ndarray) or (is_frame(value) and is_adjacency(value))


def _spell(value: Any) -> str:
    """What something is, for a message."""
    size = f" of {len(value)}" if isinstance(value, tuple | list) else ""
    return f"{type(value).__module__}.{type(value).__qualname__}{size}".removeprefix("builtins.")
