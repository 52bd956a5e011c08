"""A graph as a folder of parts, each a range of nodes, mapped into memory when it is asked for."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import ShardError
from neural_brane.files.storage import atomic, check_writable
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import as_ids
from neural_brane.progress import Meter, Reporter

if TYPE_CHECKING:
    import polars as pl


# What a folder of parts says of itself: sizes, where the parts begin, and the checksum of every file.
#
# The manifest is written last. A folder without one is not finished, and does not open.

FORMAT, VERSION = "neural-brane shards", 1
MANIFEST = "manifest.json"
NAMES = "attributes.parquet"
IDS = "ids.parquet"
AGAIN = "make the folder again with 'brane shard SOURCE -o DIR', or restore it"
BLOCK = 1 << 22  # bytes that are read at once


@dataclass(frozen=True)
class Manifest:
    """What `manifest.json` holds; part k has the nodes from bounds[k] to bounds[k + 1] - 1."""

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
    files: dict[str, dict[str, int]]  # by path in the folder: bytes and crc32

    def write(self, folder: Path) -> None:
        """Write it to its folder: from then on the folder opens."""
        record = {"format": FORMAT, "version": VERSION} | asdict(self)
        with atomic(folder / MANIFEST) as draft:
            draft.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(about["bytes"] for about in self.files.values())


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder; refuse one that is missing, damaged or of another version."""
    path = folder / MANIFEST
    if not path.is_file():
        found = "has no manifest.json: it is not a folder of parts, or its making was stopped"
        state = found if folder.is_dir() else "is not there"
        raise ShardError(f"{folder}: {state}; make it with 'brane shard SOURCE -o {folder}', or go on by the same")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ShardError(f"{path}: is damaged, it is not JSON; {AGAIN}") from None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ShardError(f"{path}: is not the manifest of a graph in parts; {AGAIN}")
    if record.get("version") != VERSION:
        raise ShardError(f"{path}: has version {record.get('version')}, and this program reads {VERSION}; {AGAIN}")
    return _checked(record, path)


def is_shards(folder: Path) -> bool:
    """Whether a folder holds a graph in parts, by the first words of its manifest."""
    path = folder / MANIFEST
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return f'"{FORMAT}"' in file.read(200)


def _checked(record: dict[str, Any], path: Path) -> Manifest:
    names = [field.name for field in fields(Manifest)]
    if lacking := [name for name in names if name not in record]:
        raise ShardError(f"{path}: is damaged, '{lacking[0]}' is missing; {AGAIN}")
    manifest = Manifest(**{name: record[name] for name in names})
    bounds = manifest.bounds
    numbers = (manifest.nodes, manifest.edges, manifest.attributes, manifest.entries, manifest.parts)
    sound = (
        all(type(number) is int and number >= 0 for number in numbers)
        and isinstance(bounds, list)
        and all(type(bound) is int for bound in bounds)
        and len(bounds) == manifest.parts + 1
        and (bounds[0], bounds[-1]) == (0, manifest.nodes)
        and bounds == sorted(bounds)
        and isinstance(manifest.files, dict)
        and all(_describes_file(about) for about in manifest.files.values())
    )
    if not sound:
        raise ShardError(f"{path}: is damaged, its numbers contradict each other; {AGAIN}")
    return manifest


def _describes_file(about: Any) -> bool:
    return isinstance(about, dict) and all(type(about.get(name)) is int for name in ("bytes", "crc32"))


def part_folder(number: int) -> str:
    """The name of a part's folder.

    >>> part_folder(7)
    'part-00007'
    """
    return f"part-{number:05d}"


def part_files(number: int, *, weighted: bool, amounts: bool) -> list[str]:
    """The files of one part, by their paths in the folder."""
    files = ["adjacency.indptr.npy", "adjacency.indices.npy", "attributes.indptr.npy", "attributes.indices.npy", IDS]
    files += ["adjacency.weights.npy"] * weighted + ["attributes.amounts.npy"] * amounts
    return [f"{part_folder(number)}/{file}" for file in files]


