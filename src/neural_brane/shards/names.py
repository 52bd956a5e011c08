"""Names as bytes, a block of them at a time: which are integers, which bucket each belongs to, copies in any order."""

from __future__ import annotations

import numpy as np
from numba import njit

from neural_brane.graph.numbering import PADDING, PARTS, Names, make_keys
from neural_brane.graph.spelling import spell
from neural_brane.graph.words import mix

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
    make_keys(names, keys, np.zeros((1, PARTS), np.int64), 0, len(keys), 0)
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
