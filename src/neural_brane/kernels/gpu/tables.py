"""Triton kernels that change the tables of a model: gradients are subtracted from rows that won, or from all pooled.

Slots and columns are those of `gpu_pool`.
"""

import triton
import triton.language as tl

from neural_brane.kernels.gpu.pool import MAX, MEAN


@triton.jit
def subtract(attribute_table, attribute_stride, neighbour_table, neighbour_stride, row, column, change, second):
    """Subtract from the row of each number's table that won it; row -1 has none."""
    own = column < second
    base = tl.where(own, attribute_table, neighbour_table)
    stride = tl.where(own, attribute_stride, neighbour_stride).to(tl.int64)
    place = row * stride + tl.where(own, column, column - second)
    tl.atomic_add(base + place, -change, mask=row >= 0, sem="relaxed")


@triton.jit
def scatter(
    gradient, winner, table, stride, frequent, slots, first, span, part_rows, rate,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, FREQUENT: tl.constexpr,
):  # fmt: skip
    """Subtract the columns first … first + span of gradient (slots, WIDTH) from a table's winning rows.

    Program (tile, strip, part) has some slots, columns and rows of the table; those of a part and strip come together,
    so that the cache has to hold so much of the table at a time. Winners that are frequent (FREQUENT, WIDTH) have the
    tile's gradients added up first: thousands of additions to one number would wait for each other.
    """
    slot = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    at = slot * WIDTH + first + column
    row = tl.load(winner + at, mask=(slot < slots) & (column < span), other=-1, eviction_policy="evict_first")
    lowest = tl.program_id(2) * part_rows
    own = (row >= lowest) & (row < lowest + part_rows)
    change = rate * tl.load(gradient + at, mask=own, other=0.0, eviction_policy="evict_first")
    for kind in tl.static_range(FREQUENT):
        common = tl.load(frequent + kind * WIDTH + first + column, mask=column < span, other=-1)
        alike = own & (row == common)
        total = tl.sum(tl.where(alike, change, 0.0), 0)[None, :]
        some = tl.max(alike.to(tl.int32), 0)[None, :] > 0
        tl.atomic_add(table + common.to(tl.int64) * stride + column, -total, mask=some, sem="relaxed")
        own &= row != common
    tl.atomic_add(table + row.to(tl.int64) * stride + column, -change, mask=own, sem="relaxed")


@triton.jit
def find_frequent(
    winner, frequent, slots,
    WIDTH: tl.constexpr, SAMPLE: tl.constexpr, LEAST: tl.constexpr, FREQUENT: tl.constexpr,
):  # fmt: skip
    """Write the rows that win most often to frequent (FREQUENT, WIDTH) int32, -1 for none: a program has a column.

    They are those that win LEAST times or more in a sample of the slots.
    """
    column = tl.program_id(0)
    slot = tl.arange(0, SAMPLE).to(tl.int64) * tl.maximum(slots // SAMPLE, 1)
    row = tl.load(winner + slot * WIDTH + column, mask=slot < slots, other=-1)
    count = tl.sum((row[:, None] == row[None, :]).to(tl.int32), 1)
    count = tl.where(row >= 0, count, 0)
    for kind in tl.static_range(FREQUENT):
        most = tl.max(count, 0)
        found = tl.max(tl.where(count == most, row, -1), 0)
        tl.store(frequent + kind * WIDTH + column, tl.where(most >= LEAST, found, -1))
        count = tl.where(row == found, 0, count)


@triton.jit
def gather(
    attribute_table, attribute_stride, attribute_segments, attribute_rows, attribute_ends, attribute_entries,
    neighbour_table, neighbour_stride, neighbour_segments, neighbour_rows, neighbour_ends, neighbour_entries,
    gradient, winner, sizes, slots, second, padded, rate,
    POOLING: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Update the tables a row at a time, each with the gradients of the slots that pooled it, in the slots' order.

    Segment s of a table is row rows[s] and the slots entries[ends[s]:ends[s + 1]]; the step's segments are
    segments[0] to segments[1]. gradient (slots, WIDTH) is dL/df. Program (any, table) takes every so many-th segment.
    """
    if tl.program_id(1) == 0:
        _gather_table(
            attribute_table, attribute_stride, attribute_segments, attribute_rows, attribute_ends, attribute_entries,
            gradient, winner, sizes, second, rate, POOLING, WIDTH, ROWS, COLUMNS,
        )  # fmt: skip
    else:
        _gather_table(
            neighbour_table, neighbour_stride, neighbour_segments, neighbour_rows, neighbour_ends, neighbour_entries,
            gradient + second, winner + second, sizes + slots, padded, rate, POOLING, WIDTH, ROWS, COLUMNS,
        )  # fmt: skip


@triton.jit
def _gather_table(
    table, stride, segments, rows, ends, entries, gradient, winner, sizes, padded, rate,
    POOLING: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, COLUMNS)
    present = column < padded
    for segment in range(tl.load(segments) + tl.program_id(0), tl.load(segments + 1), tl.num_programs(0)):
        row = tl.load(rows + segment)
        last = tl.load(ends + segment + 1)
        total = tl.zeros([ROWS, COLUMNS], tl.float32)
        for first in range(tl.load(ends + segment), last, ROWS):
            entry = first + tl.arange(0, ROWS)
            slot = tl.load(entries + entry, mask=entry < last, other=0).to(tl.int64)
            at = slot[:, None] * WIDTH + column[None, :]
            live = (entry < last)[:, None] & present[None, :]
            share = tl.load(gradient + at, mask=live, other=0.0)
            if POOLING == MAX:
                share = tl.where(tl.load(winner + at, mask=live, other=-1) == row, share, 0.0)
            if POOLING == MEAN:
                share /= tl.maximum(tl.load(sizes + slot), 1)[:, None]
            total += share
        place = table + row.to(tl.int64) * stride + column
        tl.store(place, tl.load(place, mask=present) - rate * tl.sum(total, 0), mask=present)