def describe_files(folder: Path, files: Iterable[str]) -> dict[str, dict[str, int]]:
    """The bytes and the checksum of some files, as the manifest keeps them."""
    return {file: {"bytes": (folder / file).stat().st_size, "crc32": checksum(folder / file)} for file in files}


def checksum(path: Path) -> int:
    """The CRC-32 of a file, read block by block."""
    value = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            value = zlib.crc32(block, value)
    return value


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
        """How many nodes the part has."""
        return len(self.adjacency.indptr) - 1


def even_bounds(nodes: int, parts: int) -> np.ndarray:
    """Where parts of nearly equal numbers of nodes begin, and the number of nodes as the last.

    >>> even_bounds(10, 4).tolist()
    [0, 2, 5, 7, 10]
    """
    if not 1 <= parts <= max(nodes, 1):
        raise ShardError(f"parts is {parts}, and the graph has {nodes:,} nodes; give a number from 1 to {nodes}")
    return np.array([nodes * part // parts for part in range(parts + 1)], np.int64)


class MemoryShards:
    """A graph in memory, seen in parts: it answers as `Shards` does, and copies no entry."""

    def __init__(self, graph: AttributedGraph, count: int = 1) -> None:
        check_numbers(len(graph), len(graph.attribute_names))
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
        """The rows of one part's nodes."""
        check_part(number, len(self), self.name)
        first, last = self.bounds[number], self.bounds[number + 1]
        return Part(
            int(first),
            cut_rows(self.graph.adjacency, first, last, keep_data=self.weighted),
            cut_rows(self.graph.attributes, first, last, keep_data=self.amounts),
        )

    def ids(self, number: int) -> np.ndarray:
        """The ids of one part's nodes."""
        check_part(number, len(self), self.name)
        return self.graph.ids[self.bounds[number] : self.bounds[number + 1]]

    def attribute_names(self) -> np.ndarray:
        """The names of all attributes."""
        return self.graph.attribute_names

    def check(self, parts: object = None) -> None:
        """Do nothing: what is in memory was checked when the graph was made."""


def parts_of(graph: AttributedGraph, count: int = 1) -> MemoryShards:
    """A graph in memory, seen in `count` parts of nearly equal numbers of nodes, which keep their numbers.

    >>> graph = AttributedGraph.from_edges([("ann", "bob"), ("bob", "cid")])
    >>> parts_of(graph, 2).part(1).adjacency.indices.tolist()
    [0, 2, 1]
    """
    return MemoryShards(graph, count)


def cut_rows(matrix: sparse.csr_array, first: int, last: int, *, keep_data: bool) -> Rows:
    """Some rows of a matrix, as views where its numbers have the right size already."""
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


def check_numbers(nodes: int, attributes: int) -> None:
    """Refuse more nodes or attributes than the folder's numbers can tell apart."""
    for count, what in ((nodes, "nodes"), (attributes, "attributes")):
        if count > LARGEST:
            raise ShardError(f"there are {count:,} {what}; parts number at most {LARGEST:,}: leave some out")


# A graph in parts that was written to a folder: opened by its manifest, each part mapped when it is asked for.


class Shards:
    """A folder of parts. `open_shards` makes one; nothing of a part is read before it is asked for."""

    def __init__(self, folder: Path, manifest: Manifest) -> None:
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
        import polars as pl

        self._check_file(file)
        return as_ids(pl.read_parquet(self.folder / file)[column].to_numpy(), what=f"{self.folder / file}")

    def files_of(self, number: int) -> list[str]:
        """The files of one part, by their paths in the folder."""
        return part_files(number, weighted=self.weighted, amounts=self.amounts)

    def check(self, parts: Iterable[int] | None = None) -> None:
        """Compare the files of some parts, or of all, with their checksums; refuse a damaged one by name."""
        for number in range(len(self)) if parts is None else parts:
            check_part(number, len(self), str(self.folder))
            for file in self.files_of(number):
                self._check_file(file)
        self._check_file(NAMES)

    def check_sizes(self) -> None:
        """Refuse a folder that lacks a file, or where one has another length than the manifest says."""
        for file in [NAMES, *(file for number in range(len(self)) for file in self.files_of(number))]:
            expected = self.manifest.files.get(file)
            path = self.folder / file
            if expected is None:
                raise ShardError(f"{self.folder}: the manifest does not list {file}; {AGAIN}")
            if not path.is_file():
                raise ShardError(f"{path}: is missing; {AGAIN}")
            if (size := path.stat().st_size) != expected["bytes"]:
                raise ShardError(f"{path}: has {size:,} bytes, not {expected['bytes']:,}: it is cut off; {AGAIN}")

    def _check_file(self, file: str) -> None:
        if checksum(self.folder / file) != self.manifest.files[file]["crc32"]:
            raise ShardError(f"{self.folder / file}: is damaged, its checksum does not fit; {AGAIN}")


def open_shards(folder: str | Path) -> Shards:
    """Open a folder that `write_shards` or `brane shard` has made.

    The manifest is read, and the sizes of all files are compared with it; `Shards.check` compares their checksums,
    which takes as long as to read them.
    """
    folder = Path(folder)
    shards = Shards(folder, read_manifest(folder))
    shards.check_sizes()
    return shards


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
    files = describe_files(folder, [NAMES])
    for number in range(parts):
        _write_part(shards, number, folder)
        own = part_files(number, weighted=shards.weighted, amounts=shards.amounts)
        files |= describe_files(folder, own)
        meter.advance()
    _manifest(shards, files).write(folder)
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


def _write_part(shards: MemoryShards, number: int, folder: Path) -> None:
    part, home = shards.part(number), folder / part_folder(number)
    write_rows(home, "adjacency", part.adjacency, "weights")
    write_rows(home, "attributes", part.attributes, "amounts")
    write_names(home / IDS, "id", shards.ids(number))


def write_rows(home: Path, matrix: str, rows: Rows, data: str) -> None:
    """Write the arrays of one matrix of a part."""
    arrays = {"indptr": rows.indptr, "indices": rows.indices} | ({} if rows.data is None else {data: rows.data})
    for name, array in arrays.items():
        with atomic(home / f"{matrix}.{name}.npy") as draft:
            np.save(draft, array)


def write_names(path: Path, column: str, names: np.ndarray) -> None:
    """Write ids or names as a Parquet file of one column."""
    import polars as pl

    kind = pl.Int64() if names.dtype.kind == "i" else pl.String()
    write_series(path, column, kind, iter([pl.Series(names, dtype=kind)]))


def write_series(path: Path, column: str, kind: pl.DataType, series: Iterator[pl.Series]) -> None:
    """Write names that come some at a time as a Parquet file of one column, through Polars' streaming engine."""
    import polars as pl
    from polars.io.plugins import register_io_source

    def frames(*_: Any) -> Iterator[pl.DataFrame]:
        for names in series:
            yield pl.DataFrame({column: names.cast(kind)})

    # An open file, not its name: given a name, Polars makes the file from a thread of its own, even after a failure.
    with atomic(path) as draft, draft.open("wb") as file:
        register_io_source(frames, schema={column: kind}).sink_parquet(file)


def _manifest(shards: MemoryShards, files: dict[str, dict[str, int]]) -> Manifest:
    return Manifest(
        name=shards.name,
        nodes=shards.nodes,
        edges=shards.edges,
        attributes=shards.attributes,
        entries=shards.entries,
        parts=len(shards),
        bounds=shards.bounds.tolist(),
        weighted=shards.weighted,
        amounts=shards.amounts,
        ids="integer" if shards.graph.ids.dtype.kind == "i" else "string",
        files=files,
    )
