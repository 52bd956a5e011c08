"""A graph as parts, each a range of nodes: a folder whose files are mapped when asked for, or a graph in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import ShardError
from neural_brane.files.storage import MANIFEST, Manifest, atomic, check_writable, describe_files
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import as_ids
from neural_brane.graph.lazy import pl
from neural_brane.progress import Meter, Reporter

# The files of a folder, and their manifest.

NAMES = "attributes.parquet"
IDS = "ids.parquet"
AGAIN = "make the folder again with 'brane shard SOURCE -o DIR', or restore it"


@dataclass(frozen=True)
class GraphManifest(Manifest):
    """Contents of `manifest.json` of a graph in parts; part k has the nodes from bounds[k] to bounds[k + 1] - 1."""

    FORMAT: ClassVar = "neural-brane shards"
    VERSION: ClassVar = 1
    ERROR: ClassVar = ShardError
    AGAIN: ClassVar = AGAIN

    name: str
    nodes: int
    edges: int
    attributes: int
    entries: int
    parts: int
    bounds: list[int]
    weighted: bool  # whether any edge weighs other than 1
    amounts: bool  # whether any node has other than 1 of an attribute
    ids: Literal["string", "integer"]

    def contradiction(self) -> str:
        """Return what is wrong with the bounds or the list of files."""
        bounds = self.bounds
        if len(bounds) != self.parts + 1 or (bounds[0], bounds[-1]) != (0, self.nodes) or bounds != sorted(bounds):
            return "its numbers contradict each other"
        absent = [name for name in self.names() if name not in self.files]
        return f"it does not list {absent[0]}" if absent else ""

    def names(self) -> list[str]:
        """Return the paths of all files in the folder."""
        return [NAMES, *(name for part in range(self.parts) for name in self.part_files(part))]

    def part_files(self, number: int) -> list[str]:
        """Return the paths of one part's files in the folder."""
        return part_files(number, weighted=self.weighted, amounts=self.amounts)


def is_shards(folder: Path) -> bool:
    """Whether a folder holds a graph in parts, by the first words of its manifest."""
    return GraphManifest.begins(folder)


def part_folder(number: int) -> str:
    """The name of a part's folder.

    >>> part_folder(7)
    'part-00007'
    """
    return f"part-{number:05d}"


def part_files(number: int, *, weighted: bool, amounts: bool) -> list[str]:
    """Return the paths of one part's files in the folder."""
    files = ["adjacency.indptr.npy", "adjacency.indices.npy", "attributes.indptr.npy", "attributes.indices.npy", IDS]
    files += ["adjacency.weights.npy"] * weighted + ["attributes.amounts.npy"] * amounts
    return [f"{part_folder(number)}/{file}" for file in files]


# A graph in parts: the rows of ranges of nodes, and how a graph in memory is seen that way.

LARGEST = int(np.iinfo(np.int32).max)  # nodes or attributes that int32 can number


class Rows(NamedTuple):
    """Some rows of a sparse matrix: those of row k are indices[indptr[k] : indptr[k + 1]], sorted.

    indptr (rows + 1,) int64, from 0; indices int32, numbers in the whole graph; data float32, or None where every entry
    is 1.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray | None

    def matrix(self, width: int) -> sparse.csr_array:
        """The rows as a sparse matrix with `width` columns."""
        data = np.ones(len(self.indices), np.float32) if self.data is None else np.asarray(self.data)
        return sparse.csr_array(
            (data, np.asarray(self.indices), np.asarray(self.indptr)), shape=(len(self.indptr) - 1, width)
        )


class Part(NamedTuple):
    """The nodes from `first` on: row k of both matrices is that of node first + k."""

    first: int
    adjacency: Rows
    attributes: Rows

    @property
    def nodes(self) -> int:
        """The number of nodes in the part."""
        return len(self.adjacency.indptr) - 1


def even_bounds(nodes: int, parts: int) -> np.ndarray:
    """Return where parts of nearly equal numbers of nodes begin, and the number of nodes as the last.

    >>> even_bounds(10, 4).tolist()
    [0, 2, 5, 7, 10]
    """
    if not 1 <= parts <= max(nodes, 1):
        raise ShardError(f"parts is {parts}, and the graph has {nodes:,} nodes; give a number from 1 to {nodes}")
    return np.array([nodes * part // parts for part in range(parts + 1)], np.int64)


class MemoryShards:
    """A graph in memory, seen in parts: it answers as `Shards` does, and copies no entry."""

    def __init__(self, graph: AttributedGraph, count: int = 1) -> None:
        for size, what in ((len(graph), "nodes"), (len(graph.attribute_names), "attributes")):
            check_count(size, what)
        self.graph, self.name = graph, graph.name
        self.nodes, self.attributes = len(graph), len(graph.attribute_names)
        self.edges, self.entries = graph.edges, graph.attributes.nnz
        self.bounds = even_bounds(self.nodes, count)
        self.weighted = bool((graph.adjacency.data != 1).any())
        self.amounts = bool((graph.attributes.data != 1).any())

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __repr__(self) -> str:
        return f"MemoryShards('{self.name}': {self.nodes} nodes, {self.edges} edges, {len(self)} parts)"

    def part(self, number: int) -> Part:
        """Return the rows of one part's nodes."""
        check_part(number, len(self), self.name)
        first, last = self.bounds[number], self.bounds[number + 1]
        matrices = ((self.graph.adjacency, self.weighted), (self.graph.attributes, self.amounts))
        return Part(int(first), *(_cut_rows(matrix, first, last, keep_data=keep) for matrix, keep in matrices))

    def ids(self, number: int) -> np.ndarray:
        """Return the ids of one part's nodes."""
        check_part(number, len(self), self.name)
        return self.graph.ids[self.bounds[number] : self.bounds[number + 1]]

    def attribute_names(self) -> np.ndarray:
        """Return the names of all attributes."""
        return self.graph.attribute_names

    def check(self, parts: object = None) -> None:
        """Do nothing: a graph in memory was checked when it was made."""


