"""Graphs in shards, each with a range of the nodes: a folder whose files are memory-mapped, or a graph in memory."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from neural_brane.errors import ShardError
from neural_brane.files.storage import MANIFEST, Manifest, atomic, check_writable, describe_files, naming
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import as_ids
from neural_brane.graph.lazy import pl
from neural_brane.progress import Meter, Reporter

UNFINISHED = ".unfinished"  # subfolder of the output for temporary files and for shards that are not complete
NAMES = "attributes.parquet"
IDS = "ids.parquet"
REPAIR = "make the folder again with 'brane shard SOURCE -o DIR', or restore it from a copy"


@dataclass(frozen=True)
class GraphManifest(Manifest):
    """The contents of `manifest.json`; shard k has the nodes from bounds[k] to bounds[k + 1] - 1."""

    FORMAT: ClassVar = "neural-brane shards"
    VERSION: ClassVar = 1
    ERROR: ClassVar = ShardError
    SEALED: ClassVar = False
    REPAIR: ClassVar = REPAIR

    name: str
    nodes: int
    edges: int
    attributes: int
    entries: int
    parts: int  # number of shards
    bounds: list[int]
    weighted: bool  # True if some weight is not 1
    amounts: bool  # True if some amount of an attribute is not 1
    ids: Literal["string", "integer"]

    def contradiction(self) -> str:
        """Return an error of the bounds or the list of files; "" if there is none."""
        bounds = self.bounds
        if len(bounds) != self.parts + 1 or (bounds[0], bounds[-1]) != (0, self.nodes) or bounds != sorted(bounds):
            return "its numbers contradict each other"
        absent = [name for name in self.names() if name not in self.files]
        return f"it does not list {absent[0]}" if absent else ""

    def names(self) -> list[str]:
        """Return the paths of all files, relative to the folder."""
        return [NAMES, *(name for shard in range(self.parts) for name in self.shard_files(shard))]

    def shard_files(self, number: int) -> list[str]:
        """Return the paths of a shard's files, relative to the folder."""
        names = [f"{matrix}.{array}.npy" for matrix in ("adjacency", "attributes") for array in ("indptr", "indices")]
        names += [IDS, *["adjacency.weights.npy"] * self.weighted, *["attributes.amounts.npy"] * self.amounts]
        return [f"{shard_folder(number)}/{name}" for name in names]


def shard_folder(number: int) -> str:
    """Return the name of a shard's folder.

    >>> shard_folder(7)
    'part-00007'
    """
    return f"part-{number:05d}"


LARGEST = int(np.iinfo(np.int32).max)  # most nodes or attributes that int32 can number


