"""Read and write graphs; each entry of `FORMATS` declares one format."""

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
from neural_brane.files.nodes import given_options, join_node_table
from neural_brane.files.storage import check_target
from neural_brane.files.tables import ENDINGS, PACKINGS
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, Rules, SelfLoops
from neural_brane.graph.nodes import NodeOptions

__all__ = ["Format", "check_graph_target", "describe_formats", "read_graph", "write_graph"]

EDGES = ("source", "target", "weight", "same_ids", "header")  # options for a table of edges


class ReadOptions(NamedTuple):
    """The options of `read_graph` that the readers of the formats need."""

    rules: Rules
    files: dict[str, Path]  # separate files, by name: `attributes` and `labels`
    label: str | None  # key of the nodes' labels
    edges: EdgeOptions


@dataclass(frozen=True)
class Format:
    """A format of graph files.

    Parameters
    ----------
    suffixes
        The suffixes of its files; none for text and tables, which are recognised by their content.
    about
        One line for the help text and for the table in the documentation.
    read, write
        `read(path, options)` and `write(graph, path)`; `write` is None if the format is only read.
    takes
        The options of `read_graph` that the format accepts: `attributes`, `labels`, `label` or those in `EDGES`.
    packed
        True if compressed files are read too; their names end in .gz or .zst.
    """

    suffixes: tuple[str, ...]
    about: str
    read: Callable[[Path, ReadOptions], AttributedGraph]
    write: Callable[[AttributedGraph, Path], None] | None = None
    takes: tuple[str, ...] = ()
    packed: bool = False


def _by_networkx(read: Callable[[Path, Rules, str | None], AttributedGraph]) -> Callable[..., AttributedGraph]:
    return lambda path, options: read(path, options.rules, options.label)


FORMATS = (
    Format(
        (".npz",),
        "NumPy arrays, the fastest to load: SciPy's CSR arrays `adj_data`, `adj_indices`, `adj_indptr`, `adj_shape`, "
        "the same four with `attr_`; optionally `ids`, `labels`, `attribute_names` and `encoder` (how columns became "
        "attributes, JSON in UTF-8 bytes); or one sparse matrix as SciPy saves it",
        lambda path, options: read_graph_npz(path, options.rules), write_graph_npz,
    ),
    Format(
        (".graphml",), "GraphML; a node's label is its data under the key `label`",
        _by_networkx(by_networkx.read_graphml), by_networkx.write_graphml, takes=("label",), packed=True,
    ),
    Format(
        (".gexf",), "GEXF, the format of Gephi; a node's label is its attribute `class`",
        _by_networkx(by_networkx.read_gexf), by_networkx.write_gexf, takes=("label",), packed=True,
    ),
    Format(
        (".gml",), "GML; a node's label is its value `class`",
        _by_networkx(by_networkx.read_gml), by_networkx.write_gml, takes=("label",), packed=True,
    ),
    Format(
        (".mtx",), "Matrix Market, with ids and labels in comments, and attributes in a second file",
        lambda path, options: read_mtx(path, options.rules, options.files.get("attributes")), write_mtx,
        takes=("label", "attributes"), packed=True,
    ),
    Format(
        (".cites",),
        "LINQS citations, `cited<TAB>citing` per line; the `.content` file beside it holds words and labels",
        lambda path, options: read_linqs(
            path, options.files.get("attributes", path.with_suffix(".content")), options.rules
        ),
        takes=("attributes",),
    ),
)  # fmt: skip
TEXT = Format(
    (), f"edges as lines `u v` or `u v weight`, or as a table ({', '.join(ENDINGS)})",
    lambda path, options: read_graph_text(path, options.files, options.rules, options.edges),
    takes=("attributes", "labels", *EDGES), packed=True,
)  # fmt: skip
READABLE = tuple(suffix for format in FORMATS for suffix in format.suffixes)
WRITABLE = tuple(suffix for format in FORMATS if format.write for suffix in format.suffixes)


def spell_suffixes(suffixes: tuple[str, ...] = WRITABLE) -> str:
    """Join suffixes for help texts and messages.

    >>> spell_suffixes((".npz", ".gml", ".mtx"))
    '.npz, .gml or .mtx'
    """
    return f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"


def find_format(path: str | Path) -> Format:
    """Return the format that a file name stands for: `TEXT` if no other format has its suffix."""
    path = Path(path)
    packed = path.suffix.lower() in PACKINGS
    suffix = (Path(path.stem) if packed else path).suffix.lower()
    return next((format for format in FORMATS if suffix in format.suffixes and format.packed >= packed), TEXT)