def parts_of(graph: AttributedGraph, count: int = 1) -> MemoryShards:
    """A graph in memory, seen in `count` parts of nearly equal numbers of nodes, which keep their numbers.

    >>> graph = AttributedGraph.from_edges([("ann", "bob"), ("bob", "cid")])
    >>> parts_of(graph, 2).part(1).adjacency.indices.tolist()
    [0, 2, 1]
    """
    return MemoryShards(graph, count)


def _cut_rows(matrix: sparse.csr_array, first: int, last: int, *, keep_data: bool) -> Rows:
    """Return some rows of a matrix, as views where its numbers have the right size already."""
    begin, end = matrix.indptr[first], matrix.indptr[last]
    return Rows(
        matrix.indptr[first : last + 1].astype(np.int64) - int(begin),
        matrix.indices[begin:end].astype(np.int32, copy=False),
        matrix.data[begin:end] if keep_data else None,
    )


def check_part(number: int, parts: int, name: str) -> None:
    """Refuse the number of a part that is not there."""
    if not 0 <= number < parts:
        raise ShardError(f"{name}: there is no part {number}; its {parts} parts are numbered from 0 to {parts - 1}")


def check_count(count: int, what: str) -> int:
    """Return a number of nodes or attributes; refuse more than int32 can number."""
    if count > LARGEST:
        raise ShardError(f"there are {count:,} {what}; parts number at most {LARGEST:,}: leave some out")
    return count


# A graph in parts that was written to a folder: opened by its manifest, each part mapped when it is asked for.


class Shards:
    """A folder of parts. `open_shards` makes one; nothing of a part is read before it is asked for."""

    def __init__(self, folder: Path, manifest: GraphManifest) -> None:
        self.folder, self.manifest, self.name = folder, manifest, manifest.name
        self.nodes, self.attributes = manifest.nodes, manifest.attributes
        self.edges, self.entries = manifest.edges, manifest.entries
        self.weighted, self.amounts = manifest.weighted, manifest.amounts
        self.bounds = np.array(manifest.bounds, np.int64)

    def __len__(self) -> int:
        return self.manifest.parts

    def __repr__(self) -> str:
        return f"Shards('{self.name}': {self.nodes} nodes, {self.edges} edges, {len(self)} parts)"

    def part(self, number: int) -> Part:
        """The rows of one part's nodes, mapped: what is not looked at is not read."""
        check_part(number, len(self), str(self.folder))
        first, last = int(self.bounds[number]), int(self.bounds[number + 1])
        home = self.folder / part_folder(number)
        return Part(
            first,
            _map_rows(home, "adjacency", "weights" if self.weighted else None, last - first),
            _map_rows(home, "attributes", "amounts" if self.amounts else None, last - first),
        )

    def ids(self, number: int) -> np.ndarray:
        """The ids of one part's nodes, read from the disk."""
        check_part(number, len(self), str(self.folder))
        file = f"{part_folder(number)}/{IDS}"
        ids = self._read_names(file, "id")
        expected = int(self.bounds[number + 1] - self.bounds[number])
        if len(ids) != expected:
            raise ShardError(f"{self.folder / file}: has {len(ids):,} ids for {expected:,} nodes; {AGAIN}")
        return ids

    def attribute_names(self) -> np.ndarray:
        """The names of all attributes, read from the disk."""
        return self._read_names(NAMES, "name")

    def _read_names(self, file: str, column: str) -> np.ndarray:
        """A column of a file, whose checksum is compared first: a damaged one can end the process that reads it."""
        self.manifest.check_file(self.folder, file)
        return as_ids(pl.read_parquet(self.folder / file)[column].to_numpy(), what=f"{self.folder / file}")

    def check(self, parts: Iterable[int] | None = None) -> None:
        """Compare the files of some parts, or of all, with their checksums; refuse a damaged one by name."""
        for number in range(len(self)) if parts is None else parts:
            check_part(number, len(self), str(self.folder))
            for file in self.manifest.part_files(number):
                self.manifest.check_file(self.folder, file)
        self.manifest.check_file(self.folder, NAMES)


