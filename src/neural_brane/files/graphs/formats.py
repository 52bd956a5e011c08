"""Read and write graphs; the suffix of a file says its format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Unpack

from neural_brane.errors import GraphError, ParameterError
from neural_brane.files.graphs.draft import Rules
from neural_brane.files.graphs.edge_list import read_graph_text
from neural_brane.files.graphs.edge_table import EdgeOptions
from neural_brane.files.graphs.gexf import read_gexf, write_gexf
from neural_brane.files.graphs.gml import read_gml, write_gml
from neural_brane.files.graphs.graphml import read_graphml, write_graphml
from neural_brane.files.graphs.linqs import read_linqs
from neural_brane.files.graphs.mtx import read_mtx, write_mtx
from neural_brane.files.graphs.npz import Layout, read_graph_npz, write_graph_npz
from neural_brane.files.nodes import given, join_node_table, read_label_table, read_labels
from neural_brane.files.storage import check_target
from neural_brane.files.vectors.formats import VectorFile, read_vectors
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, SelfLoops
from neural_brane.graph.nodes import NodeOptions

# Graphs to files and back, in the formats that programs exchange them in; the suffix says which.
#
# ==================  ====================================================  ========================================
# suffix              format                                                a node's label is its
# ==================  ====================================================  ========================================
# ``.graphml``        GraphML                                               data under the key ``label``
# ``.gexf``           GEXF, of Gephi                                        attribute ``class``
# ``.gml``            GML                                                   value ``class``
# ``.mtx``            Matrix Market; attributes in a second file            in comments of ours
# ``.npz``            NumPy arrays, ours; or a sparse matrix of SciPy       array ``labels``
# ==================  ====================================================  ========================================
#
# All but .npz are read with .gz or .zst behind, too. Ids, weights, attributes and labels read back as they were
# written.


class Format(NamedTuple):
    """How a format is read and written, and where it has a node's label."""

    read: Callable[..., AttributedGraph]
    write: Callable[[AttributedGraph, Path], None]
    label: str


FORMATS = {
    ".graphml": Format(read_graphml, write_graphml, "label"),
    ".gexf": Format(read_gexf, write_gexf, "class"),
    ".gml": Format(read_gml, write_gml, "class"),
    ".mtx": Format(read_mtx, write_mtx, "label"),
}
WRITABLE = ".npz, .graphml, .gexf, .gml or .mtx, as graphs are written"


def exchange_suffix(path: str | Path) -> str | None:
    """The suffix by which a file is one of the exchange formats, compressed or not; None where it is none."""
    path = Path(path)
    inner = Path(path.stem) if path.suffix.lower() in (".gz", ".zst") else path
    return inner.suffix.lower() if inner.suffix.lower() in FORMATS else None


def read_exchanged(
    path: Path,
    *,
    attributes: Path | None = None,
    label: str | None = None,
    duplicates: Duplicates = "max",
    self_loops: SelfLoops = "keep",
) -> AttributedGraph:
    """Read a file of an exchange format. `label` is the key of nodes' labels, `attributes` a second .mtx file."""
    suffix = exchange_suffix(path)
    if suffix is None:
        raise GraphError(f"{path}: cannot tell its format; name a file ending in {', '.join(FORMATS)}")
    format = FORMATS[suffix]
    rules = Rules(duplicates, self_loops, format.label if label is None else label)
    if attributes is None:
        return format.read(path, rules)
    if suffix != ".mtx":
        raise GraphError(f"{path}: {suffix} files hold their own attributes; leave out {attributes}")
    return format.read(path, rules, attributes)


def check_graph_target(path: str | Path) -> Path:
    """Refuse, before any work is done, a path that `write_graph` cannot write to."""
    return check_target(path, (".npz", *FORMATS), WRITABLE, GraphError)


def write_graph(graph: AttributedGraph, path: str | Path, *, compress: bool = False, layout: Layout = "graph") -> None:
    """Write a graph to a file in the format that its suffix says; `read_graph` reads it back the same.

    Of .npz files, `compress` makes smaller ones, and layout="scipy" one that `scipy.sparse.load_npz` reads too.
    """
    path = check_graph_target(path)
    if path.suffix == ".npz":
        write_graph_npz(graph, path, compress=compress, layout=layout)
    elif compress or layout != "graph":
        raise ParameterError(f"{path}: compress and layout are for .npz files; leave them out, or write .npz")
    else:
        FORMATS[path.suffix].write(graph, path)


# Files to graphs and to arrays of vectors, and back: one module per format.

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
    other programs exchange, as `neural_brane.files.graphs.formats` says, with the labels under the key `label`. `.cites`:
    LINQS citations, with the `.content` file beside it or given as `attributes`. Any other file is known by its
    content, compressed (.gz, .zst) or not: a table of edges (CSV and its kin, Parquet, JSON lines, Arrow), whose
    columns `source`, `target` and `weight` name, and whose `header` says whether its first line holds titles; or text,
    `u v` or `u v weight` per line. With both go `attributes` (`node id:value ...`) and `labels` (`node<TAB>label`) in
    files of their own; `neural_brane.files.graphs.edge_list` has the details. "-" is standard input.

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
