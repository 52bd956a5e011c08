"""Files to graphs and to arrays of vectors, and back: one module per format."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, SelfLoops
from neural_brane.graph.nodes import NodeOptions
from neural_brane.io.edge_table import EdgeOptions
from neural_brane.io.graph_files import check_graph_target, exchange_suffix, read_exchanged, write_graph
from neural_brane.io.graph_npz import read_graph_npz
from neural_brane.io.graph_text import read_graph_text
from neural_brane.io.labels import read_labels
from neural_brane.io.linqs import read_linqs
from neural_brane.io.tables import given, join_node_table, read_label_table
from neural_brane.io.vectors import VectorFile, read_vectors

__all__ = [
    "VectorFile",
    "check_graph_target",
    "read_graph",
    "read_label_table",
    "read_labels",
    "read_vectors",
    "write_graph",
]


def read_graph(
    path: str | Path,
    *,
    attributes: str | Path | None = None,
    labels: str | Path | None = None,
    nodes: str | Path | None = None,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | None = None,
    header: bool | None = None,
    duplicates: Duplicates = "max",
    self_loops: SelfLoops = "keep",
    **options: Unpack[NodeOptions],
) -> AttributedGraph:
    """Read a graph from a file, in the format that its name says.

    `.npz`: a graph as `write_graph` writes it, or a sparse matrix of SciPy. `.graphml`, `.gexf`, `.gml`, `.mtx`: what
    other programs exchange, as `neural_brane.io.graph_files` says, with the labels under the key `label`. `.cites`:
    LINQS citations, with the `.content` file beside it or given as `attributes`. Any other file is known by its
    content, compressed (.gz, .zst) or not: a table of edges (CSV and its kin, Parquet, JSON lines, Arrow), whose
    columns `source`, `target` and `weight` name, and whose `header` says whether its first line holds titles; or text,
    `u v` or `u v weight` per line. With both go `attributes` (`node id:value ...`) and `labels` (`node<TAB>label`) in
    files of their own; `neural_brane.io.graph_text` has the details. "-" is standard input.

    An edge stated twice, in whichever direction, keeps its largest weight (duplicates="max") or the sum
    ("sum"). Self-loops are kept, or left out with self_loops="drop".

    `nodes` is a table of nodes in a file, joined by id; `neural_brane.graph.nodes.NodeOptions` describes its options:
    id, label, columns, ignore, missing and encoder.
    """
    path = Path(path)
    edges: EdgeOptions = {"source": source, "target": target, "weight": weight, "header": header}
    label = str(options.pop("label")) if nodes is None and exchange_suffix(path) and options.get("label") else None
    graph = _read_links(path, attributes, labels, label, edges, duplicates, self_loops)
    if nodes is not None:
        return join_node_table(graph, nodes, **options)
    if useless := list(given(dict(options))):
        raise GraphError(
            f"{path}: {useless[0]} says how a table of nodes is read, and none is given; add nodes (--nodes FILE)"
        )
    return graph


def _read_links(
    path: Path,
    attributes: str | Path | None,
    labels: str | Path | None,
    label: str | None,
    edges: EdgeOptions,
    duplicates: Duplicates,
    self_loops: SelfLoops,
) -> AttributedGraph:
    """Read a graph from a file without a table of nodes."""
    if path.is_dir():
        raise GraphError(f"{path}: this is a folder; give the graph file in it")
    suffix = exchange_suffix(path) or path.suffix.lower()
    if (suffix in (".npz", ".cites") or exchange_suffix(path)) and (useless := list(given(dict(edges)))):
        raise GraphError(f"{path}: {useless[0]} says how a table of edges is read; leave it out for {suffix} files")
    if exchange_suffix(path):
        _refuse(path, "labels", labels)
        second = None if attributes is None else Path(attributes)
        return read_exchanged(path, attributes=second, label=label, duplicates=duplicates, self_loops=self_loops)
    if suffix == ".npz":
        _refuse(path, "attributes", attributes)
        _refuse(path, "labels", labels)
        return read_graph_npz(path, duplicates=duplicates, self_loops=self_loops)
    if suffix == ".cites":
        _refuse(path, "labels", labels)
        content = path.with_suffix(".content") if attributes is None else Path(attributes)
        return read_linqs(path, content, duplicates=duplicates, self_loops=self_loops)
    return read_graph_text(
        path,
        attributes=None if attributes is None else Path(attributes),
        labels=None if labels is None else Path(labels),
        duplicates=duplicates,
        self_loops=self_loops,
        **edges,
    )


def _refuse(path: Path, what: str, given: str | Path | None) -> None:
    """Refuse a separate file of attributes or labels where the graph file holds them itself."""
    if given is not None:
        raise GraphError(f"{path}: {path.suffix} files hold their own {what}; leave out {given}")
