"""Train the hidden layer with its W and b; update the tables by `scatter` in any order, by `gather` in a fixed one."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from neural_brane.kernels import model as types
from neural_brane.kernels.gpu.bundles import (
    DEVICE,
    HALF,
    INTERPRETED,
    Allocate,
    Change,
    LayerArrays,
    Limits,
    Pooled,
    Shape,
    Spans,
    Split,
    TablePair,
    store_split,
)
from neural_brane.kernels.gpu.pool import MAX, MEAN, POOL_WARPS, Plan, PoolWork, most_shared, pool
from neural_brane.kernels.model import Model, Settings

BLOCK, TOGETHER = 256, 4  # numbers of W per program, shares read at a time


class Context(NamedTuple):
    """The arguments of a layer: a model, a plan, and settings of the training."""

    model: Model
    tables: TablePair
    shape: Shape
    settings: Settings
    plan: Plan
    scatter: bool  # the layer's launches also update the tables; otherwise `gather` does it after them
    limits: Limits
    allocate: Allocate


class Descent(NamedTuple):
    """Compile-time options for the update of W and b."""

    size: int  # numbers of W
    hidden: int
    bias: bool  # train b
    shares: int
    block: int  # numbers of W per program
    together: int  # shares read at a time


def decay_of(settings: Settings, rate: float) -> float:
    """Return the factor by which L2 shrinks parameters with this learning rate in a step."""
    return 1 - 2 * rate * settings.parameter_l2


class LayerStep(ABC):
    """The scratch memory of a step, W and b, and the launch of the pooling."""

    pool_columns: int | None = None  # columns per pooling program; None: all columns of a table
    losses: torch.Tensor  # (steps, programs) float32: sums of −ln σ

    def __init__(self, context: Context, shares: int):
        self.context = context
        shape, settings, empty = context.shape, context.settings, context.allocate
        self.vectors, self.batch = context.plan.vectors, context.plan.slots // 3
        self.work = PoolWork.of(shape, settings, self.pool_columns)
        self.pooled = Split.of(empty(2, self.vectors, shape.width, dtype=HALF))  # f
        self.winner = empty(self.vectors, shape.width, dtype=torch.int32)
        self.gradient = empty(self.vectors, shape.width)  # dL/df
        weight_shares, bias_shares = empty(shares, shape.hidden, shape.width), empty(shares, shape.hidden)
        weight = torch.zeros((shape.hidden, shape.width), device=DEVICE)
        split, bias = empty(2, *weight.shape, dtype=HALF), torch.zeros(shape.hidden, device=DEVICE)
        rates = settings.learning_rate, decay_of(settings, settings.learning_rate)
        self.arrays = LayerArrays(weight, Split.of(split), bias, weight_shares, bias_shares, *rates)
        self.load()
        self.descent = Descent(weight.numel(), shape.hidden, settings.train_bias, shares, BLOCK, TOGETHER)

    def load(self) -> None:
        """Copy W and b from the model, and split W into two planes; padding rows and columns stay zero."""
        model, weight, planes = self.context.model, self.arrays.weight, self.arrays.split.data
        weight[: len(model.weight), self.context.shape.columns()] = model.weight
        self.arrays.bias[: len(model.bias)] = model.bias
        planes[0] = weight.to(HALF)
        planes[1] = (weight - planes[0].float()).to(HALF)

    def pool(self, step: int, spans: Spans) -> None:
        """Launch the pooling of a step's vectors."""
        pool[self.vectors, self.work.strips()](
            self.context.tables, spans, Pooled(*self.pooled, self.winner),
            WORK=self.work, num_warps=POOL_WARPS,
        )  # fmt: skip

    @abstractmethod
    def step(self, step: int, rate: float) -> None:
        """Launch the rest of a step after the pooling; rate: the learning rate of the tables."""

    def finish(self) -> None:  # noqa: B027  (most layers postpone nothing)
        """Launch the work that the last step of a group has postponed."""

    def descend(self) -> None:
        """Launch the update of W and b."""
        descend[self.descent_programs(),](self.arrays, DESCENT=self.descent)

    def descent_programs(self) -> int:
        """Return the number of programs that share the update of W and b."""
        return triton.cdiv(self.descent.size, BLOCK)


