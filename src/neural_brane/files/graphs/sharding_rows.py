"""x"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numba import njit

from neural_brane.errors import GraphError, ShardError
from neural_brane.files.graphs.sharding_names import Ids, IntegerSet
from neural_brane.files.graphs.sharding_reading import bag_path, chunk_path
from neural_brane.files.storage import atomic
from neural_brane.graph.adjacency import Rows, close_gaps, merge_counts, merge_weights

# Entries of a matrix, dealt to ranges of its rows that fit into memory: the first half of an external sort.
#
# An entry has one key, its row in the upper 32 bits and its column in the lower. Keys are cut into ranges of about
# equally many entries, found by a sample; no range lies in two parts, and a hub's row may lie in several ranges. Each
# chunk of pairs becomes one file, in the order of the ranges: files are written from end to end, and a range is read as
# one segment of each.

SAMPLE, RUN = 1 << 18, 64  # pairs that are looked at, and how many of them side by side
SHIFT = np.uint64(32)
FEW, LARGE, SMALL = 256, 96, 512  # ranges: up to FEW of memory / SMALL entries each, then of at most memory / LARGE


class Rule(NamedTuple):
    """How pairs become entries: each in both directions, with or without those of a node to itself."""

    mirrored: bool
    loops: bool


def sampled_pairs(pairs: int, chunks: int) -> np.ndarray:
    """The places of some pairs of a chunk, in runs spread over all of it."""
    runs = max(SAMPLE // max(chunks, 1) // RUN, 4)
    if pairs <= runs * RUN:
        return np.arange(pairs)
    starts = np.linspace(0, pairs - RUN, runs).astype(np.int64)
    return (starts[:, None] + np.arange(RUN)).ravel()


def choose_cuts(sample: np.ndarray, entries: int, bounds: np.ndarray, memory: int) -> np.ndarray:
    """Where ranges of keys begin, from a sample of the keys; every bound of a part is one of them, and the last.

    memory: bytes that may be used to sort; small ranges stay in the processor's cache, many ranges take many reads.
    """
    ranges = -(-entries // max(memory // SMALL, 1))
    if ranges > FEW:
        ranges = max(FEW, -(-entries // max(memory // LARGE, 1)))
    places = np.linspace(0, len(sample), ranges + 1)[1:-1].astype(np.int64)
    inner = np.sort(sample)[places[places < len(sample)]]
    return np.unique(np.concatenate([inner, bounds.astype(np.uint64) << SHIFT]))


def pair_keys(rows: np.ndarray, columns: np.ndarray, rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """The keys of pairs, and for each the pair that it comes from."""
    keys = np.empty(len(rows) * (1 + rule.mirrored), np.uint64)
    source = np.empty(len(keys), np.int32)
    count = write_keys(rows, columns, rule.mirrored, rule.loops, keys, source)
    return keys[:count], source[:count]


class Dealt:
    """The files of dealt entries: for each chunk its keys, weights where there are any, and where ranges begin."""

    def __init__(self, home: Path, what: str, chunks: int, weighted: bool) -> None:
        self.home, self.what, self.chunks, self.weighted = home, what, chunks, weighted

    def _path(self, chunk: int, name: str) -> Path:
        return self.home / f"{self.what}-{chunk:05d}.dealt-{name}.npy"

    def write(self, chunk: int, keys: np.ndarray, weights: np.ndarray | None, cuts: np.ndarray) -> None:
        """Write the entries of a chunk in the order of the ranges, those of one range in their own order."""
        counts, found = np.zeros(len(cuts), np.int64), np.empty(len(keys), np.int32)
        find_ranges(keys, cuts, found, counts)
        offsets = np.concatenate([[0], np.cumsum(counts[:-1])])
        order = np.empty(len(keys), np.int32)
        place_entries(found, offsets.copy(), order)
        np.save(self._path(chunk, "keys"), keys[order])
        np.save(self._path(chunk, "offsets"), offsets)
        if weights is not None:
            np.save(self._path(chunk, "weights"), weights[order])

    def read(self, number: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The keys of one range, and the weights, in the order of the chunks."""
        spans = []
        for chunk in range(self.chunks):
            offsets = np.load(self._path(chunk, "offsets"), mmap_mode="r")
            spans.append((int(offsets[number]), int(offsets[number + 1])))
        keys = self._read("keys", np.dtype(np.uint64), spans)
        return keys, self._read("weights", np.dtype(np.float32), spans) if self.weighted else None

    def _read(self, name: str, kind: np.dtype, spans: list[tuple[int, int]]) -> np.ndarray:
        whole, at = np.empty(sum(last - first for first, last in spans), kind), 0
        for chunk, (first, last) in enumerate(spans):
            if first == last:
                continue
            with self._path(chunk, name).open("rb") as file:  # a mapped file would count as memory in use
                np.lib.format.read_magic(file)
                np.lib.format.read_array_header_1_0(file)
                file.seek(first * kind.itemsize, 1)
                file.readinto(whole[at : at + last - first].data.cast("B"))
            at += last - first
        return whole

    def remove(self, chunk: int) -> None:
        """Remove the files of a chunk."""
        for name in ("keys", "offsets", "weights"):
            self._path(chunk, name).unlink(missing_ok=True)


