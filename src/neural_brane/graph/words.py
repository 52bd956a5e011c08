"""Eight bytes at a time: load a word of text, find a byte in it, mix it into a hash."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

WORD = np.uint64
_LOW, _HIGH = WORD(0x0101010101010101), WORD(0x8080808080808080)
_FACTOR = WORD(0xD6E8FEB86659FD93)  # odd, with bits as if drawn by chance
_ONE, _SEVEN, _LEFT, _RIGHT, _TOP = WORD(1), WORD(7), WORD(32), WORD(29), WORD(56)


@intrinsic
def load_word(typing_context: Any, data: Any, at: Any) -> Any:
    """data[at : at + 8] as one number, the first byte lowest, wherever it stands in memory."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        return builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, types.int64), generate


@njit(nogil=True, cache=True, inline="always")
def mix(word, other):
    """A hash of two words."""
    hashed = (word ^ (word >> _LEFT)) * _FACTOR
    hashed = (hashed ^ other ^ (hashed >> _RIGHT)) * _FACTOR
    return hashed ^ (hashed >> _LEFT)


@njit(nogil=True, cache=True, inline="always")
def marks(word, byte):
    """A word whose lowest set bit, if there is one, lies in the first of its bytes that equals `byte`."""
    odd = word ^ (WORD(byte) * _LOW)
    return (odd - _LOW) & ~odd & _HIGH


@njit(nogil=True, cache=True, inline="always")
def first_mark(marked):
    """The number of the byte, from 0, in which the lowest set bit lies."""
    lowest = (marked & (~marked + _ONE)) >> _SEVEN
    return np.int64((((lowest - _ONE) & _LOW) * _LOW) >> _TOP)
