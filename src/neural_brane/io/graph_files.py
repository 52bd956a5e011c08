"""Graphs to files and back, in the formats that programs exchange them in; the suffix says which.

==================  ====================================================  ========================================
suffix              format                                                a node's label is its
==================  ====================================================  ========================================
``.graphml``        GraphML                                               data under the key ``label``
``.gexf``           GEXF, of Gephi                                        attribute ``class``
``.gml``            GML                                                   value ``class``
``.mtx``            Matrix Market; attributes in a second file            in comments of ours
``.npz``            NumPy arrays, ours; or a sparse matrix of SciPy       array ``labels``
==================  ====================================================  ========================================

All but .npz are read with .gz or .zst behind, too. Ids, weights, attributes and labels read back as they were written.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from neural_brane.errors import GraphError, ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, SelfLoops
from neural_brane.io.atomic import check_target
from neural_brane.io.graph_draft import Rules
from neural_brane.io.graph_gexf import read_gexf, write_gexf
from neural_brane.io.graph_gml import read_gml, write_gml
from neural_brane.io.graph_graphml import read_graphml, write_graphml
from neural_brane.io.graph_mtx import read_mtx, write_mtx
from neural_brane.io.graph_npz import Layout, write_graph_npz


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
