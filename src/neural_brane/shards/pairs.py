"""Pairs of names out of tables, a block at a time: edges, or nodes with their attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph.edge_columns import EdgeColumns, Place, edge_columns, side_by_side
from neural_brane.graph.ids import MISSING
from neural_brane.graph.numbering import Names, names_of
from neural_brane.io.compressed import Unpacked
from neural_brane.io.edge_blocks import choose_block_columns, read_block
from neural_brane.io.edge_table import WHAT
from neural_brane.io.frames import TableReader
from neural_brane.io.text_blocks import Block
from neural_brane.shards.names import as_integers, spell_names
from neural_brane.shards.order import in_order

if TYPE_CHECKING:
    import polars as pl

ROWS = 1 << 19  # of a Parquet file that are read at once
LONGEST_MISSING = max(map(len, MISSING))


class Pairs(NamedTuple):
    """A block of pairs: the two names of the first, of the second, …, or integers; and weights, None where all are 1.

    `alone` marks pairs that stand for one node without an edge, or is None; `size` is that of the block in its file.
    """

    names: Names | np.ndarray
    weights: np.ndarray | None
    alone: np.ndarray | None
    size: int

    @property
    def number(self) -> int:
        """How many pairs there are."""
        return (len(self.names) if isinstance(self.names, np.ndarray) else len(self.names.starts)) // 2


def integers_or_names(names: Names) -> Names | np.ndarray:
    """The integers that names spell, if all do; else the names."""
    values = as_integers(names)
    return names if values is None else values


def text_pairs(paths: Sequence[Path], options: dict[str, Any]) -> Iterator[Pairs]:
    """The edges of tables of text, block by block; the columns are those of the first table."""
    chosen: EdgeColumns | None = None
    header = options.get("header")
    columns = {name: options.get(name) for name in ("source", "target", "weight")}
    for path in paths:
        with TableReader(Unpacked(path, WHAT, streamed=True), what=WHAT, header=header) as reader:
            if reader.dialect is None:
                raise GraphError(f"{path}: is {reader.told}, unlike {paths[0]}, which is text; give tables of one kind")
            blocks = reader.blocks()
            if (first := next(blocks, None)) is None:
                continue
            chosen = chosen or choose_block_columns(reader, first, reader.dialect, columns)
            yield from in_order(partial(_text_block, reader, chosen), chain([first], blocks))
    if chosen is None:
        raise GraphError(f"{paths[0]}: the table of edges has no rows under its titles; give at least one")


def _text_block(reader: TableReader, chosen: EdgeColumns, block: Block) -> Pairs:
    if reader.dialect is None:
        raise GraphError(f"{reader.path}: only text is read in blocks")
    names, place, weights = read_block(reader, block, reader.dialect, chosen)
    check_missing(names, place, chosen.names[:2])
    return Pairs(integers_or_names(names), weights, None, len(block.data))


def parquet_pairs(paths: Sequence[Path], options: dict[str, Any], rows: int = ROWS) -> Iterator[Pairs]:
    """The edges of Parquet files, some rows at a time; the columns are those of the first file."""
    names, done = None, 0
    options = {name: options.get(name) for name in ("source", "target", "weight")}
    for path in paths:
        for frame in parquet_frames(path, rows):
            if names is None:
                found = edge_columns(frame, where=str(path), **options)
                names = found.names
            else:
                _check_columns(path, frame, names)
                given: dict[str, Any] = dict(zip(("source", "target", "weight"), names, strict=True))
                found = edge_columns(frame, where=f"{path}, from row {done}", **given)
            done += len(frame)
            yield Pairs(_interleaved(found), found.weights, None, len(frame))
    if names is None:
        raise GraphError(f"{paths[0]}: the table of edges has no rows; give at least one")


def parquet_frames(path: Path, rows: int = ROWS) -> Iterator[pl.DataFrame]:
    """The rows of a Parquet file, some at a time."""
    import polars as pl

    try:
        table = pl.scan_parquet(path)
        total = int(table.select(pl.len()).collect().item())
        for at in range(0, total, rows):
            yield table.slice(at, rows).collect()
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0][:200]
        raise GraphError(f"{path}: cannot be read as Parquet ({reason}); write the file again") from None


def _check_columns(path: Path, frame: pl.DataFrame, names: tuple[str, str, str | None]) -> None:
    if lacking := [name for name in names if name is not None and name not in frame.columns]:
        raise GraphError(f"{path}: has no column '{lacking[0]}', as the first file has; give tables of one kind")


def _interleaved(found: EdgeColumns) -> Names | np.ndarray:
    """The ends of edges, two of each in turn: integers, or names as bytes."""
    if found.source.dtype.is_integer():
        return np.stack([found.source.to_numpy(), found.target.to_numpy()], axis=1).ravel()
    return names_of(side_by_side(found.source, found.target))


def check_missing(names: Names, place: Place, columns: Sequence[str]) -> None:
    """Refuse names that stand for no value; names are those of two columns in turn."""
    short = np.flatnonzero(names.ends - names.starts <= LONGEST_MISSING)
    letters = names.data[names.starts[short]]
    short = short[(letters > ord("9"))]  # every such word begins with a letter or '<'
    if len(short) == 0:
        return
    words = spell_names(Names(names.data, names.starts[short], names.ends[short]))
    bad = np.flatnonzero(np.isin(words, MISSING))
    if len(bad):
        at = int(short[bad[0]])
        raise place.error(
            at // 2,
            f"column '{columns[at % 2]}' holds '{words[bad[0]]}', which stands for no value, and an edge needs two "
            "nodes; fill it in, or remove the row",
        )
