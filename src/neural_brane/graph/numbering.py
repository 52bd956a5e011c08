"""Number millions of names with a hash table in Numba.

The table is filled one partition at a time, so that each partition stays in the CPU's cache. The first bits of a name's
hash decide its partition. Each partition has one writer, so any number of threads gives the same numbers.

A name of up to 15 bytes is its own key of 16 bytes. The key of a longer name is a hash; if two such keys are equal,
the bytes of the names are compared.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from neural_brane.graph.lazy import pl

WORD = np.uint64  # eight bytes of text
_LOW, _HIGH = WORD(0x0101010101010101), WORD(0x8080808080808080)
_FACTOR = WORD(0xD6E8FEB86659FD93)  # an odd number with irregular bits
_ONE, _SEVEN, _LEFT, _RIGHT, _TOP = WORD(1), WORD(7), WORD(32), WORD(29), WORD(56)


@intrinsic
def load_word(typing_context: Any, data: Any, at: Any) -> Any:
    """Return data[at : at + 8] as one little-endian number; `at` need not be aligned."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), generate


@njit(nogil=True, cache=True, inline="always")
def mix(word, other):
    """Return a hash of two words."""
    hashed = (word ^ (word >> _LEFT)) * _FACTOR
    hashed = (hashed ^ other ^ (hashed >> _RIGHT)) * _FACTOR
    return hashed ^ (hashed >> _LEFT)


@njit(nogil=True, cache=True, inline="always")
def marks(word, byte):
    """Return a word whose lowest set bit is in the first byte of `word` that equals `byte`; 0 if there is none."""
    odd = word ^ (WORD(byte) * _LOW)
    return (odd - _LOW) & ~odd & _HIGH


@njit(nogil=True, cache=True, inline="always")
def first_mark(marked):
    """Return the number of the byte, from 0, that contains the lowest set bit."""
    lowest = (marked & (~marked + _ONE)) >> _SEVEN
    return np.int64((((lowest - _ONE) & _LOW) * _LOW) >> _TOP)


