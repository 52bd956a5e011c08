"""Read edges and attributes for `brane shard` a block at a time, so that files may be larger than memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from neural_brane.errors import GraphError, ShardError
from neural_brane.files.graphs.edge_list import EXPECTED, check_weights, is_separated
from neural_brane.files.graphs.edge_table import PACKED, WHAT, choose_block_columns
from neural_brane.files.graphs.formats import TEXT, find_format
from neural_brane.files.graphs.parts import is_shards
from neural_brane.files.nodes import parse_rows
from neural_brane.files.reading import HEAD, STANDARD_INPUT, Block, Unpacked, recognise
from neural_brane.files.tables import (
    TableReader,
    column_names,
    fail,
    parse_block,
    read_table,
    stem,
    table_suffix,
    text_blocks,
)
from neural_brane.graph.frames import EdgeColumns, Place, edge_columns, id_column, known_pair
from neural_brane.graph.ids import INTEGER, MISSING, all_integers
from neural_brane.graph.lazy import pl


class Piece(NamedTuple):
    """Some rows of a file, and how many bytes or rows of the file they were.

    Rows of edges have the columns u, v (null for a node without edges) and perhaps weight; rows of attributes have
    node, name and amount. Ids are int64 where all of the piece are integers, else strings. `lines` has the columns
    node and line of an attribute file: one row for every line, also for those without attributes.
    """

    rows: pl.DataFrame
    size: int
    lines: pl.DataFrame | None = None


def as_integers(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Turn columns of strings into int64 if all of them spell integers the usual way."""
    whole = all(all_integers(frame[name]) for name in names)
    return frame.with_columns(pl.col(names).cast(pl.Int64)) if whole else frame


# Edges from tables of text and from Parquet.

ROWS = 1 << 19  # rows of a Parquet file that are read at once
_POWERS = 10 ** np.arange(1, 19, dtype=np.uint64)


@dataclass(frozen=True)
class EdgeSource:
    """Files of edges of one kind, and how their columns are to be read."""

    kind: Literal["lines", "table", "parquet"]
    files: tuple[Path, ...]
    options: dict[str, Any]
    total: int  # bytes of text, or rows of Parquet: what `Piece.size` counts

    @property
    def name(self) -> str:
        """The graph's name in messages and in the manifest."""
        return stem(self.files[0]) if len(self.files) == 1 else self.files[0].parent.name

    @property
    def columns(self) -> dict[str, Any]:
        """The columns that were asked for."""
        return {name: self.options.get(name) for name in ("source", "target", "weight")}

    def pieces(self) -> Iterator[Piece]:
        """Yield the edges of tables; the columns are those of the first. Lines of words are read by `EdgeLines`."""
        return self._parquet() if self.kind == "parquet" else self._text()

    def _text(self) -> Iterator[Piece]:
        chosen: EdgeColumns | None = None
        for path in self.files:
            header = self.options.get("header")
            with TableReader(Unpacked(path, WHAT, streamed=True), what=WHAT, header=header) as reader:
                if reader.dialect is None:
                    raise GraphError(
                        f"{path}: is {reader.description}, unlike {self.files[0]}, which is text; give tables of one kind"
                    )
                for block in reader.blocks():
                    chosen = chosen or choose_block_columns(reader, block, reader.dialect, self.columns)
                    yield Piece(_parse_table(reader, block, chosen), len(block.data))
        if chosen is None:
            raise GraphError(f"{self.files[0]}: the table of edges has no rows under its titles; give at least one")

    def _parquet(self) -> Iterator[Piece]:
        chosen: dict[str, Any] = self.columns
        done = 0
        for path in self.files:
            for frame in parquet_frames(path):
                lacking = [name for name in chosen.values() if done and name and name not in frame.columns]
                if lacking:
                    raise GraphError(
                        f"{path}: has no column '{lacking[0]}', as the first file has; give tables of one kind"
                    )
                found = edge_columns(frame, Place(f"{path}, from row {done}" if done else str(path)), **chosen)
                chosen = dict(zip(chosen, found.names, strict=True))
                done += len(frame)
                yield Piece(_frame(found), len(frame))
        if not done:
            raise GraphError(f"{self.files[0]}: the table of edges has no rows; give at least one")


