"""Turn files larger than memory into a folder of shards: DuckDB numbers ids and attributes, and sorts the entries.

DuckDB uses temporary files for data that does not fit into memory. It runs only the queries in this file, and cannot
open other files, use the network or load extensions. The rows of its tables keep the order in which they were read, so
`rowid` shows which name appeared first.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import DependencyError, GraphError, ReadingWarning, ShardError
from neural_brane.files.graphs import shards
from neural_brane.files.graphs.edge_list import FIX_HEADER, header_warning, refuse_header
from neural_brane.files.graphs.sharding_reading import Candidate, EdgeLines, EdgeSource, as_integers, find_attributes
from neural_brane.files.graphs.shards import GraphManifest, Shards, check_numbers, shard_folder
from neural_brane.files.nodes import MEND_UNKNOWN
from neural_brane.files.reading import check_count
from neural_brane.files.storage import describe_files
from neural_brane.files.tables import fail
from neural_brane.graph.adjacency import Duplicates, SelfLoops, check_rules
from neural_brane.graph.lazy import pl
from neural_brane.progress import Meter, Reporter

MEMORY = 1_000_000_000  # default limit in bytes
LEAST = 100_000_000  # least bytes with which DuckDB works
PER_THREAD = 125_000_000  # bytes of memory for each sorting thread
BLOCK = 1 << 20  # names or row starts written at a time


@dataclass(frozen=True)
class Plan:
    """The input files of a sharding, the number of shards, the rules and the limits."""

    edges: EdgeSource
    attributes: Path | None
    parts: int
    duplicates: Duplicates = "max"
    self_loops: SelfLoops = "keep"
    memory: int = MEMORY
    threads: int | None = None  # None uses all processors

    def check(self, folder: Path) -> None:
        """Refuse invalid settings and folders."""
        check_rules(self.duplicates, self.self_loops)
        if self.parts < 1:
            raise ShardError(f"parts is {self.parts}; give 1 or more")
        if self.memory < LEAST:
            raise ShardError(f"memory is {self.memory:,} bytes; give at least {LEAST:,}, such as 1GB")
        shards.check_vacant(folder)


def shard_files(plan: Plan, folder: str | Path, *, report: Reporter | None = None) -> Shards:
    """Write files as a folder of shards with about `plan.memory` bytes of memory; a failure leaves no shards."""
    folder = Path(folder)
    plan.check(folder)
    with shards.new_shards(folder, plan.parts) as home, Database(home, plan.memory, plan.threads) as tables:
        _Sharding(plan, home, tables, report).run().write(home)
    return shards.open_shards(folder)


class Database:
    """Tables of DuckDB, with a limit of memory beyond which they use the disk; for a `with` statement."""

    def __init__(self, home: Path, memory: int, threads: int | None = None) -> None:
        try:
            import duckdb
            import pyarrow
        except ImportError:
            advice = "run: pip install 'neural-brane[shards]'"
            raise DependencyError(f"sharding files needs DuckDB, which is not installed; {advice}") from None
        self._pyarrow, self._error, self._full = pyarrow, duckdb.Error, duckdb.OutOfMemoryException
        self._columns: dict[str, dict[str, bool]] = {}  # table → column → True if it contains strings
        most = max(memory // PER_THREAD, 1)
        self._connection = duckdb.connect(
            config={
                "threads": min(threads or os.cpu_count() or 1, most),
                "memory_limit": f"{memory * 7 // 10} bytes",  # DuckDB does not count all memory that it uses
                "temp_directory": str(home / "duckdb"),
                "preserve_insertion_order": True,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "allow_community_extensions": False,
                "python_enable_replacements": False,
            }
        )
        for setting in ("enable_progress_bar = false", "enable_external_access = false", "lock_configuration = true"):
            self._connection.execute(f"SET {setting}")

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._full as error:
            advice = "raise --memory or free disk space"
            raise ShardError(f"the memory or the disk is too small ({str(error).splitlines()[0]}); {advice}") from None
        except self._error as error:
            raise ShardError(f"DuckDB failed: {str(error).splitlines()[0]}") from error

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """Run a query and return all its rows."""
        with self._explained():
            return self._connection.execute(query).fetchall()

    def value(self, query: str) -> Any:
        """Return the first value of a query's result; None if it has no rows."""
        rows = self.run(query)
        return rows[0][0] if rows else None

    def stream(self, query: str) -> Iterator[Any]:
        """Yield the result of a query as Arrow batches."""
        with self._explained():
            yield from self._pyarrow.RecordBatchReader.from_stream(self._connection.sql(query))

    def append(self, table: str, rows: pl.DataFrame) -> None:
        """Add rows to a table; create it first if necessary. A column of integers becomes strings if strings come."""
        texts = {name: kind == pl.String for name, kind in rows.schema.items()}
        known = self._columns.setdefault(table, {})
        for name in texts.keys() & known.keys():
            if texts[name] and not known[name]:
                self.to_text(table, name)
            elif known[name]:
                rows = rows.with_columns(pl.col(name).cast(pl.String))
        if known:
            for name in texts.keys() - known.keys():
                self.run(f"ALTER TABLE {table} ADD COLUMN {name} FLOAT")
        with self._explained():
            self._connection.register("given", rows)
            statement = f"INSERT INTO {table} BY NAME" if known else f"CREATE TABLE {table} AS"
            self._connection.execute(f"{statement} SELECT * FROM given")
            self._connection.unregister("given")
        self._columns[table] = texts | known

    def to_text(self, table: str, column: str) -> None:
        """Convert a column of integers to strings."""
        if not self._columns[table][column]:
            self.run(f"ALTER TABLE {table} ALTER {column} TYPE VARCHAR")
            self._columns[table][column] = True

    def has(self, table: str, column: str) -> bool:
        """Return whether a table has a column."""
        return column in self._columns.get(table, {})

    def is_text(self, table: str, column: str) -> bool:
        """Return whether a column contains strings."""
        return self._columns.get(table, {}).get(column, False)

    def create(self, table: str, query: str, *, text: bool) -> None:
        """Create a table with the column id; `text` is true if it contains strings."""
        self.run(f"CREATE TABLE {table} AS {query}")
        self._columns[table] = {"id": text}

    def number(self, table: str, places: str, text: bool) -> int:
        """Make a table (id, place) of a query's names, integers sorted, strings by first place; return their count."""
        if text:
            places = f"(SELECT id, min(place) AS place FROM ({places}) GROUP BY id) ORDER BY place"
        else:
            places = f"(SELECT DISTINCT id FROM ({places})) ORDER BY id"
        self.create(table, f"SELECT id FROM {places}", text=text)
        return int(self.value(f"SELECT count(*) FROM {table}"))


