"""x"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numba import njit

from neural_brane.errors import ShardError
from neural_brane.files.graphs.parts import LARGEST
from neural_brane.graph.numbering import PADDING, PARTS, Names, Numbering, make_keys, mix, names_of, spell

if TYPE_CHECKING:
    import polars as pl


# Work on several threads whose results come in order, never many of them at once.

THREADS = 2
Item = TypeVar("Item")
Result = TypeVar("Result")


def in_order(work: Callable[[Item], Result], items: Iterable[Item], threads: int = THREADS) -> Iterator[Result]:
    """The results of work on every item, in their order, computed on threads that are never far ahead."""
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Result]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


# Names as bytes, a block of them at a time: which are integers, which bucket each belongs to, copies in any order.

BUCKETS = 256  # that names are dealt to, by their hash
MINUS, ZERO = ord("-"), ord("0")
_SHIFT, _MASK = np.uint64(40), np.uint64(BUCKETS - 1)  # bits of the hash that `Numbering` uses for nothing else


def as_integers(names: Names) -> np.ndarray | None:
    """The integers that names spell, each written the usual way; None where one is none or int64 cannot hold it."""
    values = np.empty(len(names.starts), np.int64)
    return values if parse_integers(names.data, names.starts, names.ends, values) else None


def count_integers(names: Names) -> int:
    """How many of the names are integers written the usual way."""
    return int(tell_integers(names.data, names.starts, names.ends))


def buckets_of(names: Names) -> np.ndarray:
    """The bucket of each name, uint8."""
    keys = np.empty((len(names.starts), 2), np.uint64)
    make_keys(names, keys, np.zeros((1, PARTS), np.int64), (0, len(keys), 0))
    found = np.empty(len(keys), np.uint8)
    hash_keys(keys, found)
    return found


def copy_names(text: np.ndarray, starts: np.ndarray, ends: np.ndarray, order: np.ndarray | None = None) -> Names:
    """Names side by side, in the order given, with the padding that `Names` asks for."""
    if order is not None:
        starts, ends = starts[order], ends[order]
    new_ends = np.cumsum(ends - starts, dtype=np.int64)
    new_starts = new_ends - (ends - starts)
    size = int(new_ends[-1]) if len(new_ends) else 0
    data = np.zeros(size + len(PADDING), np.uint8)
    copy_bytes(text, starts, ends, new_starts, data)
    return Names(data, new_starts, new_ends)


def spell_names(names: Names) -> np.ndarray:
    """Names as an array of strings."""
    return spell(names.data, np.stack([names.starts, names.ends], axis=1))


@njit(nogil=True, cache=True)
def parse_integer(data, start, end):
    """An integer and whether there is one: no sign but '-', no zeros before it, not beyond int64."""
    negative = end > start and data[start] == MINUS
    first = start + negative
    digits = end - first
    if digits < 1 or digits > 19 or (data[first] == ZERO and (digits > 1 or negative)):
        return np.int64(0), False
    value = np.uint64(0)
    for at in range(first, end):
        digit = data[at] - ZERO
        if digit < 0 or digit > 9:
            return np.int64(0), False
        value = value * np.uint64(10) + np.uint64(digit)
    most = np.uint64(9223372036854775807) + np.uint64(negative)
    if value > most:
        return np.int64(0), False
    return (-np.int64(value) if negative else np.int64(value)), True


@njit(nogil=True, cache=True)
def parse_integers(data, starts, ends, values):
    """Write the integers that names spell; tell whether all of them do."""
    for k in range(len(starts)):
        value, right = parse_integer(data, starts[k], ends[k])
        if not right:
            return False
        values[k] = value
    return True


@njit(nogil=True, cache=True)
def tell_integers(data, starts, ends):
    """Count the names that spell integers."""
    count = 0
    for k in range(len(starts)):
        count += parse_integer(data, starts[k], ends[k])[1]
    return count


@njit(nogil=True, cache=True)
def hash_keys(keys, found):
    """Write the bucket of every key."""
    for k in range(len(keys)):
        found[k] = (mix(keys[k, 0], keys[k, 1]) >> _SHIFT) & _MASK


@njit(nogil=True, cache=True)
def copy_bytes(text, starts, ends, to, data):
    """Copy the bytes of names to the places given."""
    for k in range(len(starts)):
        shift = to[k] - starts[k]
        for at in range(starts[k], ends[k]):
            data[at + shift] = text[at]


# Integers that occur, as one bit each, and their numbers in increasing order: the rank of a bit among those set.

BITS = 64
ROOM = 1 << 16  # bits that are added beyond what is needed, at least
_FIVES, _THREES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_ONES, _NIBBLES = np.uint64(0x0101010101010101), np.uint64(0x0F0F0F0F0F0F0F0F)
_ONE, _TWO, _FOUR, _TOP, _SIX, _LOW = (np.uint64(number) for number in (1, 2, 4, 56, 6, 63))


class IntegerSet:
    """Which integers occur. It takes a bit for each from the lowest to the highest, and at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.base = 0  # what the first bit stands for, a multiple of 64
        self.words = np.zeros(0, np.uint64)
        self.before = np.zeros(0, np.int64)  # set bits before each word, once `rank` was called

    def add(self, values: np.ndarray) -> bool:
        """Note integers; False, and nothing is noted, where their range takes more than the limit."""
        if len(values) == 0:
            return True
        low, high = int(values.min()), int(values.max())
        if not self._reach(low, high):
            return False
        set_bits(self.words, values, self.base)
        return True

    def add_new(self, values: np.ndarray) -> int:
        """Note integers that must be new; return the place of the first that is not, or -1."""
        if len(values) == 0:
            return -1
        self._reach(int(values.min()), int(values.max()))
        return int(set_new_bits(self.words, values, self.base))

    def _reach(self, low: int, high: int) -> bool:
        """Make the range wide enough, and somewhat wider, as far as the limit allows."""
        if len(self.words) and low >= self.base and high < self.base + BITS * len(self.words):
            return True
        first, last = low // BITS, high // BITS + 1
        if len(self.words):
            first, last = min(first, self.base // BITS), max(last, self.base // BITS + len(self.words))
        most = self.limit // 16  # a word has 8 bytes, and so has the count of those before it
        if last - first > most:
            return False
        spare = min((last - first) // 2 + ROOM // BITS, most - (last - first))
        if len(self.words) and first < self.base // BITS:
            first -= spare
        else:
            last += spare
        wider = np.zeros(last - first, np.uint64)
        if len(self.words):
            at = self.base // BITS - first
            wider[at : at + len(self.words)] = self.words
        self.words, self.base = wider, first * BITS
        return True

    @property
    def highest(self) -> int:
        """The highest integer, or -1 where there is none."""
        used = np.flatnonzero(self.words)
        return -1 if len(used) == 0 else self.base + BITS * int(used[-1]) + int(self.words[used[-1]]).bit_length() - 1

    @property
    def lowest(self) -> int:
        """The lowest integer, or 0 where there is none."""
        used = np.flatnonzero(self.words)
        if len(used) == 0:
            return 0
        word = int(self.words[used[0]])
        return self.base + BITS * int(used[0]) + (word & -word).bit_length() - 1

    def rank(self) -> int:
        """Count the integers, and prepare `numbers` and `values`."""
        self.before = np.zeros(len(self.words), np.int64)
        return int(count_before(self.words, self.before))

    def numbers(self, values: np.ndarray) -> np.ndarray:
        """The number of each integer, in increasing order from 0; -1 for one that does not occur."""
        found = np.empty(len(values), np.int32)
        rank_bits(self.words, self.before, values, self.base, found)
        return found

    def values(self, first: int, last: int, block: int = 1 << 20) -> Iterator[np.ndarray]:
        """The integers with the numbers from first to last - 1, some at a time."""
        for at in range(first, last, block):
            found = np.empty(min(block, last - at), np.int64)
            word = int(np.searchsorted(self.before, at, side="right")) - 1
            list_bits(self.words, word, at - int(self.before[word]), self.base, found)
            yield found


@njit(nogil=True, cache=True)
def set_bits(words, values, base):
    """Set the bit of every value."""
    for k in range(len(values)):
        bit = np.uint64(np.int64(values[k]) - base)
        words[bit >> _SIX] |= _ONE << (bit & _LOW)


@njit(nogil=True, cache=True)
def set_new_bits(words, values, base):
    """Set the bit of every value; stop at one that is set already and return its place, else -1."""
    for k in range(len(values)):
        bit = np.uint64(np.int64(values[k]) - base)
        if words[bit >> _SIX] & (_ONE << (bit & _LOW)):
            return k
        words[bit >> _SIX] |= _ONE << (bit & _LOW)
    return -1


@njit(nogil=True, cache=True, inline="always")
def count_bits(word):
    """How many bits of a word are set."""
    word = word - ((word >> _ONE) & _FIVES)
    word = (word & _THREES) + ((word >> _TWO) & _THREES)
    word = (word + (word >> _FOUR)) & _NIBBLES
    return np.int64((word * _ONES) >> _TOP)


@njit(nogil=True, cache=True)
def count_before(words, before):
    """Write how many bits are set before each word; return how many are set in all."""
    total = 0
    for k in range(len(words)):
        before[k] = total
        total += count_bits(words[k])
    return total


@njit(nogil=True, cache=True)
def rank_bits(words, before, values, base, found):
    """Write how many bits are set before that of each value; -1 where its own is not."""
    size = np.int64(64 * len(words))
    for k in range(len(values)):
        place = np.int64(values[k]) - base
        found[k] = -1
        if place < 0 or place >= size:
            continue
        bit = np.uint64(place)
        word, one = words[bit >> _SIX], _ONE << (bit & _LOW)
        if word & one:
            found[k] = before[bit >> _SIX] + count_bits(word & (one - _ONE))


@njit(nogil=True, cache=True)
def list_bits(words, word, skip, base, found):
    """Write the values of set bits, from a word on, after the first `skip` of them."""
    done = -skip
    while done < len(found):
        for bit in range(64):
            if (words[word] >> np.uint64(bit)) & _ONE:
                if 0 <= done < len(found):
                    found[done] = base + 64 * word + bit
                done += 1
        word += 1


# Chunks of distinct names on the disk, and one numbering for all of them.
#
# Each chunk has numbered its own names as they appear in it. To join them, names are dealt to buckets by their hash:
# equal names of all chunks meet in one bucket, where a table in memory finds out which are new. A name is new in the
# first chunk that has it; numbers follow the chunks and, in a chunk, its own order. So every name gets the number of
# its first appearance, and a table for each chunk leads from its own numbers to those.

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


# Names to numbers with few of them in memory: integers as bits, other names in chunks on the disk.
#
# Integers are numbered in increasing order, as long as a bit for each from the lowest to the highest fits into a
# quarter of the memory, or all of them can be sorted in half of it. All other names, and integers beyond that, are
# numbered as they appear first. These are the numbers that `neural_brane.files.graphs.formats.read_graph` gives.

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
