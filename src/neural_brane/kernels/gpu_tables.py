"""Triton kernels on the tables of a model: pool rows, subtract gradients from the rows that won, or from all pooled.

A slot is one node of a batch: slot 3t + role, with roles u, i, j. Both tables' parts of a node's vector lie side by
side in rows of `WIDTH` columns, a multiple of 32, the neighbours' from column `second`; spare columns hold zeros.
"""

import triton
import triton.language as tl

from neural_brane.kernels import types

MAX, MEAN = tl.constexpr(types.MAX), tl.constexpr(types.MEAN)
NO_ROW = tl.constexpr(2**31 - 1)
NO_KEY = tl.constexpr(-(2**63))


@triton.jit
def follow(AHEAD: tl.constexpr):
    """Wait for the launch before this one where it may start AHEAD of that one's end, and let the next one start."""
    if AHEAD:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def pool(
    attribute_table, attribute_stride, attribute_width, attribute_indices,
    neighbour_table, neighbour_stride, neighbour_width, neighbour_indices,
    starts, sizes, pooled, plane, winner, scale, slots, second, padded, long, keys,
    POOLING: tl.constexpr, ZERO_FLOOR: tl.constexpr, SPLIT: tl.constexpr, LONG: tl.constexpr, WIDTH: tl.constexpr,
    ATTRIBUTE_ROWS: tl.constexpr, ATTRIBUTE_COLUMNS: tl.constexpr, NEIGHBOUR_ROWS: tl.constexpr,
    NEIGHBOUR_COLUMNS: tl.constexpr, UNROLL: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Pool so many columns of one slot's rows of one table: program (slot, strip), the attributes' strips first.

    starts (2, slots) int64 and sizes (2, slots) int32 place each bag in its table's indices; with ZERO_FLOOR
    all see one more row, of zeros. The tables have `second` and `padded` columns, spare ones included.
    Writes pooled (slots, WIDTH), in two planes with SPLIT (see `gpu_split`), and, for max, winner (slots, WIDTH) int32:
    the row each number came from, -1 for none. So many rows are read at a time, UNROLL times in a row.
    With LONG, `pool_pieces` has been there before: long (2, slots) int32 says which of keys' rows is a slot's, -1 none.
    """
    follow(AHEAD)
    slot = tl.program_id(0).to(tl.int64)
    strip = tl.program_id(1)
    strips = tl.cdiv(second, ATTRIBUTE_COLUMNS)
    at = slot * WIDTH
    if strip < strips:
        _pool_bag(
            attribute_table, attribute_stride, attribute_width, second, second, attribute_indices,
            starts + slot, sizes + slot, long + slot, keys, pooled + at, plane, winner + at, strip, scale,
            POOLING, ZERO_FLOOR, SPLIT, LONG, WIDTH, ATTRIBUTE_ROWS, UNROLL, ATTRIBUTE_COLUMNS,
        )  # fmt: skip
    else:
        _pool_bag(
            neighbour_table, neighbour_stride, neighbour_width, padded, WIDTH - second, neighbour_indices,
            starts + slots + slot, sizes + slots + slot, long + slots + slot, keys,
            pooled + at + second, plane, winner + at + second, strip - strips, scale,
            POOLING, ZERO_FLOOR, SPLIT, LONG, WIDTH, NEIGHBOUR_ROWS, UNROLL, NEIGHBOUR_COLUMNS,
        )  # fmt: skip


@triton.jit
def _pool_bag(
    table, stride, width, padded, span, indices, start, size, long, keys, pooled, plane, winner, strip, scale,
    POOLING: tl.constexpr, ZERO_FLOOR: tl.constexpr, SPLIT: tl.constexpr, LONG: tl.constexpr, WIDTH: tl.constexpr,
    ROWS: tl.constexpr, UNROLL: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    size = tl.load(size)
    columns = strip * COLUMNS + tl.arange(0, COLUMNS)
    rows_to_read = size
    if LONG:
        which = tl.load(long)
        rows_to_read = tl.where(which < 0, size, 0)
    bag = indices + tl.load(start)
    best, who = _read(table, stride, padded, bag, rows_to_read, columns, POOLING, ROWS, UNROLL, COLUMNS)
    if POOLING == MAX:
        top, first = _largest(best, who)
        if LONG:  # noqa: SIM102  (known when compiling)
            if which >= 0:
                key = tl.load(keys + which.to(tl.int64) * WIDTH + columns, mask=columns < padded, other=NO_KEY)
                top, first = _unpack(key)
        won = (columns < width) & (top > (0.0 if ZERO_FLOOR else float("-inf")))
        result = tl.where(won, top * scale, 0.0)
        tl.store(winner + columns, tl.where(won, first, -1), mask=columns < span)
    else:
        result = tl.sum(best, 0) * scale
        if POOLING == MEAN:
            result /= tl.maximum(size, 1)
    if SPLIT:
        store_split(pooled + columns, plane, result, columns < span)
    else:
        tl.store(pooled + columns, result, mask=columns < span)


@triton.jit
def _read(
    table, stride, padded, bag, size, columns,
    POOLING: tl.constexpr, ROWS: tl.constexpr, UNROLL: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Some columns of a bag's rows, every so many-th reduced to one of ROWS: largest and its row (for max), or sum."""
    present = (columns < padded)[None, :]  # whole vectors: at the true width, loads would be of single numbers
    missing = float("-inf") if POOLING == MAX else 0.0
    best = tl.full([ROWS, COLUMNS], missing, tl.float32)
    who = tl.full([ROWS, COLUMNS], NO_ROW, tl.int32)
    places = tl.arange(0, ROWS)
    next_rows = tl.load(bag + places, mask=places < size, other=0)
    for _ in range(0, size, ROWS * UNROLL):
        for _turn in tl.static_range(UNROLL):
            rows, more = next_rows, places < size
            at = rows.to(tl.int64)[:, None] * stride + columns[None, :]
            values = tl.load(table + at, mask=more[:, None] & present, other=missing)
            places += ROWS
            next_rows = tl.load(bag + places, mask=places < size, other=0)
            if POOLING == MAX:
                greater = values > best
                best = tl.where(greater, values, best)
                who = tl.where(greater, rows[:, None], who)
            else:
                best += values
    return best, who


@triton.jit
def _largest(best, who):
    """The largest number of each column, and its row: bags are sorted, so of equals the first."""
    top = tl.max(best, 0)
    return top, tl.min(tl.where(best == top[None, :], who, NO_ROW), 0)


@triton.jit
def pool_pieces(
    attribute_table, attribute_stride, attribute_indices, neighbour_table, neighbour_stride, neighbour_indices,
    owners, starts, ends, wanted, keys, first_neighbours, pieces, second, padded,
    WIDTH: tl.constexpr, UNROLL: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Max-pool pieces of long bags into keys (bags, WIDTH) int64, which start as NO_KEY.

    Piece p is the rows starts[p] to ends[p] of the bag owners[p]; the attributes' pieces come before first_neighbours.
    Bags that are not wanted (bags,) are left out. A program takes every so many-th piece.
    """
    columns = tl.arange(0, COLUMNS)
    for piece in range(tl.program_id(0), pieces, tl.num_programs(0)):
        owner = tl.load(owners + piece)
        if tl.load(wanted + owner) > 0:
            start = tl.load(starts + piece)
            size = (tl.load(ends + piece) - start).to(tl.int32)
            if piece < first_neighbours:
                width, rows = second, attribute_indices + start
                best, who = _read(
                    attribute_table, attribute_stride, width, rows, size, columns, MAX, 1, UNROLL, COLUMNS
                )
            else:
                width, rows = padded, neighbour_indices + start
                best, who = _read(
                    neighbour_table, neighbour_stride, width, rows, size, columns, MAX, 1, UNROLL, COLUMNS
                )
            top, first = _largest(best, who)
            tl.atomic_max(keys + owner * WIDTH + columns, _pack(top, first), mask=columns < width, sem="relaxed")


@triton.jit
def _pack(value, row):
    """One whole number that is larger for a larger value, and of equal values for the smaller row."""
    bits = value.to(tl.int32, bitcast=True)
    ordered = bits ^ ((bits >> 31) & NO_ROW)
    return (ordered.to(tl.int64) << 32) | (row ^ NO_ROW).to(tl.int64)


@triton.jit
def _unpack(key):
    ordered = (key >> 32).to(tl.int32)
    bits = ordered ^ ((ordered >> 31) & NO_ROW)
    return bits.to(tl.float32, bitcast=True), (key & NO_ROW).to(tl.int32) ^ NO_ROW


@triton.jit
def store_split(place, plane, value, mask):
    """Write numbers to both planes."""
    near = value.to(place.dtype.element_ty)
    tl.store(place, near, mask=mask)
    tl.store(place + plane, (value - near.to(tl.float32)).to(place.dtype.element_ty), mask=mask)


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
