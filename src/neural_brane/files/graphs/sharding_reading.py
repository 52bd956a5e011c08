"""Read edges and attributes for `brane shard` in blocks, so that files may be larger than memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from neural_brane.errors import GraphError, ShardError
from neural_brane.files import tables
from neural_brane.files.graphs.edge_list import EXPECTED, check_weights, is_separated
from neural_brane.files.graphs.edge_table import PACKED, WHAT, choose_block_columns
from neural_brane.files.graphs.formats import TEXT, find_format
from neural_brane.files.graphs.shards import GraphManifest
from neural_brane.files.nodes import parse_rows
from neural_brane.files.reading import HEAD, STANDARD_INPUT, Block, Unpacked, recognise
from neural_brane.files.tables import TableReader, column_names, empty_error, fail, parse_block, read_table, text_blocks
from neural_brane.graph.frames import EdgeColumns, Place, edge_columns, id_column, known_pair, name_two_kinds
from neural_brane.graph.ids import INTEGER, MISSING, all_integers
from neural_brane.graph.lazy import pl


class FilePiece(NamedTuple):
    """Some rows of a file, and their size in bytes or rows of the file.

    Rows of edges have the columns u, v (null for a node without edges) and perhaps weight; rows of attributes have the
    columns node, name and amount. Ids are int64 if all ids of the piece are integers, else strings. `lines` has the
    columns node and line, with one row for every line of an attribute file, even if it has no attributes.
    """

    rows: pl.DataFrame
    size: int
    lines: pl.DataFrame | None = None


def as_integers(frame: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Convert columns of strings to int64 if all of them are integers without leading zeros or spaces."""
    whole = all(all_integers(frame[name]) for name in names)
    return frame.with_columns(pl.col(names).cast(pl.Int64)) if whole else frame


ROWS = 1 << 19  # rows of a Parquet file read at a time
_POWERS = 10 ** np.arange(1, 19, dtype=np.uint64)


@dataclass(frozen=True)
class EdgeSource:
    """Files of edges of one kind, with the options that choose their columns."""

    kind: Literal["lines", "table", "parquet"]
    files: tuple[Path, ...]
    options: dict[str, Any]
    total: int  # sum of `Piece.size`: bytes of text, or rows of Parquet

    @property
    def name(self) -> str:
        """The name of the graph in messages and in the manifest."""
        return tables.stem(self.files[0]) if len(self.files) == 1 else self.files[0].parent.name

    @property
    def columns(self) -> Any:
        """The columns that the user chose, by role; None if recognised."""
        return {name: self.options.get(name) for name in ("source", "target", "weight", "same_ids")}

    def pieces(self) -> Iterator[FilePiece]:
        """Yield the edges of tables; the first decides the columns. `EdgeLines` reads lines of words instead."""
        return self._parquet() if self.kind == "parquet" else self._text()

    def _text(self) -> Iterator[FilePiece]:
        chosen: EdgeColumns | None = None
        for path in self.files:
            header = self.options.get("header")
            with TableReader(Unpacked(path, WHAT, streamed=True), what=WHAT, header=header) as reader:
                if reader.dialect is None:
                    found = f"found {reader.description}, but {self.files[0]} is text"
                    raise GraphError(f"{path}: {found}; give tables of one kind")
                for block in reader.blocks():
                    chosen = chosen or choose_block_columns(reader, block, reader.dialect, self.columns)
                    yield FilePiece(_parse_table(reader, block, chosen, self.options.get("same_ids")), len(block.data))
        if chosen is None:
            raise GraphError(f"{self.files[0]}: the table of edges has no rows below its header; give at least one")

    def _parquet(self) -> Iterator[FilePiece]:
        chosen: dict[str, Any] = self.columns
        done = 0
        for path in self.files:
            for frame in parquet_frames(path):
                names = [chosen[end] for end in ("source", "target", "weight")]
                if lacking := [name for name in names if done and name and name not in frame.columns]:
                    raise GraphError(f"{path}: column '{lacking[0]}' of the first file is missing; add it")
                place = Place(f"{path}, from row {done}" if done else str(path))
                found = edge_columns(frame, place, **chosen)
                chosen |= dict(zip(("source", "target", "weight"), found.names, strict=True))
                done += len(frame)
                yield FilePiece(_frame(found, frame, place), len(frame))
        if not done:
            raise GraphError(f"{self.files[0]}: the table of edges has no rows; give at least one")


