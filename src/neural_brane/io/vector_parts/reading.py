"""A folder of vectors is opened: sizes are compared at once, rows and ids are read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import PartError
from neural_brane.io import npz
from neural_brane.io.manifest import AGAIN, MANIFEST, check_checksum, check_sizes, read_manifest
from neural_brane.io.vector_parts.columns import StoredColumn, StoredRows
from neural_brane.io.vector_parts.format import FORMAT, INTEGER, KINDS, LAYER_FILE, STRING, VERSION, part_files
from neural_brane.io.vector_parts.stored import ParquetColumn, Stored, StoredParquet, map_table
from neural_brane.io.vector_table import LAYER

BLOCK_ROWS = 8192  # rows that are read at a time


def is_parts(path: str | Path) -> bool:
    """Whether a path is a folder with a manifest, as vectors in parts have one."""
    return (Path(path) / MANIFEST).is_file()


def open_parts(folder: str | Path) -> VectorParts:
    """Open a folder of vectors that `PartWriter` and `finish` wrote.

    The manifest is read, and the sizes of all files are compared with it; `VectorParts.check` compares the rest.
    """
    folder = Path(folder)
    content = read_manifest(folder, FORMAT, VERSION, PartError)
    try:
        parts = VectorParts(folder, content)
    except (LookupError, TypeError, ValueError, AttributeError) as failure:
        if isinstance(failure, PartError):
            raise
        raise PartError(f"{folder / MANIFEST}: does not tell what a manifest must ({failure}); {AGAIN}") from None
    return parts


class VectorParts:
    """Vectors in a folder of parts, of which only what is asked for is read; made by `open_parts`.

    Attributes
    ----------
    nodes, dim
        How many vectors, and their width.
    provenance
        What made them.
    vectors
        Their rows, as a table that a slice or an array of row numbers reads from: `vectors[5:9]`, `vectors[[7, 3]]`.
    ids
        Their ids, likewise; `np.asarray(ids)` reads all of them.
    made_from
        A word for each, likewise, or None.
    bounds
        (parts + 1,) int64: part k has the rows bounds[k] … bounds[k+1] - 1.
    """

    def __init__(self, folder: Path, content: dict[str, Any]):
        self.folder = folder
        self.nodes, self.dim, self.kind = int(content["nodes"]), int(content["dim"]), content["kind"]
        self.provenance: dict[str, Any] = dict(content["provenance"])
        self.files: dict[str, dict[str, int]] = content["files"]
        counts = [int(part["rows"]) for part in content["parts"]]
        self.bounds = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
        names = [part_files(part, self.kind) for part in range(len(counts))]
        if self.kind not in KINDS or self.bounds[-1] != self.nodes or content["ids"] not in (INTEGER, STRING):
            raise ValueError("kind, ids or parts")
        if absent := [name for files in names for name in files if name not in self.files]:
            raise ValueError(f"no file {absent[0]}")
        check_sizes(folder, self.files, PartError)
        self._tables = [self._open(files[-1], rows) for files, rows in zip(names, counts, strict=True)]
        kind = np.dtype(np.int64) if content["ids"] == INTEGER else np.dtype(f"U{self._mean_length()}")
        self.ids = StoredColumn(self._columns("id"), self.bounds, kind)
        made_from = StoredColumn(self._columns("made_from"), self.bounds, np.dtype("U32"))
        self.made_from = made_from if content["made_from"] else None
        vectors: Sequence[Stored] = self._columns("vector")
        if self.kind == "npy":
            vectors = [map_table(folder / files[0], rows, self.dim) for files, rows in zip(names, counts, strict=True)]
        self.vectors = StoredRows(vectors, self.bounds, self.dim)

    def __len__(self) -> int:
        return self.nodes

    def __repr__(self) -> str:
        return f"VectorParts({str(self.folder)!r}: {self.nodes:,} × {self.dim} in {len(self.bounds) - 1} parts)"

    @property
    def layer(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The weight and bias of what scores pairs, where there is one."""
        if LAYER_FILE not in self.files:
            return None
        with npz.open_npz(self.folder / LAYER_FILE, PartError, "the arrays of a layer") as archive:
            return archive[LAYER[0]], archive[LAYER[1]]

    def blocks(self, rows: int = BLOCK_ROWS) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The ids and vectors of at most `rows` nodes at a time, in order."""
        for at in range(0, self.nodes, rows):
            yield self.ids[at : at + rows], self.vectors[at : at + rows]

    def check(self, tell: Callable[[int], object] | None = None) -> None:
        """Compare the CRC-32 of every file with the manifest; one that is damaged is refused by name.

        tell: a function that is called with the number of bytes after each file.
        """
        for name, record in self.files.items():
            check_checksum(self.folder, name, record, PartError)
            if tell is not None:
                tell(record["bytes"])

    def _open(self, name: str, rows: int) -> StoredParquet:
        return StoredParquet(self.folder, name, self.files[name], rows)

    def _columns(self, name: str) -> list[ParquetColumn]:
        return [ParquetColumn(table, name) for table in self._tables]

    def _mean_length(self) -> int:
        """About as many characters as an id has, for those who judge how large a file will be."""
        if self.kind == "parquet" or not self.nodes:
            return 16
        return 1 + sum(self.files[table.name]["bytes"] for table in self._tables) // self.nodes
