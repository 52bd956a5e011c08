"""What one part keeps in its files: a memory-mapped table, or columns of a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from neural_brane.errors import PartError
from neural_brane.forks import check_polars
from neural_brane.io.claims import DAMAGE
from neural_brane.io.manifest import AGAIN, check_checksum
from neural_brane.io.vector_parquet import vectors_of

if TYPE_CHECKING:
    import polars


class Stored(Protocol):
    """Rows of one part."""

    def read(self, begin: int, end: int) -> np.ndarray:
        """The rows from one number up to another."""


class MappedTable(NamedTuple):
    """The rows of a memory-mapped table."""

    table: np.ndarray

    def read(self, begin: int, end: int) -> np.ndarray:
        """The rows from one number up to another, which the disk gives when they are looked at."""
        return self.table[begin:end]


def map_table(path: Path, rows: int, dim: int) -> MappedTable:
    """The rows of an .npy file, once its header is what the manifest says."""
    if not rows:
        return MappedTable(np.empty((0, dim), np.float32))
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGE as failure:
        raise PartError(f"{path}: cannot be mapped ({failure}); {AGAIN}") from None
    if table.shape != (rows, dim) or table.dtype != np.dtype("<f4") or not table.flags.c_contiguous:
        raise PartError(
            f"{path}: holds {table.dtype} of shape {table.shape}, and the manifest says rows of float32, "
            f"({rows}, {dim}); {AGAIN}"
        )
    return MappedTable(table.view(np.ndarray))  # slices of a memmap are made more slowly


class StoredParquet:
    """The Parquet file of a part. Polars trusts what it reads, so the checksum is compared before the first reading."""

    def __init__(self, folder: Path, name: str, record: Mapping[str, int], rows: int):
        self.folder, self.name, self.rows = folder, name, rows
        self._record: Mapping[str, int] | None = record  # None once it is checked
        self._lock = Lock()

    def scan(self, *, numbered: str | None = None) -> polars.LazyFrame:
        """The file, for a query of Polars; `numbered` names a column of row numbers."""
        import polars

        check_polars()
        with self._lock:
            if self._record is not None:
                check_checksum(self.folder, self.name, self._record, PartError)
            self._record = None
        return polars.scan_parquet(self.folder / self.name, row_index_name=numbered)


class ParquetColumn(NamedTuple):
    """A column of a part's Parquet file."""

    table: StoredParquet
    name: str

    def read(self, begin: int, end: int) -> np.ndarray:
        """The rows from one number up to another."""
        series = self._collect(self.table.scan().select(self.name).slice(begin, end - begin))[self.name]
        path = self.table.folder / self.table.name
        if len(series) != end - begin or series.null_count():
            raise PartError(f"{path}: column '{self.name}' lacks rows that the manifest lists; {AGAIN}")
        return vectors_of(path, [series]) if series.dtype.is_nested() else series.to_numpy()

    def find(self, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Those of the wanted values that stand in the column, and their rows; the column is never read as a whole."""
        import polars

        if not self.table.rows:
            return wanted[:0], np.empty(0, np.int64)
        query = self.table.scan(numbered="row").select("row", self.name)
        found = self._collect(query.filter(polars.col(self.name).is_in(polars.Series(wanted).implode())))
        return found[self.name].to_numpy().astype(wanted.dtype), found["row"].to_numpy().astype(np.int64)

    def _collect(self, query: polars.LazyFrame) -> polars.DataFrame:
        import polars

        try:
            return query.collect()
        except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as failure:
            path, reason = self.table.folder / self.table.name, str(failure).partition("\n")[0]
            raise PartError(f"{path}: cannot be read ({reason}); {AGAIN}") from None
