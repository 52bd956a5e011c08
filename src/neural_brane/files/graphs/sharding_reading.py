"""x"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from neural_brane.errors import GraphError, ReadingWarning, ShardError
from neural_brane.files.graphs.edge_list import CLAIM, EXPECTED, is_separated
from neural_brane.files.graphs.edge_table import PACKED, WHAT, choose_block_columns, read_block, split_fields
from neural_brane.files.graphs.formats import TEXT, find_format
from neural_brane.files.graphs.parts import is_shards
from neural_brane.files.graphs.sharding_names import Ids, as_integers, in_order, spell_names
from neural_brane.files.nodes import MEND_UNKNOWN, parse_rows
from neural_brane.files.reading import HEAD, STANDARD_INPUT, Block, Unpacked, check_count, read_blocks, recognise
from neural_brane.files.tables import TableReader, stem, table_suffix
from neural_brane.files.text import fail, known_pair, read_table, without_comments
from neural_brane.graph.frames import EdgeColumns, Place, edge_columns, id_column, side_by_side
from neural_brane.graph.ids import INTEGER, MISSING
from neural_brane.graph.numbering import Names, names_of
from neural_brane.progress import Meter

if TYPE_CHECKING:
    import polars as pl


# Pairs of names out of tables, a block at a time: edges, or nodes with their attributes.

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
                found = edge_columns(frame, Place(str(path)), **options)
                names = found.names
            else:
                _check_columns(path, frame, names)
                given: dict[str, Any] = dict(zip(("source", "target", "weight"), names, strict=True))
                found = edge_columns(frame, Place(f"{path}, from row {done}"), **given)
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


# Edge lists as lines of words, a block at a time; `neural_brane.files.graphs.edge_list` states the format.
#
# A first line of two integers may be a header, `nodes edges`. That is known at the end alone, when the edges are
# counted: so the line is held back, and becomes a chunk of its own, the first in the numbering, if it is none.

LINES_EXPECTED = "graph file"
Parsed = tuple[Pairs, list[tuple[bool, int]]]  # and for edges with and without weights the first line of each
SEPARATORS = (b" ", b"\t", b",")


def text_blocks(path: Path, what: str) -> Iterator[Block]:
    """The lines of a text file, a block at a time, comments made blank; refuse what is not text."""
    with Unpacked(path, what, streamed=True) as file:
        content = recognise(file.head(HEAD))
        if content.kind not in ("text", "binary"):
            raise GraphError(f"{path}: the {what} is a {content.kind} file; {content.advice}")
        for block in read_blocks(file, content.encoding):
            yield block._replace(data=without_comments(block.data, path, what, block.line))


class Candidate(NamedTuple):
    """A first line that may be a header, or else an edge; which of the two, the edges that follow decide."""

    line: int
    words: tuple[str, str]

    @property
    def nodes(self) -> int:
        """How many nodes it announces, if it is a header."""
        return int(self.words[0])

    @property
    def edges(self) -> int:
        """How many edges it announces, if it is a header."""
        return int(self.words[1])


class EdgeLines:
    """The edges of a file of lines; what is known of the file after the last of them is in the attributes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.candidate: Candidate | None = None
        self.follow = 0  # edges, without the candidate
        self.weighted: bool | None = None
        self.titles = ""  # a first line of two names, which may be titles
        self._begun = False
        self._weighed_line = 0

    def _blocks(self) -> Iterator[Block]:
        for block in text_blocks(self.path, LINES_EXPECTED):
            if not self._begun:
                block = self._begin(block)
            yield block

    def pairs(self) -> Iterator[Pairs]:
        """Yield the edges, and nodes that stand alone, a block at a time."""
        for found, seen in in_order(self._parse, self._blocks()):
            for weighted, line in seen:
                self._weigh(weighted, line)
            if found.number:
                self.follow += found.number - (0 if found.alone is None else int(found.alone.sum()))
                yield found
        if self.follow == 0 and self.candidate is None:
            raise GraphError(f"{self.path}: the graph has no edges; {EXPECTED}")

    def _begin(self, block: Block) -> Block:
        """Look at the first line that has words, and take it out if it may be a header."""
        match = re.search(rb"(?m)^[^\n]*[^\s,][^\n]*$", block.data)
        if match is None:
            return block
        self._begun = True
        line = block.line + block.data.count(b"\n", 0, match.start())
        words = match[0].replace(b",", b" ").decode().split()
        if len(words) == 2 and all(re.fullmatch("[0-9]{1,18}", word) for word in words):
            self.candidate = Candidate(line, (words[0], words[1]))
            data = block.data[: match.start()] + b" " * len(match[0]) + block.data[match.end() :]
            return block._replace(data=data)
        if len(words) > 1 and len(words[0]) > 1 and known_pair(words[:2]):
            fail(self.path, line, f"'{words[0]} {words[1]}' are titles of columns; put # before them")
        if len(words) > 1 and not any(re.fullmatch(INTEGER, word) for word in words[:2]):
            self.titles = f"{self.path}:{line}: '{words[0]} {words[1]}'"
        return block

    def _parse(self, block: Block) -> Parsed:
        """The edges of a block: quickly where every line is plain, else line by line."""
        return self._plain(block) or self._careful(block)

    def _plain(self, block: Block) -> Parsed | None:
        """The edges of a block where every line has two words and one separator; None where one has not."""
        separators = [one for one in SEPARATORS if one in block.data]
        if len(separators) != 1 or block.data.count(separators[0]) != block.lines:
            return None
        names = split_fields(block, separators[0].decode(), 2, (0, 1))
        if names is None:
            return None
        check_missing(names, Place(str(self.path), block.line), ("first", "second"))
        return Pairs(integers_or_names(names), None, None, len(block.data)), [(False, block.line)]

    def _careful(self, block: Block) -> Parsed:
        """The edges of any block, checked line by line, and the first lines with a weight and without one."""
        import polars as pl

        table = read_table(block.data, ["u", "v", "weight", "more"]).with_columns(pl.col("line") + (block.line - 1))
        long = table.filter(pl.col("more").is_not_null())
        if len(long):
            words = " ".join(str(word) for word in long.row(0)[1:])
            fail(self.path, long["line"][0], f"the line has more than three columns ('{words}'); {EXPECTED}")
        edges = table.filter(pl.col("v").is_not_null())
        kinds = [(weighted, edges.filter(pl.col("weight").is_not_null() == weighted)) for weighted in (True, False)]
        seen = sorted([(weighted, those["line"][0]) for weighted, those in kinds if len(those)], key=lambda one: one[1])
        names = names_of(side_by_side(table["u"], table["v"].fill_null(table["u"])))
        check_missing(names, Place(str(self.path), lines=table["line"].to_numpy()), ("first", "second"))
        alone = table["v"].is_null().to_numpy()
        weights = self._weights(table) if seen and seen[0][0] else None
        found = Pairs(integers_or_names(names), weights, alone if alone.any() else None, len(block.data))
        return found, seen

    def _weigh(self, weighted: bool, line: int) -> None:
        """Refuse a file where only some edges have weights."""
        if self.weighted is None:
            self.weighted, self._weighed_line = weighted, line
        if self.weighted != weighted:
            has, lacks = ("has a", "has none") if weighted else ("has no", "has one")
            fail(
                self.path,
                line,
                f"the edge {has} weight, while line {self._weighed_line} {lacks}; weigh all edges or none",
            )

    def _weights(self, frame: pl.DataFrame) -> np.ndarray:
        """The weight of every line, 1 for a node that stands alone."""
        linked = frame["v"].is_not_null().to_numpy()
        with np.errstate(over="ignore", under="ignore"):
            weights = frame["weight"].cast(float, strict=False).fill_null(np.nan).to_numpy().astype(np.float32)
        bad = linked & ~((weights > 0) & np.isfinite(weights))
        if bad.any():
            at = int(np.argmax(bad))
            word, line = frame["weight"][at], frame["line"][at]
            fail(self.path, line, f"weight '{word}' is not a finite number above 0; {EXPECTED}")
        return np.where(linked, weights, np.float32(1))