class ShardRows(NamedTuple):
    """Some rows of a sparse matrix: row k has sorted columns indices[indptr[k] : indptr[k + 1]]; data may be None."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray | None

    def matrix(self, width: int) -> sparse.csr_array:
        """Return the rows as a sparse matrix (rows, width)."""
        data = np.ones(len(self.indices), np.float32) if self.data is None else self.data
        arrays = tuple(map(np.asarray, (data, self.indices, self.indptr)))
        return sparse.csr_array(arrays, shape=(len(self.indptr) - 1, width))


class Shard(NamedTuple):
    """A shard in memory or memory-mapped: row k of both matrices belongs to node first + k."""

    first: int
    adjacency: ShardRows
    attributes: ShardRows

    @property
    def nodes(self) -> int:
        """The number of nodes in the shard."""
        return len(self.adjacency.indptr) - 1


def even_bounds(nodes: int, parts: int) -> np.ndarray:
    """Return the first node of each shard of nearly equal size, and the number of nodes at the end.

    >>> even_bounds(10, 4).tolist()
    [0, 2, 5, 7, 10]
    """
    if not 1 <= parts <= max(nodes, 1):
        raise ShardError(f"parts is {parts}, but the graph has {nodes:,} nodes; give a number from 1 to {nodes}")
    return np.array([nodes * shard // parts for shard in range(parts + 1)], np.int64)


class MemoryShards:
    """A graph in memory, divided into shards without a copy of its entries; its methods are those of `Shards`.

    >>> graph = AttributedGraph.from_edges([("ann", "bob"), ("bob", "cid")])
    >>> MemoryShards(graph, 2).shard(1).adjacency.indices.tolist()
    [0, 2, 1]
    """

    def __init__(self, graph: AttributedGraph, count: int = 1) -> None:
        for size, what in ((len(graph), "nodes"), (len(graph.attribute_names), "attributes")):
            check_numbers(size, what)
        self.graph, self.name = graph, graph.name
        self.nodes, self.attributes = len(graph), len(graph.attribute_names)
        self.edges, self.entries = graph.edges, graph.attributes.nnz
        self.bounds = even_bounds(self.nodes, count)
        self.weighted = bool((graph.adjacency.data != 1).any())
        self.amounts = bool((graph.attributes.data != 1).any())

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __repr__(self) -> str:
        return f"MemoryShards('{self.name}': {self.nodes} nodes, {self.edges} edges, {len(self)} shards)"

    def shard(self, number: int) -> Shard:
        """Return one shard."""
        _check_shard(number, len(self), self.name)
        first, last = self.bounds[number], self.bounds[number + 1]
        matrices = ((self.graph.adjacency, self.weighted), (self.graph.attributes, self.amounts))
        return Shard(int(first), *(_cut_rows(matrix, first, last, keep_data=keep) for matrix, keep in matrices))

    def ids(self, number: int) -> np.ndarray:
        """Return the ids of one shard's nodes."""
        _check_shard(number, len(self), self.name)
        return self.graph.ids[self.bounds[number] : self.bounds[number + 1]]

    def attribute_names(self) -> np.ndarray:
        """Return the names of all attributes."""
        return self.graph.attribute_names

    def check(self, parts: object = None) -> None:
        """Do nothing, because a graph in memory has no files to check."""


def _cut_rows(matrix: sparse.csr_array, first: int, last: int, *, keep_data: bool) -> ShardRows:
    """Return some rows of a matrix; they are views if the types are right."""
    begin, end = matrix.indptr[first], matrix.indptr[last]
    return ShardRows(
        matrix.indptr[first : last + 1].astype(np.int64) - int(begin),
        matrix.indices[begin:end].astype(np.int32, copy=False),
        matrix.data[begin:end] if keep_data else None,
    )


def _check_shard(number: int, shards: int, name: str) -> None:
    """Refuse a shard number out of range."""
    if not 0 <= number < shards:
        raise ShardError(f"{name}: there is no shard {number}; its {shards} shards have the numbers 0 to {shards - 1}")


def check_numbers(count: int, what: str) -> int:
    """Return a number of nodes or attributes; refuse more than int32 can number."""
    if count > LARGEST:
        raise ShardError(f"there are {count:,} {what}, but shards can have at most {LARGEST:,}; leave some out")
    return count


