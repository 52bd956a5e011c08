"""Read what files say of nodes: attributes, labels, numbers to predict, and tables with all of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.files.graphs.edge_table import EdgeOptions
from neural_brane.files.tables import ENDINGS, empty, fail, read_frame, read_lines, read_text, read_words, table_suffix
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import Duplicates, SelfLoops, compact, merge
from neural_brane.graph.columns import SEPARATORS, as_numbers, as_texts, infer_columns, plain
from neural_brane.graph.frames import Place, find_column, id_column
from neural_brane.graph.ids import MISSING, all_integers, encode, locate
from neural_brane.graph.labels import MultiLabels
from neural_brane.graph.lazy import pl
from neural_brane.graph.nodes import NodeOptions, check_distinct

# Attribute files: one node per line, `node id:value id:value ...`, where an `id` alone means `id:1`.

MEND_UNKNOWN = "give the node a line of its own in the graph file, or remove this line"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of an attribute file: their nodes, and for every entry its row, its name and its value."""

    path: Path
    nodes: pl.Series
    lines: pl.Series
    row: np.ndarray
    names: pl.Series
    values: np.ndarray


def parse_rows(path: Path, data: bytes, first_line: int = 1) -> Rows:
    """Read lines of an attribute file, without comments; `first_line` is the number of the first.

    Every word is checked; `to_matrix` checks that the nodes are in the graph.
    """
    words = read_words(data).with_columns(pl.col("line") + (first_line - 1))
    # The first word is a node, and a colon in it is part of its name.
    nodes = words.filter("first").select("line", node=pl.concat_str("name", "value", separator=":", ignore_nulls=True))
    row = np.cumsum(words["first"].to_numpy()) - 1
    entries = words.filter(~pl.col("first"))
    values = entries["value"].fill_null("1").cast(float, strict=False).cast(pl.Float32).fill_null(np.nan)
    finite = values.is_finite() & entries["name"].is_not_null() & ~entries["name"].str.ends_with(":")
    if not finite.fill_null(False).all():
        bad = entries.filter(~finite.fill_null(False)).row(0, named=True)
        word = ":".join(part for part in (bad["name"] or "", bad["value"]) if part is not None)
        fail(
            path,
            bad["line"],
            f"attribute '{word}' is not ID or ID:VALUE; write one node per line, as in '17 3:1 8:1'",
        )
    return Rows(
        path,
        nodes["node"],
        nodes["line"],
        row[~words["first"].to_numpy()],
        entries["name"],
        values.to_numpy(),
    )


def to_matrix(rows: Rows, ids: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
    """Return the (ids, attributes) matrix, and the attributes' names: those that occur.

    An attribute that a node lists twice counts once, with its largest value.
    """
    places = place_nodes(rows.path, rows.nodes, rows.lines, ids)
    names = rows.names.cast(int).to_numpy() if all_integers(rows.names) else rows.names
    columns, names = encode(names)
    keys, values = merge(places[rows.row] * max(len(names), 1) + columns, rows.values, "max")
    keys, values = keys[values != 0], values[values != 0]
    row, column = np.divmod(keys, max(len(names), 1))
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(ids)))])
    return compact(sparse.csr_array((values, column, starts), shape=(len(ids), len(names)))), names


def place_nodes(path: Path, nodes: pl.Series, lines: pl.Series, ids: np.ndarray) -> np.ndarray:
    """Find the position in ids of each line's node; refuse unknown nodes and nodes with two lines."""
    places = locate(ids, nodes)
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


# What is to be predicted of each node: a class, several labels or a number; read off the labels if nobody says it.
#
# - Several: a node has several lines, a column holds lists, or short values stand between `;`, `|` or commas, which a
#   table of nodes would take for a list.
# - Numbers: all labels are numbers, some have a fraction, and there are more than `MANY` different ones.
# - Classes: anything else.

Kind = Literal["class", "several", "number"]
Targets = np.ndarray | MultiLabels
MANY = 20  # different numbers with fractions are no classes


class LabelLines(NamedTuple):
    """Labels as they were read: a node may have several lines."""

    where: str  # a file's name, for messages
    ids: np.ndarray  # (lines,)
    values: pl.Series  # of a kind that `plain` gives, none of them missing


def kind_of(lines: LabelLines) -> Kind:
    """Tell the kind of labels by their values.

    >>> import polars as pl
    >>> kind_of(LabelLines("tags.txt", np.array([1, 1, 2]), pl.Series(["net", "text", "net"])))
    'several'
    """
    if len(np.unique(lines.ids)) < len(lines.ids):
        return "several"
    if lines.values.dtype.is_float() and lines.values.n_unique() > MANY:
        return "number"
    return "class" if _separator(lines.values) is None else "several"


