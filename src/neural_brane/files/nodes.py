"""Read the attributes, labels and targets of nodes from text files and tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.files.graphs.edge_table import EdgeOptions
from neural_brane.files.tables import empty_error, fail, read_frame, read_lines, read_text, read_words
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, SelfLoops, compact, merge
from neural_brane.graph.columns import SEPARATORS, as_numbers, as_texts, infer_columns, plain, split_list
from neural_brane.graph.frames import Place, find_column, id_column
from neural_brane.graph.ids import MISSING, all_integers, as_integers, encode, locate
from neural_brane.graph.labels import MultiLabels
from neural_brane.graph.lazy import pl
from neural_brane.graph.nodes import NodeOptions, check_distinct

# An attribute file has one node per line, `node id:value id:value ...`; an `id` alone means `id:1`.

MEND_UNKNOWN = "give the node its own line in the graph file, or remove this line"


@dataclass(frozen=True, slots=True)
class AttributeRows:
    """The rows of an attribute file: the node and the line of each; and the row, name and value of each entry."""

    path: Path
    nodes: pl.Series
    lines: pl.Series
    row: np.ndarray
    names: pl.Series
    values: np.ndarray


def parse_rows(path: Path, data: bytes, first_line: int = 1) -> AttributeRows:
    """Check every word and return the rows of an attribute file, whose first line has the number `first_line`."""
    words = read_words(data).with_columns(pl.col("line") + (first_line - 1))
    # The first word is a node, and a colon in it is part of the id.
    nodes = words.filter("first").select("line", node=pl.concat_str("name", "value", separator=":", ignore_nulls=True))
    first = words["first"].to_numpy()
    row = (np.cumsum(first) - 1)[~first]
    entries = words.filter(~pl.col("first"))
    values = entries["value"].fill_null("1").cast(float, strict=False).cast(pl.Float32).fill_null(np.nan)
    finite = values.is_finite() & entries["name"].is_not_null() & ~entries["name"].str.ends_with(":")
    if not finite.fill_null(False).all():
        bad = entries.filter(~finite.fill_null(False)).row(0, named=True)
        word = ":".join(part for part in (bad["name"] or "", bad["value"]) if part is not None)
        fail(path, bad["line"], f"attribute '{word}' is not ID or ID:VALUE; write nodes as in '17 3:1 8:1'")
    pairs = entries.select("line", "name").with_columns(value=values).unique().select("line", "name")
    if (again := pairs.is_duplicated()).any():
        bad = pairs.filter(again).sort("line").row(0, named=True)
        fail(path, bad["line"], f"attribute '{bad['name']}' has two values; write it once")
    return AttributeRows(path, nodes["node"], nodes["line"], row, entries["name"], values.to_numpy())


def to_matrix(rows: AttributeRows, ids: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
    """Return the matrix (ids, attributes) and the names of its attributes."""
    places = place_nodes(rows.path, rows.nodes, rows.lines, ids)
    names = rows.names.cast(int).to_numpy() if all_integers(rows.names) else rows.names
    columns, names = encode(names)
    keys, values = merge(places[rows.row] * max(len(names), 1) + columns, rows.values, "max")
    keys, values = keys[values != 0], values[values != 0]
    row, column = np.divmod(keys, max(len(names), 1))
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(ids)))])
    return compact(sparse.csr_array((values, column, starts), shape=(len(ids), len(names)))), names


def place_nodes(path: Path, nodes: pl.Series, lines: pl.Series, ids: np.ndarray) -> np.ndarray:
    """Return the position in `ids` of each line's node; refuse unknown nodes and nodes with two lines."""
    numbers = as_integers(nodes) if ids.dtype.kind == "i" else None
    places = locate(ids, nodes if numbers is None else numbers)
    if (places < 0).any():
        at = int(np.argmax(places < 0))
        fail(path, lines[at], f"node '{nodes[at]}' is not in the graph; {MEND_UNKNOWN}")
    again = np.ones(len(places), dtype=bool)
    again[np.unique(places, return_index=True)[1]] = False
    if again.any():
        at = int(np.argmax(again))
        before = lines[int(np.argmax(places == places[at]))]
        fail(path, lines[at], f"node '{nodes[at]}' already has line {before}; join the two lines or remove one")
    return places


# The target of a node is a class, several labels or a number. If the kind is not given, the labels decide:
#
# - "several" if a node has several lines, if the labels are lists, or if `;`, `|` or commas separate short values, as
#   in the columns of a table of nodes.
# - "number" if all labels are numbers, some with fractions, and more than `MANY` of them are different.
# - "class" otherwise.

Kind = Literal["class", "several", "number"]
Targets = np.ndarray | MultiLabels
MANY = 20  # with more different numbers than this, labels with fractions are numbers and not classes


