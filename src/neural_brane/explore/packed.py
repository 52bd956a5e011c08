"""A column of numbers with a description before it, as the page reads it from the server or from its own file.

Four bytes with the length of the description, the description as JSON padded with spaces to a multiple of four, and
then the numbers, all of them little-endian.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def pack(about: Any, numbers: np.ndarray) -> bytes:
    """A description and an array as bytes.

    >>> pack({"n": 1}, np.array([258], "<u2"))
    b'\\x08\\x00\\x00\\x00{"n": 1}\\x02\\x01'
    """
    text = json.dumps(about).encode()
    text += b" " * (-len(text) % 4)
    little = numbers.astype(numbers.dtype.newbyteorder("<"), copy=False)
    return len(text).to_bytes(4, "little") + text + little.tobytes()
