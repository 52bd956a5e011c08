"""Vectors in a folder of parts, one per range of nodes, so that many processes can write them at the same time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import IO, Any, ClassVar, Literal, Self, get_args

import numpy as np

from neural_brane.errors import EmbeddingError, PartError
from neural_brane.files import storage
from neural_brane.files.reading import DAMAGE
from neural_brane.files.storage import MANIFEST, REPAIR, Files, Manifest, atomic_together, describe_files
from neural_brane.files.vectors.parquet import ROW_GROUP, vectors_of, write_frames
from neural_brane.files.vectors.table import VectorTable
from neural_brane.graph.ids import as_ids, locate, repeated
from neural_brane.graph.lazy import check_polars, pl
from neural_brane.graph.memory import require_memory

Kind = Literal["npy", "parquet"]
KINDS = get_args(Kind)
REPLACED = "manifest.old.json"  # the manifest of the vectors that are being replaced
RECORDS = "part-*.json"


@dataclass(frozen=True)
class VectorManifest(Manifest):
    """The contents of `manifest.json`; each of `parts` has the numbers `first` (node) and `rows`."""

    FORMAT: ClassVar = "neural-brane vectors"
    VERSION: ClassVar = 1
    ERROR: ClassVar = PartError

    nodes: int
    dim: int
    kind: Kind
    ids: Literal["integer", "string"]
    made_from: bool
    parts: list[dict[str, int]]
    provenance: dict[str, Any]

    def contradiction(self) -> str:
        """Return a contradiction between the parts, the number of nodes and the files, or an empty string."""
        if any("rows" not in part for part in self.parts) or sum(part["rows"] for part in self.parts) != self.nodes:
            return f"the rows of its parts do not add up to {self.nodes:,} nodes"
        names = [name for part in range(len(self.parts)) for name in part_files(part, self.kind)]
        absent = [name for name in names if name not in self.files]
        return f"it does not list {absent[0]}" if absent else ""


@dataclass(frozen=True)
class PartRecord(Manifest):
    """The contents of a finished part's record, such as `part-00003.json`, until the manifest lists the part."""

    FORMAT: ClassVar = "neural-brane part of vectors"
    VERSION: ClassVar = 1
    ERROR: ClassVar = PartError
    REPAIR: ClassVar = "write this part again before finish"

    first: int
    rows: int
    dim: int
    kind: Kind
    ids: Literal["integer", "string", ""]  # "" if the part is empty
    made_from: bool


def part_files(part: int, kind: Kind) -> list[str]:
    """Return the names of a part's files; the last contains the ids.

    >>> part_files(3, "npy")
    ['part-00003.npy', 'part-00003.ids.parquet']
    """
    return [f"part-{part:05}.parquet"] if kind == "parquet" else [f"part-{part:05}.npy", f"part-{part:05}.ids.parquet"]


def map_table(path: Path, rows: int, dim: int) -> np.ndarray:
    """Return the rows of an .npy file, memory-mapped; raise an error if its header does not match the manifest."""
    if not rows:
        return np.empty((0, dim), np.float32)
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGE as failure:
        raise PartError(f"{path}: cannot be mapped ({failure}); {REPAIR}") from None
    if table.shape != (rows, dim) or table.dtype != np.dtype("<f4") or not table.flags.c_contiguous:
        rest = f"but the manifest says float32 of shape ({rows}, {dim}); {REPAIR}"
        raise PartError(f"{path}: is {table.dtype} of shape {table.shape}, {rest}")
    return table.view(np.ndarray)  # slicing a memmap is slower


class StoredParquet:
    """The Parquet file of a part; its checksum is compared before Polars, which trusts its content, first reads it."""

    def __init__(self, folder: Path, name: str, rows: int, manifest: VectorManifest):
        self.folder, self.name, self.rows = folder, name, rows
        self._manifest: VectorManifest | None = manifest  # None once the file is checked
        self._lock = Lock()

    def scan(self, *, numbered: str | None = None) -> pl.LazyFrame:
        """Return the file as a lazy frame; if `numbered` is given, with a column of row numbers of this name."""
        check_polars()
        with self._lock:
            if self._manifest is not None:
                self._manifest.check_file(self.folder, self.name)
            self._manifest = None
        return pl.scan_parquet(self.folder / self.name, row_index_name=numbered)


