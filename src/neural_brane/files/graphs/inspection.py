"""Say how a file would be read, and what looks odd in it, without learning anything from it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.files.graphs.edge_list import is_separated, read_edges
from neural_brane.files.graphs.edge_table import Edges
from neural_brane.files.graphs.formats import TEXT, find_format, read_graph
from neural_brane.files.reading import HEAD, Unpacked, recognise
from neural_brane.files.tables import TYPED, FrameFile, read_frame
from neural_brane.files.text import is_word2vec, known_pair
from neural_brane.files.vectors.formats import FORMATS, read_vectors
from neural_brane.graph import AttributedGraph
from neural_brane.graph.columns import Column, as_texts, infer_columns
from neural_brane.graph.frames import EdgeColumns, as_frame, edge_columns
from neural_brane.graph.ids import locate
from neural_brane.graph.nodes import choose_id

SHOWN = 5  # rows, and examples
SHARED = (".npz", ".txt", ".csv", ".tsv", ".parquet")  # names that graphs and vectors have


@dataclass(slots=True)
class Report:
    """A report on a file: how it is read, counts, its columns and first rows, and what looks odd.

    `ids` are those of the nodes that it names.
    """

    path: Path
    told: str
    counts: dict[str, int | str] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    ids: np.ndarray | None = None


def inspect_file(path: Path) -> Report:
    """Look at a graph, a table of edges or of nodes, or a file of vectors."""
    if path.suffix == ".npz":
        return _inspect_npz(path)
    if path.suffix in FORMATS and path.suffix not in SHARED:
        return _inspect_vectors(path)
    if (format := find_format(path)) is not TEXT:
        return _inspect_graph(path, read_graph(path), f"a graph, {format.suffixes[0]}")
    with Unpacked(path, "file") as file:
        content = recognise(file.head(HEAD))
        if content.kind in TYPED or (content.kind == "text" and is_separated(path, content.text)):
            return _inspect_table(read_frame(file, what="table"))
        if content.kind == "text" and is_word2vec(content.text):
            return _inspect_vectors(path)
    lines = [line for line in content.text.split("\n") if line.strip()][:SHOWN]
    edges = read_edges(path)
    report = Report(path, f"{edges.told}, {content.encoding.told}", rows=[[line] for line in lines], titles=["line"])
    return _add_edges(report, edges)


def inspect_nodes(path: Path, linked: np.ndarray | None) -> Report:
    """Look at a table of nodes, whose ids should be those of the edges, if there are any."""
    table = read_frame(path, what="table of nodes", titled=True)
    report = _report_table(table)
    if linked is None or not len(linked):
        return report
    try:
        best = choose_id(as_frame(table.frame, "nodes"), table.place, linked=linked)
    except GraphError as error:
        report.odd.append(str(error))
        return report
    found = locate(linked, as_texts(table.frame[best]).fill_null(""))
    report.columns = infer_columns(table.frame, id=best)
    places = np.unique(found[found >= 0])
    report.counts |= {"column of ids": best, "nodes of the edges with a row": len(places)}
    if len(places) < len(linked):
        missing = np.setdiff1d(np.arange(len(linked)), places)
        report.odd.append(f"{len(missing):,} nodes of the edges have no row, {_such(linked[missing])}")
    strangers = table.frame[best].gather(np.flatnonzero(found < 0))
    if len(strangers):
        report.odd.append(f"{len(strangers):,} ids of column '{best}' are in no edge, {_such(strangers.to_numpy())}")
    return report


def _inspect_table(table: FrameFile) -> Report:
    """A table alone: of vectors, of edges, or else of nodes."""
    names = table.frame.columns
    if names[:2] in (["id", "d0"], ["id", "vector"]):
        return _inspect_vectors(table.path)
    report = _report_table(table)
    try:
        found = edge_columns(table.frame, table.place)
    except GraphError as error:
        if known_pair(names) or len(names) <= 3:
            report.odd.append(str(error))
        return report
    if not (known_pair(names) or len(names) <= 3 or _share_values(found)):
        report.counts["reads as"] = "a table of nodes; give it with --nodes"
        return report
    report.told += f"; {found.told}"
    ends, ids = found.number()
    return _add_edges(report, Edges(ids, ends, found.weights, 0, report.told))


def _report_table(table: FrameFile) -> Report:
    head = table.frame.head(SHOWN)
    report = Report(table.path, table.told, {"rows": len(table.frame)}, infer_columns(table.frame))
    report.odd = _constant(report.columns)
    report.titles, report.rows = head.columns, [[_text(value) for value in row] for row in head.iter_rows()]
    return report


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _share_values(found: EdgeColumns) -> bool:
    """Tell whether some node stands at both ends, as in edges, and in no table of nodes."""
    return bool(found.source.is_in(found.target.implode()).any())


def _constant(columns: list[Column]) -> list[str]:
    known = [column for column in columns if column.distinct == 1 and not column.missing]
    return [f"column '{column.name}' has one value in all rows, {column.examples[0]!r}" for column in known]


def _add_edges(report: Report, edges: Edges) -> Report:
    """Count nodes and edges, and look for what is odd among them."""
    ends = np.sort(edges.ends, axis=1)
    keys = np.unique(ends[:, 0] * np.int64(len(edges.ids)) + ends[:, 1])
    loops = int((ends[:, 0] == ends[:, 1]).sum())
    kind = "integers" if edges.ids.dtype.kind == "i" else "strings"
    report.ids = edges.ids
    report.counts |= {"nodes": len(edges.ids) + edges.unnamed, "edges": len(keys), "ids": kind}
    if edges.weights is not None:
        report.counts["weights"] = f"{edges.weights.min():g} to {edges.weights.max():g}"
    if edges.doubt:
        report.odd.append(edges.doubt.partition(": ")[2])
    if len(ends) > len(keys):
        report.odd.append(f"{len(ends) - len(keys):,} edges are stated again, in one direction or the other")
    if loops:
        report.odd.append(f"{loops:,} edges join a node to itself")
    times = np.bincount(edges.ends.ravel(), minlength=len(edges.ids))
    first = edges.ends[0]
    if kind == "strings" and len(ends) > SHOWN and (times[first] == 1).all() and np.median(times) > 1:
        words = " ".join(edges.ids[first].tolist())
        report.odd.append(f"the first edge, '{words}', names two nodes that no other edge has: are they titles?")
    return report


def _such(ids: np.ndarray) -> str:
    return "such as " + ", ".join(repr(one) for one in ids[:3].tolist())


def _inspect_npz(path: Path) -> Report:
    """A graph or vectors, as this package writes them."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = list(archive)
    except (OSError, ValueError, EOFError) as error:
        raise GraphError(f"{path}: this is not an .npz file ({error}); write it again") from None
    return _inspect_vectors(path) if "vectors" in names else _inspect_graph(path, read_graph(path), "a graph, .npz")


