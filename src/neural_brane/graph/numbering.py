"""Number millions of names with a hash table in Numba.

The time is that of waiting for memory. So the slots of many names are loaded together before they are compared.

A name of up to 15 bytes is its own key of 16 bytes. The key of a longer name is a hash; if two such keys are equal,
the bytes of the names are compared.
"""

from __future__ import annotations

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


def spell(text: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return names as an array of strings; name k is text[ends[k] : ends[k + 1]], in UTF-8."""
    width = max(int(longest(text, ends)), 1)
    letters = np.zeros((len(ends) - 1, width), np.uint32)
    decode(text, ends, letters)
    return letters.view(f"<U{width}").ravel()


@njit(nogil=True, cache=True)
def longest(text, ends):
    """Return the number of letters of the longest name. In UTF-8, bytes 10xxxxxx continue a letter."""
    most = 0
    for k in range(len(ends) - 1):
        letters = 0
        for at in range(ends[k], ends[k + 1]):
            letters += (text[at] & 0xC0) != 0x80
        most = max(most, letters)
    return most


@njit(nogil=True, cache=True)
def decode(text, ends, letters):
    """Decode names, which must be valid UTF-8, into `letters` (names, width) uint32, in place."""
    for k in range(len(ends) - 1):
        column = -1
        for at in range(ends[k], ends[k + 1]):
            byte = np.uint32(text[at])
            if byte & 0xC0 == 0x80:
                letters[k, column] = (letters[k, column] << 6) | (byte & 0x3F)
                continue
            column += 1
            letters[k, column] = (
                byte if byte < 0x80 else byte & (0x1F if byte < 0xE0 else 0x0F if byte < 0xF0 else 0x07)
            )


PADDING = b"\n" * 16  # bytes after the last name, which may be read
SHORT = 15  # most bytes of a name that is its own key
HASHED = WORD(255 << 56)  # the highest byte of the key of a longer name
BYTE, NUMBER = WORD(8), WORD((1 << 32) - 1)
TOGETHER = 1024  # names whose slots are loaded together


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
    """The distinct names by number, and a hash table that finds their numbers."""

    slots: np.ndarray  # (slots,) a power of two: high half of a hash, number + 1 below it; 0 if the slot is free
    keys: np.ndarray  # (slots / 2, 2)
    ends: np.ndarray  # (slots / 2 + 1,) name k is text[ends[k] : ends[k + 1]]
    text: np.ndarray  # (bytes,)


class Numbering:
    """Numbers names: `add` them block by block, then `finish`."""

    def __init__(self, *, slots: int = 1 << 18) -> None:
        self._known = self._seen = 0  # distinct names, and all names
        self._codes = np.empty(0, np.int32)
        self._table = Table(np.empty(0, WORD), np.empty((0, 2), WORD), np.zeros(1, np.int64), np.empty(0, np.uint8))
        self._grow(slots)

    def add(self, names: Names) -> None:
        """Give a number to each name of a block."""
        count, done, used = len(names.starts), 0, self._table.ends[self._known]
        if self._seen + count > len(self._codes):  # the operating system moves large arrays without a copy
            self._codes.resize((self._seen + count) * 5 // 4, refcheck=False)
        if used + len(names.data) > len(self._table.text):
            text = np.empty(2 * (used + len(names.data)), np.uint8)
            text[:used] = self._table.text[:used]
            self._table = self._table._replace(text=text)
        codes = self._codes[self._seen : self._seen + count]
        while done < count:
            if self._known == len(self._table.keys):
                self._grow(2 * len(self._table.slots))
            done, self._known = number(names, self._table, codes, done, self._known)
        self._seen += count

    def _grow(self, size: int) -> None:
        """Make a larger table with `size` slots, of which at most half are used."""
        slots, (_, keys, ends, text) = np.zeros(size, WORD), self._table
        keys.resize((size // 2, 2), refcheck=False)
        ends.resize(size // 2 + 1, refcheck=False)
        fill_slots(slots, keys, self._known)
        self._table = Table(slots, keys, ends, text)

    def finish(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of each name that was added, and the distinct names, numbered in the order they appear."""
        ends, text = self._table.ends[: self._known + 1], self._table.text
        del self._table
        codes, self._codes = self._codes, np.empty(0, np.int32)
        codes.resize(self._seen, refcheck=False)
        return codes, spell(text, ends)


@njit(nogil=True, cache=True)
def number(names, table, codes, done, known):
    """Write the numbers of names from `done` on to `codes` until the table is full; return `done` and `known`."""
    made, same = np.empty((TOGETHER, 2), WORD), np.empty(TOGETHER, np.bool_)
    for first in range(done, len(codes), TOGETHER):
        last = min(first + TOGETHER, len(codes))
        batch = Names(names.data, names.starts[first:last], names.ends[first:last])
        make_keys(batch, made)
        guess(table, made, same, codes[first:last])
        done, known = find(batch, table, (made, same), codes[first:last], known)
        if first + done < last:
            return first + done, known
    return len(codes), known


@njit(nogil=True, cache=True)
def make_keys(names, made):
    """Write the two words of each name's key to `made`; two zeros are the key of no name."""
    data, starts, ends = names
    for k in range(len(starts)):
        start = np.int64(starts[k])
        length = np.int64(ends[k]) - start
        if length <= SHORT:
            low, high = load_word(data, start), load_word(data, start + 8)
            if length < 8:
                low &= (_ONE << (BYTE * WORD(length))) - _ONE
                high = WORD(0)
            else:
                high &= (_ONE << (BYTE * WORD(length - 8))) - _ONE
            high |= WORD(length + 1) << _TOP
        else:
            low, high = WORD(length), WORD(length)
            for at in range(start, start + length - 8, 8):
                word = load_word(data, at)
                low, high = mix(low, word), mix(high ^ word, low)
            word = load_word(data, start + length - 8)
            low, high = mix(low, word), mix(high ^ word, low) | HASHED
        made[k, 0], made[k, 1] = low, high


@njit(nogil=True, cache=True)
def guess(table, made, same, codes):
    """Write the first slot's number of each name, and if it is the name's own; loops are short, so loads overlap."""
    slots, keys = table.slots, table.keys
    for k in range(len(codes)):
        slot = slots[np.int64(mix(made[k, 0], made[k, 1])) & (len(slots) - 1)]
        codes[k] = max(np.int64(slot & NUMBER) - 1, 0)
    for k in range(len(codes)):
        code, low, high = codes[k], made[k, 0], made[k, 1]
        same[k] = (keys[code, 0] == low) & (keys[code, 1] == high) & (high < HASHED)


@njit(nogil=True, cache=True)
def find(names, table, guessed, codes, known):
    """Write the numbers that `guess` has not found; add new names until the table is full; return both counts."""
    data, starts, ends = names
    slots, keys, text_ends, text = table
    made, same = guessed
    for k in range(len(codes)):
        if same[k]:
            continue
        low, high, start, length = made[k, 0], made[k, 1], np.int64(starts[k]), np.int64(ends[k]) - np.int64(starts[k])
        hashed = mix(low, high)
        at = np.int64(hashed) & (len(slots) - 1)
        while slots[at]:
            code = np.int64(slots[at] & NUMBER) - 1
            if (slots[at] ^ hashed) <= NUMBER and keys[code, 0] == low and keys[code, 1] == high:
                before = text_ends[code]
                if high < HASHED or (
                    text_ends[code + 1] - before == length and same_bytes(data, start, text, before, length)
                ):
                    break
            at = (at + 1) & (len(slots) - 1)
        if slots[at] == 0:
            if known == len(keys):
                return k, known
            slots[at] = (hashed & ~NUMBER) | WORD(known + 1)
            keys[known, 0], keys[known, 1] = low, high
            used = text_ends[known]
            for byte in range(length):
                text[used + byte] = data[start + byte]
            known += 1
            text_ends[known] = used + length
        codes[k] = np.int64(slots[at] & NUMBER) - 1
    return len(codes), known


@njit(nogil=True, cache=True)
def same_bytes(data, start, other, begin, length):
    """Return whether data[start : start + length] equals the bytes of `other` from `begin` on."""
    byte = 0
    while byte < length and data[start + byte] == other[begin + byte]:
        byte += 1
    return byte == length


@njit(nogil=True, cache=True)
def fill_slots(slots, keys, known):
    """Write the numbers of all known names into new slots."""
    mask = np.int64(len(slots) - 1)
    for code in range(known):
        hashed = mix(keys[code, 0], keys[code, 1])
        at = np.int64(hashed) & mask
        while slots[at]:
            at = (at + 1) & mask
        slots[at] = (hashed & ~NUMBER) | WORD(code + 1)


@njit(nogil=True, cache=True)
def renumber(codes, rank):
    """Replace every code by rank[code], in place."""
    for k in range(len(codes)):
        codes[k] = rank[codes[k]]