class Shards:
    """A folder of shards, opened by `open_shards`; the files of a shard are read only when they are used."""

    def __init__(self, folder: Path, manifest: GraphManifest) -> None:
        self.folder, self.manifest, self.name = folder, manifest, manifest.name
        self.nodes, self.attributes = manifest.nodes, manifest.attributes
        self.edges, self.entries = manifest.edges, manifest.entries
        self.weighted, self.amounts = manifest.weighted, manifest.amounts
        self.bounds = np.array(manifest.bounds, np.int64)

    def __len__(self) -> int:
        return self.manifest.parts

    def __repr__(self) -> str:
        return f"Shards('{self.name}': {self.nodes} nodes, {self.edges} edges, {len(self)} shards)"

    def shard(self, number: int) -> Shard:
        """Return one shard, memory-mapped: only the entries that are used are read."""
        _check_shard(number, len(self), str(self.folder))
        first, last = int(self.bounds[number]), int(self.bounds[number + 1])
        home = self.folder / shard_folder(number)
        return Shard(
            first,
            _map_rows(home, "adjacency", "weights" if self.weighted else None, last - first),
            _map_rows(home, "attributes", "amounts" if self.amounts else None, last - first),
        )

    def ids(self, number: int) -> np.ndarray:
        """Read and return the ids of one shard's nodes."""
        _check_shard(number, len(self), str(self.folder))
        file = f"{shard_folder(number)}/{IDS}"
        ids = self._read_names(file, "id")
        expected = int(self.bounds[number + 1] - self.bounds[number])
        if len(ids) != expected:
            raise ShardError(f"{self.folder / file}: found {len(ids):,} ids, expected {expected:,}; {REPAIR}")
        return ids

    def attribute_names(self) -> np.ndarray:
        """Read and return the names of all attributes."""
        return self._read_names(NAMES, "name")

    def _read_names(self, file: str, column: str) -> np.ndarray:
        """Return a column of a Parquet file."""
        self.manifest.check_file(self.folder, file)  # reading a damaged file can crash the process
        return as_ids(pl.read_parquet(self.folder / file)[column].to_numpy(), what=f"{self.folder / file}")

    def check(self, parts: Iterable[int] | None = None) -> None:
        """Compare the files of some shards, or of all, with their checksums; raise ShardError for a damaged file."""
        for number in range(len(self)) if parts is None else parts:
            _check_shard(number, len(self), str(self.folder))
            for file in self.manifest.shard_files(number):
                self.manifest.check_file(self.folder, file)
        self.manifest.check_file(self.folder, NAMES)


def open_shards(folder: str | Path) -> Shards:
    """Open a folder made by `write_shards` or `brane shard` and check its files' sizes; `Shards.check` reads them."""
    folder = Path(folder)
    manifest = GraphManifest.read(folder)
    manifest.check_sizes(folder)
    return Shards(folder, manifest)


def _map_rows(home: Path, matrix: str, data: str | None, rows: int) -> ShardRows:
    """Memory-map the rows of one matrix; refuse arrays whose lengths do not match."""
    indptr = _map_array(home / f"{matrix}.indptr.npy", np.int64, rows + 1)
    indices = _map_array(home / f"{matrix}.indices.npy", np.int32, int(indptr[-1]))
    if data is None:
        return ShardRows(indptr, indices, None)
    return ShardRows(indptr, indices, _map_array(home / f"{matrix}.{data}.npy", np.float32, len(indices)))


def _map_array(path: Path, kind: type, length: int) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as failure:
        raise ShardError(f"{path}: cannot be read ({failure}); {REPAIR}") from None
    if array.dtype != kind or array.shape != (length,):
        found, expected = f"{array.dtype} with shape {array.shape}", f"{np.dtype(kind)} with shape ({length},)"
        raise ShardError(f"{path}: found {found}, expected {expected}; {REPAIR}")
    return array


def write_shards(
    graph: AttributedGraph, folder: str | Path, parts: int = 1, *, report: Reporter | None = None
) -> Shards:
    """Write a graph, without labels, into a new or empty folder as `parts` shards with its numbers; open it."""
    folder, shards = Path(folder), MemoryShards(graph, parts)
    check_vacant(folder)
    facts: dict[str, Any] = {
        name: getattr(shards, name)
        for name in ("name", "nodes", "edges", "attributes", "entries", "weighted", "amounts")
    }
    facts |= {"parts": parts, "bounds": shards.bounds.tolist(), "files": {}}
    manifest = GraphManifest(**facts, ids="integer" if graph.ids.dtype.kind == "i" else "string")
    meter = Meter(report, parts, "shards")
    with new_shards(folder, parts) as home:
        write_names(home / NAMES, "name", graph.attribute_names)
        for number in range(parts):
            shard, place = shards.shard(number), home / shard_folder(number)
            _write_rows(place, "adjacency", shard.adjacency, "weights")
            _write_rows(place, "attributes", shard.attributes, "amounts")
            write_names(place / IDS, "id", shards.ids(number))
            meter.advance()
        replace(manifest, files=describe_files(home, manifest.names())).write(home)
    return open_shards(folder)


