"""Attributes of nodes, a block at a time: from attribute files, and from Parquet with a row for each entry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph.edge_columns import Place, id_column
from neural_brane.graph.numbering import Names, names_of
from neural_brane.io.attributes import parse_rows
from neural_brane.shards.lines import text_blocks
from neural_brane.shards.pairs import parquet_frames


class Bags(NamedTuple):
    """A block of attribute lines: their nodes and line numbers, and for each entry its row, its name and its amount."""

    nodes: Names
    lines: np.ndarray | None  # None where a node may stand in several rows
    row: np.ndarray
    names: Names
    amounts: np.ndarray
    size: int


def bag_lines(path: Path) -> Iterator[Bags]:
    """The lines of an attribute file, a block at a time."""
    empty = True
    for block in text_blocks(path, "attribute file"):
        if not block.data.strip(b" \t,\n\v\f"):
            continue
        rows, empty = parse_rows(path, block.data, block.line), False
        yield Bags(
            names_of(rows.nodes),
            rows.lines.to_numpy().astype(np.int64),
            rows.row,
            names_of(rows.names),
            rows.values,
            len(block.data),
        )
    if empty:
        raise GraphError(f"{path}: the attribute file is empty; write one entry per line")


def bag_table(path: Path) -> Iterator[Bags]:
    """The rows of a Parquet file of a node, one of its attributes and, in a third column, how much of it."""
    import polars as pl

    done = 0
    for frame in parquet_frames(path):
        place = Place(f"{path}, from row {done}")
        if not 2 <= len(frame.columns) <= 3:
            raise GraphError(
                f"{path}: has {len(frame.columns)} columns; give a node, an attribute and perhaps an amount"
            )
        node, name, *rest = frame.columns
        nodes = id_column(frame[node], place, needs="a node needs an id").cast(pl.String)
        names = id_column(frame[name], place, needs="an attribute needs a name").cast(pl.String)
        amounts = np.ones(len(frame), np.float32)
        if rest:
            amounts = frame[rest[0]].cast(pl.Float32, strict=False).fill_null(np.nan).to_numpy()
            if not np.isfinite(amounts).all():
                row = int(np.argmin(np.isfinite(amounts)))
                raise place.error(
                    row, f"the amount in column '{rest[0]}' is {frame[rest[0]][row]}; give finite numbers"
                )
        done += len(frame)
        yield Bags(names_of(nodes), None, np.arange(len(frame)), names_of(names), amounts, len(frame))
    if done == 0:
        raise GraphError(f"{path}: the table of attributes has no rows; give at least one")
