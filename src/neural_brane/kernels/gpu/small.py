"""Train on small batches with three launches per step: pool, hide and learn; launch latency dominates."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

from neural_brane.kernels.gpu.bundles import (
    DEPTH,
    INTERPRETED,
    Pooled,
    Slope,
    Spans,
    Split,
    add_product,
    load_split,
    losses_of,
    slopes_of,
    split,
)
from neural_brane.kernels.gpu.layer import Context, LayerStep, descend_block, subtract
from neural_brane.kernels.gpu.pool import POOL_WARPS, pool, wait_for_launch
from neural_brane.kernels.model import Array

ROWS, COLUMNS = 16, 32  # slots per program, columns or hidden units per program
HIDE_WARPS, HIDE_STAGES = 4, 5
LEARN_WARPS, LEARN_STAGES = 4, 1  # more stages of loads made a step slower
WEIGHT_TILE, SLOTS = 32, 128  # units and columns per tile of W's gradient, slots summed at a time
SHARES = 2 if INTERPRETED else 3  # shares of W's gradient


class Scratch(NamedTuple):
    """The arrays that the launches of a step share."""

    pooled: Split  # f (slots, width)
    winner: Array  # (slots, width) int32
    hidden: Array  # h (slots, hidden) float32
    margins: Array  # (strips, triplets) float32: contribution of each strip of hidden units to s(u,i) − s(u,j)
    gradient: Array  # dL/df (slots, width) float32, used if the tables are updated later
    slots: int


class SmallTiles(NamedTuple):
    """Compile-time options of hide and learn."""

    width: int
    hidden: int
    strips: int  # strips of hidden units
    weight_programs: int  # number of programs, the first ones of learn, that sum W's gradient
    scatter: bool
    bias: bool
    ahead: bool
    rows: int = ROWS
    columns: int = COLUMNS
    depth: int = DEPTH
    weight_tile: int = WEIGHT_TILE
    slots: int = SLOTS
    shares: int = SHARES


class SmallLayer(LayerStep):
    """The launches of a step at small batches."""

    # A small batch does not saturate memory. Many small programs finish sooner, because each waits for few reads.
    pool_columns = 16

    def __init__(self, context: Context):
        super().__init__(context, shares=SHARES)
        shape, settings, empty = context.shape, context.settings, context.allocate
        # On Hopper and later a kernel may start while the previous one ends, which hides some launch latency.
        ahead = not INTERPRETED and torch.cuda.get_device_capability() >= (9, 0)
        strips = shape.hidden // COLUMNS
        hidden, margins = empty(self.vectors, shape.hidden), empty(strips, self.batch)
        self.losses = empty(context.plan.steps, triton.cdiv(self.vectors, ROWS))
        self.scratch = Scratch(self.pooled, self.winner, hidden, margins, self.gradient, self.vectors)
        programs = shape.hidden // WEIGHT_TILE * (shape.width // WEIGHT_TILE) * SHARES
        self.tiles = SmallTiles(
            shape.width, shape.hidden, strips, programs, context.scatter, settings.train_bias, ahead
        )  # fmt: skip
        self.slope = Slope(settings.triplet_scale, 2 * settings.hidden_l2)
        self.work_ahead = self.work._replace(ahead=ahead)

    def pool(self, step: int, spans: Spans) -> None:
        """Launch the pooling; except in a group's first step, it runs beside the previous step's update of W."""
        if step == 0:
            super().pool(step, spans)
            return
        strips = self.work.strips() + triton.cdiv(self.descent_programs(), self.vectors)
        pool_and_descend[self.vectors, strips](
            self.context.tables, spans, Pooled(*self.pooled, self.winner), self.arrays,
            WORK=self.work_ahead, DESCENT=self.descent,
            num_warps=POOL_WARPS, launch_pdl=self.tiles.ahead,
        )  # fmt: skip

    def step(self, step: int, rate: float) -> None:
        """Launch the hidden layer, then both gradients and, with scatter, the update of the tables."""
        tiles = self.tiles
        hide[tiles.strips, triton.cdiv(self.batch, ROWS // 3)](
            self.scratch, self.arrays, TILES=tiles,
            num_warps=HIDE_WARPS, num_stages=HIDE_STAGES, launch_pdl=tiles.ahead,
        )  # fmt: skip
        table_programs = triton.cdiv(self.vectors, ROWS) * (tiles.width // COLUMNS)
        learn[tiles.weight_programs + table_programs,](
            self.scratch, self.arrays, self.context.tables, self.losses[step], self.slope._replace(rate=rate),
            TILES=tiles, num_warps=LEARN_WARPS, num_stages=LEARN_STAGES, launch_pdl=tiles.ahead,
        )  # fmt: skip

    def finish(self) -> None:
        """Launch the last step's update of W and b, which no pooling follows."""
        self.descend()