@contextmanager
def new_shards(folder: Path, parts: int) -> Iterator[Path]:
    """Yield a folder for the files of all shards, and move them to `folder` at the end; a failed run leaves none."""
    home, existed = folder / UNFINISHED, folder.exists()
    try:
        with naming(folder):
            home.mkdir(parents=True)
            yield home
            for name in [NAMES, *map(shard_folder, range(parts)), MANIFEST]:
                os.replace(home / name, folder / name)
    finally:
        shutil.rmtree(home, ignore_errors=True)
        if not existed:
            with suppress(OSError):  # fails after a success, because the folder is not empty
                folder.rmdir()


def check_vacant(folder: Path) -> None:
    """Refuse a folder that is not empty or cannot be written to; remove the temporary files of a killed run first."""
    if folder.exists() and not folder.is_dir():
        raise ShardError(f"{folder}: is a file; name a folder that is empty or does not exist")
    if GraphManifest.begins(folder):
        raise ShardError(f"{folder}: already contains a graph in shards; name another folder, or remove this one")
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
    if folder.is_dir() and any(folder.iterdir()):
        raise ShardError(f"{folder}: is not empty; name a folder that is empty or does not exist")
    check_writable(folder, ShardError, folder=True)


def _write_rows(home: Path, matrix: str, rows: ShardRows, data: str) -> None:
    """Write the arrays of a shard's rows of one matrix."""
    arrays = {"indptr": rows.indptr, "indices": rows.indices} | ({} if rows.data is None else {data: rows.data})
    for name, array in arrays.items():
        with closing(ArrayFile(home / f"{matrix}.{name}.npy", array.dtype)) as file:
            file.append(array)


class ArrayFile:
    """An .npy file of one dimension that grows; `close` writes its length into the header."""

    def __init__(self, path: Path, kind: npt.DTypeLike) -> None:
        self._kind, self._size = np.dtype(kind), 0
        path.parent.mkdir(exist_ok=True)
        self._file = path.open("wb")
        self._write_header()

    def append(self, array: np.ndarray) -> None:
        """Append numbers to the array."""
        self._file.write(np.ascontiguousarray(array, self._kind).data)  # `tofile` hides why the disk refuses
        self._size += len(array)

    def _write_header(self) -> None:
        about = {"descr": self._kind.str, "fortran_order": False, "shape": (self._size,)}
        np.lib.format.write_array_header_1_0(self._file, about)  # NumPy pads headers of any length to the same size

    def close(self) -> None:
        """Write the length, wait until the file is on the disk, and close it; do nothing if it is closed."""
        if self._file.closed:
            return
        with self._file as file:
            file.seek(0)
            self._write_header()
            file.flush()
            os.fsync(file.fileno())


def write_names(path: Path, column: str, names: np.ndarray) -> None:
    """Write ids or names as a Parquet file with one column."""
    kind = pl.Int64() if names.dtype.kind == "i" else pl.String()
    write_series(path, column, kind, iter([pl.Series(names, dtype=kind)]))


def write_series(path: Path, column: str, kind: pl.DataType, series: Iterator[pl.Series]) -> None:
    """Write ids or names, some at a time, as a Parquet file with one column."""
    from polars.io.plugins import register_io_source

    def frames(*_: Any) -> Iterator[pl.DataFrame]:
        for names in series:
            yield pl.DataFrame({column: names.cast(kind)})

    # Polars gets an open file, because it creates a file given by name in another thread, even after a failure.
    with atomic(path) as draft, draft.open("wb") as file:
        register_io_source(frames, schema={column: kind}).sink_parquet(file)
