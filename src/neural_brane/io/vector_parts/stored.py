"""What one part keeps in its files: a memory-mapped table, or columns of a Parquet file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from neural_brane.errors import PartError
from neural_brane.forks import check_polars
from neural_brane.io.claims import DAMAGE
from neural_brane.io.manifest import AGAIN, check_checksum
from neural_brane.io.vector_parquet import vectors_of

if TYPE_CHECKING:
    import polars

Stored = Callable[[int, int], np.ndarray]  # the rows from one number up to another, of one part


def map_table(path: Path, rows: int, dim: int) -> Stored:
    """The rows of a memory-mapped .npy file, once its header is what the manifest says."""
    if not rows:
        return lambda begin, end: np.empty((0, dim), np.float32)
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGE as failure:
        raise PartError(f"{path}: cannot be mapped ({failure}); {AGAIN}") from None
    if table.shape != (rows, dim) or table.dtype != np.dtype("<f4") or not table.flags.c_contiguous:
        raise PartError(
            f"{path}: holds {table.dtype} of shape {table.shape}, and the manifest says rows of float32, "
            f"({rows}, {dim}); {AGAIN}"
        )
    plain = table.view(np.ndarray)  # slices of a memmap are made more slowly
    return lambda begin, end: plain[begin:end]


class StoredParquet:
    """The Parquet file of a part. Polars trusts what it reads, so the checksum is compared before the first reading."""

    def __init__(self, folder: Path, name: str, record: Mapping[str, int], rows: int):
        self.folder, self.name, self.rows = folder, name, rows
        self._record: Mapping[str, int] | None = record  # None once it is checked
        self._lock = Lock()

    def column(self, name: str) -> Stored:
        """The rows of a column."""
        return partial(self._read, name)

    def scan(self) -> polars.LazyFrame:
        """The file, for a query of Polars."""
        import polars

        check_polars()
        with self._lock:
            if self._record is not None:
                check_checksum(self.folder, self.name, self._record, PartError)
            self._record = None
        return polars.scan_parquet(self.folder / self.name)

    def _read(self, name: str, begin: int, end: int) -> np.ndarray:
        import polars

        path = self.folder / self.name
        try:
            series = self.scan().select(name).slice(begin, end - begin).collect()[name]
        except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError) as failure:
            raise PartError(f"{path}: cannot be read ({str(failure).partition(chr(10))[0]}); {AGAIN}") from None
        if len(series) != end - begin or series.null_count():
            raise PartError(f"{path}: column '{name}' lacks rows that the manifest lists; {AGAIN}")
        return vectors_of(path, [series]) if series.dtype.is_nested() else series.to_numpy()