@dataclass(frozen=True)
class ParquetColumn:
    """A column of a part's Parquet file; slices are read from the disk on access."""

    table: StoredParquet
    name: str

    def __getitem__(self, rows: slice) -> np.ndarray:
        count = rows.stop - rows.start
        series = self._collect(self.table.scan().select(self.name).slice(rows.start, count))[self.name]
        path = self.table.folder / self.table.name
        if len(series) != count or series.null_count():
            raise PartError(f"{path}: column '{self.name}' lacks rows that the manifest lists; {REPAIR}")
        return vectors_of(path, [series]) if series.dtype.is_nested() else series.to_numpy()

    def find(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the wanted values that the column has, and their rows; the column is never in memory all at once."""
        if not self.table.rows:
            return wanted[:0], np.empty(0, np.int64)
        query = self.table.scan(numbered="row").select("row", self.name)
        found = self._collect(query.filter(pl.col(self.name).is_in(pl.Series(wanted).implode())))
        return found[self.name].to_numpy().astype(wanted.dtype), found["row"].to_numpy().astype(np.int64)

    def _collect(self, query: pl.LazyFrame) -> pl.DataFrame:
        try:
            return query.collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as failure:
            path, reason = self.table.folder / self.table.name, str(failure).partition("\n")[0]
            raise PartError(f"{path}: cannot be read ({reason}); {REPAIR}") from None


class _Parts:
    """Rows of several parts seen as one array, which is read by slices or row numbers."""

    _empty: Callable[[int], np.ndarray]  # makes an array for a number of rows

    def __init__(self, parts: Sequence[Any], bounds: np.ndarray):
        self._parts, self._bounds = parts, bounds

    def __len__(self) -> int:
        return int(self._bounds[-1])

    def __getitem__(self, index: Any) -> np.ndarray:
        rows = self._as_rows(index)
        if isinstance(rows, slice):
            return self._join(self._pieces(rows.start, rows.stop))
        found = self._empty(len(rows))
        order = np.argsort(rows, kind="stable")
        part = np.searchsorted(self._bounds, rows[order], side="right") - 1
        group = (rows[order] - self._bounds[part]) // ROW_GROUP
        for places in np.split(order, np.flatnonzero(np.diff(part) | np.diff(group)) + 1):
            if len(places):  # rows of one row group are read together
                begin = int(rows[places[0]])
                [piece] = self._pieces(begin, int(rows[places[-1]]) + 1)
                found[places] = piece[rows[places] - begin]
        return self._join([found])

    def _join(self, pieces: list[np.ndarray]) -> np.ndarray:
        return pieces[0] if len(pieces) == 1 else np.concatenate([self._empty(0), *pieces])

    def _pieces(self, begin: int, end: int) -> list[np.ndarray]:
        """Read the rows of a range, one array from each part that it overlaps."""
        found = []
        part = max(int(np.searchsorted(self._bounds, begin, side="right")) - 1, 0)
        while begin < end:
            first, stop = int(self._bounds[part]), min(int(self._bounds[part + 1]), end)
            if stop > begin:
                found.append(self._parts[part][begin - first : stop - first])
                begin = stop
            part += 1
        return found

    def _as_rows(self, index: Any) -> slice | np.ndarray:
        """Return an index as a slice with step 1, or as row numbers from 0."""
        if isinstance(index, slice):
            begin, end, step = index.indices(len(self))
            return slice(begin, max(begin, end)) if step == 1 else np.arange(begin, end, step)
        rows = np.asarray(index)
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise PartError(f"the index is {rows.dtype} of shape {rows.shape}; give a slice or a list of row numbers")
        rows = rows.astype(np.int64)
        rows = np.where(rows < 0, rows + len(self), rows)
        if rows.size and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"row out of range; there are {len(self):,} rows")
        return rows


class StoredRows(_Parts):
    """The vectors of all parts as one float32 table (nodes, dim); rows are read from the disk on access."""

    def __init__(self, parts: Sequence[Any], bounds: np.ndarray, dim: int):
        super().__init__(parts, bounds)
        self.shape, self.dtype, self.ndim = (int(bounds[-1]), dim), np.dtype(np.float32), 2
        self._empty = lambda rows: np.empty((rows, dim), np.float32)


class StoredColumn(_Parts):
    """The ids of all parts, or another column, as one array; values are read from the disk on access."""

    _parts: Sequence[ParquetColumn]

    def __init__(self, parts: Sequence[ParquetColumn], bounds: np.ndarray, dtype: np.dtype):
        super().__init__(parts, bounds)
        self.dtype = dtype  # the length of strings is an estimate
        self._empty = lambda rows: np.empty(rows, np.int64 if dtype.kind == "i" else object)

    @property
    def nbytes(self) -> int:
        """The approximate number of bytes of the whole column in memory."""
        return len(self) * self.dtype.itemsize

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype)

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """Return the row of each of distinct values, or -1; refuse a value in several rows. Parts stay on disk."""
        rows = np.full(len(wanted), -1, np.int64)
        if wanted.dtype.kind != self.dtype.kind:
            return rows
        for part, first in zip(self._parts, self._bounds.tolist(), strict=False):
            values, places = part.find(wanted)
            which = locate(wanted, values)
            if (twice := repeated(np.concatenate([which, np.flatnonzero(rows >= 0)]))) is not None:
                raise PartError(f"id {wanted[twice].item()!r} has several vectors; give each node one vector")
            rows[which] = places + first
        return rows

    def _join(self, pieces: list[np.ndarray]) -> np.ndarray:
        whole = np.concatenate([self._empty(0), *pieces])
        return whole if self.dtype.kind == "i" else whole.astype(str)


BLOCK_ROWS = 8192  # rows read at a time


def is_parts(path: str | Path) -> bool:
    """Return whether a path is a folder with a manifest, like vectors in parts."""
    return os.path.isfile(Path(path) / MANIFEST)  # False, too, if the path is in a folder that may not be read


def open_parts(folder: str | Path) -> VectorParts:
    """Return the vectors of a folder that `finish` wrote; it checks sizes, `VectorParts.check` checksums."""
    return VectorParts(Path(folder), VectorManifest.read(Path(folder)))


class VectorParts:
    """Vectors in a folder of parts, opened by `open_parts`; rows are read from the disk on access.

    Attributes
    ----------
    nodes, dim : int
        The number of vectors and of their columns.
    provenance : dict
        The facts needed to make the vectors again.
    vectors : StoredRows
        The table (nodes, dim); a slice or row numbers read from it: `vectors[5:9]`, `vectors[[7, 3]]`.
    ids : StoredColumn
        The ids, read in the same way; `np.asarray(ids)` reads all.
    made_from : StoredColumn or None
        The source of each vector, see `Embedding`.
    bounds : array of shape (parts + 1,), int64
        Part k has the rows bounds[k] … bounds[k+1] - 1.
    """

    def __init__(self, folder: Path, manifest: VectorManifest):
        manifest.check_sizes(folder)
        self.folder, self.manifest = folder, manifest
        self.nodes, self.dim, self.kind = manifest.nodes, manifest.dim, manifest.kind
        self.provenance, self.files = manifest.provenance, manifest.files
        counts = [part["rows"] for part in manifest.parts]
        self.bounds = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
        names = [part_files(part, self.kind) for part in range(len(counts))]
        self._tables = [StoredParquet(folder, own[-1], rows, manifest) for own, rows in zip(names, counts, strict=True)]
        size = sum(self.files[files[-1]]["bytes"] for files in names)
        length = 16 if self.kind == "parquet" or not self.nodes else 1 + size // self.nodes  # estimate for ids
        kind = np.dtype(np.int64) if manifest.ids == "integer" else np.dtype(f"U{length}")
        self.ids = StoredColumn(self._columns("id"), self.bounds, kind)
        made_from = StoredColumn(self._columns("made_from"), self.bounds, np.dtype("U32"))
        self.made_from = made_from if manifest.made_from else None
        vectors: Sequence[Any] = self._columns("vector")
        if self.kind == "npy":
            vectors = [map_table(folder / files[0], rows, self.dim) for files, rows in zip(names, counts, strict=True)]
        self.vectors = StoredRows(vectors, self.bounds, self.dim)

    def __len__(self) -> int:
        return self.nodes

    def __repr__(self) -> str:
        return f"VectorParts({str(self.folder)!r}: {self.nodes:,} × {self.dim} in {len(self.bounds) - 1} parts)"

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the ids and vectors of at most `rows` nodes at a time, in order."""
        for at in range(0, self.nodes, rows):
            yield self.ids[at : at + rows], self.vectors[at : at + rows]

    def check(self, report: Callable[[int], object] | None = None) -> None:
        """Raise an error if a file's CRC-32 differs from the manifest; call `report` with each checked file's bytes."""
        for name, record in self.files.items():
            self.manifest.check_file(self.folder, name)
            if report is not None:
                report(record["bytes"])

    def _columns(self, name: str) -> list[ParquetColumn]:
        return [ParquetColumn(table, name) for table in self._tables]


WRITTEN_ROWS = 8192  # rows of a Parquet part in memory at a time


class PartWriter:
    """Write the vectors of nodes `first` … `first + rows - 1` as one part, block by block in this order.

    Use it in a `with` statement: the files appear at its end if nothing fails. An old manifest in the folder is renamed
    first, because its parts are being replaced. Ids stay in memory, vectors do not. Call `finish` after the last part.

    Parameters
    ----------
    folder : str or Path
        The folder of all parts.
    part : int
        The number of this part, from 0.
    first, rows : int
        The number of the part's first node and of its nodes.
    dim : int
        The number of columns.
    kind : {"npy", "parquet"}
        The file format of the part.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with PartWriter(folder, 0, first=0, rows=3, dim=2) as part:
    ...     part.write(["a", "b"], np.zeros((2, 2)))
    ...     part.write(["c"], np.ones((1, 2)))
    >>> finish(folder, parts=1, provenance={"method": "ones"})
    >>> sorted(path.name for path in Path(folder).iterdir())
    ['manifest.json', 'part-00000.ids.parquet', 'part-00000.npy']
    """

    def __init__(self, folder: str | Path, part: int, first: int, rows: int, dim: int, kind: Kind = "npy"):
        if min(part, first, rows) < 0 or dim < 1 or kind not in KINDS:
            found = f"part={part}, first={first}, rows={rows}, dim={dim}, kind={kind!r} makes no sense;"
            raise PartError(f"{found} give part, first and rows from 0, dim from 1, and kind 'npy' or 'parquet'")
        self.folder, self.part, self.first, self.rows, self.dim, self.kind = Path(folder), part, first, rows, dim, kind
        self._done = 0
        self._ids: list[pl.Series] = []
        self._made_from: list[pl.Series] = []
        self._stack = ExitStack()
        self._drafts: list[Path] = []
        self._table: IO[bytes] | None = None  # the .npy file, or an unnamed file before the Parquet file is written

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        check_replaceable(self.folder)
        with suppress(FileNotFoundError):  # another writer may have renamed it
            os.replace(self.folder / MANIFEST, self.folder / REPLACED)
        names = [*part_files(self.part, self.kind), f"part-{self.part:05}.json"]
        with ExitStack() as stack:
            self._drafts = stack.enter_context(atomic_together([self.folder / name for name in names]))
            if self.kind == "npy":
                file: IO[bytes] = stack.enter_context(self._drafts[0].open("wb"))
                header = {"descr": "<f4", "fortran_order": False, "shape": (self.rows, self.dim)}
                np.lib.format.write_array_header_1_0(file, header)
            else:
                file = stack.enter_context(tempfile.TemporaryFile(dir=self.folder))
            self._table = file
            stack.push(self._close)
            self._stack = stack.pop_all()
        return self

    def write(self, ids: Any, vectors: np.ndarray, made_from: Any = None) -> None:
        """Append the ids and vectors of the next nodes; give `made_from` for all nodes or for none."""
        vectors = np.ascontiguousarray(vectors, dtype="<f4")
        names = as_ids(ids, what=f"{self._name}: ids", error=PartError)
        if self._table is None:
            raise PartError(f"{self._name}: is not open; write in a 'with' statement")
        if vectors.ndim != 2 or vectors.shape != (len(names), self.dim):
            rest = f"expected one row of {self.dim} numbers for each of {len(names)} ids"
            raise PartError(f"{self._name}: vectors have shape {vectors.shape}, {rest}")
        if self._done + len(names) > self.rows:
            raise PartError(f"{self._name}: more than {self.rows:,} rows are written; open it with more rows")
        if not len(names):
            return
        self._ids.append(pl.Series("id", names))
        if self._ids[-1].dtype != self._ids[0].dtype:
            raise PartError(f"{self._name}: ids are integers in one block and strings in another; give one type")
        if made_from is not None:
            self._made_from.append(pl.Series("made_from", made_from, dtype=pl.String))
        self._table.write(vectors.data)
        self._done += len(names)

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, failure, trace)

    def _close(self, kind: type[BaseException] | None, *_: object) -> None:
        """Write the ids, or the Parquet file, and the record of the part to their drafts, unless something failed."""
        if kind is not None or self._table is None:
            return
        if self._done < self.rows:
            raise PartError(f"{self._name}: {self._done:,} of {self.rows:,} rows were written; write all of them")
        if self._made_from and sum(map(len, self._made_from)) != self.rows:
            raise PartError(f"{self._name}: made_from was given for some rows only; give it for all or none")
        self._table.flush()
        ids = self._write_ids()
        files = [next(iter(describe_files(draft.parent, [draft.name]).values())) for draft in self._drafts[:-1]]
        named = dict(zip(part_files(self.part, self.kind), files, strict=True))
        record = PartRecord(named, self.first, self.rows, self.dim, self.kind, ids, bool(self._made_from))
        record.write_draft(self._drafts[-1])

    def _write_ids(self) -> Literal["integer", "string", ""]:
        """Write the Parquet file of a part; return the type of its ids, "" if it has none."""
        columns = [pl.concat(self._ids) if self._ids else pl.Series("id", [], pl.Int64)]
        columns += [pl.concat(self._made_from)] if self._made_from else []
        frame = pl.DataFrame(columns)
        schema: dict[str, Any] = dict(frame.schema)
        frames = iter([frame])
        if self.kind == "parquet":
            schema = {"id": schema["id"], "vector": pl.Array(pl.Float32, self.dim)} | schema
            frames = self._with_vectors(frame)
        write_frames(self._drafts[-2], schema, frames, "{}")
        return "" if not self.rows else "integer" if frame["id"].dtype == pl.Int64 else "string"

    def _with_vectors(self, frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Yield the part as frames of `WRITTEN_ROWS` rows, with the vectors from the unnamed file."""
        if not self.rows:
            return
        vectors = np.memmap(self._table, "<f4", "r", shape=(self.rows, self.dim))  # type: ignore[call-overload]
        kind = pl.Array(pl.Float32, self.dim)
        for at in range(0, self.rows, WRITTEN_ROWS):
            block = pl.Series("vector", np.asarray(vectors[at : at + WRITTEN_ROWS]), dtype=kind)
            yield frame.slice(at, WRITTEN_ROWS).insert_column(1, block)

    @property
    def _name(self) -> str:
        return str(self.folder / part_files(self.part, self.kind)[0])


def check_replaceable(folder: Path) -> None:
    """Raise an error if the folder has a manifest of other data, such as shards of a graph, which would be lost."""
    if (folder / MANIFEST).is_file() and not VectorManifest.begins(folder):
        advice = "choose another folder, or remove it"
        raise PartError(f"{folder}: its {MANIFEST} does not describe vectors, or is damaged; {advice}")


def finish(folder: str | Path, parts: int, *, provenance: dict[str, Any] | None = None) -> None:
    """Write the manifest of a folder after every `PartWriter` has ended, and remove the files of earlier vectors."""
    folder = Path(folder)
    records = [PartRecord.read(folder, f"part-{part:05}.json") for part in range(parts)]
    if not records:
        raise PartError(f"{folder}: has no part; write at least one, which may be empty")
    bounds = [{"first": one.first, "rows": one.rows} for one in records]
    files: Files = {name: about for one in records for name, about in one.files.items()}
    VectorManifest(**_agree(folder, records), parts=bounds, files=files, provenance=provenance or {}).write(folder)
    older: set[str] = set()  # all manifests and records of these and earlier vectors, and the files that they list
    for path in [folder / REPLACED, *folder.glob(RECORDS)]:
        with suppress(OSError, ValueError, LookupError, TypeError):
            listed = storage.parse_json(path.read_bytes())["files"]
            older |= {path.name, *(name for name in listed if Path(name).name == name)}
    for name in older - files.keys():
        (folder / name).unlink(missing_ok=True)


def _agree(folder: Path, records: list[PartRecord]) -> dict[str, Any]:
    """Return the properties that all parts share; raise an error if parts leave gaps, overlap, or differ."""
    nodes = 0
    for part, one in enumerate(records):
        if one.first != nodes:
            rest = f"expected {nodes:,}, where the parts before it end; write parts without gaps"
            raise PartError(f"{folder / part_files(part, one.kind)[0]}: begins at node {one.first:,}, {rest}")
        nodes += one.rows
    filled = [one for one in records if one.rows] or records[:1]
    common: dict[str, Any] = {"nodes": nodes}
    for name, among in (("dim", records), ("kind", records), ("ids", filled), ("made_from", filled)):
        values = sorted({str(getattr(one, name)) for one in among})
        if len(values) > 1:
            raise PartError(f"{folder}: parts differ in '{name}': {' and '.join(values)}; write all with the same")
        common[name] = getattr(among[0], name)
    return common | {"ids": common["ids"] or "integer"}


MOST_PARTS = 99_999


def read_whole(folder: Path) -> VectorTable:
    """Return all vectors of a folder, read into memory after they were compared with their checksums."""
    parts = open_parts(folder)
    size = parts.nodes * (4 * parts.dim + parts.ids.dtype.itemsize)
    require_memory(
        size,
        f"{folder}: reading {parts.nodes:,} vectors of {parts.dim} numbers",
        "search them on the disk with 'brane nearest' or neural_brane.search.EmbeddingParts",
    )
    parts.check()
    vectors = np.empty((parts.nodes, parts.dim), np.float32)
    for at in range(0, parts.nodes, BLOCK_ROWS):
        vectors[at : at + BLOCK_ROWS] = parts.vectors[at : at + BLOCK_ROWS]
    made_from = None if parts.made_from is None else np.asarray(parts.made_from)
    return VectorTable(vectors, np.asarray(parts.ids), parts.provenance, made_from)


def as_finite(path: Path, block: np.ndarray, first: int = 0) -> np.ndarray:
    """Return the vectors `first` … of a file as float32; raise an error for a number that float32 cannot hold."""
    with np.errstate(over="ignore"):
        block = np.asarray(block, dtype=np.float32)
    if not (finite := np.isfinite(block)).all():
        row = first + int(np.argwhere(~finite)[0][0]) + 1
        raise EmbeddingError(f"{path}: vector {row} holds NaN or infinity in float32; give finite numbers below 3e38")
    return block


def finite_blocks(path: Path, vectors: np.ndarray | StoredRows, rows: int = BLOCK_ROWS) -> Iterator[np.ndarray]:
    """Yield vectors read from `path`, `rows` at a time; raise an error for NaN and infinity, which have no distance."""
    for at in range(0, len(vectors), rows):
        yield as_finite(path, vectors[at : at + rows], at)


def write_parts(
    folder: Path,
    ids: np.ndarray | StoredColumn,
    vectors: np.ndarray | StoredRows,
    *,
    parts: int,
    kind: Kind = "npy",
    provenance: dict[str, Any] | None = None,
    made_from: np.ndarray | StoredColumn | None = None,
    report: Callable[[int], object] | None = None,
) -> None:
    """Write vectors as a folder of `parts` parts of nearly equal size; call `report` with the rows of each block."""
    check_folder(folder, parts)
    bounds = [len(ids) * part // parts for part in range(parts + 1)]
    for part, (first, end) in enumerate(pairwise(bounds)):
        with PartWriter(folder, part, first, end - first, vectors.shape[1], kind) as out:
            for at in range(first, end, BLOCK_ROWS):
                span = slice(at, min(at + BLOCK_ROWS, end))
                out.write(ids[span], vectors[span], None if made_from is None else made_from[span])
                if report is not None:
                    report(span.stop - at)
    finish(folder, parts, provenance=provenance)


def check_folder(folder: Path, parts: int) -> Path:
    """Return the path of the manifest if `parts` parts can be written to the folder, else raise an error."""
    if not 1 <= parts <= MOST_PARTS:
        raise PartError(f"{parts} parts make no sense; give a number from 1 to {MOST_PARTS:,}")
    if folder.exists() and not folder.is_dir():
        raise PartError(f"{folder}: is a file, but parts are written to a folder; give a folder")
    check_replaceable(folder)
    storage.check_writable(folder, PartError, folder=True)
    return folder / MANIFEST