def _parse_table(reader: TableReader, block: Block, chosen: EdgeColumns) -> pl.DataFrame:
    """Return the edges of a block of a table of text."""
    assert reader.dialect is not None  # noqa: S101  checked by the caller
    source, target, weight = chosen.names
    if (source, target) == tuple(column_names(reader.dialect)):
        plain = plain_integers(block, reader.dialect.separator)
        if plain is not None:
            return plain
    frame, lines = parse_block(reader.path, block, reader.dialect)
    place = Place(str(reader.path), block.line, lines)
    return _frame(edge_columns(frame, place, source=source, target=target, weight=weight))


def _frame(found: EdgeColumns) -> pl.DataFrame:
    """Return chosen columns of edges as u, v and, where there are any, weight."""
    frame = pl.DataFrame({"u": found.source, "v": found.target})
    return frame if found.weights is None else frame.with_columns(weight=pl.Series(found.weights))


def plain_integers(block: Block, separator: str) -> pl.DataFrame | None:
    """Read a block of lines 'u v' quickly; None where a line holds anything but two integers written the usual way.

    Polars also reads '007' and ' 7'. But then the digits of what it read are fewer than the bytes of the block.
    """
    try:
        frame = pl.read_csv(
            block.data,
            has_header=False,
            separator=separator,
            quote_char=None,
            schema={"u": pl.Int64, "v": pl.Int64},
        )
    except pl.exceptions.PolarsError:
        return None
    if frame.null_count().row(0) != (0, 0):
        return None
    size = 2 * len(frame) + (0 if block.data.endswith(b"\n") else -1)  # separators and line feeds
    for column in (frame["u"].to_numpy(), frame["v"].to_numpy()):
        positive = np.abs(column).view(np.uint64)  # the lowest int64 too, which is its own absolute value
        size += len(column) + int((column < 0).sum())
        highest = int(positive.max(initial=0))
        size += sum(int((positive >= power).sum()) for power in _POWERS.tolist() if power <= highest)
    return frame if size == len(block.data) else None


def parquet_frames(path: Path) -> Iterator[pl.DataFrame]:
    """Yield the rows of a Parquet file, some at a time."""
    try:
        table = pl.scan_parquet(path)
        for at in range(0, count_rows(path), ROWS):
            yield table.slice(at, ROWS).collect()
    except pl.exceptions.PolarsError as error:
        raise _unreadable(path, error) from None


def count_rows(path: Path) -> int:
    """Read the number of rows of a Parquet file off its footer."""
    try:
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    except pl.exceptions.PolarsError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> GraphError:
    return GraphError(f"{path}: cannot be read as Parquet ({str(error).splitlines()[0][:200]}); write the file again")


# Edges from lines of words; `neural_brane.files.graphs.edge_list` states the format.


class Candidate(NamedTuple):
    """A first line of two integers: a header 'nodes edges', or else an edge. The edges that follow decide."""

    line: int
    nodes: int
    edges: int
    words: tuple[str, str]