@triton.jit
def descend(layer, DESCENT: tl.constexpr):
    """Update W and b in place by the shares of their gradients; layer: `LayerArrays`."""
    descend_block(layer, tl.program_id(0), DESCENT)


@triton.jit
def descend_block(layer, block, DESCENT: tl.constexpr):
    """Update one block of W, with its two planes, and of b in place; shares are summed in a fixed order."""
    at = block * DESCENT.block + tl.arange(0, DESCENT.block)
    inside = at < DESCENT.size
    result = layer.decay * tl.load(layer.weight + at, mask=inside, other=0.0)
    result -= layer.learning_rate * _add_up(layer.weight_shares, at, inside, DESCENT.size, DESCENT)
    tl.store(layer.weight + at, result, mask=inside)
    store_split(layer.split.data + at, layer.split.plane, result, inside)
    if DESCENT.bias:
        known = at < DESCENT.hidden
        result = layer.decay * tl.load(layer.bias + at, mask=known, other=0.0)
        result -= layer.learning_rate * _add_up(layer.bias_shares, at, known, DESCENT.hidden, DESCENT)
        tl.store(layer.bias + at, result, mask=known)


@triton.jit
def _add_up(shares, at, inside, SIZE: tl.constexpr, DESCENT: tl.constexpr):
    """Return the sums over shares (shares, SIZE) of the numbers at `at`."""
    TOGETHER: tl.constexpr = DESCENT.together
    total = tl.zeros([TOGETHER, at.shape[0]], tl.float32)
    for first in range(0, DESCENT.shares, TOGETHER):
        share = (first + tl.arange(0, TOGETHER))[:, None]
        total += tl.load(
            shares + share * SIZE + at[None, :], mask=(share < DESCENT.shares) & inside[None, :], other=0.0
        )
    return tl.sum(total, 0)


SCATTER_ROWS, SCATTER_COLUMNS = 4, 32  # vectors and columns per tile
CROWDED_ROWS = 64  # vectors per tile for a table with crowded rows
FREQUENT, SAMPLE = 4, 256  # frequent rows per column, vectors in the sample that finds them
MOST_PARTS = 6  # most parts of a table's rows, because the programs of each part read all winners
REUSED = 32  # table rows per vector above which parts gain nothing, because few rows repeat
# Number of programs that share a table's rows, vectors read at a time, and warps: without and with a hot row.
GATHERERS = 2048, 8, 1
HOT_GATHERERS = 1024, 32, 4


class ScatterPart(NamedTuple):
    """One table's columns of a gradient, and the division of the table's rows into parts."""

    vectors: int
    first: int  # first column of the table's part in the gradient
    span: int  # columns of that part
    rows: int  # table rows per part


class TableTiles(NamedTuple):
    """Compile-time options for an update of the tables."""

    width: int  # columns of the gradient
    rows: int  # vectors per tile, or vectors that a program reads at a time
    columns: int
    frequent: int = 0  # frequent rows per column; a tile sums their gradients first
    wins: int = 0  # fewest wins of a frequent row in the sample
    pooling: int = types.MAX


