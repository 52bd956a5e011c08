"""Label files: one node per line, `node<TAB>label`; spaces or a comma may stand for the tab."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neural_brane.graph.ids import MISSING, all_integers
from neural_brane.io.attributes import place_nodes
from neural_brane.io.lines import empty, fail, read_lines, read_text
from neural_brane.io.targets import LabelLines, as_series, plain_lines

if TYPE_CHECKING:
    import polars as pl

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
    import polars as pl

    table = read_lines(read_text(path, "label file"))
    if not len(table):  # blanks that only Unicode knows
        raise empty(path, "label file")
    pair = table["text"].str.strip_chars().str.extract_groups(r"^([^\s,]+)[\s,]+(.+)$").struct.unnest()
    table = table.with_columns(pair.rename({"1": "node", "2": "label"}))
    if table["label"].null_count():
        bad = table.filter(pl.col("label").is_null()).row(0, named=True)
        word = bad["text"].strip()
        fail(path, bad["line"], f"'{word}' has no label; write a node, a tab and its label, or remove the line")
    _check_values(path, table)
    return Pairs(path, table["node"], table["line"], table["label"].to_numpy().astype(str))


def _check_values(path: Path, table: pl.DataFrame) -> None:
    """Refuse the titles of columns, and words that stand for no value: `nan` is no class."""
    import polars as pl

    first = table.row(0, named=True)
    if first["node"].lower() in NODE_TITLES and first["label"].lower() in LABEL_TITLES:
        fail(path, first["line"], f"'{first['text'].strip()}' are titles of columns; put # before them")
    missing = table.filter(pl.col("node").is_in(MISSING) | pl.col("label").str.strip_chars('"').is_in(MISSING))
    if len(missing):
        bad = missing.row(0, named=True)
        end = "node" if bad["node"] in MISSING else "label"
        fail(path, bad["line"], f"the {end} '{bad[end]}' stands for no value; remove the line, or give the {end}")


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
    """The node of each line, an integer if all of them are."""
    return pairs.nodes.cast(int).to_numpy() if all_integers(pairs.nodes) else pairs.nodes.to_numpy().astype(str)


def to_array(pairs: Pairs, ids: np.ndarray) -> np.ndarray:
    """Return one label per id, "" for nodes that the file does not mention."""
    labels = np.full(len(ids), "", dtype=pairs.labels.dtype)
    labels[place_nodes(pairs.path, pairs.nodes, pairs.lines, ids)] = pairs.labels
    return labels