@dataclass
class EdgeLines:
    """The edges of a file of lines, without a first line that may be a header. All is known once `pieces` has ended."""

    path: Path
    candidate: Candidate | None = None
    follow: int = 0  # edges, without the candidate
    weighted: bool | None = None
    titles: str = ""  # the place and words of a first line of two names, which may be titles
    _weighed_line: int = field(default=0, repr=False)

    def pieces(self) -> Iterator[Piece]:
        """Yield the edges, and nodes that stand alone, a block at a time."""
        begun = False
        with Unpacked(self.path, "graph file", streamed=True) as file:
            for block in text_blocks(file):
                if not begun:
                    begun, block = self._begin(block)
                found = [one for one in (" ", "\t", ",") if one.encode() in block.data]
                rows = plain_integers(block, found[0]) if len(found) == 1 and not self.weighted else None
                if rows is not None and len(rows):
                    self._weigh(False, block.line)
                else:
                    rows = self._parse(block)
                if len(rows):
                    self.follow += len(rows) - rows["v"].null_count()
                    yield Piece(rows, len(block.data))
        if self.follow == 0 and self.candidate is None:
            raise GraphError(f"{self.path}: the graph has no edges; {EXPECTED}")

    def _begin(self, block: Block) -> tuple[bool, Block]:
        """Look at the first line that has words, if there is one, and take it out if it may be a header."""
        match = re.search(rb"(?m)^[^\n]*[^\s,][^\n]*$", block.data)
        if match is None:
            return False, block
        line = block.line + block.data.count(b"\n", 0, match.start())
        words = match[0].replace(b",", b" ").decode().split()
        if len(words) == 2 and all(re.fullmatch("[0-9]{1,18}", word) for word in words):
            self.candidate = Candidate(line, int(words[0]), int(words[1]), (words[0], words[1]))
            data = block.data[: match.start()] + b" " * len(match[0]) + block.data[match.end() :]
            return True, block._replace(data=data)
        if len(words) > 1 and len(words[0]) > 1 and known_pair(words[:2]):
            fail(self.path, line, f"'{words[0]} {words[1]}' are titles of columns; put # before them")
        if len(words) > 1 and not any(re.fullmatch(INTEGER, word) for word in words[:2]):
            self.titles = f"{self.path}:{line}: '{words[0]} {words[1]}'"
        return True, block

    def _parse(self, block: Block) -> pl.DataFrame:
        """Return the edges of a block, every line checked."""
        table = read_table(block.data, ["u", "v", "weight", "more"]).with_columns(pl.col("line") + (block.line - 1))
        long = table.filter(pl.col("more").is_not_null())
        if len(long):
            words = " ".join(str(word) for word in long.row(0)[1:])
            fail(self.path, long["line"][0], f"the line has more than three columns ('{words}'); {EXPECTED}")
        edges = table.filter(pl.col("v").is_not_null())
        weighted = edges.select("line", weighted=pl.col("weight").is_not_null()).unique("weighted", keep="first")
        for line, has in weighted.sort("line").rows():
            self._weigh(has, line)
        place = Place(str(self.path), lines=table["line"].to_numpy())
        for end in ("u", "v"):
            if (missing := table[end].is_in(MISSING).fill_null(False)).any():
                row = int(missing.arg_max() or 0)
                raise place.error(
                    row,
                    f"'{table[end][row]}' stands for no value, and an edge needs two nodes; remove the line",
                )
        rows = as_integers(table.select("u", "v"), "u", "v")
        return rows.with_columns(weight=pl.Series(self._weights(table))) if self.weighted else rows

    def _weigh(self, weighted: bool, line: int) -> None:
        """Refuse a file where only some edges have weights."""
        if self.weighted is None:
            self.weighted, self._weighed_line = weighted, line
        if self.weighted != weighted:
            has, lacks = ("has a", "has none") if weighted else ("has no", "has one")
            usual = self._weighed_line
            fail(self.path, line, f"the edge {has} weight, while line {usual} {lacks}; weigh all edges or none")

    def _weights(self, table: pl.DataFrame) -> np.ndarray:
        """Return the weight of every line, 1 for a node that stands alone."""
        linked = table["v"].is_not_null()
        weights = np.ones(len(table), np.float32)
        weights[linked.to_numpy()] = check_weights(self.path, table.filter(linked))
        return weights


# Attributes of nodes, from attribute files and from Parquet with a row for each entry.


def find_attributes(path: Path) -> tuple[Iterator[Piece], int]:
    """Return the attributes of a file, and the total of the sizes of their pieces."""
    with Unpacked(path, "attribute file", streamed=True) as file:
        kind, size = recognise(file.head(HEAD)).kind, file.size * (PACKED if file.packing else 1)
    return (_attribute_table(path), count_rows(path)) if kind == "parquet" else (_attribute_lines(path), size)


