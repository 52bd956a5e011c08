"""Pooling: the kernel that reduces each bag's rows of both tables to one vector.

A slot is one node of a batch: slot 3t + role of triplet t, with roles u, i, j. A step computes one vector per slot or,
at some large batches, one per node. A vector's row has `width` columns: the attributes' part, then the neighbours'.
"""

from typing import NamedTuple

import triton
import triton.language as tl

from neural_brane.kernels import model as types
from neural_brane.kernels.gpu.bundles import store_split
from neural_brane.kernels.gpu.device import Shape
from neural_brane.kernels.model import Settings

MAX, MEAN = tl.constexpr(types.MAX), tl.constexpr(types.MEAN)
NO_ROW = tl.constexpr(2**31 - 1)
NO_KEY = tl.constexpr(-(2**63))
SECTOR = 8  # numbers in the smallest piece of memory that is read
POOL_WARPS = 1  # of a program
NUMBERS = 128  # that a program reads at a time: four for each thread, of a narrow table from several rows
UNROLL = 8  # reads that are issued together


class PoolSide(NamedTuple):
    """How one table is pooled, known when the kernel is compiled."""

    number: int  # 0: attributes, 1: neighbours
    first: int  # column of a vector's row where this table's part begins
    span: int  # columns of that part, spare ones included
    dim: int  # columns of that part that hold numbers
    read: int  # columns that are read: whole sectors, or loads would be of single numbers
    rows: int  # of the table that a program reads at a time
    columns: int  # of a program: a power of two
    strips: int  # programs that share the columns
    unroll: int

    @classmethod
    def of(cls, number: int, shape: Shape, columns: int | None) -> "PoolSide":
        """One table of a model, cut into programs of so many columns; None: all of them."""
        first, dim = number * shape.d1_padded, (shape.d1, shape.d2)[number]
        span = (shape.d1_padded, shape.width - shape.d1_padded)[number]
        columns = columns or triton.next_power_of_2(max(span, 1))
        rows, read = max(1, NUMBERS // columns), -(-dim // SECTOR) * SECTOR
        return cls(number, first, span, dim, read, rows, columns, triton.cdiv(span, columns), UNROLL)


class PoolWork(NamedTuple):
    """How both tables are pooled, known when the kernel is compiled."""

    attributes: PoolSide
    neighbours: PoolSide
    width: int  # of a vector's row
    pooling: int
    zero_floor: bool  # max pooling sees one more row, of zeros
    ahead: bool  # the launch may start before the one before it has ended

    @classmethod
    def of(cls, shape: Shape, settings: Settings, columns: int | None = None) -> "PoolWork":
        """The work of a model's pooling, not launched ahead; columns are those of a program, as in `PoolSide.of`."""
        attributes, neighbours = (PoolSide.of(number, shape, columns) for number in range(2))
        return cls(attributes, neighbours, shape.width, settings.pooling, settings.zero_floor, ahead=False)

    def strips(self) -> int:
        """Programs that share a vector's columns."""
        return self.attributes.strips + self.neighbours.strips


@triton.jit
def follow(AHEAD: tl.constexpr):
    """Wait for the launch before this one, if this one may have started AHEAD of its end; then let the next one start.

    Nothing that the launch before writes may be read earlier.
    """
    if AHEAD:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def pool(tables, spans, pooled, WORK: tl.constexpr):
    """Pool one strip of columns of one vector's bags: program (vector, strip), the attributes' strips first.

    Reads tables (Tables) and spans (Spans); writes pooled (Pooled).
    """
    strip = tl.program_id(1)
    ATTRIBUTES: tl.constexpr = WORK.attributes
    NEIGHBOURS: tl.constexpr = WORK.neighbours
    if strip < ATTRIBUTES.strips:
        _pool_bag(tables.attributes, spans, pooled, strip, WORK, ATTRIBUTES)
    else:
        _pool_bag(tables.neighbours, spans, pooled, strip - ATTRIBUTES.strips, WORK, NEIGHBOURS)


@triton.jit
def _pool_bag(table, spans, pooled, strip, WORK: tl.constexpr, SIDE: tl.constexpr):
    """Pool one strip of columns of one bag."""
    slot = tl.program_id(0).to(tl.int64)
    bag = SIDE.number * spans.vectors + slot
    at = slot * WORK.width + SIDE.first
    size = tl.load(spans.sizes + bag)
    columns = strip * SIDE.columns + tl.arange(0, SIDE.columns)
    rows_to_read = size
    if spans.hubs is not None:
        hub = tl.load(spans.hubs + bag)
        rows_to_read = tl.where(hub < 0, size, 0)
    rows = table.indices + tl.load(spans.starts + bag)
    best, who = read_rows(table, rows, rows_to_read, columns, WORK, SIDE)
    if WORK.pooling == MAX:
        top, first = largest(best, who)
        if spans.hubs is not None:  # noqa: SIM102  (known when compiling)
            if hub >= 0:
                keys = spans.maxima + hub.to(tl.int64) * WORK.width + columns
                top, first = unpack(tl.load(keys, mask=columns < SIDE.read, other=NO_KEY))
        won = (columns < SIDE.dim) & (top > (0.0 if WORK.zero_floor else float("-inf")))
        result = tl.where(won, top * spans.scale, 0.0)
        tl.store(pooled.winner + at + columns, tl.where(won, first, -1), mask=columns < SIDE.span)
    else:
        result = tl.sum(best, 0) * spans.scale
        if WORK.pooling == MEAN:
            result /= tl.maximum(size, 1)
    if pooled.plane is not None:
        store_split(pooled.data + at + columns, pooled.plane, result, columns < SIDE.span)
    else:
        tl.store(pooled.data + at + columns, result, mask=columns < SIDE.span)


@triton.jit
def read_rows(table, rows, size, columns, WORK: tl.constexpr, SIDE: tl.constexpr):
    """Reduce some columns of a table's rows (size,) to SIDE.rows partial results, as many rows are read at a time.

    Returns, for max, the largest numbers and the rows they came from; otherwise the sums. The row numbers are planned
    before any step, so they can be read before the launch before this one has ended.
    """
    ROWS: tl.constexpr = SIDE.rows
    UNROLL: tl.constexpr = SIDE.unroll
    present = (columns < SIDE.read)[None, :]
    missing = float("-inf") if WORK.pooling == MAX else 0.0
    best = tl.full([ROWS, SIDE.columns], missing, tl.float32)
    who = tl.full([ROWS, SIDE.columns], NO_ROW, tl.int32)
    places = tl.arange(0, ROWS)
    next_rows = tl.load(rows + places, mask=places < size, other=0)
    follow(WORK.ahead)
    for _ in range(0, size, ROWS * UNROLL):
        for _turn in tl.static_range(UNROLL):
            row, more = next_rows, places < size
            at = row.to(tl.int64)[:, None] * table.stride + columns[None, :]
            values = tl.load(table.rows + at, mask=more[:, None] & present, other=missing)
            places += ROWS
            next_rows = tl.load(rows + places, mask=places < size, other=0)
            if WORK.pooling == MAX:
                greater = values > best
                best = tl.where(greater, values, best)
                who = tl.where(greater, row[:, None], who)
            else:
                best += values
    return best, who


@triton.jit
def largest(best, who):
    """The largest number of each column and its row: of equals the smallest row, as the reference has it."""
    top = tl.max(best, 0)
    return top, tl.min(tl.where(best == top[None, :], who, NO_ROW), 0)


@triton.jit
def pack(value, row):
    """A number and its row as one int64, which is larger for a larger number and, of equals, for the smaller row."""
    bits = value.to(tl.int32, bitcast=True)
    ordered = bits ^ ((bits >> 31) & NO_ROW)
    return (ordered.to(tl.int64) << 32) | (row ^ NO_ROW).to(tl.int64)


@triton.jit
def unpack(key):
    """The number and the row that `pack` was given."""
    ordered = (key >> 32).to(tl.int32)
    bits = ordered ^ ((ordered >> 31) & NO_ROW)
    return bits.to(tl.float32, bitcast=True), (key & NO_ROW).to(tl.int32) ^ NO_ROW