class Scatter:
    """The launches that subtract a layer's gradients from the winning rows of the tables."""

    def __init__(self, context: Context):
        self.context, self.vectors = context, context.plan.vectors
        self.crowded = [most_shared(bags, self.vectors) > context.limits.crowded_slots for bags in context.plan.bags]
        self.frequent = context.allocate(FREQUENT, context.shape.width, dtype=torch.int32)  # rows that win most often

    def __call__(self, change: Change) -> None:
        """Launch the update of both tables."""
        shape, tables, limits = self.context.shape, self.context.tables, self.context.limits
        if any(self.crowded):
            tiles = TableTiles(shape.width, SAMPLE, 1, FREQUENT, limits.frequent_wins)
            find_frequent[shape.width,](change.winner, self.frequent, self.vectors, TILES=tiles)
        spans = (0, shape.d1_padded), (shape.d1_padded, shape.width - shape.d1_padded)
        for table, (first, span), crowded in zip(tables, spans, self.crowded, strict=True):
            # Rows that repeat should still be in the cache. So a program covers a strip of columns of a small table,
            # or a part of the rows of a large one.
            rows = len(table.rows)
            narrow = crowded or 4 * SCATTER_COLUMNS * rows <= limits.strip_cache
            columns = SCATTER_COLUMNS if narrow else triton.next_power_of_2(max(span, 1))
            needed = triton.cdiv(4 * min(columns, table.stride) * rows, limits.part_cache)
            parts = 1 if rows >= REUSED * self.vectors else max(1, min(needed, MOST_PARTS))
            slots, warps = (CROWDED_ROWS, 4) if crowded else (SCATTER_ROWS, 1)
            scatter[triton.cdiv(self.vectors, slots), triton.cdiv(span, columns), parts](
                change, table, self.frequent,
                ScatterPart(self.vectors, first, span, triton.cdiv(len(table.rows), parts)),
                TILES=TableTiles(shape.width, slots, columns, FREQUENT if crowded else 0), num_warps=warps,
            )  # fmt: skip


class Gather:
    """The launch that updates both tables row by row in a fixed order."""

    def __init__(self, context: Context):
        plan, shape = context.plan, context.shape
        self.context = context
        hot = any(most_shared(bags, plan.vectors) > context.limits.hot_slots for bags in plan.bags)
        self.programs, rows, self.warps = HOT_GATHERERS if hot else GATHERERS
        self.tiles = TableTiles(shape.width, rows, shape.block(), pooling=context.settings.pooling)

    def __call__(self, step: int, change: Change, spans: Spans) -> None:
        """Launch the update of both tables by the change of a step."""
        gather[1 if INTERPRETED else self.programs, 2](
            self.context.tables, self.context.plan.segments_of(step), change, spans,
            TILES=self.tiles, num_warps=self.warps,
        )  # fmt: skip


@triton.jit
def subtract(tables, row, column, change):
    """Subtract each number of change atomically from `row` of its column's table; skip row -1."""
    second = tables.attributes.columns
    own = column < second
    base = tl.where(own, tables.attributes.rows, tables.neighbours.rows)
    stride = tl.where(own, tables.attributes.stride, tables.neighbours.stride).to(tl.int64)
    place = row * stride + tl.where(own, column, column - second)
    tl.atomic_add(base + place, -change, mask=row >= 0, sem="relaxed")


@triton.jit
def scatter(change, table, frequent, part, TILES: tl.constexpr):
    """Subtract one table's columns of a change (`Change`) atomically from the table's winning rows.

    Program (tile, strip, part) covers some vectors, columns and rows of the table. Programs of one strip and part run
    close together in time, so that only this region of the table has to be in the cache. For winners that are frequent
    (frequent, width) rows of their column, a tile sums the gradients first, because thousands of atomic additions to
    one number would wait for each other.
    """
    FREQUENT: tl.constexpr = TILES.frequent
    slot = (tl.program_id(0) * TILES.rows + tl.arange(0, TILES.rows)).to(tl.int64)[:, None]
    column = (tl.program_id(1) * TILES.columns + tl.arange(0, TILES.columns))[None, :]
    at = slot * TILES.width + part.first + column
    inside = (slot < part.vectors) & (column < part.span)
    row = tl.load(change.winner + at, mask=inside, other=-1, eviction_policy="evict_first")
    lowest = tl.program_id(2) * part.rows
    own = (row >= lowest) & (row < lowest + part.rows)
    lost = change.rate * tl.load(change.gradient + at, mask=own, other=0.0, eviction_policy="evict_first")
    for kind in tl.static_range(FREQUENT):
        common = tl.load(frequent + kind * TILES.width + part.first + column, mask=column < part.span, other=-1)
        alike = own & (row == common)
        total = tl.sum(tl.where(alike, lost, 0.0), 0)[None, :]
        won = tl.max(alike.to(tl.int32), 0)[None, :] > 0
        tl.atomic_add(table.rows + common.to(tl.int64) * table.stride + column, -total, mask=won, sem="relaxed")
        own &= row != common
    tl.atomic_add(table.rows + row.to(tl.int64) * table.stride + column, -lost, mask=own, sem="relaxed")