def _attribute_lines(path: Path) -> Iterator[Piece]:
    """Yield the lines of an attribute file, a block at a time."""
    empty = True
    with Unpacked(path, "attribute file", streamed=True) as file:
        for block in text_blocks(file):
            if not block.data.strip(b" \t,\n\v\f"):
                continue
            found, empty = parse_rows(path, block.data, block.line), False
            lines = as_integers(pl.DataFrame({"node": found.nodes, "line": found.lines.cast(pl.Int64)}), "node")
            rows = pl.DataFrame({"name": found.names, "amount": pl.Series(found.values, dtype=pl.Float32)})
            rows = as_integers(rows, "name").insert_column(0, lines["node"].gather(found.row))
            yield Piece(rows, len(block.data), lines)
    if empty:
        raise GraphError(f"{path}: the attribute file is empty; write one entry per line")


def _attribute_table(path: Path) -> Iterator[Piece]:
    """Yield the rows of a Parquet file: a node, one of its attributes and, in a third column, how much of it."""
    done = 0
    for frame in parquet_frames(path):
        place = Place(f"{path}, from row {done}")
        if not 2 <= len(frame.columns) <= 3:
            raise GraphError(
                f"{path}: has {len(frame.columns)} columns; give a node, an attribute and perhaps an amount"
            )
        node, name, *rest = frame.columns
        nodes = id_column(frame[node], place, needs="a node needs an id")
        names = id_column(frame[name], place, needs="an attribute needs a name")
        amounts = pl.Series(np.ones(len(frame), np.float32))
        if rest:
            amounts = frame[rest[0]].cast(pl.Float32, strict=False).fill_null(np.nan)
            if not (finite := amounts.is_finite()).all():
                row = int((~finite).arg_max() or 0)
                raise place.error(row, f"the amount in '{rest[0]}' is {frame[rest[0]][row]}; give finite numbers")
        done += len(frame)
        yield Piece(pl.DataFrame({"node": nodes, "name": names, "amount": amounts}), len(frame))
    if done == 0:
        raise GraphError(f"{path}: the table of attributes has no rows; give at least one")


# Which files can be read piece by piece: tables of text, Parquet, and lines of words.

TABLES = (".parquet", ".csv", ".tsv")


def find_edges(source: str | Path, options: dict[str, Any]) -> EdgeSource | None:
    """Find out how a file, or a folder of tables, can be read piece by piece; None where it cannot.

    options: `source`, `target`, `weight` and `header`, as `neural_brane.files.graphs.formats.read_graph` takes them.
    """
    path, given = Path(source), any(value is not None for value in options.values())
    if str(source) == STANDARD_INPUT or not path.exists() or find_format(path) is not TEXT:
        return None
    if path.is_dir():
        return _find_folder(path, options)
    if path.suffix.lower() in (".npz", ".cites", ".brane"):
        return None
    kind, size = _look(path, given)
    if kind == "lines" and given:
        raise GraphError(f"{path}: columns are those of a table, and the graph file is text")
    return None if kind is None else EdgeSource(kind, (path,), options, size)


def _find_folder(folder: Path, options: dict[str, Any]) -> EdgeSource:
    if is_shards(folder):
        raise ShardError(f"{folder}: is a graph in parts already; give the files that it was made of")
    for suffix in TABLES:
        if files := sorted(path for path in folder.iterdir() if table_suffix(path) == suffix and path.is_file()):
            found = [_look(path, True) for path in files]
            kinds = {kind for kind, _ in found}
            if len(kinds) > 1 or (kind := kinds.pop()) is None:
                raise GraphError(f"{folder}: its {suffix} files are not all of one kind; give tables of one kind")
            return EdgeSource(kind, tuple(files), options, sum(size for _, size in found))
    raise GraphError(f"{folder}: has no file that ends in {', '.join(TABLES)}; give a folder of tables of edges")


def _look(path: Path, given: bool) -> tuple[Literal["lines", "table", "parquet"] | None, int]:
    """Return the kind of a file, and the total of what is counted while it is read."""
    with Unpacked(path, "graph file", streamed=True) as file:
        content = recognise(file.head(HEAD))
        packed, size = bool(file.packing), file.size
    if content.kind == "parquet" and not packed:
        return "parquet", count_rows(path)
    if content.kind != "text":
        return None, size
    return "table" if given or is_separated(path, content.text) else "lines", size * (PACKED if packed else 1)
