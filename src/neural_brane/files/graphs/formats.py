"""Read and write graphs; one entry of `FORMATS` declares all that there is to say of a format."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Unpack

from neural_brane.errors import GraphError, ParameterError
from neural_brane.files.graphs import by_networkx
from neural_brane.files.graphs.edge_list import read_graph_text, read_linqs
from neural_brane.files.graphs.edge_table import EdgeOptions
from neural_brane.files.graphs.mtx import read_mtx, write_mtx
from neural_brane.files.graphs.npz import Layout, read_graph_npz, write_graph_npz
from neural_brane.files.nodes import given, join_node_table
from neural_brane.files.storage import check_target
from neural_brane.files.tables import ENDINGS, PACKINGS
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, Rules, SelfLoops
from neural_brane.graph.nodes import NodeOptions

__all__ = ["Format", "check_graph_target", "describe_formats", "read_graph", "write_graph"]

EDGES = ("source", "target", "weight", "header")  # how a table of edges is read


class Asked(NamedTuple):
    """The options of `read_graph` that its formats need."""

    rules: Rules
    files: dict[str, Path]  # `attributes` and `labels`, where they are in files of their own
    label: str | None  # the key of nodes' labels
    edges: EdgeOptions


@dataclass(frozen=True)
class Format:
    """A format of graph files.

    Parameters
    ----------
    suffixes
        The endings of its files; none of text and tables, which are known by their content.
    about
        A line of help, and of the table in the documentation.
    read, write
        `read(path, asked)` and `write(graph, path)`; None for formats that are not written.
    takes
        What `read_graph` may be asked for besides the file: `attributes`, `labels`, `label` or the columns of edges.
    packed
        Whether it is read compressed, too, with .gz or .zst behind its suffix.
    """

    suffixes: tuple[str, ...]
    about: str
    read: Callable[[Path, Asked], AttributedGraph]
    write: Callable[[AttributedGraph, Path], None] | None = None
    takes: tuple[str, ...] = ()
    packed: bool = False


def _by_networkx(read: Callable[[Path, Rules, str | None], AttributedGraph]) -> Callable[..., AttributedGraph]:
    return lambda path, asked: read(path, asked.rules, asked.label)


FORMATS = (
    Format(
        (".npz",),
        "NumPy arrays, the quickest to load: SciPy's CSR arrays `adj_data`, `adj_indices`, `adj_indptr`, `adj_shape`, "
        "the same four of `attr_`; `ids`, `labels`, `attribute_names` and `encoder` (how columns became attributes, "
        "JSON in UTF-8 bytes) where there are any; or one sparse matrix as SciPy saves it",
        lambda path, asked: read_graph_npz(path, asked.rules),
        write_graph_npz,
    ),
    Format(
        (".graphml",),
        "GraphML; a node's label is its data under the key `label`",
        _by_networkx(by_networkx.read_graphml),
        by_networkx.write_graphml,
        takes=("label",),
        packed=True,
    ),
    Format(
        (".gexf",),
        "GEXF, of Gephi; a node's label is its attribute `class`",
        _by_networkx(by_networkx.read_gexf),
        by_networkx.write_gexf,
        takes=("label",),
        packed=True,
    ),
    Format(
        (".gml",),
        "GML; a node's label is its value `class`",
        _by_networkx(by_networkx.read_gml),
        by_networkx.write_gml,
        takes=("label",),
        packed=True,
    ),
    Format(
        (".mtx",),
        "Matrix Market, with ids and labels in comments, and attributes in a second file",
        lambda path, asked: read_mtx(path, asked.rules, asked.files.get("attributes")),
        write_mtx,
        takes=("label", "attributes"),
        packed=True,
    ),
    Format(
        (".cites",),
        "LINQS citations, `cited<TAB>citing` per line; words and labels are in the `.content` file beside it",
        lambda path, asked: read_linqs(path, asked.files.get("attributes", path.with_suffix(".content")), asked.rules),
        takes=("attributes",),
    ),
)
TEXT = Format(
    (),
    f"edges as lines of words, `u v` or `u v weight`, or as a table ({', '.join(ENDINGS)})",
    lambda path, asked: read_graph_text(path, asked.files, asked.rules, asked.edges),
    takes=("attributes", "labels", *EDGES),
    packed=True,
)
READABLE = tuple(suffix for format in FORMATS for suffix in format.suffixes)
WRITABLE = tuple(suffix for format in FORMATS if format.write for suffix in format.suffixes)


def spell_suffixes(suffixes: tuple[str, ...] = WRITABLE) -> str:
    """List suffixes for help and messages.

    >>> spell_suffixes((".npz", ".gml", ".mtx"))
    '.npz, .gml or .mtx'
    """
    return f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"


def find_format(path: str | Path) -> Format:
    """Return the format that a file's name says, and that of text and tables for all other names."""
    path = Path(path)
    packed = path.suffix.lower() in PACKINGS
    suffix = (Path(path.stem) if packed else path).suffix.lower()
    return next((one for one in FORMATS if suffix in one.suffixes and one.packed >= packed), TEXT)


