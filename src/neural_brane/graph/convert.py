"""Convert whatever a user passes to a graph; all methods convert their input here."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph.attributed import AttributedGraph
from neural_brane.graph.encoder import Encoder
from neural_brane.graph.frames import Place, as_frame, is_adjacency, is_frame, known_pair, package_of
from neural_brane.graph.ids import locate
from neural_brane.graph.lazy import pl
from neural_brane.graph.nodes import choose_id, find_rows, warn_without_row

TABLES = ("pandas", "polars", "pyarrow")
ACCEPTED = (
    "an AttributedGraph; a graph of NetworkX or igraph, or a Data of PyTorch Geometric; an adjacency (SciPy, NumPy, or "
    "a pandas DataFrame whose index and columns name the nodes); a pair (adjacency, attributes); a list of edges, "
    "each a tuple of two ids; a table of edges with titles such as 'source' and 'target', or a pair of tables (edges, "
    "nodes), of pandas, polars or Arrow"
)


def as_graph(source: Any, *, encoder: Encoder | None = None) -> AttributedGraph:
    """Return an input as a graph; an AttributedGraph is returned itself. `ACCEPTED` lists what can be converted.

    `encoder` turns the columns of a table of nodes into attributes; by default a new one is fitted to the table.

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
        if source.ndim == 2 and source.shape[0] != source.shape[1]:
            links = "for links between two kinds of nodes, give edges whose ids have a prefix for each kind"
            pair = "for attributes, give a pair (adjacency, attributes), or use Attributes, which needs no links"
            raise GraphError(f"a matrix of {source.shape[0]} x {source.shape[1]} is no adjacency; {links}; {pair}")
        return AttributedGraph.from_sparse(source)
    if package in TABLES and known_pair(list(map(str, as_frame(source, "edges").table.columns))):
        return AttributedGraph.from_frames(source)
    if isinstance(source, list) and source and all(map(_is_edge, source)):
        return AttributedGraph.from_edges(source)
    if isinstance(source, tuple | list) and len(source) == 2:
        first, second = source
        if _is_matrix(first) and (second is None or _is_matrix(second) or is_frame(second) or isinstance(second, list)):
            return AttributedGraph.from_sparse(first, second)
        if all(package_of(part) in TABLES for part in source):
            return AttributedGraph.from_frames(first, second, encoder=encoder)
        raise GraphError(f"a pair of {_spell(first)} and {_spell(second)} is not a graph; give {ACCEPTED}")
    if isinstance(source, str | PathLike):
        raise GraphError(f"a path is not a graph; read the graph first: neural_brane.read({str(source)!r})")
    raise GraphError(f"{_spell(source)} is not a graph; give {ACCEPTED}")


def _is_edge(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(it, str | int | np.integer) for it in value)


def _is_matrix(value: Any) -> bool:
    """Return whether a value is a sparse matrix, an array, or a DataFrame whose index and columns name the nodes."""
    return sparse.issparse(value) or isinstance(value, np.ndarray) or (is_frame(value) and is_adjacency(value))


def _spell(value: Any) -> str:
    """Return the type of a value as text for a message."""
    size = f" of {len(value)}" if isinstance(value, tuple | list) else ""
    return f"{type(value).__module__}.{type(value).__qualname__}{size}".removeprefix("builtins.")


NODES = Place("nodes")


def as_graph_of_new_nodes(source: Any, known: AttributedGraph) -> AttributedGraph:
    """Return new nodes as a graph: an input of `as_graph`, a table of nodes, or a dict from id to attributes.

    A table of nodes is encoded with the encoder of the known graph. Columns and values that the encoder does not know
    are left out, and a warning counts them. Nodes of the known graph that occur in edges need no row.

    >>> known = AttributedGraph.from_edges([("ann", "bob")], attributes={"ann": ["chess"]})
    >>> as_graph_of_new_nodes({"zoe": ["chess"], "yan": []}, known)
    AttributedGraph('new nodes': 2 nodes, 0 edges, 1 attributes)
    """
    if isinstance(source, Mapping) and package_of(source) != "networkx":
        return AttributedGraph.from_edges(
            np.empty((0, 2), known.ids.dtype), attributes=dict(source), ids=list(source), name="new nodes"
        )
    if _is_table(source):
        return join_new_nodes(None, source, known)
    if isinstance(source, tuple | list) and len(source) == 2 and all(map(_is_table, source)) and known.encoder:
        return join_new_nodes(AttributedGraph.from_frames(source[0]), source[1], known)
    return as_graph(source)


def join_new_nodes(
    links: AttributedGraph | None,
    nodes: Any,
    known: AttributedGraph,
    *,
    place: Place = NODES,
    id: str | int | None = None,
) -> AttributedGraph:
    """Return the links (or None) of new nodes joined with a table of nodes, encoded with the known graph's encoder."""
    if known.encoder is None:
        raise GraphError(
            f"graph '{known.name}' does not come from a table of nodes, so a table of new nodes cannot be encoded; "
            "give their attributes by name, as in {'id': ['name', …]}, or a graph with the same attribute names"
        )
    frame = as_frame(nodes, place.where)
    column = choose_id(frame, place, given=id, encoder=known.encoder)
    rows = find_rows(frame.table[column], np.empty(0, str) if links is None else links.ids, place)
    linked = np.empty(0, np.int64 if rows.ids.dtype.is_integer() else str) if links is None else links.ids
    adjacency = sparse.csr_array((0, 0), dtype=np.float32) if links is None else links.adjacency
    table, encoder = frame.table.drop(column), known.encoder
    unknown = [name for name in table.columns if name not in {column.name for column in encoder.columns}]
    absent = [name for name in encoder.parts if name not in table.columns]
    if len(absent) == len(encoder.parts):
        advice = f"the columns are {', '.join(map(repr, table.columns)) or 'none'}: give them the names they had"
        raise GraphError(f"{place.where}: all columns of the fitted graph are missing, such as '{absent[0]}'; {advice}")
    for names, problem in ((unknown, "left out, as the method was not fitted to them"), (absent, "missing, so empty")):
        if names:
            examples = ", ".join(map(repr, names[:3]))
            warnings.warn(f"{place.where}: {len(names):,} columns are {problem} (such as {examples})", stacklevel=4)
    empty = [pl.lit(None, pl.String).alias(name) for name in absent]
    attributes, attribute_names = encoder.encode(table.with_columns(empty))
    warn_without_row(linked, rows.without_row(linked) & (locate(known.ids, linked) < 0), place)
    adjacency, attributes, everyone = rows.join(linked, adjacency, attributes)
    name = "new nodes" if links is None else links.name
    return AttributedGraph(adjacency, attributes, everyone, attribute_names, name=name, encoder=known.encoder)


def _is_table(source: Any) -> bool:
    return package_of(source) in TABLES and not (is_frame(source) and is_adjacency(source))
