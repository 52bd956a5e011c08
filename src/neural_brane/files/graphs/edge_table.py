"""Read edges from a table file; read a large text file block by block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TypedDict, Unpack

import numpy as np
from numba import njit

from neural_brane.errors import GraphError
from neural_brane.files.reading import LINE_FEED, Block, Unpacked
from neural_brane.files.tables import Dialect, FrameFile, TableReader, column_names, parse_block, read_frame
from neural_brane.graph import frames
from neural_brane.graph import numbering as numbered
from neural_brane.graph.frames import EdgeColumns, Place, column_weights, edge_columns, id_column, name_two_kinds
from neural_brane.graph.ids import MISSING, WHOLE, all_integers, as_integers
from neural_brane.graph.lazy import pl
from neural_brane.graph.numbering import PADDING, Names, Numbering, first_mark, load_word, marks, names_in_bytes

SPACE = ord(" ")


class ColumnOptions(TypedDict, total=False):
    """Columns of edges by name or position, recognised if left out; `same_ids`: both name nodes of one kind."""

    source: str | int | None
    target: str | int | None
    weight: str | int | None
    same_ids: bool | None


class EdgeOptions(ColumnOptions, total=False):
    """Options for reading a table of edges. `header` is True if the first line holds titles; None recognises it."""

    header: bool | None


@njit(nogil=True, cache=True)
def find_fields(data, size, form, starts, ends):
    """Write where two fields per record begin and end to `starts` and `ends`; return whether all are plain."""
    separator, columns, source, target = form
    at, record = 0, 0
    while at < size:
        for column in range(columns):
            start = at
            while True:
                word = load_word(data, at)
                found = marks(word, separator) | marks(word, LINE_FEED)
                if found:
                    at += first_mark(found)
                    break
                at += 8
            if (data[at] == LINE_FEED) != (column == columns - 1):
                return False
            if column in (source, target):
                if at == start or data[start] <= SPACE or data[at - 1] <= SPACE:
                    return False
                place = 2 * record + (column == target)
                starts[place], ends[place] = start, at
            at += 1
        record += 1
    return True


BlockEdges = tuple[Names, Place, np.ndarray | None]  # ids, place in the file, weights
SAMPLE = 1000  # records used to choose the columns


def read_edge_blocks(reader: TableReader, columns: ColumnOptions) -> Edges:
    """Read edges as `read_edge_table` does, but keep only the result and a few blocks in memory."""
    dialect = reader.dialect
    if dialect is None:
        raise GraphError(f"{reader.path}: only text can be read in blocks")
    blocks = reader.blocks()
    first = next(blocks, None)
    if first is None:
        raise GraphError(f"{reader.path}: the table of edges has no rows; give at least one")
    chosen = choose_block_columns(reader, first, dialect, columns)
    numbering, weights, places = Numbering(), [], []
    for names, place, read in ahead(read_block(reader, block, dialect, chosen) for block in chain([first], blocks)):
        numbering.add(names)
        places.append((len(names.starts) // 2, place))
        if read is not None:
            weights.append(read)
    ends, ids = numbering.finish()
    _check_missing(ids, ends, places, chosen)
    ids, ends = _as_numbers(ids, ends)
    if not columns.get("same_ids") and name_two_kinds(*chosen.names[:2]):
        shared = np.intersect1d(ends[0::2], ends[1::2])
        frames.refuse_shared_ids(ids[shared].tolist(), chosen.names, places[0][1])
    weight = np.concatenate(weights) if weights else None
    return _edges(reader, chosen, ids, ends.reshape(-1, 2), weight)


def _edges(
    reader: TableReader | FrameFile, chosen: EdgeColumns, ids: np.ndarray, ends: np.ndarray, weight: np.ndarray | None
) -> Edges:
    """Return edges with a description of the file, and a warning of what is not used."""
    warning = f"{reader.path}: {chosen.unused}" if chosen.unused else ""
    titles = chosen.names[:2] if "without a header" not in reader.description else ()
    return Edges(ids, ends, weight, 0, f"{reader.description}; {chosen.description}", warning, titles)


def _as_numbers(ids: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and ends; ids of a column in which all are whole numbers become integers, as in `id_column`."""
    if not any(re.match(WHOLE, ids[end]) for end in ends[:2]):
        return ids, ends
    words = pl.Series(ids)
    if all_integers(words):
        numbers = ids.astype(np.int64)
        order = np.argsort(numbers)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order))
        numbered.renumber(ends, rank)
        return numbers[order], ends
    sides = []
    for at in (0, 1):
        used = np.unique(ends[at::2])
        found = as_integers(words.gather(used))
        spelled = words if found is None else words.clone().scatter(used, found.cast(pl.String))
        sides.append(id_column(spelled.gather(ends[at::2]), Place("edges")))
    if sides[0].dtype != sides[1].dtype:
        sides = [side.cast(pl.String) for side in sides]
    ends, ids = frames.number_ends(*sides)
    return ids, ends.ravel()