def _parse_table(reader: TableReader, block: Block, chosen: EdgeColumns, same_ids: bool | None = None) -> pl.DataFrame:
    """Return the edges in a block of a text table."""
    assert reader.dialect is not None  # noqa: S101  checked by the caller
    source, target, weight = chosen.names
    if (source, target) == tuple(column_names(reader.dialect)) and (same_ids or not name_two_kinds(source, target)):
        plain = plain_integers(block, reader.dialect.separator)
        if plain is not None:
            return plain
    frame, lines = parse_block(reader.path, block, reader.dialect)
    place = Place(str(reader.path), block.line, lines)
    found = edge_columns(frame, place, source=source, target=target, weight=weight, same_ids=same_ids)
    return _frame(found, frame, place)


def _frame(found: EdgeColumns, given: pl.DataFrame, place: Place) -> pl.DataFrame:
    """Return the edges as a table with the columns u, v and perhaps weight; refuse ids such as 7.0."""
    for name in found.names[:2]:
        if given[name].dtype == pl.String and (odd := given[name].str.contains(r"^-?\d+\.0*$")).any():
            row = int(odd.arg_max() or 0)
            raise place.error(row, f"id '{given[name][row]}' in column '{name}' is not whole; write whole numbers")
    frame = pl.DataFrame({"u": found.source, "v": found.target})
    return frame if found.weights is None else frame.with_columns(weight=pl.Series(found.weights))


def plain_integers(block: Block, separator: str) -> pl.DataFrame | None:
    """Read lines 'u v' quickly; return None unless all are two integers without leading zeros or spaces."""
    try:
        frame = pl.read_csv(
            block.data, has_header=False, separator=separator, quote_char=None, schema={"u": pl.Int64, "v": pl.Int64}
        )
    except pl.exceptions.PolarsError:
        return None
    if frame.null_count().row(0) != (0, 0):
        return None
    size = 2 * len(frame) + (0 if block.data.endswith(b"\n") else -1)  # separators and line feeds
    for column in (frame["u"].to_numpy(), frame["v"].to_numpy()):
        positive = np.abs(column).view(np.uint64)  # right even for the lowest int64
        size += len(column) + int((column < 0).sum())
        highest = int(positive.max(initial=0))
        size += sum(int((positive >= power).sum()) for power in _POWERS.tolist() if power <= highest)
    return frame if size == len(block.data) else None


def parquet_frames(path: Path) -> Iterator[pl.DataFrame]:
    """Yield the rows of a Parquet file, up to `ROWS` at a time."""
    try:
        table = pl.scan_parquet(path)
        for at in range(0, count_rows(path), ROWS):
            yield table.slice(at, ROWS).collect()
    except pl.exceptions.PolarsError as error:
        raise _unreadable(path, error) from None


def count_rows(path: Path) -> int:
    """Return the number of rows of a Parquet file, from its footer."""
    try:
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    except pl.exceptions.PolarsError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> GraphError:
    return GraphError(f"{path}: cannot be read as Parquet ({str(error).splitlines()[0][:200]}); write the file again")


# Edges are read from lines of words in the format that `neural_brane.files.graphs.edge_list` specifies.


class Candidate(NamedTuple):
    """A first line of two integers. The edges below it decide whether it is a header 'nodes edges' or an edge."""

    line: int
    nodes: int
    edges: int
    words: tuple[str, str]


@dataclass
class EdgeLines:
    """Edges as lines of words, without a first line that may be a header; complete when `pieces` has ended."""

    path: Path
    candidate: Candidate | None = None
    follow: int = 0  # number of edges without the candidate
    weighted: bool | None = None
    titles: str = ""  # place and words of a first line of two names, which may be column titles
    _weighed_line: int = field(default=0, repr=False)

    def pieces(self) -> Iterator[FilePiece]:
        """Yield the edges, and the nodes without edges, in blocks."""
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
                    yield FilePiece(rows, len(block.data))
        if self.follow == 0 and self.candidate is None:
            raise GraphError(f"{self.path}: the graph has no edges; {EXPECTED}")

    def _begin(self, block: Block) -> tuple[bool, Block]:
        """Return whether a block contains the first line with words, and the block without it if it may be a header."""
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
            fail(self.path, line, f"'{words[0]} {words[1]}' are column titles; put # before them")
        if len(words) > 1 and not any(re.fullmatch(INTEGER, word) for word in words[:2]):
            self.titles = f"{self.path}:{line}: '{words[0]} {words[1]}'"
        return True, block

    def _parse(self, block: Block) -> pl.DataFrame:
        """Return the edges of a block, and check every line."""
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
                    row, f"'{table[end][row]}' means a missing value, and an edge needs two nodes; remove the line"
                )
        rows = as_integers(table.select("u", "v"), "u", "v")
        return rows.with_columns(weight=pl.Series(self._weights(table))) if self.weighted else rows

    def _weigh(self, weighted: bool, line: int) -> None:
        """Refuse a file in which only some edges have weights."""
        if self.weighted is None:
            self.weighted, self._weighed_line = weighted, line
        if self.weighted != weighted:
            has, lacks = ("has a", "has none") if weighted else ("has no", "has one")
            usual = self._weighed_line
            fail(self.path, line, f"the edge {has} weight, but line {usual} {lacks}; weigh all edges or none")

    def _weights(self, table: pl.DataFrame) -> np.ndarray:
        """Return the weight of every line; it is 1 for a node without edges."""
        linked = table["v"].is_not_null()
        weights = np.ones(len(table), np.float32)
        weights[linked.to_numpy()] = check_weights(self.path, table.filter(linked))
        return weights