@njit(nogil=True, cache=True)
def write_keys(rows, columns, mirrored, loops, keys, source):
    """Write the keys of pairs, in both directions if `mirrored`; those of a node to itself once, or not at all."""
    count = 0
    for k in range(len(rows)):
        row, column = np.uint64(rows[k]), np.uint64(columns[k])
        if mirrored and row == column and not loops:
            continue
        keys[count], source[count] = (row << SHIFT) | column, k
        count += 1
        if mirrored and row != column:
            keys[count], source[count] = (column << SHIFT) | row, k
            count += 1
    return count


@njit(nogil=True, cache=True)
def find_ranges(keys, cuts, found, counts):
    """Write the range of every key, the last that begins at or before it, and count those of each."""
    for k in range(len(keys)):
        low, high = 0, len(cuts)
        while high - low > 1:
            middle = (low + high) >> 1
            if cuts[middle] <= keys[k]:
                low = middle
            else:
                high = middle
        found[k] = low
        counts[low] += 1


@njit(nogil=True, cache=True)
def place_entries(found, at, order):
    """Write the order that puts the entries of each range together; at: where each range begins, moved on."""
    for k in range(len(found)):
        order[at[found[k]]] = k
        at[found[k]] += 1


# The chunks of edges and of attributes as entries of a matrix, and the ranges of rows that they are dealt to.