def describe_formats() -> list[tuple[str, str]]:
    """Return the rows of the table in the docs: suffixes and description of each format with its own suffix."""
    return [(", ".join(f"`{suffix}`" for suffix in format.suffixes), format.about) for format in FORMATS]


def check_graph_target(path: str | Path) -> Path:
    """Return the path; raise GraphError, before long work begins, if `write_graph` cannot write to it."""
    return check_target(path, WRITABLE, f"{spell_suffixes()}, the formats of graphs", GraphError)


def write_graph(graph: AttributedGraph, path: str | Path, *, compress: bool = False, layout: Layout = "graph") -> None:
    """Write a graph to a file; `read_graph` returns an identical graph.

    Parameters
    ----------
    graph : AttributedGraph
        The graph to write.
    path : str or Path
        The file. Its suffix chooses the format.
    compress : bool
        Compress an .npz file.
    layout : {"graph", "scipy"}
        "scipy" writes an .npz file that `scipy.sparse.load_npz` can read too.
    """
    path = check_graph_target(path)
    if path.suffix == ".npz":
        write_graph_npz(graph, path, compress=compress, layout=layout)
    elif compress or layout != "graph":
        raise ParameterError(f"{path}: compress and layout are for .npz files; leave them out or write an .npz file")
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
    same_ids: bool | None = False,
    header: bool | None = None,
    duplicates: Duplicates = "max",
    self_loops: SelfLoops = "keep",
    **options: Unpack[NodeOptions],
) -> AttributedGraph:
    """Read a graph from a file.

    Parameters
    ----------
    path : str or Path
        A file `.npz`, `.graphml`, `.gexf`, `.gml`, `.mtx` or `.cites`; its suffix names the format. Any other file,
        compressed (.gz, .zst) or not, is recognised by its content: a table of edges (CSV, TSV, Parquet, JSON lines,
        Arrow) or lines `u v` or `u v weight`. "-" reads standard input.
    attributes, labels : str or Path, optional
        Files with lines `node id:value ...` and `node<TAB>label`, for text and tables. For `.mtx` and `.cites`,
        `attributes` is the second matrix or the `.content` file.
    nodes : str or Path, optional
        A table of nodes, which is joined by id.
    source, target, weight : str or int, optional
        Columns of a table of edges, by name or position; recognised if left out.
    same_ids : bool
        Whether both columns of ids name nodes of one kind; without it, ids that stand in both columns of a table such
        as `user_id, item_id` raise an error.
    header : bool, optional
        Whether the first line of the table holds the column names; recognised if left out.
    duplicates : {"max", "sum"}
        The weight of an edge that appears several times, in either direction: the largest weight or the sum.
    self_loops : {"keep", "drop"}
        Whether to keep edges from a node to itself.
    **options
        Options for the table of nodes: `id`, `label`, `columns`, `ignore`, `missing` and `encoder`, as described in
        `neural_brane.graph.nodes.NodeOptions`. Without `nodes`, `label` is the key of the labels in a GraphML, GEXF
        or GML file.

    Returns
    -------
    AttributedGraph
    """
    path = Path(path)
    if path.is_dir():
        raise GraphError(f"{path}: this is a folder; give the graph file inside it")
    format = find_format(path)
    label = str(options.pop("label")) if nodes is None and "label" in format.takes and options.get("label") else None
    files = {name: Path(file) for name, file in (("attributes", attributes), ("labels", labels)) if file is not None}
    edges: EdgeOptions = {
        "source": source, "target": target, "weight": weight, "same_ids": same_ids or None, "header": header,
    }  # fmt: skip
    for name, value in (files | given_options(dict(edges))).items():
        if name in EDGES and name not in format.takes:
            raise GraphError(f"{path}: {name} is for tables of edges; leave it out for {format.suffixes[0]} files")
        if name not in format.takes:
            raise GraphError(f"{path}: {format.suffixes[0]} files contain their {name}; leave out {value}")
    graph = format.read(path, ReadOptions(Rules(duplicates, self_loops), files, label, edges))
    if nodes is not None:
        return join_node_table(graph, nodes, **options)
    if unused := list(given_options(dict(options))):
        raise GraphError(f"{path}: {unused[0]} is for a table of nodes, and there is none; add nodes (--nodes FILE)")
    return graph