def spell(text: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return names as an array of strings; `place` (names, 2) is where the UTF-8 bytes of each begin and end."""
    width = int(longest(text, place))
    letters = np.zeros((len(place), max(width, 1)), np.uint32)
    decode(text, place, letters)
    return letters.view(f"<U{max(width, 1)}").ravel() if len(place) else np.empty(0, dtype="<U1")


@njit(nogil=True, cache=True)
def longest(text, place):
    """Return the number of letters of the longest name. In UTF-8, bytes 10xxxxxx continue a letter."""
    most = 0
    for k in range(len(place)):
        letters = 0
        for at in range(place[k, 0], place[k, 1]):
            letters += (text[at] & 0xC0) != 0x80
        most = max(most, letters)
    return most


@njit(nogil=True, cache=True)
def decode(text, place, letters):
    """Decode names, which must be valid UTF-8, into `letters` (names, width) uint32, in place."""
    for k in range(len(place)):
        column = -1
        for at in range(place[k, 0], place[k, 1]):
            byte = np.uint32(text[at])
            if byte & 0xC0 == 0x80:
                letters[k, column] = (letters[k, column] << 6) | (byte & 0x3F)
                continue
            column += 1
            letters[k, column] = (
                byte if byte < 0x80 else byte & (0x1F if byte < 0xE0 else 0x0F if byte < 0xF0 else 0x07)
            )


PADDING = b"\n" * 16  # bytes after the last name, which may be read
PARTITIONS = 64  # partitions of the table; with a million names, each has half a megabyte
SHORT = 15  # most bytes of a name that is its own key
KEY, HASHED = np.uint64, np.uint64(255 << 56)
BITS = np.uint64(64 - (PARTITIONS - 1).bit_length())  # low bits of a hash; the others are the number of the partition
ONE, BYTE, TOP, NONE = np.uint64(1), np.uint64(8), np.uint64(56), np.uint64(0)


class Names(NamedTuple):
    """Names in a block of bytes: name k is data[starts[k] : ends[k]], in UTF-8. 16 more bytes follow the last name."""

    data: np.ndarray
    starts: np.ndarray
    ends: np.ndarray


def names_in_bytes(texts: pl.Series) -> Names:
    """Return the strings of a series as bytes."""
    sizes = texts.str.len_bytes().to_numpy().astype(np.int64)
    ends = np.cumsum(sizes)
    data = texts.str.join("").item().encode() if len(texts) else b""
    return Names(np.frombuffer(data + PADDING, np.uint8), ends - sizes, ends)


class Table(NamedTuple):
    """The hash table: its slots, and the data of each distinct name by number."""

    slots: np.ndarray  # (slots, 3): two words of key, and number + 1 or 0 if the slot is free
    sizes: np.ndarray  # (PARTITIONS,) names in each partition
    first: np.ndarray  # (names,) position where the name first occurs, counted over all blocks
    place: np.ndarray  # (names, 2): begin and end of its bytes in `text`, or in the current block if it is new
    text: np.ndarray  # bytes of the names of earlier blocks


class Sorted(NamedTuple):
    """Keys sorted by partition, and the position of each key's name in the block."""

    keys: np.ndarray  # (names, 2)
    order: np.ndarray  # (names,)


class Block(NamedTuple):
    """A block of names while it is numbered."""

    names: Names
    sorted: Sorted
    seen: int  # names in earlier blocks
    codes: np.ndarray  # (names,) their numbers, written in place
    bounds: np.ndarray  # (PARTITIONS + 1,) where the keys of each partition begin
    done: np.ndarray  # (PARTITIONS + 1,) the first key of each partition that has no number yet


class Numbering:
    """Numbers names: `add` them block by block, then `finish`."""

    def __init__(self, *, threads: int | None = None, slots: int = 1 << 13) -> None:
        self._pool = ThreadPoolExecutor(threads or min(os.cpu_count() or 1, 8))
        self._threads = threads or min(os.cpu_count() or 1, 8)
        self._slots = slots  # slots per partition: a power of two, at least 4 so that one is free at two thirds
        self._table = Table(
            np.zeros((PARTITIONS * slots, 3), KEY),
            np.zeros(PARTITIONS, np.int64),
            np.zeros(PARTITIONS * slots, np.int64),
            np.zeros((PARTITIONS * slots, 2), np.int64),
            np.zeros(1 << 16, np.uint8),
        )
        self._used = self._seen = 0
        self._codes = np.empty(0, np.int32)
        self._keys, self._sorted, self._order = np.empty((0, 2), KEY), np.empty((0, 2), KEY), np.empty(0, np.int32)

    def map(self, work: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Run a compiled function once per item of the last argument, on all threads, and return the results."""
        *shared, items = arguments
        return list(self._pool.map(lambda item: work(*shared, item), items))

    def add(self, names: Names) -> None:
        """Give each name of a block a provisional number."""
        count = len(names.starts)
        cuts = np.linspace(0, count, self._threads + 1).astype(np.int64)
        ranges = list(zip(cuts[:-1], cuts[1:], range(self._threads), strict=True))
        if count > len(self._keys):  # reused by later blocks, because new memory takes more time than the work
            self._keys, self._sorted = np.empty((count, 2), KEY), np.empty((count, 2), KEY)
            self._order = np.empty(count, np.int32)
        sizes = np.zeros((self._threads, PARTITIONS), np.int64)
        self.map(make_keys, names, self._keys, sizes, ranges)
        begin = np.concatenate([[0], np.cumsum(sizes.T.ravel())])
        at = begin[:-1].reshape(PARTITIONS, -1).T.copy()
        self.map(sort_keys, self._keys, at, Sorted(self._sorted, self._order), ranges)
        if self._seen + count > len(self._codes):  # the operating system moves large arrays without a copy
            self._codes.resize((self._seen + count) * 5 // 4, refcheck=False)
        codes = self._codes[self._seen : self._seen + count]
        done = begin[:: self._threads].copy()
        block = Block(names, Sorted(self._sorted, self._order), self._seen, codes, done.copy(), done)
        partitions = np.linspace(0, PARTITIONS, self._threads + 1).astype(np.int64)
        while (done[:-1] < block.bounds[1:]).any():
            self._grow()
            self.map(number, block, self._table, list(pairwise(partitions)))
        # The block is not kept, so copy the bytes of its new names.
        table = self._table
        needed = self._used + new_bytes(table, self._seen)
        if needed > len(table.text):
            text = np.zeros(2 * needed, np.uint8)
            text[: self._used] = table.text[: self._used]
            self._table = table = table._replace(text=text)
        self._used = keep_text(names.data, table, self._seen, self._used)
        self._seen += count

    def _grow(self) -> None:
        """Double the slots if a partition is two thirds full."""
        table = self._table
        if 3 * int(table.sizes.max()) < 2 * self._slots:
            return
        self._slots *= 2
        slots = np.zeros((PARTITIONS * self._slots, 3), KEY)
        move_slots(table.slots, slots)
        first, place = np.zeros(PARTITIONS * self._slots, np.int64), np.zeros((PARTITIONS * self._slots, 2), np.int64)
        first[: len(table.first)], place[: len(table.place)] = table.first, table.place
        self._table = table._replace(slots=slots, first=first, place=place)

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of each name that was added, and the distinct names, numbered in the order they appear."""
        self._keys, self._sorted, self._order = np.empty((0, 2), KEY), np.empty((0, 2), KEY), np.empty(0, np.int32)
        self._pool.shutdown()
        sizes, table = self._table.sizes, self._table
        local = np.arange(int(sizes.max(initial=0)))[:, None]
        used = (local * PARTITIONS + np.arange(PARTITIONS))[local < sizes]
        order = used[np.argsort(table.first[used])]
        rank = np.full(int(order.max(initial=-1)) + 1, -1, np.int32)
        rank[order] = np.arange(len(order))
        text, place = table.text, table.place[order]
        del table, self._table
        codes, self._codes = self._codes, np.empty(0, np.int32)
        codes.resize(self._seen, refcheck=False)
        renumber(codes, rank)
        return codes, spell(text, place)


@njit(nogil=True, cache=True)
def make_keys(names, keys, sizes, piece):
    """Write the keys (names, 2) of a range of names, and count the keys of each partition in sizes[thread]."""
    first, last, thread = piece
    data, starts, ends = names.data, names.starts, names.ends
    for k in range(first, last):
        start = np.int64(starts[k])
        length = np.int64(ends[k]) - start
        if length <= SHORT:
            low, high = load_word(data, start), load_word(data, start + 8)
            if length < 8:
                low &= (ONE << (BYTE * KEY(length))) - ONE
                high = NONE
            else:
                high &= (ONE << (BYTE * KEY(length - 8))) - ONE
            high |= KEY(length) << TOP
        else:
            low, high = KEY(length), KEY(length)
            for at in range(start, start + length - 8, 8):
                word = load_word(data, at)
                low, high = mix(low, word), mix(high ^ word, low)
            word = load_word(data, start + length - 8)
            low, high = mix(low, word), mix(high ^ word, low) | HASHED
        keys[k, 0], keys[k, 1] = low, high
        sizes[thread, np.int64(mix(low, high) >> BITS)] += 1


@njit(nogil=True, cache=True)
def sort_keys(keys, at, found, piece):
    """Sort a range of keys by partition into `found`; at[thread] is where the keys of each partition begin."""
    first, last, thread = piece
    sorted_keys, order = found
    for k in range(first, last):
        partition = np.int64(mix(keys[k, 0], keys[k, 1]) >> BITS)
        to = at[thread, partition]
        at[thread, partition] += 1
        sorted_keys[to, 0], sorted_keys[to, 1] = keys[k, 0], keys[k, 1]
        order[to] = k


@njit(nogil=True, cache=True)
def number(block, table, partitions):
    """Write the numbers of names to block.codes, for a range of partitions; stop in one that gets two thirds full."""
    names, (keys, order), seen, codes, bounds, done = block
    starts, ends, slots, place = names.starts, names.ends, table.slots, table.place  # outside the loop to save time
    first, last = partitions
    room = len(slots) // PARTITIONS
    mask = KEY(room - 1)
    for partition in range(first, last):
        base, size = KEY(partition * room), table.sizes[partition]
        k = done[partition]
        while k < bounds[partition + 1]:
            low, high, name = keys[k, 0], keys[k, 1], order[k]
            at = np.int64(base + (mix(low, high) & mask))
            while slots[at, 2] != NONE and not (
                slots[at, 0] == low
                and slots[at, 1] == high
                and (high < HASHED or same_bytes(names, name, table, at, seen))
            ):
                at = np.int64(base + (KEY(at + 1) & mask))
            if slots[at, 2] == NONE:
                if 3 * size >= 2 * room:
                    break
                code = size * PARTITIONS + partition
                slots[at, 0], slots[at, 1], slots[at, 2] = low, high, KEY(code + 1)
                table.first[code] = seen + name
                place[code, 0], place[code, 1] = starts[name], ends[name]
                size += 1
            codes[name] = np.int64(slots[at, 2]) - 1
            k += 1
        done[partition], table.sizes[partition] = k, size


@njit(nogil=True, cache=True)
def same_bytes(names, name, table, at, seen):
    """Return whether the name in slot `at` has the same bytes as a name of the current block."""
    code = np.int64(table.slots[at, 2]) - 1
    start = np.int64(names.starts[name])
    length = np.int64(names.ends[name]) - start
    before = table.place[code, 0]
    if table.place[code, 1] - before != length:
        return False
    known, given = names.data if table.first[code] >= seen else table.text, names.data
    byte = 0
    while byte < length and known[before + byte] == given[start + byte]:
        byte += 1
    return byte == length


@njit(nogil=True, cache=True)
def move_slots(old, new):
    """Move the slots of a table into a larger one."""
    few, many = len(old) // PARTITIONS, len(new) // PARTITIONS
    mask = KEY(many - 1)
    for from_slot in range(len(old)):
        if old[from_slot, 2] != NONE:
            base = KEY(from_slot // few * many)
            slot = base + (mix(old[from_slot, 0], old[from_slot, 1]) & mask)
            while new[slot, 2] != NONE:
                slot = base + ((slot + ONE) & mask)
            for word in range(3):
                new[slot, word] = old[from_slot, word]


@njit(nogil=True, cache=True)
def new_bytes(table, seen):
    """Return the number of bytes of all names that are new in the last block."""
    total = 0
    for partition in range(PARTITIONS):
        for local in range(table.sizes[partition] - 1, -1, -1):
            code = local * PARTITIONS + partition
            if table.first[code] < seen:
                break  # the names of a partition are numbered in the order they appear
            total += table.place[code, 1] - table.place[code, 0]
    return total


@njit(nogil=True, cache=True)
def keep_text(data, table, seen, used):
    """Copy the bytes of all names that are new in the last block to `text`, and return how much of it is used."""
    text = table.text
    for partition in range(PARTITIONS):
        for local in range(table.sizes[partition] - 1, -1, -1):
            code = local * PARTITIONS + partition
            if table.first[code] < seen:
                break
            start, length = table.place[code, 0], table.place[code, 1] - table.place[code, 0]
            table.place[code, 0], table.place[code, 1] = used, used + length
            for at in range(start, start + length):
                text[used] = data[at]
                used += 1
    return used


@njit(nogil=True, cache=True)
def renumber(codes, rank):
    """Replace every code by rank[code], in place."""
    for k in range(len(codes)):
        codes[k] = rank[codes[k]]