def _separator(values: pl.Series) -> str | None:
    """Find the separator of several labels; "" where they are lists, None where there is one label alone."""
    (column,) = infer_columns(values.alias("label").to_frame())
    if column.kind != "list":
        return None
    return "" if column.option is None else str(column.option)


def to_targets(lines: LabelLines, kind: Kind, separator: str | None = None) -> tuple[np.ndarray, Targets]:
    """Each node once, and what is to be predicted of it: classes (str), numbers (float64) or `MultiLabels`.

    separator: between several labels of a line.
    """
    ids, first, rows = np.unique(lines.ids, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")  # nodes stay in the order of the file
    if kind == "several":
        place = np.empty(len(ids), dtype=np.int64)
        place[order] = np.arange(len(ids))
        at, pieces = _split(lines, separator, repeated=len(ids) < len(rows))
        return ids[order], MultiLabels.of_pairs(place[rows][at], pieces, len(ids))
    if len(ids) < len(rows):
        twice = ids[np.argmax(np.bincount(rows) > 1)]
        raise GraphError(f"{lines.where}: node {twice.item()!r} has several labels; score several labels (multilabel)")
    if kind == "class":
        return lines.ids, as_texts(_unlisted(lines)).to_numpy().astype(str)
    numbers = as_numbers(_unlisted(lines))
    if numbers.null_count():
        bad = int(numbers.is_null().arg_max() or 0)
        raise GraphError(
            f"{lines.where}: the label {lines.values[bad]!r} of node {lines.ids[bad].item()!r} is not a number; "
            "give numbers alone, or score classes"
        )
    return lines.ids, numbers.to_numpy().astype(np.float64)


def _unlisted(lines: LabelLines) -> pl.Series:
    if isinstance(lines.values.dtype, pl.List):
        raise GraphError(f"{lines.where}: the labels are lists; score several labels (multilabel)")
    return lines.values


def _split(lines: LabelLines, separator: str | None, *, repeated: bool) -> tuple[np.ndarray, np.ndarray]:
    """The line of each label, and the labels.

    Without a separator, it is the one that lists of a table would have; or a semicolon, bar, comma or tab that occurs
    anywhere; or, where no node has several lines, spaces.
    """
    values = lines.values
    if not isinstance(values.dtype, pl.List):
        texts = as_texts(values)
        found = (mark for mark in (*SEPARATORS, "\t") if texts.str.contains(mark, literal=True).any())
        between = separator or _separator(values) or next(found, None) or (None if repeated else " ")
        values = texts.str.split(between) if between else texts.to_frame().select(pl.concat_list(pl.all())).to_series()
    table = pl.DataFrame({"line": np.arange(len(values)), "label": values}).explode("label")
    table = table.with_columns(pl.col("label").cast(pl.String).str.strip_chars()).filter(pl.col("label") != "")
    if not len(table):
        raise GraphError(f"{lines.where}: no line has a label")
    return table["line"].to_numpy(), table["label"].to_numpy().astype(str)


def plain_lines(where: str, ids: np.ndarray, values: pl.Series) -> LabelLines:
    """The lines that have a label, their values in one form."""
    found = plain(values)
    if found is None:
        raise GraphError(f"{where}: the labels hold {values.dtype}; give text, numbers or lists of text")
    known = found.is_not_null()
    return LabelLines(where, ids[known.to_numpy()], found.filter(known))


def as_series(labels: np.ndarray) -> pl.Series:
    """Return labels that are words as a column."""
    return pl.Series("label", labels.tolist(), dtype=pl.String)


# Label files: one node per line, `node<TAB>label`; spaces or a comma may stand for the tab.

NODE_TITLES = ("node", "id", "node_id", "nodeid", "name")
LABEL_TITLES = ("label", "labels", "class", "classes", "category", "type", "group", "y", "target")


@dataclass(frozen=True, slots=True)
class Pairs:
    """The lines of a label file: their nodes, as written, and their labels."""

    path: Path
    nodes: pl.Series
    lines: pl.Series
    labels: np.ndarray


def read_pairs(path: Path) -> Pairs:
    """Read a label file and check every line; `to_array` checks that its nodes are in the graph."""
    table = read_lines(read_text(path, "label file"))
    if not len(table):  # blanks that only Unicode knows
        raise empty(path, "label file")
    pair = table["text"].str.strip_chars().str.extract_groups(r"^([^\s,]+)[\s,]+(.+)$").struct.unnest()
    table = table.with_columns(pair.rename({"1": "node", "2": "label"}))
    if table["label"].null_count():
        bad = table.filter(pl.col("label").is_null()).row(0, named=True)
        word = bad["text"].strip()
        fail(path, bad["line"], f"'{word}' has no label; write a node, a tab and its label, or remove the line")
    first = table.row(0, named=True)
    if first["node"].lower() in NODE_TITLES and first["label"].lower() in LABEL_TITLES:
        fail(path, first["line"], f"'{first['text'].strip()}' are titles of columns; put # before them")
    missing = table.filter(pl.col("node").is_in(MISSING) | pl.col("label").str.strip_chars('"').is_in(MISSING))
    if len(missing):  # `nan` is no class
        bad = missing.row(0, named=True)
        end = "node" if bad["node"] in MISSING else "label"
        fail(path, bad["line"], f"the {end} '{bad[end]}' stands for no value; remove the line, or give the {end}")
    return Pairs(path, table["node"], table["line"], table["label"].to_numpy().astype(str))


def read_labels(path: str | Path) -> tuple[np.ndarray, np.ndarray]:
    """Read a label file: return the nodes' ids and, in the same order, their labels.

    Ids are integers if all of them are; a label is the rest of the line after the id, spaces included.
    """
    pairs = read_pairs(Path(path))
    ids = _ids(pairs)
    place_nodes(pairs.path, pairs.nodes, pairs.lines, np.unique(ids))
    return ids, pairs.labels


def read_file_lines(path: str | Path) -> LabelLines:
    """Read a label file in which a node may have several lines, and a line several labels."""
    pairs = read_pairs(Path(path))
    return plain_lines(str(path), _ids(pairs), as_series(pairs.labels))


def _ids(pairs: Pairs) -> np.ndarray:
    """Return the node of each line, an integer if all of them are."""
    return _id_array(pairs.nodes.cast(int) if all_integers(pairs.nodes) else pairs.nodes)


def _id_array(ids: pl.Series) -> np.ndarray:
    return ids.to_numpy() if ids.dtype.is_integer() else ids.to_numpy().astype(str)


def to_array(pairs: Pairs, ids: np.ndarray) -> np.ndarray:
    """Return one label per id, "" for nodes that the file does not mention."""
    labels = np.full(len(ids), "", dtype=pairs.labels.dtype)
    labels[place_nodes(pairs.path, pairs.nodes, pairs.lines, ids)] = pairs.labels
    return labels


# Tables of nodes and of labels in files.


class ReadOptions(EdgeOptions, NodeOptions, total=False):
    """The options of `neural_brane.files.graphs.formats.read_graph`."""

    attributes: str | Path | None
    labels: str | Path | None
    nodes: str | Path | None
    duplicates: Duplicates
    self_loops: SelfLoops


def is_table(path: str | Path) -> bool:
    """Tell whether a name ends like that of a table file."""
    return table_suffix(path) in ENDINGS


def join_node_table(graph: AttributedGraph, path: str | Path, **options: Unpack[NodeOptions]) -> AttributedGraph:
    """Join the table of nodes in a file to a graph."""
    frame, place = read_node_frame(path)
    return graph.joined(frame, place=place, **options)


def read_node_frame(path: str | Path) -> tuple[pl.DataFrame, Place]:
    """The table of nodes in a file, and where it comes from, for messages."""
    file = read_frame(path, what="table of nodes", titled=True)
    return file.frame, file.place


def read_label_table(
    path: str | Path, *, id: str | None = None, label: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Read ids and labels from two columns of a table; without their names, it must have two columns alone."""
    ids, column, place = _label_columns(path, id, label)
    check_distinct(ids, place)
    lines = plain_lines(place.where, _id_array(ids), column)
    return lines.ids, as_texts(_unlisted(lines)).to_numpy().astype(str)


def read_label_lines(path: str | Path, *, id: str | None = None, label: str | None = None) -> LabelLines:
    """Read ids and labels of any kind from two columns of a table; a node may have several lines."""
    ids, column, place = _label_columns(path, id, label)
    return plain_lines(place.where, _id_array(ids), column)


def _label_columns(path: str | Path, id: str | None, label: str | None) -> tuple[pl.Series, pl.Series, Place]:
    """The columns of ids and of labels, and where they are."""
    file = read_frame(path, what="table of labels", titled=True)
    place, frame = file.place, file.frame
    names = [_choose(frame, given, role, place) for given, role in ((id, "id"), (label, "label"))]
    return id_column(frame[names[0]], place, needs="a label needs a node"), frame[names[1]], place


def _choose(frame: pl.DataFrame, given: str | None, role: str, place: Place) -> str:
    """The column of a role: as given, or the first of two for ids and the second for labels."""
    listed = ", ".join(map(repr, frame.columns))
    if given is None and len(frame.columns) == 2:
        return frame.columns[role == "label"]
    if given is None:
        raise GraphError(f"{place.where}: which column is the {role}? Say so with --{role} NAME; there are {listed}")
    return find_column(frame.columns, given, place.where)


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that say something; missing="none" is the usual."""
    return {name: value for name, value in options.items() if value not in (None, (), [], {}, "none")}