def describe_formats() -> list[tuple[str, str]]:
    """Return the suffixes and the description of every format with a suffix of its own: the table of the docs."""
    return [(", ".join(f"`{suffix}`" for suffix in format.suffixes), format.about) for format in FORMATS]


def check_graph_target(path: str | Path) -> Path:
    """Refuse, before any work is done, a path that `write_graph` cannot write to."""
    return check_target(path, WRITABLE, f"{spell_suffixes()}, as graphs are written", GraphError)


def write_graph(graph: AttributedGraph, path: str | Path, *, compress: bool = False, layout: Layout = "graph") -> None:
    """Write a graph to a file in the format that its suffix says; `read_graph` reads it back the same.

    Of .npz files, `compress` makes smaller ones, and layout="scipy" one that `scipy.sparse.load_npz` reads too.
    """
    path = check_graph_target(path)
    if path.suffix == ".npz":
        write_graph_npz(graph, path, compress=compress, layout=layout)
    elif compress or layout != "graph":
        raise ParameterError(f"{path}: compress and layout are for .npz files; leave them out, or write .npz")
    elif write := find_format(path).write:
        write(graph, path)


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
    other programs exchange, with the labels under the key `label`. `.cites`: LINQS citations, with the `.content` file
    beside it or given as `attributes`. Any other file is known by its content, compressed (.gz, .zst) or not: a table
    of edges (CSV and its kin, Parquet, JSON lines, Arrow), whose columns `source`, `target` and `weight` name, and
    whose `header` says whether its first line holds titles; or text, `u v` or `u v weight` per line. With both go
    `attributes` (`node id:value ...`) and `labels` (`node<TAB>label`) in files of their own;
    `neural_brane.files.graphs.edge_list` has the details. "-" is standard input.

    An edge stated twice, in whichever direction, keeps its largest weight (duplicates="max") or the sum
    ("sum"). Self-loops are kept, or left out with self_loops="drop".

    `nodes` is a table of nodes in a file, joined by id; `neural_brane.graph.nodes.NodeOptions` describes its options:
    id, label, columns, ignore, missing and encoder.
    """
    path = Path(path)
    if path.is_dir():
        raise GraphError(f"{path}: this is a folder; give the graph file in it")
    format = find_format(path)
    label = str(options.pop("label")) if nodes is None and "label" in format.takes and options.get("label") else None
    files = {name: Path(file) for name, file in (("attributes", attributes), ("labels", labels)) if file is not None}
    edges: EdgeOptions = {"source": source, "target": target, "weight": weight, "header": header}
    for name, value in (files | given(dict(edges))).items():
        if name in EDGES and name not in format.takes:
            raise GraphError(
                f"{path}: {name} says how a table of edges is read; leave it out for {format.suffixes[0]} files"
            )
        if name not in format.takes:
            raise GraphError(f"{path}: {format.suffixes[0]} files hold their own {name}; leave out {value}")
    graph = format.read(path, Asked(Rules(duplicates, self_loops), files, label, edges))
    if nodes is not None:
        return join_node_table(graph, nodes, **options)
    if useless := list(given(dict(options))):
        raise GraphError(
            f"{path}: {useless[0]} says how a table of nodes is read, and none is given; add nodes (--nodes FILE)"
        )
    return graph
