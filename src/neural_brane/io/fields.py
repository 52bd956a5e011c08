"""The fields of two columns in a block of plain records, found in Numba."""

from __future__ import annotations

import numpy as np
from numba import njit

from neural_brane.graph.numbering import PADDING, Names
from neural_brane.graph.words import first_mark, load_word, marks
from neural_brane.io.text_blocks import Block

LINE_FEED, SPACE = 10, 32


def split_fields(block: Block, separator: str, columns: int, wanted: tuple[int, int]) -> Names | None:
    """Return two fields of every record, one record after the other; None where a record is not plain.

    Plain records have `columns` fields, no quotes, and no spaces around or nothing in the fields that are wanted.
    """
    data, records = block.data, block.lines
    raw = np.frombuffer(data + PADDING, np.uint8)
    starts, ends = np.empty(2 * records, np.int64), np.empty(2 * records, np.int64)
    source, target = wanted
    if not find_fields(raw, len(data), ord(separator), columns, source, target, starts, ends):
        return None
    return Names(raw, starts, ends)


@njit(nogil=True, cache=True)
def find_fields(data, size, separator, columns, source, target, starts, ends):
    """Write where the two fields of every record begin and end; tell whether all records are plain."""
    at, record = 0, 0
    while at < size:
        for column in range(columns):
            start = at
            while True:
                word = load_word(data, at)
                found = marks(word, separator) | marks(word, LINE_FEED)
                if found:
                    at += first_mark(found)
                    break
                at += 8
            if (data[at] == LINE_FEED) != (column == columns - 1):
                return False
            if column in (source, target):
                if at == start or data[start] <= SPACE or data[at - 1] <= SPACE:
                    return False
                place = 2 * record + (column == target)
                starts[place], ends[place] = start, at
            at += 1
        record += 1
    return True