def open_shards(folder: str | Path) -> Shards:
    """Open a folder that `write_shards` or `brane shard` has made.

    The manifest is read, and the sizes of all files are compared with it; `Shards.check` compares their checksums,
    which takes as long as to read them.
    """
    folder = Path(folder)
    manifest = GraphManifest.read(folder)
    manifest.check_sizes(folder)
    return Shards(folder, manifest)


def _map_rows(home: Path, matrix: str, data: str | None, rows: int) -> Rows:
    """Map the rows of one matrix; refuse arrays whose headers contradict each other."""
    indptr = _map_array(home / f"{matrix}.indptr.npy", np.int64, rows + 1)
    indices = _map_array(home / f"{matrix}.indices.npy", np.int32, int(indptr[-1]))
    if data is None:
        return Rows(indptr, indices, None)
    return Rows(indptr, indices, _map_array(home / f"{matrix}.{data}.npy", np.float32, len(indices)))


def _map_array(path: Path, kind: type, length: int) -> np.ndarray:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as failure:
        raise ShardError(f"{path}: cannot be read ({failure}); {AGAIN}") from None
    if array.dtype != kind or array.shape != (length,):
        found = f"{array.dtype} of shape {array.shape}"
        raise ShardError(f"{path}: is {found}, not {np.dtype(kind)} of shape ({length},); {AGAIN}")
    return array


# A graph in memory to a folder of parts, and how the files of a part are written.


def write_shards(
    graph: AttributedGraph, folder: str | Path, parts: int = 1, *, report: Reporter | None = None
) -> Shards:
    """Write a graph as a folder of `parts` parts, and open it. Nodes and attributes keep their numbers.

    The folder must not hold anything yet. Labels are not kept.
    """
    folder, shards = Path(folder), parts_of(graph, parts)
    check_vacant(folder)
    meter = Meter(report, parts, "parts")
    write_names(folder / NAMES, "name", graph.attribute_names)
    for number in range(parts):
        part, home = shards.part(number), folder / part_folder(number)
        _write_rows(home, "adjacency", part.adjacency, "weights")
        _write_rows(home, "attributes", part.attributes, "amounts")
        write_names(home / IDS, "id", shards.ids(number))
        meter.advance()
    facts: dict[str, Any] = {
        name: getattr(shards, name)
        for name in ("name", "nodes", "edges", "attributes", "entries", "weighted", "amounts")
    }
    facts |= {"parts": parts, "bounds": shards.bounds.tolist(), "files": {}}
    manifest = GraphManifest(**facts, ids="integer" if graph.ids.dtype.kind == "i" else "string")
    replace(manifest, files=describe_files(folder, manifest.names())).write(folder)
    return open_shards(folder)


def check_vacant(folder: Path) -> None:
    """Refuse a folder that holds something, or cannot be written to."""
    if folder.exists() and not folder.is_dir():
        raise ShardError(f"{folder}: is a file; name a folder that is empty or does not exist")
    if is_shards(folder):
        raise ShardError(f"{folder}: holds a graph in parts already; choose another folder, or remove this one")
    if folder.is_dir() and any(folder.iterdir()):
        raise ShardError(f"{folder}: is not empty; name a folder that is empty or does not exist")
    check_writable(folder / MANIFEST, ShardError)


def _write_rows(home: Path, matrix: str, rows: Rows, data: str) -> None:
    """Write the arrays of one matrix of a part."""
    arrays = {"indptr": rows.indptr, "indices": rows.indices} | ({} if rows.data is None else {data: rows.data})
    for name, array in arrays.items():
        with atomic(home / f"{matrix}.{name}.npy") as draft:
            np.save(draft, array)


def write_names(path: Path, column: str, names: np.ndarray) -> None:
    """Write ids or names as a Parquet file of one column."""
    kind = pl.Int64() if names.dtype.kind == "i" else pl.String()
    write_series(path, column, kind, iter([pl.Series(names, dtype=kind)]))


def write_series(path: Path, column: str, kind: pl.DataType, series: Iterator[pl.Series]) -> None:
    """Write names that come some at a time as a Parquet file of one column, through Polars' streaming engine."""
    from polars.io.plugins import register_io_source

    def frames(*_: Any) -> Iterator[pl.DataFrame]:
        for names in series:
            yield pl.DataFrame({column: names.cast(kind)})

    # An open file, not its name: given a name, Polars makes the file from a thread of its own, even after a failure.
    with atomic(path) as draft, draft.open("wb") as file:
        register_io_source(frames, schema={column: kind}).sink_parquet(file)