def _inspect_graph(path: Path, graph: AttributedGraph, told: str) -> Report:
    report = Report(path, told, ids=graph.ids)
    report.counts = {"nodes": len(graph), "edges": graph.edges, "attributes": len(graph.attribute_names)}
    if graph.labels is not None:
        report.counts |= {"classes": len(graph.classes), "nodes with a label": int((graph.labels != "").sum())}
    bare = int((np.diff(graph.attributes.indptr) == 0).sum())
    if bare and graph.attributes.shape[1]:
        report.odd.append(f"{bare:,} nodes have no attribute")
    alone = int((np.diff(graph.adjacency.indptr) == 0).sum())
    if alone:
        report.odd.append(f"{alone:,} nodes have no edge")
    return report


def _inspect_vectors(path: Path) -> Report:
    table = read_vectors(path)
    report = Report(path, f"vectors, {path.suffix}", {"nodes": len(table.ids), "dim": table.vectors.shape[1]})
    report.counts |= {key: str(table.provenance[key]) for key in ("method", "dataset") if key in table.provenance}
    report.titles = ["id", *(f"d{at}" for at in range(min(4, table.vectors.shape[1])))]
    report.rows = [
        [str(node), *(f"{value:.4g}" for value in row[:4])]
        for node, row in zip(table.ids[:SHOWN], table.vectors[:SHOWN], strict=True)
    ]
    zero = int((~table.vectors.any(axis=1)).sum())
    if zero:
        report.odd.append(f"{zero:,} vectors are zero")
    wrong = int((~np.isfinite(table.vectors).all(axis=1)).sum())
    if wrong:
        report.odd.append(f"{wrong:,} vectors hold NaN or infinity")
    return report
