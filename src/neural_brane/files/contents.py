"""Identify a file from its headers; or report how it is read, what it contains and what may be wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neural_brane.errors import BraneError, GraphError
from neural_brane.files import tensors
from neural_brane.files.graphs.edge_list import is_separated, read_edges
from neural_brane.files.graphs.edge_table import Edges
from neural_brane.files.graphs.formats import TEXT, find_format, read_graph
from neural_brane.files.graphs.shards import GraphManifest
from neural_brane.files.npz import open_npz
from neural_brane.files.reading import HEAD, SIGNATURES, Unpacked, npz_headers, recognise
from neural_brane.files.tables import TYPED, FrameFile, is_word2vec, read_frame
from neural_brane.files.trial import why_unreadable
from neural_brane.files.vectors.formats import FORMATS, read_vectors
from neural_brane.files.vectors.parts import is_parts, open_parts
from neural_brane.graph import AttributedGraph
from neural_brane.graph.columns import Column, as_texts, infer_columns, odd_columns
from neural_brane.graph.frames import as_frame, edge_columns, known_pair
from neural_brane.graph.ids import locate
from neural_brane.graph.lazy import pl
from neural_brane.graph.nodes import choose_id, describe_columns

SPLITS = ("ids", "orders")
PAIRS = ("training", "positives", "negatives", "about")
Facts = dict[str, Any]


class Contents(NamedTuple):
    """The kind of a file, its size in bytes, and facts from its headers."""

    path: Path
    kind: str
    size: int
    facts: Facts

    def as_dict(self) -> dict[str, Any]:
        """Return everything as values that JSON can store."""
        return {"file": str(self.path), "kind": self.kind, "size": self.size, **self.facts}


def identify_file(path: str | Path) -> Contents:
    """Return the kind of a file and facts from its headers: all facts for our own files, a few for others.

    This does not compare checksums, because that takes a full read; the readers do it.

    >>> import tempfile, neural_brane
    >>> path = tempfile.mkdtemp() + "/m.brane"
    >>> neural_brane.Attributes(dim=4, seed=0).fit(neural_brane.load("stdlib")).save(path)
    >>> found = identify_file(path)
    >>> found.kind, found.facts["method"], found.facts["nodes"], found.facts["dim"]
    ('model', 'attributes', 554, 4)
    """
    path = Path(path)
    if GraphManifest.begins(path):
        graph = GraphManifest.read(path)
        facts = {name: getattr(graph, name) for name in ("name", "nodes", "edges", "attributes", "entries", "parts")}
        facts |= {"weights": graph.weighted, "amounts": graph.amounts, "ids": graph.ids}
        return Contents(path, "graph in shards", graph.size, facts | {"first nodes": graph.bounds[:-1]})
    if path.is_dir():
        if not is_parts(path):
            raise BraneError(f"{path}: is a folder without a manifest; name a file inside it")
        parts = open_parts(path)
        facts = {"nodes": parts.nodes, "dim": parts.dim, "parts": len(parts.bounds) - 1, "format": parts.kind}
        made = {name: one for name, one in _provenance_facts(parts.provenance).items() if one is not None}
        return Contents(path, "vectors in parts", parts.manifest.size, facts | made)
    with path.open("rb") as file:
        head = file.read(HEAD)
    kind, facts = _identify(path, head)
    return Contents(path, kind, path.stat().st_size, {name: one for name, one in facts.items() if one is not None})


def _identify(path: Path, head: bytes) -> tuple[str, Facts]:
    if head.startswith(b"PK\x03\x04"):
        return _identify_npz(path)
    if head.startswith(b"PAR1"):
        return _identify_parquet(path)
    if head.startswith(np.lib.format.MAGIC_PREFIX):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        return "NumPy array", {"shape": list(array.shape), "numbers": str(array.dtype)}
    if len(head) > 9 and head[8:9] == b"{":
        return _identify_tensors(path)
    kind = recognise(head).kind
    if kind in ("gzip", "zstd", "bzip2", "xz"):
        return f"compressed by {kind}", {}
    return (kind, {}) if kind in SIGNATURES.values() else _identify_text(path, head)


def _identify_tensors(path: Path) -> tuple[str, Facts]:
    listed = tensors.list_arrays(path, BraneError)
    metadata = listed.metadata
    arrays = {name: f"{code} {spell_shape(shape)}" for name, (code, shape) in listed.arrays.items()}
    about = _json(metadata.get("about"))
    if "checksum" not in metadata or not isinstance(about, dict):
        provenance = _json(metadata.get("provenance"))
        others = {name: text for name, text in metadata.items() if name != "provenance"}
        return "safetensors", _provenance_facts(provenance) | {"metadata": others or None, "arrays": arrays}
    kind = str(metadata.get("kind", "checkpoint"))
    find_facts = {"model": _model_facts, "checkpoint": _checkpoint_facts}.get(kind)
    try:
        found = find_facts(about) if find_facts else {"about": about}
    except (AttributeError, KeyError, TypeError):
        raise BraneError(f"{path}: the {kind} is damaged (its metadata is invalid); restore it from a copy") from None
    return kind, {"format": metadata.get("format")} | found | {"arrays": len(arrays)}


def _model_facts(about: Mapping[str, Any]) -> Facts:
    packed = about.get("settings")
    content = packed.get("dict", {}) if isinstance(packed, dict) else {}
    # A tuple of numbers is saved as {"tuple": [...]}; only the list is shown.
    plain = {name: one.get("tuple") if isinstance(one, dict) else one for name, one in content.items()}
    settings = {name: value for name, value in plain.items() if value is not None}
    facts = {name: about.get(name) for name in ("method", "nodes", "dim", "graph", "version", "loss", "epochs")}
    encoder = about.get("encoder") or {}
    columns = [column["name"] for column in encoder.get("columns", ())] or None
    return facts | {"seed": settings.pop("seed", None), "parameters": settings, "columns of its table": columns}


def _checkpoint_facts(about: Mapping[str, Any]) -> Facts:
    facts = {name: about.get(name) for name in ("method", "graph", "version", "seed", "parameters")}
    stages = {name: stage.get("position") for name, stage in about.get("stages", {}).items()}
    losses = [one for stage in about.get("stages", {}).values() for one in stage.get("numbers", {}).get("losses", ())]
    return facts | {"steps done": stages, "loss": losses[-1] if losses else None}


def _provenance_facts(provenance: Any) -> Facts:
    """Return how vectors were made, from their provenance."""
    if not isinstance(provenance, dict):
        return {}
    facts = {name: provenance.get(name) for name in ("method", "version", "training", "transformed")}
    parameters = dict(provenance.get("parameters") or {})
    return facts | {"graph": provenance.get("data"), "seed": parameters.pop("seed", None), "parameters": parameters}


def _identify_npz(path: Path) -> tuple[str, Facts]:
    headers = npz_headers(path, BraneError)
    shapes = {name: shape for name, (shape, _) in headers.items()}

    def read(name: str) -> Any:
        with open_npz(path, BraneError, "arrays") as archive:
            return archive[name] if name in archive.names else None

    if "vectors" in shapes and len(shapes["vectors"]) == 2:
        provenance = read("provenance")
        made = _provenance_facts(_json(None if provenance is None else provenance.item()))
        return "vectors", {"nodes": shapes["vectors"][0], "dim": shapes["vectors"][1]} | made
    if all(name in shapes for name in PAIRS):
        counts = {name: shapes[name][0] for name in ("positives", "negatives")}
        edges = {"nodes": shapes["ids"][0], "edges to train on": shapes["training"][0]}
        return "held-out pairs", edges | counts | (_json(read("about").item()) or {})
    if "adj_indptr" in shapes or {"indptr", "indices", "data"} <= shapes.keys():
        ours = "adj_indptr" in shapes
        rows, entries = (shapes[f"adj_{name}" if ours else name][0] for name in ("indptr", "data"))
        width = read("attr_shape")
        # The number of edges is unknown, because a self-loop has one entry and another edge has two.
        counts = {"nodes": rows - 1, "entries of the adjacency": entries}
        counts |= {"attributes": int(width[1]) if width is not None else 0}
        counts |= {"attribute entries": shapes.get("attr_data", (0,))[0]}
        return "graph", counts | {"labels": "labels" in shapes, "made from a table": "encoder" in shapes}
    arrays = {name: f"{dtype} {spell_shape(shape)}" for name, (shape, dtype) in headers.items() if name != "checksums"}
    return ("NumPy archive" if headers else "zip archive"), {"arrays": arrays}


def _identify_parquet(path: Path) -> tuple[str, Facts]:
    with path.open("rb") as file:
        if reason := why_unreadable("Parquet", file):  # reading a damaged file can crash the process
            return "Parquet, damaged", {"reason": reason}
    schema = pl.read_parquet_schema(path)
    rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
    provenance = _json(pl.read_parquet_metadata(path).get("provenance"))
    wide = [name for name in schema if name != "id"]
    if "id" in schema and wide and (isinstance(provenance, dict) or wide[0] == "d0"):
        first = schema[wide[0]]
        dim = first.size if isinstance(first, pl.Array) else len(wide)
        return "vectors", {"nodes": rows, "dim": dim} | _provenance_facts(provenance)
    return "table", {"rows": rows, "columns": {name: str(kind) for name, kind in schema.items()}}


def _identify_text(path: Path, head: bytes) -> tuple[str, Facts]:
    try:
        lines = head[: head.rfind(b"\n") + 1 or len(head)].decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return "unknown", {}
    if head.startswith(b"{") and b'"ids"' in head:  # JSON has no header, so the whole file is read
        record = _json(path.read_text(encoding="utf-8", errors="replace"))
        if isinstance(record, dict) and all(isinstance(record.get(name), list) for name in SPLITS):
            made = {name: record.get(name) for name in ("seed", "stratify", "tuning")}
            return "splits", {"nodes": len(record["ids"]), "splits": len(record["orders"])} | made
    words = lines[0].split() if lines else []
    if is_word2vec("\n".join(lines[:2])):
        return "vectors", {"nodes": int(words[0]), "dim": int(words[1]), "format": "word2vec text"}
    titles = words if len(words) > 1 else lines[0].split(",") if lines else []
    if titles[:2] == ["id", "d0"]:
        return "vectors", {"dim": len(titles) - 1}
    return "text", {"first line": lines[0][:200] if lines else "", "see": f"brane inspect {path}"}


def _json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def spell_shape(shape: tuple[int, ...]) -> str:
    """Return a shape as text, such as "554 x 16"."""
    return " x ".join(f"{length:,}" for length in shape) or "one"


SHOWN = 5  # rows shown
SHARED = (".npz", ".txt", ".csv", ".tsv", ".parquet")  # suffixes that graphs and vectors share


@dataclass(slots=True)
class Report:
    """A report on a file: how it is read (`description`), counts, columns, first rows and possible problems.

    `ids` are the ids of its nodes, and `edge_titles` the titles of the two columns of edges.
    """

    path: Path
    description: str
    counts: dict[str, int | str] = field(default_factory=dict)
    columns: list[Column] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    ids: np.ndarray | None = None
    edge_titles: tuple[str, ...] = ()


def inspect_file(path: Path) -> Report:
    """Return a report on a graph, a table of edges or of nodes, or a file of vectors."""
    vectors = path.suffix in FORMATS and path.suffix not in SHARED
    if path.suffix == ".npz" and path.is_file():
        vectors = "vectors" in npz_headers(path, GraphError)
    if vectors:
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
    description = f"{edges.description}, {content.encoding.description}"
    report = Report(path, description, rows=[[line] for line in lines], titles=["line"])
    return _add_edges(report, edges)


def inspect_nodes(path: Path, edges: Report | None) -> Report:
    """Return a report on a table of nodes; compare its ids with those of the nodes of `edges`."""
    table = read_frame(path, what="table of nodes", titled=True)
    report = _report_table(table)
    linked = None if edges is None else edges.ids
    if edges is None or linked is None or not len(linked):
        return report
    try:
        best = choose_id(as_frame(table.frame, "nodes"), table.place, linked=linked, titles=edges.edge_titles)
    except GraphError as error:
        report.problems.append(str(error))
        return report
    report.columns = describe_columns(table.frame, best, None, table.place, {})
    report.problems = _problems(report.columns)
    found = locate(linked, as_texts(table.frame[best]).fill_null(""))
    places = np.unique(found[found >= 0])
    report.counts |= {"column of ids": best, "nodes of the edges with a row": len(places)}
    if len(places) < len(linked):
        missing = np.setdiff1d(np.arange(len(linked)), places)
        report.problems.append(f"{len(missing):,} nodes of the edges have no row, {_examples(linked[missing])}")
    unlinked = table.frame[best].gather(np.flatnonzero(found < 0))
    if len(unlinked):
        unknown = f"{len(unlinked):,} ids of column '{best}' are in no edge"
        report.problems.append(f"{unknown}, {_examples(unlinked.to_numpy())}")
    return report


def _inspect_table(table: FrameFile) -> Report:
    """Return a report on a table of vectors, of edges or of nodes."""
    names = table.frame.columns
    if names[:2] in (["id", "d0"], ["id", "vector"]):
        return _inspect_vectors(table.path)
    report = _report_table(table)
    try:
        found = edge_columns(table.frame, table.place)
    except GraphError as error:
        if known_pair(names) or len(names) <= 3:
            report.problems.append(str(error))
        return report
    shared = found.source.is_in(found.target.implode()).any()  # in a table of nodes, two columns seldom share values
    if not (known_pair(names) or len(names) <= 3 or shared):
        report.counts["reads as"] = "a table of nodes; give it with --nodes"
        return report
    report.description += f"; {found.description}"
    report.problems = _problems([column for column in report.columns if column.name in found.ignored])
    ends, ids = found.number()
    return _add_edges(report, Edges(ids, ends, found.weights, 0, report.description, titles=found.names[:2]))


def _report_table(table: FrameFile) -> Report:
    head = table.frame.head(SHOWN)
    report = Report(table.path, table.description, {"rows": len(table.frame)}, infer_columns(table.frame))
    report.problems = _problems(report.columns)
    report.titles = head.columns
    report.rows = [["" if value is None else str(value) for value in row] for row in head.iter_rows()]
    return report


def _problems(columns: list[Column]) -> list[str]:
    constant = [column for column in columns if column.distinct == 1 and not column.missing]
    same = [f"column '{column.name}' has one value in all rows, {column.examples[0]!r}" for column in constant]
    return same + odd_columns(columns)


def _add_edges(report: Report, edges: Edges) -> Report:
    """Add counts of nodes and edges to a report, and what may be wrong with the edges."""
    ends = np.sort(edges.ends, axis=1)
    keys = np.unique(ends[:, 0] * np.int64(len(edges.ids)) + ends[:, 1])
    loops = int((ends[:, 0] == ends[:, 1]).sum())
    kind = "integers" if edges.ids.dtype.kind == "i" else "strings"
    report.ids, report.edge_titles = edges.ids, edges.titles
    report.counts |= {"nodes": len(edges.ids) + edges.unnamed, "edges": len(keys), "ids": kind}
    if edges.weights is not None:
        report.counts["weights"] = f"{edges.weights.min():g} to {edges.weights.max():g}"
    if edges.warning:
        report.problems.append(edges.warning.partition(": ")[2])
    if len(ends) > len(keys):
        report.problems.append(f"{len(ends) - len(keys):,} edges are repeated, in either direction")
    if loops:
        report.problems.append(f"{loops:,} edges join a node to itself")
    times = np.bincount(edges.ends.ravel(), minlength=len(edges.ids))
    first = edges.ends[0]
    if kind == "strings" and len(ends) > SHOWN and (times[first] == 1).all() and np.median(times) > 1:
        words = " ".join(edges.ids[first].tolist())
        found = f"the first edge, '{words}', has two nodes that no other edge has"
        report.problems.append(f"{found}; they may be column titles")
    return report


def _examples(ids: np.ndarray) -> str:
    return "such as " + ", ".join(repr(one) for one in ids[:3].tolist())


def _inspect_graph(path: Path, graph: AttributedGraph, description: str) -> Report:
    report = Report(path, description, ids=graph.ids)
    report.counts = {"nodes": len(graph), "edges": graph.edges, "attributes": len(graph.attribute_names)}
    if graph.labels is not None:
        report.counts |= {"classes": len(graph.classes), "nodes with a label": int((graph.labels != "").sum())}
    bare = int((np.diff(graph.attributes.indptr) == 0).sum())
    if bare and graph.attributes.shape[1]:
        report.problems.append(f"{bare:,} nodes have no attribute")
    alone = int((np.diff(graph.adjacency.indptr) == 0).sum())
    if alone:
        report.problems.append(f"{alone:,} nodes have no edge")
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
        report.problems.append(f"{zero:,} vectors are zero")
    wrong = int((~np.isfinite(table.vectors).all(axis=1)).sum())
    if wrong:
        report.problems.append(f"{wrong:,} vectors contain NaN or infinity")
    return report
