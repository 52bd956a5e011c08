"""A graph in parts that was written to a folder: opened by its manifest, each part mapped when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from neural_brane.errors import ShardError
from neural_brane.graph.ids import as_ids
from neural_brane.shards.manifest import (
    AGAIN,
    IDS,
    NAMES,
    Manifest,
    checksum,
    part_files,
    part_folder,
    read_manifest,
)
from neural_brane.shards.parts import Part, Rows, check_part


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
