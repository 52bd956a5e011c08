"""Names to numbers with few of them in memory: integers as bits, other names in chunks on the disk.

Integers are numbered in increasing order, as long as a bit for each from the lowest to the highest fits into a quarter
of the memory, or all of them can be sorted in half of it. All other names, and integers beyond that, are numbered as
they appear first. These are the numbers that `neural_brane.io.read_graph` gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.errors import ShardError
from neural_brane.graph.numbering import Names, Numbering, names_of
from neural_brane.shards.chunks import NameChunks
from neural_brane.shards.integers import IntegerSet
from neural_brane.shards.names import as_integers, count_integers
from neural_brane.shards.parts import LARGEST

if TYPE_CHECKING:
    import polars as pl

BYTES_PER_NAME = 512  # of memory for each distinct name of a chunk, in the tables that number them
KEPT = ("integer", "chunks", "count", "spelled", "added", "lead")
BYTES_PER_INTEGER = 384  # the same for a chunk of integers, should they become names


class Ids:
    """Names that come in blocks: `add` them, `cut` a chunk when `full`, then `number` all and ask for `numbers`."""

    def __init__(self, home: Path, what: str, memory: int) -> None:
        self.home, self.what, self.memory = home, what, memory
        self.integer, self.chunks, self.count = True, 0, 0
        self.spelled = 0  # names among those added that are integers
        self.added = 0
        self.lead: int | None = None  # a chunk whose names count as the first to appear
        self._set = IntegerSet(memory // 4)
        self._names = NameChunks(home, what, memory // BYTES_PER_NAME)
        self._pending: list[np.ndarray] = []
        self._numbering: Numbering | None = None
        self._size = 0  # names of the chunk that is filled

    @property
    def full(self) -> bool:
        """Whether it is time to cut the chunk."""
        if self.integer:
            return self._size >= self.memory // BYTES_PER_INTEGER
        many = self._numbering is not None and self._numbering.distinct >= self.memory // BYTES_PER_NAME
        return many or self._size >= self.memory // 16

    def add(self, block: Names | np.ndarray) -> None:
        """Add names, or integers."""
        values = block if isinstance(block, np.ndarray) else as_integers(block) if self.integer else None
        self.added += len(values) if values is not None else len(block.starts)  # type: ignore[union-attr]
        if values is not None and self.integer and self._set.add(values):
            self.spelled += len(values)
            self._pending.append(values)
            self._size += len(values)
            return
        self._become_names()
        names = block if isinstance(block, Names) else spelled(block)
        self.spelled += count_integers(names)
        self._fill(names)

    @property
    def span(self) -> tuple[int, int]:
        """The lowest and the highest of integers."""
        return self._set.lowest, self._set.highest

    def include(self, values: np.ndarray) -> None:
        """Count integers as present that no edge names."""
        if not self._set.add(values):
            raise ShardError(f"{len(values):,} nodes do not fit into a quarter of --memory; raise it")

    def _fill(self, names: Names) -> None:
        self._numbering = self._numbering or Numbering()
        self._numbering.add(names)
        self._size += len(names.starts)

    def _become_names(self) -> None:
        """Go over from integers to names: chunks that were cut are written again."""
        if not self.integer:
            return
        self.integer, pending, self._pending, self._size = False, self._pending, [], 0
        self._set = IntegerSet(0)
        for number in range(self.chunks):
            self._fill(spelled(np.load(self._codes(number))))
            self._save(number)
        for values in pending:
            self._fill(spelled(values))

    def cut(self) -> None:
        """Write the chunk, and begin the next."""
        self._save(self.chunks)
        self.chunks += 1

    def _save(self, number: int) -> None:
        if self.integer:
            values = np.concatenate(self._pending) if self._pending else np.zeros(0, np.int64)
            small = not len(values) or (values.min() >= -LARGEST and values.max() <= LARGEST)
            np.save(self._codes(number), values.astype(np.int32) if small else values)
            self._pending = []
        else:
            codes, text, place = (self._numbering or Numbering()).finish_bytes()
            self._numbering = None
            np.save(self._codes(number), codes)
            self._names.write(number, text, place)
        self._size = 0

    def _codes(self, number: int) -> Path:
        return self.home / f"{self.what}-{number:05d}.codes.npy"

    def number(self) -> None:
        """Number the names of all chunks."""
        if self.integer:
            self.count = self._set.rank()
        else:
            self.count = self._names.number(self.chunks, self.lead)
            if self.spelled == self.added:
                self._names.sort_integers(self.count, self.memory // 2)
        if self.count > LARGEST:
            raise ShardError(f"there are {self.count:,} {self.what}; parts number at most {LARGEST:,}: leave some out")

    @property
    def kind(self) -> str:
        """Whether the names are integers or strings, as the manifest says it."""
        return "integer" if self.spelled == self.added else "string"

    def numbers(self, chunk: int, places: np.ndarray | None = None) -> np.ndarray:
        """The numbers of a chunk's names in the order in which they were added, or of those at some places."""
        codes = np.load(self._codes(chunk), mmap_mode=None if places is None else "r")
        codes = codes if places is None else np.asarray(codes[places])
        return self._set.numbers(codes) if self.integer else self._names.table(chunk)[codes]

    def known(self, names: Names) -> np.ndarray:
        """The numbers of names among integers; -1 for one that is not there."""
        values = as_integers(names)
        if values is not None:
            return self._set.numbers(values)
        each = [
            as_integers(Names(names.data, names.starts[k : k + 1], names.ends[k : k + 1]))
            for k in range(len(names.starts))
        ]
        return np.array([-1 if one is None else self._set.numbers(one)[0] for one in each], np.int32)

    def size(self, chunk: int) -> int:
        """How many names were added to a chunk."""
        return len(np.load(self._codes(chunk), mmap_mode="r"))

    def series(self, first: int, last: int) -> Iterator[pl.Series]:
        """The names with the numbers from first to last - 1, some at a time."""
        import polars as pl

        if self.integer:
            yield from map(pl.Series, self._set.values(first, last))
        else:
            for names in self._names.names(first, last):
                yield pl.Series(names).cast(pl.Int64) if self.kind == "integer" else pl.Series(names)

    def before(self, chunk: int) -> int:
        """How many distinct names there are before a chunk."""
        return self.count if self.integer else self._names.first[chunk]

    def appeared(self, place: int) -> str:
        """The name that was the first to appear after `place` others."""
        return str(next(self._names.appeared(place, place + 1))[0])

    def forget(self, chunk: int) -> None:
        """Remove what is only needed to ask for a chunk's numbers."""
        self._codes(chunk).unlink(missing_ok=True)

    def name(self, number: int) -> str:
        """One name."""
        return str(next(self.series(number, number + 1))[0])

    def keep(self) -> dict[str, Any]:
        """Write what is not in files yet, and return what `resume` needs."""
        np.save(self.home / f"{self.what}.bits.npy", self._set.words)
        facts = {name: getattr(self, name) for name in KEPT}
        return facts | {"base": self._set.base, "first": self._names.first, "sequence": self._names.sequence}

    def resume(self, facts: dict[str, Any]) -> None:
        """Go on where `keep` was called."""
        for name in KEPT:
            setattr(self, name, facts[name])
        self._names.first, self._names.sequence = facts["first"], facts["sequence"]
        self._set.base, self._set.words = facts["base"], np.load(self.home / f"{self.what}.bits.npy")
        self._set.rank()


def spelled(values: np.ndarray) -> Names:
    """Integers as the names that spell them."""
    import polars as pl

    return names_of(pl.Series(values).cast(pl.String))
