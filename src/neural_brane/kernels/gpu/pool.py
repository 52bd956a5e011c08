"""Triton kernels that pool rows of a model's tables.

A slot is one node of a batch: slot 3t + role, with roles u, i, j. Both tables' parts of a node's vector lie side by
side in rows of `WIDTH` columns, a multiple of 32, the neighbours' from column `second`; spare columns hold zeros.
"""

import triton
import triton.language as tl

from neural_brane.kernels import model as types
from neural_brane.kernels.gpu.split import store_split

MAX, MEAN = tl.constexpr(types.MAX), tl.constexpr(types.MEAN)
NO_ROW = tl.constexpr(2**31 - 1)
NO_KEY = tl.constexpr(-(2**63))
SECTOR = tl.constexpr(8)  # numbers in the least that is read from memory


@triton.jit
def follow(AHEAD: tl.constexpr):
    """Wait for the launch before this one where it may start AHEAD of that one's end, and let the next one start."""
    if AHEAD:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def pool(
    attribute_table, attribute_stride, attribute_indices, neighbour_table, neighbour_stride, neighbour_indices,
    starts, sizes, pooled, plane, winner, scale, slots, second, long, keys,
    POOLING: tl.constexpr, ZERO_FLOOR: tl.constexpr, SPLIT: tl.constexpr, LONG: tl.constexpr, WIDTH: tl.constexpr,
    ATTRIBUTE_WIDTH: tl.constexpr, ATTRIBUTE_ROWS: tl.constexpr, ATTRIBUTE_COLUMNS: tl.constexpr,
    NEIGHBOUR_WIDTH: tl.constexpr, NEIGHBOUR_ROWS: tl.constexpr, NEIGHBOUR_COLUMNS: tl.constexpr,
    UNROLL: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Pool so many columns of one slot's rows of one table: program (slot, strip), the attributes' strips first.

    starts (2, slots) int64 and sizes (2, slots) int32 place each bag in its table's indices; with ZERO_FLOOR
    all see one more row, of zeros. The tables have …_WIDTH columns, and spare ones.
    Writes pooled (slots, WIDTH), in two planes with SPLIT (see `gpu_split`), and, for max, winner (slots, WIDTH) int32:
    the row each number came from, -1 for none. So many rows are read at a time, UNROLL times in a row.
    With LONG, `pool_pieces` has been there before: long (2, slots) int32 says which of keys' rows is a slot's, -1 none.
    """
    slot = tl.program_id(0).to(tl.int64)
    strip = tl.program_id(1)
    strips = tl.cdiv(second, ATTRIBUTE_COLUMNS)
    at = slot * WIDTH
    if strip < strips:
        _pool_bag(
            attribute_table, attribute_stride, second, attribute_indices,
            starts + slot, sizes + slot, long + slot, keys, pooled + at, plane, winner + at, strip, scale,
            POOLING, ZERO_FLOOR, SPLIT, LONG, WIDTH, ATTRIBUTE_WIDTH, ATTRIBUTE_ROWS, UNROLL, ATTRIBUTE_COLUMNS,
            AHEAD,
        )  # fmt: skip
    else:
        _pool_bag(
            neighbour_table, neighbour_stride, WIDTH - second, neighbour_indices,
            starts + slots + slot, sizes + slots + slot, long + slots + slot, keys,
            pooled + at + second, plane, winner + at + second, strip - strips, scale,
            POOLING, ZERO_FLOOR, SPLIT, LONG, WIDTH, NEIGHBOUR_WIDTH, NEIGHBOUR_ROWS, UNROLL, NEIGHBOUR_COLUMNS,
            AHEAD,
        )  # fmt: skip


@triton.jit
def _pool_bag(
    table, stride, span, indices, start, size, long, keys, pooled, plane, winner, strip, scale,
    POOLING: tl.constexpr, ZERO_FLOOR: tl.constexpr, SPLIT: tl.constexpr, LONG: tl.constexpr, WIDTH: tl.constexpr,
    OWN_WIDTH: tl.constexpr, ROWS: tl.constexpr, UNROLL: tl.constexpr, COLUMNS: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    # Read are whole sectors of memory; at the true width, loads would be of single numbers.
    read: tl.constexpr = (OWN_WIDTH + SECTOR - 1) // SECTOR * SECTOR
    size = tl.load(size)
    columns = strip * COLUMNS + tl.arange(0, COLUMNS)
    rows_to_read = size
    if LONG:
        which = tl.load(long)
        rows_to_read = tl.where(which < 0, size, 0)
    bag = indices + tl.load(start)
    best, who = _read(table, stride, read, bag, rows_to_read, columns, POOLING, ROWS, UNROLL, COLUMNS, AHEAD)
    if POOLING == MAX:
        top, first = _largest(best, who)
        if LONG:  # noqa: SIM102  (known when compiling)
            if which >= 0:
                key = tl.load(keys + which.to(tl.int64) * WIDTH + columns, mask=columns < read, other=NO_KEY)
                top, first = _unpack(key)
        won = (columns < OWN_WIDTH) & (top > (0.0 if ZERO_FLOOR else float("-inf")))
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
    table, stride, read, bag, size, columns,
    POOLING: tl.constexpr, ROWS: tl.constexpr, UNROLL: tl.constexpr, COLUMNS: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Some columns of a bag's rows, every so many-th reduced to one of ROWS: largest and its row (for max), or sum.

    What was planned ahead of all steps can be read while the launch before this one still writes the table (AHEAD).
    """
    present = (columns < read)[None, :]
    missing = float("-inf") if POOLING == MAX else 0.0
    best = tl.full([ROWS, COLUMNS], missing, tl.float32)
    who = tl.full([ROWS, COLUMNS], NO_ROW, tl.int32)
    places = tl.arange(0, ROWS)
    next_rows = tl.load(bag + places, mask=places < size, other=0)
    follow(AHEAD)
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
                    attribute_table, attribute_stride, width, rows, size, columns, MAX, 1, UNROLL, COLUMNS, False
                )
            else:
                width, rows = padded, neighbour_indices + start
                best, who = _read(
                    neighbour_table, neighbour_stride, width, rows, size, columns, MAX, 1, UNROLL, COLUMNS, False
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
