"""Names in UTF-8 bytes to an array of strings."""

from __future__ import annotations

import numpy as np
from numba import njit


def spell(text: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return names as an array of strings; `place` (names, 2) says where the UTF-8 bytes of each begin and end."""
    width = int(longest(text, place))
    letters = np.zeros((len(place), max(width, 1)), np.uint32)
    decode(text, place, letters)
    return letters.view(f"<U{max(width, 1)}").ravel() if len(place) else np.empty(0, dtype="<U1")


@njit(nogil=True, cache=True)
def longest(text, place):
    """The most letters that a name has; in UTF-8, bytes 10xxxxxx continue a letter."""
    most = 0
    for k in range(len(place)):
        letters = 0
        for at in range(place[k, 0], place[k, 1]):
            letters += (text[at] & 0xC0) != 0x80
        most = max(most, letters)
    return most


@njit(nogil=True, cache=True)
def decode(text, place, letters):
    """Write the letters (names, width) of names that are valid UTF-8."""
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
