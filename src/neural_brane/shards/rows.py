"""Dealt entries to the rows of a part: the second half of an external sort, one range of keys after another."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import numpy as np
from numba import njit

from neural_brane.errors import ShardError
from neural_brane.graph.scatter import close_gaps, merge_counts, merge_weights
from neural_brane.io.atomic import atomic
from neural_brane.shards.dealing import SHIFT, Dealt


class Sorted(NamedTuple):
    """The rows of a range: how many entries each has, and their columns and values; values is None where all are 1."""

    first: int
    sizes: np.ndarray
    columns: np.ndarray
    values: np.ndarray | None


def sort_range(dealt: Dealt, number: int, cuts: np.ndarray, *, add: bool, zeros: bool = True) -> Sorted:
    """Sort the entries of a range and merge repeats: the largest, or their sum. Without `zeros`, those are left out."""
    keys, weights = dealt.read(number)
    first = int(cuts[number] >> SHIFT)
    rows = int((cuts[number + 1] - np.uint64(1)) >> SHIFT) + 1 - first
    starts = np.zeros(rows + 1, np.int64)
    count_rows(keys, first, starts)
    np.cumsum(starts, out=starts)
    columns, values = np.empty(len(keys), np.int32), np.empty(len(keys), np.float32)
    scatter_keys(keys, weights if weights is not None else values[:0], first, starts[:-1].copy(), columns, values)
    del keys, weights
    sizes = np.zeros(rows + 1, np.int64)
    merge = merge_weights if dealt.weighted else merge_counts
    merge(starts, columns, values, sizes, add, 0, rows)
    kept = np.cumsum(sizes)
    if kept[-1] < len(columns):
        close_gaps(starts, kept, columns, values)
        columns, values = columns[: kept[-1]], values[: kept[-1]]
    if not np.isfinite(values).all():
        raise ShardError("the weights of an edge add up to more than float32 can hold; give smaller weights")
    found = Sorted(first, sizes[1:], columns, values if add or dealt.weighted else None)
    return found if zeros else _without_zeros(found)


def _without_zeros(found: Sorted) -> Sorted:
    if found.values is None or found.values.all():
        return found
    kept = found.values != 0
    rows = np.repeat(np.arange(len(found.sizes)), found.sizes)
    sizes = np.bincount(rows[kept], minlength=len(found.sizes))
    return Sorted(found.first, sizes, found.columns[kept], found.values[kept])


class ArrayFile:
    """An .npy file of one dimension that grows: its length is written into the header at the end."""

    def __init__(self, path: Path, kind: type) -> None:
        self._kind, self._size = np.dtype(kind), 0
        self._file = path.open("wb")
        self._write_header()

    def append(self, array: np.ndarray) -> None:
        """Write more of the array."""
        np.ascontiguousarray(array, self._kind).tofile(self._file)
        self._size += len(array)

    def _write_header(self) -> None:
        about = {"descr": self._kind.str, "fortran_order": False, "shape": (self._size,)}
        np.lib.format.write_array_header_1_0(self._file, about)  # pads, so that any length takes the same room

    def close(self) -> None:
        """Write the length, and close the file."""
        self._file.flush()
        self._file.seek(0)
        self._write_header()
        self._file.close()


@dataclass
class Facts:
    """What was seen while the rows of a part were written."""

    entries: int = 0
    loops: int = 0  # entries of a node to itself
    plain: bool = True  # whether every value is 1


class RowsFiles:
    """The files of one matrix of a part, appended range by range, in the order of the rows."""

    def __init__(self, home: Path, matrix: str, data: str | None) -> None:
        self.home, self.matrix, self.data = home, matrix, data
        self.facts = Facts()
        self._row = -1  # whose end is still open: the next range may have more of it

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._indptr, self._indices = self._open("indptr", np.int64), self._open("indices", np.int32)
        self._values = None if self.data is None else self._open(self.data, np.float32)
        self._indptr.append(np.zeros(1, np.int64))
        return self

    def _open(self, name: str, kind: type) -> ArrayFile:
        draft = self._stack.enter_context(atomic(self.home / f"{self.matrix}.{name}.npy"))
        file = ArrayFile(draft, kind)
        self._stack.callback(file.close)
        return file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None and self._row >= 0:
            self._indptr.append(np.array([self.facts.entries]))
        self._stack.__exit__(kind, error, trace)

    def append(self, rows: Sorted) -> None:
        """Write the rows of the next range; its first may be the last of the range before."""
        ends = self.facts.entries + np.cumsum(rows.sizes)
        if self._row >= 0 and rows.first != self._row:
            self._indptr.append(np.array([self.facts.entries]))
        self._indptr.append(ends[:-1])
        self._row = rows.first + len(rows.sizes) - 1
        self._indices.append(rows.columns)
        if self._values is not None:
            values = np.ones(len(rows.columns), np.float32) if rows.values is None else rows.values
            self._values.append(values)
            self.facts.plain &= bool((values == 1).all())
        self.facts.entries += len(rows.columns)
        self.facts.loops += int(count_loops(rows.first, rows.sizes, rows.columns))


@njit(nogil=True, cache=True)
def count_rows(keys, first, counts):
    """Count the entries of every row from `first` on, each one place further."""
    for k in range(len(keys)):
        counts[np.int64(keys[k] >> SHIFT) - first + 1] += 1


@njit(nogil=True, cache=True)
def scatter_keys(keys, weights, first, at, columns, values):
    """Write the column, and the weight where there are any, of every entry into its row, at its next place."""
    weighted = len(weights) > 0
    for k in range(len(keys)):
        row = np.int64(keys[k] >> SHIFT) - first
        to = at[row]
        at[row] += 1
        columns[to] = np.int32(keys[k] & np.uint64(0xFFFFFFFF))
        if weighted:
            values[to] = weights[k]


@njit(nogil=True, cache=True)
def count_loops(first, sizes, columns):
    """Count the entries whose column is their row."""
    at = count = 0
    for row in range(len(sizes)):
        for _ in range(sizes[row]):
            count += columns[at] == first + row
            at += 1
    return count
