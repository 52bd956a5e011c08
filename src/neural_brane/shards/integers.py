"""Integers that occur, as one bit each, and their numbers in increasing order: the rank of a bit among those set."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit

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