def ahead(items: Iterator[BlockEdges]) -> Iterator[BlockEdges]:
    """Yield the items; a thread makes the next one while the caller uses the last."""
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(next, items, None)
        while (item := making.result()) is not None:
            making = pool.submit(next, items, None)
            yield item


def choose_block_columns(reader: TableReader, block: Block, dialect: Dialect, columns: ColumnOptions) -> EdgeColumns:
    """Choose the columns of ids and weights from the first records."""
    sample = b"".join(line + b"\n" for line in block.data[: 1 << 20].split(b"\n", SAMPLE)[:-1])
    first = Block(sample, block.line, sample.count(b"\n")) if b'"' not in sample else block
    frame, lines = parse_block(reader.path, first, dialect)
    return edge_columns(frame, Place(str(reader.path), block.line, lines), **columns)


def read_block(reader: TableReader, block: Block, dialect: Dialect, chosen: EdgeColumns) -> BlockEdges:
    """Return the two ids of every record of a block, the place of the records for errors, and the weights."""
    titles = column_names(dialect)
    source, target, weight = chosen.names
    place = Place(str(reader.path), block.line)
    names = None
    if b'"' not in block.data:
        raw = np.frombuffer(block.data + PADDING, np.uint8)
        form = (ord(dialect.separator), dialect.columns, titles.index(source), titles.index(target))
        starts, ends = np.empty(2 * block.lines, np.int64), np.empty(2 * block.lines, np.int64)
        if find_fields(raw, len(block.data), form, starts, ends):
            names = Names(raw, starts, ends)
    if names is not None and weight is None:
        return names, place, None
    frame, lines = parse_block(reader.path, block, dialect)
    place = Place(str(reader.path), block.line, lines)
    if names is None:
        edge_columns(frame, place, source=source, target=target)  # Refuses missing ids.
        names = names_in_bytes(frames.side_by_side(frame[source], frame[target]))
    return names, place, None if weight is None else column_weights(frame[weight], place)


def _check_missing(ids: np.ndarray, ends: np.ndarray, places: list[tuple[int, Place]], chosen: EdgeColumns) -> None:
    """Refuse ids that mean a missing value; the error names the first line."""
    bad = np.flatnonzero(np.isin(ids, MISSING))
    if len(bad) == 0:
        return
    at = int(np.argmax(ends == bad[0]))
    row, word = at // 2, ids[bad[0]]
    for rows, place in places:
        if row < rows:
            found = f"column '{chosen.names[at % 2]}' holds '{word}', which means a missing value,"
            raise place.error(row, f"{found} and an edge needs two nodes; fill it in, or remove the row")
        row -= rows


WHAT = "table of edges"
LARGE = 1 << 25  # bytes from which reading by blocks saves more time than loading its compiled code takes
PACKED = 4  # assumed ratio of a file's size to its compressed size


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges of a graph file: ends (edges, 2) are positions in `ids`; weights are None if all are 1.

    `unnamed` is the number of nodes that the header counts but the file does not name. `description` says how the file
    was read. `warning` says what is not used, or how else the file could be read. `titles` are those of the two columns
    of ids, if the file has them.
    """

    ids: np.ndarray
    ends: np.ndarray
    weights: np.ndarray | None
    unnamed: int
    description: str
    warning: str = ""
    titles: tuple[str, ...] = ()


def read_edge_table(file: Unpacked, *, large: int = LARGE, **options: Unpack[EdgeOptions]) -> Edges:
    """Read the edges of a table; read text of at least `large` bytes block by block."""
    header = options.pop("header", None)
    columns: ColumnOptions = options
    if file.size >= (large // PACKED if file.packing else large):
        reader = TableReader(file, what=WHAT, header=header)
        if reader.dialect is not None:
            return read_edge_blocks(reader, columns)
    table = read_frame(file, what=WHAT, header=header)
    found = edge_columns(table.frame, table.place, **columns)
    ends, ids = found.number()
    return _edges(table, found, ids, ends, found.weights)