def find_attributes(path: Path) -> tuple[Iterator[FilePiece], int, str]:
    """Return the attributes in a file in pieces, the sum of their sizes, and its unit."""
    with Unpacked(path, "attribute file", streamed=True) as file:
        kind, size = recognise(file.head(HEAD)).kind, file.size * (PACKED if file.packing else 1)
    if kind == "parquet":
        return _attribute_table(path), count_rows(path), "rows"
    return _attribute_lines(path), size, "bytes"


def _attribute_lines(path: Path) -> Iterator[FilePiece]:
    """Yield the lines of an attribute file in blocks."""
    empty = True
    with Unpacked(path, "attribute file", streamed=True) as file:
        for block in text_blocks(file):
            if not block.data.strip(b" \t,\n\v\f"):
                continue
            found, empty = parse_rows(path, block.data, block.line), False
            lines = as_integers(pl.DataFrame({"node": found.nodes, "line": found.lines.cast(pl.Int64)}), "node")
            rows = pl.DataFrame({"name": found.names, "amount": pl.Series(found.values, dtype=pl.Float32)})
            rows = as_integers(rows, "name").insert_column(0, lines["node"].gather(found.row))
            yield FilePiece(rows, len(block.data), lines)
    if empty:
        raise empty_error(path, "attribute file")


def _attribute_table(path: Path) -> Iterator[FilePiece]:
    """Yield the rows of a Parquet file with the columns node, attribute and, optionally, amount."""
    done = 0
    for frame in parquet_frames(path):
        place = Place(f"{path}, from row {done}")
        if not 2 <= len(frame.columns) <= 3:
            raise GraphError(f"{path}: has {len(frame.columns)} columns; expected node, attribute and perhaps amount")
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
        yield FilePiece(pl.DataFrame({"node": nodes, "name": names, "amount": amounts}), len(frame))
    if done == 0:
        raise GraphError(f"{path}: the table of attributes has no rows; give at least one")


TABLES = (".parquet", ".csv", ".tsv")


def find_edges(source: str | Path, options: dict[str, Any]) -> EdgeSource | None:
    """Return a source that reads a file, or a folder of tables, in pieces; None if that is not possible."""
    path, given = Path(source), any(value is not None for value in options.values())
    if str(source) == STANDARD_INPUT or not path.exists() or find_format(path) is not TEXT:
        return None
    if path.is_dir():
        return _find_folder(path, options)
    if path.suffix.lower() in (".npz", ".cites", ".brane"):
        return None
    kind, size = _look(path, given)
    if kind == "lines" and given:
        raise GraphError(f"{path}: the graph file is text, not a table; leave out the column options")
    return None if kind is None else EdgeSource(kind, (path,), options, size)


def _find_folder(folder: Path, options: dict[str, Any]) -> EdgeSource:
    if GraphManifest.begins(folder):
        raise ShardError(f"{folder}: is already a graph in shards; give the files from which it was made")
    for suffix in TABLES:
        if files := sorted(path for path in folder.iterdir() if tables.table_suffix(path) == suffix and path.is_file()):
            found = [_look(path, True) for path in files]
            kinds = {kind for kind, _ in found}
            if len(kinds) > 1 or (kind := kinds.pop()) is None:
                raise GraphError(f"{folder}: its {suffix} files have different kinds; give tables of one kind")
            return EdgeSource(kind, tuple(files), options, sum(size for _, size in found))
    raise GraphError(f"{folder}: has no file that ends in {', '.join(TABLES)}; give a folder with tables of edges")


def _look(path: Path, given: bool) -> tuple[Literal["lines", "table", "parquet"] | None, int]:
    """Return the kind of a file, None if it cannot be read in pieces, and the sum of its pieces' sizes."""
    with Unpacked(path, "graph file", streamed=True) as file:
        content = recognise(file.head(HEAD))
        packed, size = bool(file.packing), file.size
    if content.kind == "parquet" and not packed:
        return "parquet", count_rows(path)
    if content.kind != "text":
        return None, size
    return "table" if given or is_separated(path, content.text) else "lines", size * (PACKED if packed else 1)