class LabelLines(NamedTuple):
    """The lines of a file of labels; a node may have several lines."""

    where: str  # name of the file, for errors
    ids: np.ndarray  # (lines,)
    values: pl.Series  # (lines,), as `plain` returns them, without missing values


def label_kind(lines: LabelLines) -> Kind:
    """Return the kind of labels, recognised from their values.

    >>> import polars as pl
    >>> label_kind(LabelLines("tags.txt", np.array([1, 1, 2]), pl.Series(["net", "text", "net"])))
    'several'
    """
    if len(np.unique(lines.ids)) < len(lines.ids):
        return "several"
    if lines.values.dtype.is_float() and lines.values.n_unique() > MANY:
        return "number"
    return "class" if _separator(lines.values) is None else "several"


def _separator(values: pl.Series) -> str | None:
    """Return the separator of several labels; "" if they are lists, None if each line has one label."""
    (column,) = infer_columns(values.alias("label").to_frame())
    if column.kind != "list":
        return None
    return "" if column.option is None else str(column.option)


def to_targets(lines: LabelLines, kind: Kind, separator: str | None = None) -> tuple[np.ndarray, Targets]:
    """Return the id of each node once, and the targets: classes (str), numbers (float64) or `MultiLabels`."""
    ids, first, rows = np.unique(lines.ids, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # keeps the order of the file
    if kind == "several":
        place = np.empty(len(ids), dtype=np.int64)
        place[order] = np.arange(len(ids))
        at, pieces = _split(lines, separator, repeated=len(ids) < len(rows))
        return ids[order], MultiLabels.from_pairs(place[rows][at], pieces, len(ids))
    if len(ids) < len(rows):
        twice = ids[np.argmax(np.bincount(rows) > 1)]
        raise GraphError(f"{lines.where}: node {twice.item()!r} has several labels; score them as multilabel")
    if kind == "class":
        return lines.ids, as_texts(_unlisted(lines)).to_numpy().astype(str)
    numbers = as_numbers(_unlisted(lines))
    if numbers.null_count():
        bad = int(numbers.is_null().arg_max() or 0)
        found = f"{lines.where}: the label {lines.values[bad]!r} of node {lines.ids[bad].item()!r} is not a number;"
        raise GraphError(f"{found} give only numbers, or score classes")
    return lines.ids, numbers.to_numpy().astype(np.float64)


def _unlisted(lines: LabelLines) -> pl.Series:
    if isinstance(lines.values.dtype, pl.List):
        raise GraphError(f"{lines.where}: the labels are lists; score them as multilabel")
    return lines.values


def _split(lines: LabelLines, separator: str | None, *, repeated: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the line of each label, and the labels; a separator that is not given is inferred."""
    values = lines.values
    if not isinstance(values.dtype, pl.List):
        texts = as_texts(values)
        found = (mark for mark in (*SEPARATORS, "\t") if texts.str.contains(mark, literal=True).any())
        between = separator or _separator(values) or next(found, None) or (None if repeated else " ")
        values = split_list(texts, between)
    table = pl.DataFrame({"line": np.arange(len(values)), "label": values}).explode("label")
    table = table.with_columns(pl.col("label").cast(pl.String).str.strip_chars()).filter(pl.col("label") != "")
    if not len(table):
        raise GraphError(f"{lines.where}: no line has a label; write a node, a tab and its label")
    return table["line"].to_numpy(), table["label"].to_numpy().astype(str)


def label_lines(where: str, ids: np.ndarray, values: pl.Series) -> LabelLines:
    """Return the lines that have a label; `where` names the file in errors."""
    found = plain(values)
    if found is None:
        raise GraphError(f"{where}: the labels have type {values.dtype}; give text, numbers or lists of text")
    known = found.is_not_null()
    return LabelLines(where, ids[known.to_numpy()], found.filter(known))


def label_series(labels: np.ndarray) -> pl.Series:
    """Return labels as a column of strings."""
    return pl.Series("label", labels.tolist(), dtype=pl.String)


# A label file has one node per line, `node<TAB>label`; spaces or a comma may replace the tab.

NODE_TITLES = ("node", "id", "node_id", "nodeid", "name")
LABEL_TITLES = ("label", "labels", "class", "classes", "category", "type", "group", "y", "target")


@dataclass(frozen=True, slots=True)
class LabelPairs:
    """The nodes in a label file, as strings, with their line numbers and labels."""

    path: Path
    nodes: pl.Series
    lines: pl.Series
    labels: np.ndarray


def read_pairs(path: Path) -> LabelPairs:
    """Read a label file and check every line; `to_array` checks that its nodes are in the graph."""
    table = read_lines(read_text(path, "label file"))
    if not len(table):  # every line has only spaces of Unicode
        raise empty_error(path, "label file")
    pair = table["text"].str.strip_chars().str.extract_groups(r"^([^\s,]+)[\s,]+(.+)$").struct.unnest()
    table = table.with_columns(pair.rename({"1": "node", "2": "label"}))
    if table["label"].null_count():
        bad = table.filter(pl.col("label").is_null()).row(0, named=True)
        word = bad["text"].strip()
        fail(path, bad["line"], f"'{word}' has no label; write a node, a tab and its label, or remove the line")
    first = table.row(0, named=True)
    if first["node"].lower() in NODE_TITLES and first["label"].lower() in LABEL_TITLES:
        fail(path, first["line"], f"'{first['text'].strip()}' are column titles; put # before them")
    missing = table.filter(pl.col("node").is_in(MISSING) | pl.col("label").str.strip_chars('"').is_in(MISSING))
    if len(missing):  # `nan` is not a class
        bad = missing.row(0, named=True)
        end = "node" if bad["node"] in MISSING else "label"
        fail(path, bad["line"], f"the {end} '{bad[end]}' means a missing value; remove the line, or give the {end}")
    return LabelPairs(path, table["node"], table["line"], table["label"].to_numpy().astype(str))


def read_labels(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids, integers if all of them are, and the labels, with spaces, in a label file: both (lines,)."""
    pairs = read_pairs(Path(path))
    ids = _ids(pairs)
    place_nodes(pairs.path, pairs.nodes, pairs.lines, np.unique(ids))
    return ids, pairs.labels


def read_file_lines(path: str | Path) -> LabelLines:
    """Read a label file in which a node may have several lines and a line several labels."""
    pairs = read_pairs(Path(path))
    return label_lines(str(path), _ids(pairs), label_series(pairs.labels))


def _ids(pairs: LabelPairs) -> np.ndarray:
    """Return the id of each line's node; ids are integers if all of them are."""
    numbers = as_integers(pairs.nodes)
    return _id_array(pairs.nodes if numbers is None else numbers)


def _id_array(ids: pl.Series) -> np.ndarray:
    return ids.to_numpy() if ids.dtype.is_integer() else ids.to_numpy().astype(str)


def to_array(pairs: LabelPairs, ids: np.ndarray) -> np.ndarray:
    """Return one label per id; it is "" for nodes that are not in the file."""
    labels = np.full(len(ids), "", dtype=pairs.labels.dtype)
    labels[place_nodes(pairs.path, pairs.nodes, pairs.lines, ids)] = pairs.labels
    return labels


class ReadOptions(EdgeOptions, NodeOptions, total=False):
    """The options of `neural_brane.files.graphs.formats.read_graph`."""

    attributes: str | Path | None
    labels: str | Path | None
    nodes: str | Path | None
    duplicates: Duplicates
    self_loops: SelfLoops


def join_node_table(graph: AttributedGraph, path: str | Path, **options: Unpack[NodeOptions]) -> AttributedGraph:
    """Return a graph joined with the table of nodes in a file."""
    frame, place = read_node_frame(path)
    return graph.joined(frame, place=place, **options)


def read_node_frame(path: str | Path) -> tuple[pl.DataFrame, Place]:
    """Return the table of nodes in a file, and its origin for error messages."""
    file = read_frame(path, what="table of nodes", titled=True)
    return file.frame, file.place


def read_label_table(
    path: str | Path, *, id: str | None = None, label: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and labels, both (rows,), from two columns of a table; a table of two columns needs no names."""
    ids, column, place = _label_columns(path, id, label)
    check_distinct(ids, place)
    lines = label_lines(place.where, _id_array(ids), column)
    return lines.ids, as_texts(_unlisted(lines)).to_numpy().astype(str)


def read_label_lines(path: str | Path, *, id: str | None = None, label: str | None = None) -> LabelLines:
    """Return ids and labels of any kind from two columns of a table; a node may have several rows."""
    ids, column, place = _label_columns(path, id, label)
    return label_lines(place.where, _id_array(ids), column)


def _label_columns(path: str | Path, id: str | None, label: str | None) -> tuple[pl.Series, pl.Series, Place]:
    """Return the columns of ids and of labels, and their origin for error messages."""
    file = read_frame(path, what="table of labels", titled=True)
    place, frame = file.place, file.frame
    names = [_choose(frame, given, role, place) for given, role in ((id, "id"), (label, "label"))]
    return id_column(frame[names[0]], place, needs="a label needs a node"), frame[names[1]], place


def _choose(frame: pl.DataFrame, given: str | None, role: str, place: Place) -> str:
    """Return the name of the given column; without one, the first of two for ids, the second for labels."""
    listed = ", ".join(map(repr, frame.columns))
    if given is None and len(frame.columns) == 2:
        return frame.columns[role == "label"]
    if given is None:
        raise GraphError(f"{place.where}: give the column of the {role}s with --{role} NAME; the columns are {listed}")
    return find_column(frame.columns, given, place.where)


def given_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that differ from their defaults; that of `missing` is "none"."""
    return {name: value for name, value in options.items() if value not in (None, (), [], {}, "none")}
