"""Entries of a matrix, dealt to ranges of its rows that fit into memory: the first half of an external sort.

An entry has one key, its row in the upper 32 bits and its column in the lower. Keys are cut into ranges of about
equally many entries, found by a sample; no range lies in two parts, and a hub's row may lie in several ranges. Each
chunk of pairs becomes one file, in the order of the ranges: files are written from end to end, and a range is read as
one segment of each.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit

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
