"""Attribute files: one node per line, `node id:value id:value ...`, where an `id` alone means `id:1`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from neural_brane.graph.adjacency import compact, merge
from neural_brane.graph.ids import all_integers, encode, locate
from neural_brane.io.lines import fail, read_text, read_words

if TYPE_CHECKING:
    import polars as pl

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


def read_rows(path: Path) -> Rows:
    """Read an attribute file and check every word; `to_matrix` checks that its nodes are in the graph."""
    return parse_rows(path, read_text(path, "attribute file"))


def parse_rows(path: Path, data: bytes, first_line: int = 1) -> Rows:
    """The rows of some lines of an attribute file, without comments; `first_line` is the number of the first."""
    import polars as pl

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