@triton.jit
def pool_and_descend(tables, spans, pooled, layer, WORK: tl.constexpr, DESCENT: tl.constexpr):
    """Run `pool` and, in additional strips of programs, the `descend` of the previous step."""
    ATTRIBUTES: tl.constexpr = WORK.attributes
    NEIGHBOURS: tl.constexpr = WORK.neighbours
    STRIPS: tl.constexpr = ATTRIBUTES.strips + NEIGHBOURS.strips
    if tl.program_id(1) < STRIPS:
        pool(tables, spans, pooled, WORK)
    else:
        wait_for_launch(WORK.ahead)
        descend_block(layer, (tl.program_id(1) - STRIPS) * tl.num_programs(0) + tl.program_id(0), DESCENT)


@triton.jit
def hide(scratch, layer, TILES: tl.constexpr):
    """Compute h = ReLU(W f + b); program (strip, tile) has TILES.columns hidden units of TILES.rows // 3 triplets.

    Writes scratch.hidden and, to scratch.margins, the contribution of these units to each triplet's s(u,i) − s(u,j).
    H Hᵀ contains all inner products, where H is the tile of h.
    """
    ROWS: tl.constexpr = TILES.rows
    COLUMNS: tl.constexpr = TILES.columns
    EACH: tl.constexpr = ROWS // 3 * 3
    wait_for_launch(TILES.ahead)
    strip, tile = tl.program_id(0), tl.program_id(1)
    row = tl.arange(0, ROWS)
    slot = tile * EACH + row
    live = (row < EACH) & (slot < scratch.slots)
    at = slot.to(tl.int64)[:, None]
    unit = (strip * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    b = tl.load(layer.bias + unit)
    z = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, TILES.width, TILES.depth):
        depth = first + tl.arange(0, TILES.depth)
        places = scratch.pooled.data + at * TILES.width + depth[None, :]
        f, f_rest = load_split(places, scratch.pooled.plane, live[:, None])
        places = layer.split.data + unit * TILES.width + depth[:, None]
        w, w_rest = load_split(places, layer.split.plane, unit < TILES.hidden)
        z = add_product(z, f, f_rest, w, w_rest)
    h = tl.where(live[:, None], tl.maximum(z + b, 0.0), 0.0)
    tl.store(scratch.hidden + at * TILES.hidden + unit, h, mask=live[:, None])

    near, rest = split(h, scratch.pooled.data.dtype.element_ty)
    products = add_product(tl.zeros([ROWS, ROWS], tl.float32), near, rest, tl.trans(near), tl.trans(rest))
    here, other = row[:, None], row[None, :]
    margin = tl.sum(tl.where(other == here + 1, products, 0.0) - tl.where(other == here + 2, products, 0.0), 1)
    tl.store(scratch.margins + strip * (scratch.slots // 3) + slot // 3, margin, mask=live & (row % 3 == 0))


@triton.jit
def learn(scratch, layer, tables, losses, slope, TILES: tl.constexpr):
    """Compute both gradients from h and the margins.

    The first TILES.weight_programs programs write tiles of layer.weight_shares and layer.bias_shares. The others
    compute tiles of dL/df. They subtract slope.rate × dL/df from the tables' winning rows (TILES.scatter) or write it
    to scratch.gradient, and write sums of −ln σ to losses, one per TILES.rows slots.
    """
    wait_for_launch(TILES.ahead)
    if tl.program_id(0) < TILES.weight_programs:
        _learn_weight(scratch, layer, slope, TILES)
    else:
        _learn_tables(scratch, layer, tables, losses, slope, TILES)


@triton.jit
def _learn_tables(scratch, layer, tables, losses, slope, TILES: tl.constexpr):
    ROWS: tl.constexpr = TILES.rows
    COLUMNS: tl.constexpr = TILES.columns
    ACROSS: tl.constexpr = TILES.width // COLUMNS
    program = tl.program_id(0) - TILES.weight_programs
    tile, strip = program // ACROSS, program % ACROSS
    slot = tile * ROWS + tl.arange(0, ROWS)
    live = slot < scratch.slots
    column = (strip * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    at = slot.to(tl.int64)[:, None] * TILES.width + column
    if TILES.scatter:
        row = tl.load(scratch.winner + at, mask=live[:, None], other=-1)
    margin = _add_margins(scratch, slot, live, TILES)
    df = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, TILES.hidden, TILES.depth):
        unit = first + tl.arange(0, TILES.depth)
        there = unit[:, None] * TILES.width + column
        w, w_rest = load_split(layer.split.data + there, layer.split.plane, unit[:, None] < TILES.hidden)
        dz = _differentiate(scratch, margin, slot, live, unit[None, :], slope, TILES)
        dz, dz_rest = split(dz, layer.split.data.dtype.element_ty)
        df = add_product(df, dz, dz_rest, w, w_rest)
    if TILES.scatter:
        subtract(tables, row, column, slope.rate * df)
    else:
        tl.store(scratch.gradient + at, df, mask=live[:, None])
    if strip == 0:
        loss = losses_of(margin, tl.exp(-tl.abs(margin)))
        tl.store(losses + tile, tl.sum(tl.where(live & (slot % 3 == 0), loss, 0.0), 0))


@triton.jit
def _learn_weight(scratch, layer, slope, TILES: tl.constexpr):
    TILE: tl.constexpr = TILES.weight_tile
    ACROSS: tl.constexpr = TILES.width // TILE
    share, tile = tl.program_id(0) % TILES.shares, tl.program_id(0) // TILES.shares
    unit = tile // ACROSS * TILE + tl.arange(0, TILE)
    column = (tile % ACROSS * TILE + tl.arange(0, TILE))[None, :]
    span = tl.cdiv(scratch.slots, TILES.shares)
    last = tl.minimum(scratch.slots, (share + 1) * span)
    dw = tl.zeros([TILE, TILE], tl.float32)
    db = tl.zeros([TILE], tl.float32)
    for first in range(share * span, last, TILES.slots):
        slot = first + tl.arange(0, TILES.slots)
        live = slot < last
        places = scratch.pooled.data + slot.to(tl.int64)[:, None] * TILES.width + column
        f, f_rest = load_split(places, scratch.pooled.plane, live[:, None])
        margin = _add_margins(scratch, slot, live, TILES)
        dz = _differentiate(scratch, margin, slot, live, unit[None, :], slope, TILES)
        if TILES.bias:
            db += tl.sum(dz, 0)
        dz, dz_rest = split(tl.trans(dz), scratch.pooled.data.dtype.element_ty)
        dw = add_product(dw, dz, dz_rest, f, f_rest)
    places = layer.weight_shares + share * TILES.hidden * TILES.width + unit[:, None] * TILES.width + column
    tl.store(places, dw)
    if TILES.bias:  # noqa: SIM102  (known when compiling)
        if tile % ACROSS == 0:
            tl.store(layer.bias_shares + share * TILES.hidden + unit, db)


@triton.jit
def _add_margins(scratch, slot, live, TILES: tl.constexpr):
    """Return s(u,i) − s(u,j) of each slot's triplet, summed over the strips of hidden units."""
    STRIPS: tl.constexpr = TILES.strips
    margin = tl.zeros(slot.shape, tl.float32)
    for strip in tl.static_range(STRIPS):
        margin += tl.load(scratch.margins + strip * (scratch.slots // 3) + slot // 3, mask=live, other=0.0)
    return margin


@triton.jit
def _differentiate(scratch, margin, slot, live, unit, slope, TILES: tl.constexpr):
    """Return dL/dz of hidden units `unit` of slots `slot`, from the hidden vectors of each slot's triplet."""
    pull = slopes_of(margin, tl.exp(-tl.abs(margin)), slope.triplet_scale)[:, None]
    role = (slot % 3)[:, None]
    known = live[:, None]
    at = slot.to(tl.int64)[:, None] * TILES.hidden + unit
    u = at - role * TILES.hidden
    own = tl.load(scratch.hidden + at, mask=known, other=0.0)
    toward = tl.load(scratch.hidden + tl.where(role == 0, u + TILES.hidden, u), mask=known, other=0.0)
    against = tl.load(scratch.hidden + u + 2 * TILES.hidden, mask=known & (role == 0), other=0.0)
    direction = tl.where(role == 2, -toward, toward) - against
    return tl.where(own > 0, pull * direction + slope.shrink * own, 0.0)