# Attributes of nodes, a block at a time: from attribute files, and from Parquet with a row for each entry.


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


# Which files can be read piece by piece, and how: tables of text, Parquet, and lines of words.

Kind = Literal["lines", "table", "parquet"]
TABLES = (".parquet", ".csv", ".tsv")


class EdgeSource(NamedTuple):
    """Files of edges of one kind, and how their columns are to be read."""

    kind: Kind
    files: tuple[Path, ...]
    options: dict[str, Any]
    total: int  # bytes of text, or rows of Parquet: what `Pairs.size` counts

    @property
    def name(self) -> str:
        """What messages and the manifest call the graph."""
        return stem(self.files[0]) if len(self.files) == 1 else self.files[0].parent.name

    def read(self) -> tuple[Iterator[Pairs], EdgeLines | None]:
        """The edges, and the reader of lines where they are such."""
        if self.kind == "lines":
            lines = EdgeLines(self.files[0])
            return lines.pairs(), lines
        read = parquet_pairs if self.kind == "parquet" else text_pairs
        return read(self.files, self.options), None


def find_edges(source: str | Path, options: dict[str, Any]) -> EdgeSource | None:
    """How the edges of a file, or of a folder of tables, can be read piece by piece; None where they cannot.

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
            if None in (kinds := {kind for kind, _ in found}) or len(kinds) > 1:
                raise GraphError(f"{folder}: its {suffix} files are not all of one kind; give tables of one kind")
            kind = "parquet" if kinds == {"parquet"} else "table"
            return EdgeSource(kind, tuple(files), options, sum(size for _, size in found))  # type: ignore[arg-type]
    raise GraphError(f"{folder}: has no file that ends in {', '.join(TABLES)}; give a folder of tables of edges")


def _look(path: Path, given: bool) -> tuple[Kind | None, int]:
    """The kind of a file, and the total of what is counted while it is read."""
    with Unpacked(path, "graph file", streamed=True) as file:
        content = recognise(file.head(HEAD))
        packed, size = bool(file.packing), file.size
    if content.kind == "parquet" and not packed:
        return "parquet", count_rows(path)
    if content.kind != "text":
        return None, size
    return "table" if given or is_separated(path, content.text) else "lines", size * (PACKED if packed else 1)


def count_rows(path: Path) -> int:
    """The rows of a Parquet file, from its footer."""
    import polars as pl

    try:
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0][:200]
        raise GraphError(f"{path}: cannot be read as Parquet ({reason}); write the file again") from None


def find_attributes(path: Path) -> tuple[Iterator[Bags], int]:
    """The attributes of a file, and the total of what is counted while they are read."""
    with Unpacked(path, "attribute file", streamed=True) as file:
        kind, size = recognise(file.head(HEAD)).kind, file.size * (PACKED if file.packing else 1)
    return (bag_table(path), count_rows(path)) if kind == "parquet" else (bag_lines(path), size)


# The first pass: edges and attributes are read once, their names noted, and what is left of them lies in chunks.

Facts = dict[str, Any]


class PairChunks:
    """The weights of edges and which pairs are none, in chunks beside those of their names."""

    def __init__(self, home: Path, nodes: Ids) -> None:
        self.home, self.nodes, self.pairs = home, nodes, 0
        self.weighted = False
        self._weights: list[np.ndarray] = []
        self._alone: list[np.ndarray] = []

    def add(self, block: Pairs) -> None:
        """Add a block of pairs, and cut a chunk where it is time."""
        self.nodes.add(block.names)
        self.weighted = block.weights is not None
        if block.weights is not None:
            self._weights.append(block.weights)
        self._alone.append(np.zeros(block.number, bool) if block.alone is None else block.alone)
        self.pairs += block.number
        if self.nodes.full:
            self.cut()

    def cut(self) -> None:
        """Write the chunk."""
        if not self._alone:
            return
        number = self.nodes.chunks
        self.nodes.cut()
        if self._weights:
            np.save(chunk_path(self.home, number, "weights"), np.concatenate(self._weights))
        alone = np.concatenate(self._alone)
        if alone.any():
            np.save(chunk_path(self.home, number, "alone"), alone)
        self._weights, self._alone = [], []


def chunk_path(home: Path, number: int, name: str) -> Path:
    """A file of a chunk of edges."""
    return home / f"edges-{number:05d}.{name}.npy"


def read_edges(blocks: Iterable[Pairs], lines: EdgeLines | None, nodes: Ids, meter: Meter, quiet: bool) -> Facts:
    """Read all edges; `lines` is the file of lines that they come from, whose header is judged at the end."""
    chunks = PairChunks(nodes.home, nodes)
    for block in blocks:
        chunks.add(block)
        meter.advance(block.size)
    announced = None
    if lines is not None:
        announced = _judge_header(lines, chunks, nodes, quiet)
        if lines.titles and nodes.added - nodes.spelled == 2 and nodes.added > 2:
            raise GraphError(
                f"{lines.titles} are names, while all other ids are numbers; put # before column titles, or, if the "
                "line is an edge, move it further down"
            )
    chunks.cut()
    return {"chunks": nodes.chunks, "pairs": chunks.pairs, "weighted": chunks.weighted, "announced": announced}


def _judge_header(lines: EdgeLines, chunks: PairChunks, nodes: Ids, quiet: bool) -> int | None:
    """Tell whether the first line was a header, by the rule that `graph_text` states, and how many nodes it counts."""
    candidate = lines.candidate
    if candidate is None:
        return None
    whole = nodes.spelled == nodes.added
    fits = nodes.integer and nodes.span[1] < candidate.nodes
    certain = bool(lines.weighted) or fits or (not whole and nodes.spelled == 0)
    if candidate.edges != lines.follow:
        if certain:
            fail(
                lines.path,
                candidate.line,
                f"the first line reads as a header 'nodes edges' that announces {candidate.edges} edges, but "
                f"{lines.follow} follow; mend the count, or, if the line is an edge, move it further down",
            )
    elif certain or candidate.edges <= candidate.nodes * (candidate.nodes + 1) // 2:
        _check_header(lines, candidate, nodes, whole)
        if whole and not quiet and not lines.weighted and nodes.span[1] != candidate.nodes - 1:
            warnings.warn(_doubt(lines.path, candidate), ReadingWarning, stacklevel=4)
        if whole:
            for at in range(0, candidate.nodes, 1 << 20):
                nodes.include(np.arange(at, min(at + (1 << 20), candidate.nodes)))
        return candidate.nodes
    import polars as pl

    chunks.cut()
    chunks.add(Pairs(names_of(pl.Series(candidate.words)), None, None, 0))
    nodes.lead = nodes.chunks
    chunks.cut()
    return None


def _check_header(lines: EdgeLines, header: Candidate, nodes: Ids, whole: bool) -> None:
    """Refuse nodes that a header does not allow for."""
    place = f"{lines.path}:{header.line}: a header that counts nodes"
    check_count(header.nodes, lines.follow, place, CLAIM, GraphError)
    last = header.nodes - 1
    if not whole and nodes.spelled:
        fail(
            lines.path,
            header.line,
            f"below this header some nodes have names and others numbers; under a header, nodes are all names or all "
            f"integers from 0 to {last}",
        )
    low, high = nodes.span if nodes.integer else (0, header.nodes if whole else 0)
    if low < 0 or high > last:
        fail(
            lines.path,
            header.line,
            f"node {low if low < 0 else high} is not one of the {header.nodes} nodes, 0 to {last}, that the header "
            "announces; mend the line or the header, or remove the header to use any ids",
        )


def _doubt(path: Path, header: Candidate) -> str:
    return (
        f"{path}: the first line, '{header.nodes} {header.edges}', is read as a header: {header.nodes} nodes, 0 to "
        f"{header.nodes - 1}, and {header.edges} edges; if it is an edge, move it further down"
    )


def read_attributes(blocks: Iterable[Bags], path: Path, nodes: Ids, names: Ids, meter: Meter) -> Facts:
    """Read the attributes of nodes into chunks. Nodes with integers for ids must be known already."""
    chunks = BagChunks(path, nodes, names)
    for block in blocks:
        chunks.add(block)
        meter.advance(block.size)
    chunks.cut()
    return {"chunks": names.chunks, "first": chunks.first, "entries": chunks.entries}


class BagChunks:
    """Entries in chunks: the rows they stand in, amounts, and the nodes of the rows."""

    def __init__(self, path: Path, nodes: Ids, names: Ids) -> None:
        self.path, self.nodes, self.names = path, nodes, names
        self.first, self.entries = nodes.chunks, 0
        self._rows = 0
        self._kept: dict[str, list[np.ndarray]] = {}

    def add(self, block: Bags) -> None:
        """Add a block, and cut a chunk where it is time."""
        self.names.add(block.names)
        kept = {"row": (block.row + self._rows).astype(np.int32), "amounts": block.amounts}
        if block.lines is not None:
            kept["lines"] = block.lines
        if self.nodes.integer:
            kept["nodes"] = self._known(block)
        else:
            self.nodes.add(block.nodes)
        for name, array in kept.items():
            self._kept.setdefault(name, []).append(array)
        self._rows += len(block.nodes.starts)
        self.entries += len(block.row)
        if self.names.full or self.nodes.full:
            self.cut()

    def _known(self, block: Bags) -> np.ndarray:
        numbers = self.nodes.known(block.nodes)
        if (numbers < 0).any():
            at = int(np.argmax(numbers < 0))
            name = bytes(block.nodes.data[block.nodes.starts[at] : block.nodes.ends[at]]).decode()
            where = f":{block.lines[at]}" if block.lines is not None else ""
            raise GraphError(f"{self.path}{where}: node '{name}' is not in the graph; {MEND_UNKNOWN}")
        return numbers

    def cut(self) -> None:
        """Write the chunk."""
        if not self._kept:
            return
        number = self.names.chunks
        self.names.cut()
        if not self.nodes.integer:
            self.nodes.cut()
        for name, arrays in self._kept.items():
            np.save(bag_path(self.nodes.home, number, name), np.concatenate(arrays))
        self._kept, self._rows = {}, 0


def bag_path(home: Path, number: int, name: str) -> Path:
    """A file of a chunk of attribute entries."""
    return home / f"entries-{number:05d}.{name}.npy"
