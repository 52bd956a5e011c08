"""Chunks of distinct names on the disk, and one numbering for all of them.

Each chunk has numbered its own names as they appear in it. To join them, names are dealt to buckets by their hash:
equal names of all chunks meet in one bucket, where a table in memory finds out which are new. A name is new in the
first chunk that has it; numbers follow the chunks and, in a chunk, its own order. So every name gets the number of its
first appearance, and a table for each chunk leads from its own numbers to those.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from neural_brane.graph.numbering import Names, Numbering
from neural_brane.shards.names import BUCKETS, buckets_of, copy_names, spell_names

BLOCK = 1 << 17  # names that are spelled at once


class NameChunks:
    """The names of chunks. `room` is how many of them may be in memory at once."""

    def __init__(self, home: Path, what: str, room: int) -> None:
        self.home, self.what, self.room = home, what, max(room, 1)
        self.sequence: list[int] = []  # the chunks in the order in which their names count as having appeared
        self.first: list[int] = []  # the first number that each of them gives, and the count of all names

    def _path(self, chunk: int, name: str) -> Path:
        return self.home / f"{self.what}-{chunk:05d}.{name}.npy"

    def _load(self, chunk: int, name: str) -> np.ndarray:
        return np.load(self._path(chunk, name), mmap_mode="r")

    def _save(self, chunk: int, **arrays: np.ndarray) -> None:
        for name, array in arrays.items():
            np.save(self._path(chunk, name), array)

    def write(self, chunk: int, text: np.ndarray, place: np.ndarray) -> None:
        """Write the distinct names of a chunk, in their own order and dealt to buckets."""
        names = copy_names(text, place[:, 0], place[:, 1])
        buckets = buckets_of(names)
        order = np.argsort(buckets, kind="stable").astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(buckets, minlength=BUCKETS))])
        dealt = copy_names(names.data, names.starts, names.ends, order)
        self._save(chunk, text=names.data, ends=names.ends, order=order, offsets=offsets)
        self._save(chunk, dealt=dealt.data, dealt_ends=dealt.ends)

    def number(self, chunks: int, lead: int | None = None) -> int:
        """Number the names of all chunks, of which one may go before the others; return how many are distinct."""
        self.sequence = sorted(range(chunks), key=lambda chunk: chunk != lead)
        for name in ("rank", "sorted"):
            (self.home / f"{self.what}.{name}.npy").unlink(missing_ok=True)
        for chunk in range(chunks):
            size = len(self._load(chunk, "order"))
            self._save(chunk, group=np.empty(size, np.int32), new=np.empty(size, bool))
        groups = list(self._bucket_groups(chunks))
        for first, last in groups:
            self._find_new(first, last)
        self.first = [0]
        for chunk in self.sequence:
            self.first.append(self.first[-1] + self._number_new(chunk, self.first[-1]))
        for first, last in groups:
            self._spread(chunks, first, last)
        for chunk in range(chunks):
            order, numbers = self._load(chunk, "order"), self._load(chunk, "numbers")
            table = np.empty(len(order), np.int32)
            table[order] = numbers
            self._save(chunk, table=table)
        return self.first[-1]

    def _bucket_groups(self, chunks: int) -> Iterator[tuple[int, int]]:
        """Ranges of buckets whose names fit into memory together."""
        sizes = np.zeros(BUCKETS, np.int64)
        for chunk in range(chunks):
            sizes += np.diff(self._load(chunk, "offsets"))
        first = total = 0
        for bucket, size in enumerate(sizes.tolist()):
            if total and total + size > self.room:
                yield first, bucket
                first, total = bucket, 0
            total += size
        yield first, BUCKETS

    def _segment(self, chunk: int, first: int, last: int) -> slice:
        offsets = self._load(chunk, "offsets")
        return slice(int(offsets[first]), int(offsets[last]))

    def _find_new(self, first: int, last: int) -> None:
        """Find equal names of all chunks in some buckets: each gets its group, and the first of a group is new."""
        numbering, segments = Numbering(), [(chunk, self._segment(chunk, first, last)) for chunk in self.sequence]
        for chunk, segment in segments:
            numbering.add(self._dealt(chunk, segment))
        codes, _, _ = numbering.finish_bytes()
        before = np.concatenate([[-1], np.maximum.accumulate(codes)[:-1]]) if len(codes) else codes
        new, at = codes > before, 0
        for chunk, segment in segments:
            size = segment.stop - segment.start
            np.load(self._path(chunk, "group"), mmap_mode="r+")[segment] = codes[at : at + size]
            np.load(self._path(chunk, "new"), mmap_mode="r+")[segment] = new[at : at + size]
            at += size

    def _dealt(self, chunk: int, segment: slice) -> Names:
        ends, text = self._load(chunk, "dealt_ends"), self._load(chunk, "dealt")
        own = np.array(ends[segment])
        begin = int(ends[segment.start - 1]) if segment.start else 0
        starts = np.concatenate([[begin], own[:-1]])[: len(own)].astype(np.int64)
        return copy_names(np.asarray(text), starts, own)

    def _number_new(self, chunk: int, first: int) -> int:
        """Number what is new in a chunk, in the chunk's own order; return how many that are."""
        order, new = self._load(chunk, "order"), self._load(chunk, "new")
        fresh = np.empty(len(order), bool)
        fresh[order] = new
        numbers = (np.cumsum(fresh) + (first - 1)).astype(np.int32)
        self._save(chunk, fresh=fresh, numbers=numbers[order])
        return int(fresh.sum())

    def _spread(self, chunks: int, first: int, last: int) -> None:
        """Give every name of some buckets the number of its group, which the new one has."""
        segments = [self._segment(chunk, first, last) for chunk in range(chunks)]
        groups = [np.array(self._load(chunk, "group")[segment]) for chunk, segment in enumerate(segments)]
        table = np.empty(max((int(group.max(initial=-1)) for group in groups), default=-1) + 1, np.int32)
        for chunk, segment in enumerate(segments):
            new = self._load(chunk, "new")[segment]
            table[groups[chunk][new]] = self._load(chunk, "numbers")[segment][new]
        for chunk, segment in enumerate(segments):
            np.load(self._path(chunk, "numbers"), mmap_mode="r+")[segment] = table[groups[chunk]]

    def table(self, chunk: int) -> np.ndarray:
        """The numbers of a chunk's names, in its own order."""
        table, rank = np.load(self._path(chunk, "table")), self.home / f"{self.what}.rank.npy"
        return np.load(rank, mmap_mode="r")[table] if rank.exists() else table

    def names(self, first: int, last: int, block: int = BLOCK) -> Iterator[np.ndarray]:
        """The names with the numbers from first to last - 1, as strings, some at a time."""
        ordered = self.home / f"{self.what}.sorted.npy"
        if ordered.exists():
            values = np.load(ordered, mmap_mode="r")
            for at in range(first, last, block):
                yield values[at : min(at + block, last)].astype(str)
            return
        yield from self.appeared(first, last, block)

    def appeared(self, first: int, last: int, block: int = BLOCK) -> Iterator[np.ndarray]:
        """As `names`, in the order of first appearance whatever their numbers are."""
        for chunk, base, following in zip(self.sequence, self.first, self.first[1:], strict=False):
            begin, end = max(first, base), min(last, following)
            if begin < end:
                yield from self._spelled(chunk, begin - base, end - base, block)

    def _spelled(self, chunk: int, begin: int, end: int, block: int) -> Iterator[np.ndarray]:
        rows = np.flatnonzero(self._load(chunk, "fresh"))[begin:end]
        ends, text = np.load(self._path(chunk, "ends")), np.asarray(self._load(chunk, "text"))
        starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        for at in range(0, len(rows), block):
            yield spell_names(copy_names(text, starts, ends, rows[at : at + block]))

    def sort_integers(self, count: int, limit: int) -> None:
        """Number names that are all integers in increasing order, where `limit` bytes are enough to sort them."""
        if 24 * count > limit:
            return
        values = np.concatenate([names.astype(np.int64) for names in self.names(0, count)])
        order = np.argsort(values)
        rank = np.empty(count, np.int32)
        rank[order] = np.arange(count, dtype=np.int32)
        np.save(self.home / f"{self.what}.sorted.npy", values[order])
        np.save(self.home / f"{self.what}.rank.npy", rank)