_INTEGER = "coalesce(try_cast({0} AS BIGINT)::VARCHAR = {0}, false)"  # true for integers without leading zeros


class _Sharding:
    """The stages of one sharding; `home` is the folder for temporary files and shards."""

    def __init__(self, plan: Plan, home: Path, tables: Database, report: Reporter | None) -> None:
        self.plan, self.home, self.tables, self.report = plan, home, tables, report
        self.announced: int | None = None  # number of nodes in the header
        self.lead = -1  # row of the edge on the first line, which is appended last; -1 if there is none

    def run(self) -> GraphManifest:
        """Write all files except the manifest, and return the manifest."""
        self._read_edges()
        if self.plan.attributes is not None:
            pieces, total, unit = find_attributes(self.plan.attributes)
            meter = Meter(self.report, total, f"{unit} of attributes read", stage="attributes")
            for piece in pieces:
                self.tables.append("entries", piece.rows)
                if piece.lines is not None:
                    self.tables.append("lines", piece.lines)
                meter.advance(piece.size)
        nodes = self._number_nodes()
        bounds = shards.even_bounds(nodes, self.plan.parts)
        edges = self._write_edges(bounds)
        names, entries = self._write_attributes(bounds)
        self._write_names(self.home / shards.NAMES, "names", 0, names)
        for shard, (first, last) in enumerate(pairwise(bounds.tolist())):
            self._write_names(self.home / shard_folder(shard) / shards.IDS, "nodes", first, last)
        manifest = GraphManifest(
            name=self.plan.edges.name, nodes=nodes, edges=(edges.entries + edges.loops) // 2, attributes=names,
            entries=entries.entries, parts=self.plan.parts, bounds=bounds.tolist(), weighted=not edges.plain,
            amounts=not entries.plain, ids="string" if self.tables.is_text("nodes", "id") else "integer", files={},
        )  # fmt: skip
        return replace(manifest, files=describe_files(self.home, manifest.names()))

    def _read_edges(self) -> None:
        """Read all edges into the table `edges`."""
        source, lines = self.plan.edges, None
        pieces = source.pieces()
        if source.kind == "lines":
            lines = EdgeLines(source.files[0])
            pieces = lines.pieces()
        unit = "rows" if source.kind == "parquet" else "bytes"
        meter = Meter(self.report, source.total, f"{unit} of edges read", stage="edges")
        for piece in pieces:
            self.tables.append("edges", piece.rows)
            meter.advance(piece.size)
        if lines is not None:
            self._judge_first_line(lines)

    def _judge_first_line(self, lines: EdgeLines) -> None:
        """Decide from the other lines whether the first contains titles, a header or an edge."""
        tables = self.tables
        if lines.candidate is None:
            not_integers = f"NOT ({_INTEGER.format('u')} AND {_INTEGER.format('coalesce(v, u)')})"
            query = f"SELECT count(*) FROM (SELECT 1 FROM edges WHERE {not_integers} LIMIT 2)"
            if lines.titles and tables.value("SELECT count(*) FROM edges") > 1 and tables.value(query) == 1:
                raise GraphError(
                    f"{lines.titles} are names, but all other ids are numbers; put # before column titles or, if the "
                    "line is an edge, move it further down"
                )
            return
        if not tables.has("edges", "u"):
            tables.append("edges", pl.DataFrame(schema={"u": pl.Int64, "v": pl.Int64}))
        if self._has_header(lines, lines.candidate):
            self.announced = lines.candidate.nodes
            return
        self.lead = tables.value("SELECT count(*) FROM edges")
        words = lines.candidate.words
        tables.append("edges", as_integers(pl.DataFrame({"u": words[:1], "v": words[1:]}), "u", "v"))

    def _has_header(self, lines: EdgeLines, first: Candidate) -> bool:
        """Return whether a first line of two integers is a header, by the rule in `edge_list`; refuse a wrong one."""
        named, low, high, numbered = self.tables.is_text("edges", "u"), 0, -1, True
        if named:
            query = f"SELECT true FROM edges WHERE {_INTEGER.format('u')} OR {_INTEGER.format('v')} LIMIT 1"
            numbered = bool(self.tables.value(query))
        else:
            ends = "least(min(u), min(v)), greatest(max(u), max(v)) FROM edges"
            low, high = self.tables.run(f"SELECT coalesce(a, 0), coalesce(b, -1) FROM (SELECT {ends}) AS t(a, b)")[0]
        fits = not numbered if named else high < first.nodes
        if first.edges != lines.follow:
            if lines.weighted or fits:
                refuse_header(lines.path, first.line, first.edges, lines.follow)
            return False
        if not (lines.weighted or fits or first.edges <= first.nodes * (first.nodes + 1) // 2):
            return False
        self._check_header(lines, first, low, high)
        if named and numbered:
            found = "some ids below this header are names and others numbers; under a header, give only names or only"
            fail(lines.path, first.line, f"{found} integers from 0 to {first.nodes - 1}")
        if not (named or lines.weighted or self.plan.attributes or high == first.nodes - 1):
            warnings.warn(header_warning(lines.path, first.nodes, first.edges), ReadingWarning, stacklevel=7)
        return True

    def _check_header(self, lines: EdgeLines, header: Candidate, low: int, high: int) -> None:
        """Refuse a header with far too many nodes, and integer ids from low to high that it does not allow."""
        place, last = f"{lines.path}:{header.line}", header.nodes - 1
        check_count(header.nodes, lines.follow, f"{place}: the number of nodes in the header", FIX_HEADER, GraphError)
        if low < 0 or high > last:
            raise GraphError(
                f"{place}: node {low if low < 0 else high} is not one of the {header.nodes} nodes, 0 to {last}, that "
                "the header announces; correct the line or the header, or remove the header to use any ids"
            )

    def _number_nodes(self) -> int:
        """Create the table `nodes`; refuse nodes that only have attributes, unless the header counts them."""
        tables, path, announced = self.tables, self.plan.edges.files[0], self.announced
        if announced is not None and not tables.is_text("edges", "u"):
            tables.create("nodes", f"SELECT range AS id FROM range({announced})", text=False)
            count = announced
        else:
            place = f"if(rowid = {self.lead}, -1, rowid) * 2"
            ends = f"SELECT u AS id, {place} AS place FROM edges UNION ALL SELECT v, {place} + 1 FROM edges"
            count = tables.number("nodes", f"SELECT * FROM ({ends}) WHERE id IS NOT NULL", tables.is_text("edges", "u"))
        if announced is not None and count > announced:
            raise GraphError(f"{path}: the header announces {announced} nodes, the file names {count}; correct it")
        if self.plan.attributes is not None:
            count += self._add_unlinked(self.plan.attributes, 0 if announced is None else announced - count)
        if announced is not None and count < announced:
            found = f"{path}: the header announces {announced} nodes, but the files name only {count};"
            raise GraphError(f"{found} correct the header, or give each node without edges its own line")
        return check_numbers(count, "nodes")

    def _add_unlinked(self, path: Path, room: int) -> int:
        """Add up to `room` nodes that only the attributes name, and return their count; refuse more."""
        tables, table = self.tables, "lines" if self.tables.has("lines", "node") else "entries"
        if tables.is_text("nodes", "id"):
            for one in ("entries", "lines")[: 1 + (table == "lines")]:
                tables.to_text(one, "node")
        known = "id::VARCHAR" if tables.is_text(table, "node") else "id"
        line = "min(line)" if table == "lines" else "NULL"
        unlinked = (
            f"SELECT node, {line} AS line, min({table}.rowid) AS place FROM {table} ANTI JOIN nodes ON node = {known} "
            "GROUP BY node ORDER BY place"
        )
        if found := tables.run(f"{unlinked} LIMIT 1 OFFSET {room}"):
            where = str(path) if found[0][1] is None else f"{path}:{found[0][1]}"
            raise GraphError(f"{where}: node '{found[0][0]}' is not in the graph; {MEND_UNKNOWN}")
        if table == "lines":
            twice = "SELECT node, min(line) AS earlier FROM lines GROUP BY node HAVING count(*) > 1"
            found = tables.run(
                f"SELECT line, node, earlier FROM lines JOIN ({twice}) USING (node) WHERE line > earlier "
                "ORDER BY line LIMIT 1"
            )
            for again, node, earlier in found:
                fail(path, again, f"node '{node}' already has line {earlier}; join the two lines or remove one")
        if not room:
            return 0
        before = tables.value("SELECT count(*) FROM nodes")
        tables.run(f"INSERT INTO nodes SELECT node FROM ({unlinked})")
        return int(tables.value("SELECT count(*) FROM nodes") - before)

    def _write_edges(self, bounds: np.ndarray) -> Facts:
        """Write both directions of every edge, sorted."""
        tables, add = self.tables, self.plan.duplicates == "sum"
        weighted = tables.has("edges", "weight")
        more = [name for name, wanted in (("weight", weighted), ("place", weighted and add)) if wanted]
        columns = "".join({"weight": ", weight", "place": ", e.rowid AS place"}[name] for name in more)
        tables.run(
            f"CREATE TABLE pairs AS SELECT n.rowid::UINTEGER AS a, m.rowid::UINTEGER AS b{columns} FROM edges e "
            "JOIN nodes n ON e.u = n.id JOIN nodes m ON e.v = m.id"
            + (" WHERE n.rowid <> m.rowid" if self.plan.self_loops == "drop" else "")
        )
        tables.run("DROP TABLE edges")
        total = tables.value("SELECT count(*) + count_if(a <> b) FROM pairs")
        if total == 0:
            raise GraphError(f"{self.plan.edges.files[0]}: all edges are self-loops; keep them or add edges")
        rest = "".join(f", {name}" for name in more)
        query = (
            f"SELECT (a::UBIGINT << 32) | b AS key{rest} FROM pairs UNION ALL "
            f"SELECT (b::UBIGINT << 32) | a{rest} FROM pairs WHERE a <> b ORDER BY key"
            + (", place" if "place" in more else "")
        )
        files = MatrixFiles(self.home, "adjacency", "weights" if weighted or add else None, bounds)
        facts = self._write_sorted(files, query, total, add)
        tables.run("DROP TABLE pairs")
        return facts

    def _write_attributes(self, bounds: np.ndarray) -> tuple[int, Facts]:
        """Write the attributes of every node, sorted; return the number of attributes and facts about the entries."""
        tables, files = self.tables, MatrixFiles(self.home, "attributes", "amounts", bounds)
        if not tables.has("entries", "name"):
            tables.create("names", "SELECT 0 AS id WHERE false", text=False)
            return 0, self._write_sorted(files, "SELECT 0::UBIGINT AS key, 0::FLOAT AS weight WHERE false", 0)
        places = "SELECT name AS id, rowid AS place FROM entries"
        names = check_numbers(tables.number("names", places, tables.is_text("entries", "name")), "attributes")
        query = (
            "SELECT (n.rowid::UBIGINT << 32) | m.rowid::UINTEGER AS key, amount AS weight FROM entries e "
            "JOIN nodes n ON e.node = n.id JOIN names m ON e.name = m.id ORDER BY key"
        )
        return names, self._write_sorted(files, query, tables.value("SELECT count(*) FROM entries"))

    def _write_sorted(self, files: MatrixFiles, query: str, total: int, add: bool = False) -> Facts:
        """Write entries that a query returns in order; of repeated entries write the largest, or their sum."""
        meter = Meter(self.report, total, f"entries of the {files.matrix} written", stage=files.matrix)
        with files:
            for keys, values in merge_repeats(self.tables.stream(query), meter, add=add):
                kept = slice(None) if values is None or files.matrix == "adjacency" else values != 0
                files.append(keys[kept], None if values is None else values[kept])
        return files.facts

    def _write_names(self, path: Path, table: str, first: int, last: int) -> None:
        """Write the names with the numbers first to last - 1."""

        def blocks() -> Iterator[pl.Series]:
            for at in range(first, last, BLOCK):
                place = f"rowid >= {at} AND rowid < {min(at + BLOCK, last)}"
                for batch in self.tables.stream(f"SELECT id FROM {table} WHERE {place} ORDER BY rowid"):
                    yield pl.DataFrame(batch)["id"]

        kind = pl.String() if self.tables.is_text(table, "id") else pl.Int64()
        shards.write_series(path, "id" if table == "nodes" else "name", kind, blocks())


SHIFT = np.uint64(32)  # the key of an entry has the row in the upper 32 bits and the column in the lower


def merge_repeats(
    batches: Iterator[Any], meter: Meter, *, add: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """Yield each key of sorted batches once, with its largest or summed (float64) weight; None if all are 1."""
    keys, weights = np.empty(0, np.uint64), None
    for batch in batches:
        new = batch.column("key").to_numpy()
        if "weight" in batch.schema.names:
            given = batch.column("weight").to_numpy()
            weights = given if weights is None else np.concatenate([weights, given])
        keys = np.concatenate([keys, new])
        whole = int(np.searchsorted(keys, keys[-1]))  # the next batch may begin with the last key
        if whole:
            yield _merge(keys[:whole], None if weights is None else weights[:whole], add)
            keys, weights = keys[whole:], None if weights is None else weights[whole:]
        meter.advance(len(new))
    if len(keys):
        yield _merge(keys, weights, add)


def _merge(keys: np.ndarray, weights: np.ndarray | None, add: bool) -> tuple[np.ndarray, np.ndarray | None]:
    new = np.concatenate([[True], keys[1:] != keys[:-1]])
    begins = np.flatnonzero(new)
    if weights is None:
        return keys[begins], np.diff(begins, append=len(keys)).astype(np.float32) if add else None
    if not add:
        return keys[begins], np.maximum.reduceat(weights, begins)
    with np.errstate(over="ignore"):
        sums = np.bincount(np.cumsum(new) - 1, weights=weights).astype(np.float32)
    if not np.isfinite(sums).all():
        raise ShardError("the sum of the weights of an edge is too large for float32; give smaller weights")
    return keys[begins], sums


@dataclass
class Facts:
    """Facts about the entries of a matrix, counted while they are written."""

    entries: int = 0
    loops: int = 0  # entries on the diagonal
    plain: bool = True  # True if every value is 1


class MatrixFiles:
    """The files of one matrix in all shards, written in the order of keys; values that are all 1 are not kept."""

    def __init__(self, home: Path, matrix: str, data: str | None, bounds: np.ndarray) -> None:
        self.matrix, self.facts = matrix, Facts()
        self._home, self._data, self._bounds = home, data, bounds
        self._shard, self._row, self._entries = -1, 0, 0  # current shard, last row begun, entries in the shard
        self._files: list[shards.ArrayFile] = []
        self._open_next()

    def _path(self, shard: int, name: str) -> Path:
        return self._home / shard_folder(shard) / f"{self.matrix}.{name}.npy"

    def _open_next(self) -> None:
        self._shard += 1
        names = {"indptr": np.int64, "indices": np.int32} | ({self._data: np.float32} if self._data else {})
        self._files = [shards.ArrayFile(self._path(self._shard, name), kind) for name, kind in names.items()]
        self._row, self._entries = int(self._bounds[self._shard]), 0
        self._files[0].append(np.zeros(1))

    def append(self, keys: np.ndarray, values: np.ndarray | None) -> None:
        """Write the next entries to the shards of their rows."""
        self.facts.loops += int((keys >> SHIFT == keys & np.uint64(0xFFFFFFFF)).sum())
        self.facts.plain &= values is None or bool((values == 1).all())
        self.facts.entries += len(keys)
        while True:
            own = int(np.searchsorted(keys, np.uint64(self._bounds[self._shard + 1]) << SHIFT))
            self._write(keys[:own], None if values is None else values[:own])
            if own == len(keys):
                return
            keys, values = keys[own:], None if values is None else values[own:]
            self._close_shard()
            self._open_next()

    def _write(self, keys: np.ndarray, values: np.ndarray | None) -> None:
        if len(keys) == 0:
            return
        rows = (keys >> SHIFT).astype(np.int64)
        self._begin_rows(int(rows[-1]), rows)
        self._files[1].append((keys & np.uint64(0xFFFFFFFF)).astype(np.int32))
        if self._data is not None:
            self._files[2].append(values if values is not None else np.ones(len(keys)))
        self._entries += len(keys)

    def _begin_rows(self, last: int, rows: np.ndarray) -> None:
        """Write the positions where rows up to `last` begin; `rows` are the sorted rows of the next entries."""
        for at in range(self._row + 1, last + 1, BLOCK):
            begun = np.arange(at, min(at + BLOCK, last + 1))
            self._files[0].append(self._entries + np.searchsorted(rows, begun))
        self._row = max(self._row, last)

    def _close_shard(self, complete: bool = True) -> None:
        with ExitStack() as every:  # closes all files, even if one fails
            for file in self._files:
                every.callback(file.close)
            if complete:
                self._begin_rows(int(self._bounds[self._shard + 1]), np.empty(0, np.int64))

    def __enter__(self) -> MatrixFiles:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._close_shard(complete=kind is None)
        if kind is not None:
            return
        while self._shard < len(self._bounds) - 2:
            self._open_next()
            self._close_shard()
        if self._data is not None and self.facts.plain:
            for shard in range(self._shard + 1):
                self._path(shard, self._data).unlink()