class Entries:
    """The entries of one matrix, chunk by chunk; `cuts` are where the ranges of keys begin."""

    drop_zeros = False

    def __init__(self, home: Path, dealt: Dealt, rule: Rule, total: int) -> None:
        self.home, self.dealt, self.rule, self.total = home, dealt, rule, total
        path = home / f"{dealt.what}.cuts.npy"
        self.cuts = np.load(path) if path.exists() else np.zeros(0, np.uint64)

    def pairs(self, chunk: int, sample: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The rows and columns of a chunk's pairs, or of a sample of them, and their weights."""
        raise NotImplementedError

    def choose_cuts(self, bounds: np.ndarray, memory: int) -> None:
        """Choose the ranges by a sample of all chunks."""
        keys = [pair_keys(*self.pairs(chunk, True)[:2], self.rule)[0] for chunk in range(self.dealt.chunks)]
        sample = np.concatenate(keys) if keys else np.zeros(0, np.uint64)
        self.cuts = choose_cuts(sample, self.total * (1 + self.rule.mirrored), bounds, memory)
        np.save(self.home / f"{self.dealt.what}.cuts.npy", self.cuts)

    def deal(self, chunk: int) -> None:
        """Deal the entries of a chunk to the ranges."""
        rows, columns, weights = self.pairs(chunk, False)
        keys, source = pair_keys(rows, columns, self.rule)
        self.dealt.write(chunk, keys, None if weights is None else weights[source], self.cuts)

    def ranges(self, first: int, last: int) -> range:
        """The ranges that hold the rows from first to last - 1."""
        begin, end = np.searchsorted(self.cuts, np.array([first, last], np.uint64) << SHIFT)
        return range(int(begin), int(end))

    def check_rows(self) -> None:
        """Refuse what shows in all chunks together."""


class EdgeEntries(Entries):
    """Both directions of every edge."""

    def __init__(self, home: Path, nodes: Ids, facts: dict[str, Any], *, loops: bool) -> None:
        self.nodes = nodes
        super().__init__(
            home, Dealt(home, "edges", facts["chunks"], facts["weighted"]), Rule(True, loops), facts["pairs"]
        )

    def pairs(self, chunk: int, sample: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The ends of a chunk's edges, without nodes that stand alone."""
        places = None
        if sample:
            chosen = sampled_pairs(self.nodes.size(chunk) // 2, self.dealt.chunks)
            places = (2 * chosen[:, None] + np.arange(2)).ravel()
        ends = self.nodes.numbers(chunk, places).reshape(-1, 2)
        weights = None
        if self.dealt.weighted and not sample:
            weights = np.load(chunk_path(self.home, chunk, "weights"))
        if (path := chunk_path(self.home, chunk, "alone")).exists():
            linked = ~np.load(path) if not sample else ~np.load(path)[chosen]
            ends, weights = ends[linked], None if weights is None else weights[linked]
        return ends[:, 0], ends[:, 1], weights

    def forget(self) -> None:
        """Remove the chunks, which are not needed once they are dealt."""
        for chunk in range(self.dealt.chunks):
            self.nodes.forget(chunk)
            chunk_path(self.home, chunk, "weights").unlink(missing_ok=True)


class AttributeEntries(Entries):
    """The attributes of nodes; one that a node has twice counts once, with its largest amount, and zeros not at all."""

    drop_zeros = True

    def __init__(self, home: Path, nodes: Ids, names: Ids, facts: dict[str, Any], path: Path | None) -> None:
        self.nodes, self.names, self.first, self.path = nodes, names, facts["first"], path
        super().__init__(home, Dealt(home, "entries", facts["chunks"], True), Rule(False, True), facts["entries"])

    def _rows(self, chunk: int) -> np.ndarray:
        """The nodes of a chunk's lines."""
        path = bag_path(self.home, chunk, "nodes")
        return np.load(path) if path.exists() else self.nodes.numbers(self.first + chunk)

    def pairs(self, chunk: int, sample: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The node and the attribute of every entry."""
        row = np.load(bag_path(self.home, chunk, "row"))
        places = sampled_pairs(len(row), self.dealt.chunks) if sample else None
        row = row if places is None else row[places]
        weights = None if sample else np.load(bag_path(self.home, chunk, "amounts"))
        return self._rows(chunk)[row], self.names.numbers(chunk, places), weights

    def check_rows(self) -> None:
        """Refuse a node that has two lines."""
        seen = IntegerSet(1 << 62)
        for chunk in range(self.dealt.chunks):
            lines = bag_path(self.home, chunk, "lines")
            if not lines.exists():
                return
            rows = self._rows(chunk)
            at = seen.add_new(rows)
            if at >= 0:
                line, node = np.load(lines)[at], self.nodes.name(int(rows[at]))
                raise GraphError(
                    f"{self.path}:{line}: node '{node}' already has a line; join the two lines or remove one"
                )


# Dealt entries to the rows of a part: the second half of an external sort, one range of keys after another.


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
    merge(Rows(starts, columns, values, sizes), add, 0, rows)
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
