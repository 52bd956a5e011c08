"""Columns and rows that lie in several parts, read as slices or by row numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neural_brane.errors import PartError
from neural_brane.graph.ids import locate, repeated
from neural_brane.io.vector_parquet import ROW_GROUP
from neural_brane.io.vector_parts.stored import ParquetColumn, Stored


class _Parts:
    """Something that parts hold one after another."""

    def __init__(self, parts: Sequence[Stored], bounds: np.ndarray):
        self._parts, self._bounds = parts, bounds

    def __len__(self) -> int:
        return int(self._bounds[-1])

    def _pieces(self, begin: int, end: int) -> list[np.ndarray]:
        """The rows of a range, a piece from each of the parts that it touches."""
        found = []
        part = max(int(np.searchsorted(self._bounds, begin, side="right")) - 1, 0)
        while begin < end:
            first, stop = int(self._bounds[part]), min(int(self._bounds[part + 1]), end)
            if stop > begin:
                found.append(self._parts[part].read(begin - first, stop - first))
                begin = stop
            part += 1
        return found

    def _groups(self, rows: np.ndarray) -> list[tuple[slice, np.ndarray]]:
        """Ranges to read for some rows, and which of the rows are in each: those of one group of a part."""
        order = np.argsort(rows, kind="stable")
        part = np.searchsorted(self._bounds, rows[order], side="right") - 1
        group = (rows[order] - self._bounds[part]) // ROW_GROUP
        cuts = np.flatnonzero(np.diff(part) | np.diff(group)) + 1
        lots = [lot for lot in np.split(order, cuts) if len(lot)]
        return [(slice(int(rows[lot[0]]), int(rows[lot[-1]]) + 1), lot) for lot in lots]

    def _wanted(self, asked: Any) -> slice | np.ndarray:
        """What is asked for as a slice in steps of 1, or as row numbers from 0."""
        if isinstance(asked, slice):
            begin, end, step = asked.indices(len(self))
            return slice(begin, max(begin, end)) if step == 1 else np.arange(begin, end, step)
        rows = np.asarray(asked)
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise PartError(f"rows are asked for by {rows.dtype} of shape {rows.shape}; give a slice or row numbers")
        rows = rows.astype(np.int64)
        rows = np.where(rows < 0, rows + len(self), rows)
        if rows.size and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"a row is asked for that is none of {len(self):,}")
        return rows


class StoredRows(_Parts):
    """The vectors of all parts, as a table of float32 that is read where it is asked for."""

    def __init__(self, parts: Sequence[Stored], bounds: np.ndarray, dim: int):
        super().__init__(parts, bounds)
        self.shape, self.dtype, self.ndim = (int(bounds[-1]), dim), np.dtype(np.float32), 2

    def __getitem__(self, asked: Any) -> np.ndarray:
        wanted = self._wanted(asked)
        if isinstance(wanted, slice):
            pieces = self._pieces(wanted.start, wanted.stop)
            return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty((0, self.shape[1]), "<f4"), *pieces])
        found = np.empty((len(wanted), self.shape[1]), np.float32)
        for span, places in self._groups(wanted):
            [piece] = self._pieces(span.start, span.stop)
            found[places] = piece[wanted[places] - span.start]
        return found


class StoredColumn(_Parts):
    """The ids of all parts, or other words, as an array that is read where it is asked for."""

    _parts: Sequence[ParquetColumn]

    def __init__(self, parts: Sequence[ParquetColumn], bounds: np.ndarray, dtype: np.dtype):
        super().__init__(parts, bounds)
        self.dtype = dtype  # of strings, the length is a guess

    @property
    def nbytes(self) -> int:
        """The bytes of all of them in memory, about."""
        return len(self) * self.dtype.itemsize

    def __getitem__(self, asked: Any) -> np.ndarray:
        wanted = self._wanted(asked)
        if isinstance(wanted, slice):
            return self._as_array(self._pieces(wanted.start, wanted.stop))
        found = np.empty(len(wanted), np.int64 if self.dtype.kind == "i" else object)
        for span, places in self._groups(wanted):
            [piece] = self._pieces(span.start, span.stop)
            found[places] = piece[wanted[places] - span.start]
        return self._as_array([found])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype)

    def find(self, wanted: np.ndarray) -> np.ndarray:
        """The row of each wanted value, -1 where it is not here; one part after another is searched on the disk.

        `wanted` are distinct, integers or strings as these are. One that stands in several rows is refused.
        """
        rows = np.full(len(wanted), -1, np.int64)
        if wanted.dtype.kind != self.dtype.kind:
            return rows
        for part, first in zip(self._parts, self._bounds.tolist(), strict=False):
            values, places = part.find(wanted)
            which = locate(wanted, values)
            if (twice := repeated(np.concatenate([which, np.flatnonzero(rows >= 0)]))) is not None:
                raise PartError(f"id {wanted[twice].item()!r} stands for several vectors; give each node one vector")
            rows[which] = places + first
        return rows

    def _as_array(self, pieces: list[np.ndarray]) -> np.ndarray:
        if self.dtype.kind == "i":
            return np.concatenate([np.empty(0, np.int64), *pieces])
        return np.concatenate([np.empty(0, object), *pieces]).astype(str)