@triton.jit
def find_frequent(winner, frequent, vectors, TILES: tl.constexpr):
    """Write the rows with at least TILES.wins wins in a sample to frequent (frequent, width) int32; -1 for none."""
    FREQUENT: tl.constexpr = TILES.frequent
    column = tl.program_id(0)
    slot = tl.arange(0, TILES.rows).to(tl.int64) * tl.maximum(vectors // TILES.rows, 1)
    row = tl.load(winner + slot * TILES.width + column, mask=slot < vectors, other=-1)
    count = tl.sum((row[:, None] == row[None, :]).to(tl.int32), 1)
    count = tl.where(row >= 0, count, 0)
    for kind in tl.static_range(FREQUENT):
        most = tl.max(count, 0)
        most_frequent = tl.max(tl.where(count == most, row, -1), 0)
        tl.store(frequent + kind * TILES.width + column, tl.where(most >= TILES.wins, most_frequent, -1))
        count = tl.where(row == most_frequent, 0, count)


@triton.jit
def gather(tables, segments, change, spans, TILES: tl.constexpr):
    """Update both tables row by row from `segments`, the vectors of each row in a fixed order, taken in turn."""
    if tl.program_id(1) == 0:
        _gather_table(tables.attributes, segments.attributes, change, 0, spans.sizes, TILES)
    else:
        first, sizes = tables.attributes.columns, spans.sizes + spans.vectors
        _gather_table(tables.neighbours, segments.neighbours, change, first, sizes, TILES)


@triton.jit
def _gather_table(table, segments, change, first_column, sizes, TILES: tl.constexpr):
    """Update one table in place; first_column: its first column of the change; sizes: sizes of its bags."""
    ROWS: tl.constexpr = TILES.rows
    COLUMNS: tl.constexpr = TILES.columns
    column = tl.arange(0, COLUMNS)
    present = column < table.columns
    gradient, winner = change.gradient + first_column, change.winner + first_column
    first_segment, last_segment = tl.load(segments.bounds), tl.load(segments.bounds + 1)
    for segment in range(first_segment + tl.program_id(0), last_segment, tl.num_programs(0)):
        row = tl.load(segments.rows + segment)
        last = tl.load(segments.ends + segment + 1)
        total = tl.zeros([ROWS, COLUMNS], tl.float32)
        for first in range(tl.load(segments.ends + segment), last, ROWS):
            entry = first + tl.arange(0, ROWS)
            slot = tl.load(segments.entries + entry, mask=entry < last, other=0).to(tl.int64)
            at = slot[:, None] * TILES.width + column[None, :]
            live = (entry < last)[:, None] & present[None, :]
            share = tl.load(gradient + at, mask=live, other=0.0)
            if TILES.pooling == MAX:
                share = tl.where(tl.load(winner + at, mask=live, other=-1) == row, share, 0.0)
            if TILES.pooling == MEAN:
                share /= tl.maximum(tl.load(sizes + slot), 1)[:, None]
            total += share
        place = table.rows + row.to(tl.int64) * table.stride + column
        tl.store(place, tl.load(place, mask=present) - change.rate * tl.sum(total, 0), mask=present)
