"""Edges from a large table of text: block by block, so that the table itself is never in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph.edge_columns import EdgeColumns, Place, column_weights, edge_columns, side_by_side
from neural_brane.graph.ids import MISSING, all_integers
from neural_brane.graph.numbering import Names, Numbering, names_of, renumber
from neural_brane.io.edge_table import Edges
from neural_brane.io.fields import split_fields
from neural_brane.io.frames import TableReader
from neural_brane.io.text_blocks import Block
from neural_brane.io.text_frames import column_names, parse_block

if TYPE_CHECKING:
    from neural_brane.io.dialect import Dialect

SAMPLE = 1000  # records from which columns are chosen


def read_edge_blocks(reader: TableReader, columns: dict[str, str | int | None]) -> Edges:
    """Read the edges of a table as `read_edge_table` does, in the memory of the result and a few blocks."""
    dialect = reader.dialect
    if dialect is None:
        raise GraphError(f"{reader.path}: only text is read in blocks")
    numbering, weights, places = Numbering(), [], []
    chosen: EdgeColumns | None = None
    for block in reader.blocks():
        if chosen is None:
            chosen = choose_block_columns(reader, block, dialect, columns)
        names, place, read = read_block(reader, block, dialect, chosen)
        numbering.add(names)
        places.append((len(names.starts) // 2, place))
        if read is not None:
            weights.append(read)
    if chosen is None:
        raise GraphError(f"{reader.path}: the table of edges has no rows under its titles; give at least one")
    ends, ids = numbering.finish()
    _check_missing(ids, ends, places, chosen)
    ends, ids = _as_integers(ends, ids)
    return Edges(
        ids, ends.reshape(-1, 2), np.concatenate(weights) if weights else None, 0, f"{reader.told}; {chosen.told}"
    )


def choose_block_columns(
    reader: TableReader, block: Block, dialect: Dialect, columns: dict[str, str | int | None]
) -> EdgeColumns:
    """Choose the columns by the first records."""
    sample = b"".join(line + b"\n" for line in block.data[: 1 << 20].split(b"\n", SAMPLE)[:-1])
    first = Block(sample, block.line, sample.count(b"\n")) if b'"' not in sample else block
    frame, lines = parse_block(reader.path, first, dialect)
    return edge_columns(frame, where=str(reader.path), first_line=block.line, lines=lines, **columns)


def read_block(
    reader: TableReader, block: Block, dialect: Dialect, chosen: EdgeColumns
) -> tuple[Names, Place, np.ndarray | None]:
    """Return the two ids of every record of a block, where the records stand, and their weights."""
    titles = column_names(dialect)
    source, target, weight = chosen.names
    place = Place(str(reader.path), block.line)
    names = None
    if b'"' not in block.data:
        names = split_fields(block, dialect.separator, dialect.columns, (titles.index(source), titles.index(target)))
    if names is not None and weight is None:
        return names, place, None
    frame, lines = parse_block(reader.path, block, dialect)
    place = Place(str(reader.path), block.line, lines)
    if names is None:
        edge_columns(frame, source=source, target=target, where=place.where, first_line=block.line, lines=lines)
        names = names_of(side_by_side(frame[source], frame[target]))
    return names, place, None if weight is None else column_weights(frame[weight], place)


def _check_missing(ids: np.ndarray, ends: np.ndarray, places: list[tuple[int, Place]], chosen: EdgeColumns) -> None:
    """Refuse ids that stand for no value, with the line of the first."""
    bad = np.flatnonzero(np.isin(ids, MISSING))
    if len(bad) == 0:
        return
    at = int(np.argmax(ends == bad[0]))
    row, word = at // 2, ids[bad[0]]
    for rows, place in places:
        if row < rows:
            raise place.error(
                row,
                f"column '{chosen.names[at % 2]}' holds '{word}', which stands for no value, and an edge needs two "
                "nodes; fill it in, or remove the row",
            )
        row -= rows


def _as_integers(ends: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ids that are all integers as int64, in increasing order."""
    import polars as pl

    if not all_integers(pl.Series(ids[:100])) or not all_integers(pl.Series(ids)):
        return ends, ids
    numbers = ids.astype(np.int64)
    order = np.argsort(numbers)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    renumber(ends, rank)
    return ends, numbers[order]
