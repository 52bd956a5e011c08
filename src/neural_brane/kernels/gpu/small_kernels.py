"""Triton kernels of small batches, where a step is three launches: pool, hide, learn.

What counts is how long one waits for the next. So what two programs need is computed by both, and W's step is put off
until the next pooling, which does not read W. Slots and columns are those of `gpu_pool`, planes of split numbers those
of `gpu_split`; W has HIDDEN rows, a multiple of 32 with spare ones zero, so that no product has an edge.
"""

import triton
import triton.language as tl

from neural_brane.kernels.gpu.pool import follow, pool
from neural_brane.kernels.gpu.split import add_product, descend_block, load_split, losses_of, slopes_of, split
from neural_brane.kernels.gpu.tables import subtract


@triton.jit
def pool_and_descend(
    attribute_table, attribute_stride, attribute_indices, neighbour_table, neighbour_stride, neighbour_indices,
    starts, sizes, pooled, plane, winner, scale, slots, second, long, keys,
    weight, weight_shares, split_weight, weight_plane, bias, bias_shares, learning_rate, decay,
    POOLING: tl.constexpr, ZERO_FLOOR: tl.constexpr, SPLIT: tl.constexpr, LONG: tl.constexpr, WIDTH: tl.constexpr,
    ATTRIBUTE_WIDTH: tl.constexpr, ATTRIBUTE_ROWS: tl.constexpr, ATTRIBUTE_COLUMNS: tl.constexpr,
    NEIGHBOUR_WIDTH: tl.constexpr, NEIGHBOUR_ROWS: tl.constexpr, NEIGHBOUR_COLUMNS: tl.constexpr,
    UNROLL: tl.constexpr, AHEAD: tl.constexpr,
    SIZE: tl.constexpr, HIDDEN: tl.constexpr, BIAS: tl.constexpr, SHARES: tl.constexpr, BLOCK: tl.constexpr,
    TOGETHER: tl.constexpr,
):  # fmt: skip
    """`pool`, and beside it, in more strips of programs, the step before's `descend`."""
    strips = tl.cdiv(second, ATTRIBUTE_COLUMNS) + tl.cdiv(WIDTH - second, NEIGHBOUR_COLUMNS)
    if tl.program_id(1) < strips:
        pool(
            attribute_table, attribute_stride, attribute_indices, neighbour_table, neighbour_stride, neighbour_indices,
            starts, sizes, pooled, plane, winner, scale, slots, second, long, keys,
            POOLING, ZERO_FLOOR, SPLIT, LONG, WIDTH, ATTRIBUTE_WIDTH, ATTRIBUTE_ROWS, ATTRIBUTE_COLUMNS,
            NEIGHBOUR_WIDTH, NEIGHBOUR_ROWS, NEIGHBOUR_COLUMNS, UNROLL, AHEAD,
        )  # fmt: skip
    else:
        follow(AHEAD)
        block = (tl.program_id(1) - strips) * tl.num_programs(0) + tl.program_id(0)
        descend_block(
            weight, weight_shares, split_weight, weight_plane, bias, bias_shares, learning_rate, decay, block,
            SIZE, HIDDEN, BIAS, SHARES, BLOCK, TOGETHER,
        )  # fmt: skip


@triton.jit
def hide(
    pooled, pooled_plane, weight, weight_plane, bias, hidden, margins, slots,
    WIDTH: tl.constexpr, HIDDEN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
    AHEAD: tl.constexpr,
):  # fmt: skip
    """h = ReLU(W f + b): program (strip, tile) has COLUMNS hidden units of ROWS // 3 triplets.

    Writes h to hidden (slots, HIDDEN), and to margins (strips, triplets) its units' share of s(u,i) − s(u,j): with H
    the tile of h, all inner products are H Hᵀ.
    """
    follow(AHEAD)
    strip, tile = tl.program_id(0), tl.program_id(1)
    each: tl.constexpr = ROWS // 3 * 3
    row = tl.arange(0, ROWS)
    slot = tile * each + row
    live = (row < each) & (slot < slots)
    at = slot.to(tl.int64)[:, None]
    unit = (strip * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    b = tl.load(bias + unit)
    z = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, WIDTH, DEPTH):
        depth = first + tl.arange(0, DEPTH)
        f, f_rest = load_split(pooled + at * WIDTH + depth[None, :], pooled_plane, live[:, None])
        w, w_rest = load_split(weight + unit * WIDTH + depth[:, None], weight_plane, unit < HIDDEN)
        z = add_product(z, f, f_rest, w, w_rest)
    h = tl.where(live[:, None], tl.maximum(z + b, 0.0), 0.0)
    tl.store(hidden + at * HIDDEN + unit, h, mask=live[:, None])

    near, rest = split(h, pooled.dtype.element_ty)
    products = add_product(tl.zeros([ROWS, ROWS], tl.float32), near, rest, tl.trans(near), tl.trans(rest))
    here, other = row[:, None], row[None, :]
    margin = tl.sum(tl.where(other == here + 1, products, 0.0) - tl.where(other == here + 2, products, 0.0), 1)
    tl.store(margins + strip * (slots // 3) + slot // 3, margin, mask=live & (row % 3 == 0))


@triton.jit
def learn(
    pooled, pooled_plane, weight, weight_plane, hidden, margins, winner, gradient, weight_shares, bias_shares, losses,
    attribute_table, attribute_stride, neighbour_table, neighbour_stride,
    slots, second, rate, triplet_scale, shrink, weight_programs,
    WIDTH: tl.constexpr, HIDDEN: tl.constexpr, STRIPS: tl.constexpr, SCATTER: tl.constexpr, BIAS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, TILE: tl.constexpr, SLOTS: tl.constexpr,
    SPLITS: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """From h and the margins to dL/dz, and on: the first programs to shares of W's gradient, the others to the tables.

    The first `weight_programs` have tiles of dL/dW over one of SPLITS splits of the slots, for weight_shares
    (SPLITS, HIDDEN, WIDTH) and bias_shares (SPLITS, HIDDEN). The others subtract a tile of dL/df from the winning rows
    (SCATTER), or leave it in gradient (slots, WIDTH), and write sums of −ln σ to losses, one for ROWS slots.
    """
    follow(AHEAD)
    program = tl.program_id(0)
    if program < weight_programs:
        _learn_weight(
            pooled, pooled_plane, hidden, margins, weight_shares, bias_shares, program, slots, triplet_scale, shrink,
            WIDTH, HIDDEN, STRIPS, BIAS, TILE, SLOTS, SPLITS,
        )  # fmt: skip
    else:
        _learn_tables(
            weight, weight_plane, hidden, margins, winner, gradient, losses,
            attribute_table, attribute_stride, neighbour_table, neighbour_stride,
            program - weight_programs, slots, second, rate, triplet_scale, shrink,
            WIDTH, HIDDEN, STRIPS, SCATTER, ROWS, COLUMNS, DEPTH,
        )  # fmt: skip


@triton.jit
def _learn_tables(
    weight, weight_plane, hidden, margins, winner, gradient, losses,
    attribute_table, attribute_stride, neighbour_table, neighbour_stride,
    program, slots, second, rate, triplet_scale, shrink,
    WIDTH: tl.constexpr, HIDDEN: tl.constexpr, STRIPS: tl.constexpr, SCATTER: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    across: tl.constexpr = WIDTH // COLUMNS
    tile, strip = program // across, program % across
    slot = tile * ROWS + tl.arange(0, ROWS)
    live = slot < slots
    column = (strip * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    at = slot.to(tl.int64)[:, None] * WIDTH + column
    if SCATTER:
        row = tl.load(winner + at, mask=live[:, None], other=-1)
    margin = _add_margins(margins, slot, live, slots, STRIPS)
    df = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, HIDDEN, DEPTH):
        unit = first + tl.arange(0, DEPTH)
        there = unit[:, None] * WIDTH + column
        w, w_rest = load_split(weight + there, weight_plane, unit[:, None] < HIDDEN)
        dz = _differentiate(hidden, margin, slot, live, unit[None, :], triplet_scale, shrink, HIDDEN)
        dz, dz_rest = split(dz, weight.dtype.element_ty)
        df = add_product(df, dz, dz_rest, w, w_rest)
    if SCATTER:
        subtract(attribute_table, attribute_stride, neighbour_table, neighbour_stride, row, column, rate * df, second)
    else:
        tl.store(gradient + at, df, mask=live[:, None])
    if strip == 0:
        loss = losses_of(margin, tl.exp(-tl.abs(margin)))
        tl.store(losses + tile, tl.sum(tl.where(live & (slot % 3 == 0), loss, 0.0), 0))


@triton.jit
def _learn_weight(
    pooled, pooled_plane, hidden, margins, weight_shares, bias_shares, program, slots, triplet_scale, shrink,
    WIDTH: tl.constexpr, HIDDEN: tl.constexpr, STRIPS: tl.constexpr, BIAS: tl.constexpr,
    TILE: tl.constexpr, SLOTS: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    across: tl.constexpr = WIDTH // TILE
    part, tile = program % SPLITS, program // SPLITS
    unit = tile // across * TILE + tl.arange(0, TILE)
    column = (tile % across * TILE + tl.arange(0, TILE))[None, :]
    span = tl.cdiv(slots, SPLITS)
    last = tl.minimum(slots, (part + 1) * span)
    dw = tl.zeros([TILE, TILE], tl.float32)
    db = tl.zeros([TILE], tl.float32)
    for first in range(part * span, last, SLOTS):
        slot = first + tl.arange(0, SLOTS)
        live = slot < last
        f, f_rest = load_split(pooled + slot.to(tl.int64)[:, None] * WIDTH + column, pooled_plane, live[:, None])
        margin = _add_margins(margins, slot, live, slots, STRIPS)
        dz = _differentiate(hidden, margin, slot, live, unit[None, :], triplet_scale, shrink, HIDDEN)
        if BIAS:
            db += tl.sum(dz, 0)
        dz, dz_rest = split(tl.trans(dz), pooled.dtype.element_ty)
        dw = add_product(dw, dz, dz_rest, f, f_rest)
    tl.store(weight_shares + part * HIDDEN * WIDTH + unit[:, None] * WIDTH + column, dw)
    if BIAS:  # noqa: SIM102  (known when compiling)
        if tile % across == 0:
            tl.store(bias_shares + part * HIDDEN + unit, db)


@triton.jit
def _add_margins(margins, slot, live, slots, STRIPS: tl.constexpr):
    """s(u,i) − s(u,j) of the triplets of some slots."""
    margin = tl.zeros(slot.shape, tl.float32)
    for strip in tl.static_range(STRIPS):
        margin += tl.load(margins + strip * (slots // 3) + slot // 3, mask=live, other=0.0)
    return margin


@triton.jit
def _differentiate(hidden, margin, slot, live, unit, triplet_scale, shrink, HIDDEN: tl.constexpr):
    """dL/dz of some units of some slots: the other two of a triplet pull at each."""
    slope = slopes_of(margin, tl.exp(-tl.abs(margin)), triplet_scale)[:, None]
    role = (slot % 3)[:, None]
    known = live[:, None]
    at = slot.to(tl.int64)[:, None] * HIDDEN + unit
    u = at - role * HIDDEN
    own = tl.load(hidden + at, mask=known, other=0.0)
    toward = tl.load(hidden + tl.where(role == 0, u + HIDDEN, u), mask=known, other=0.0)
    against = tl.load(hidden + u + 2 * HIDDEN, mask=known & (role == 0), other=0.0)
    pull = tl.where(role == 2, -toward, toward) - against
    return tl.where(own > 0, slope * pull + shrink * own, 0.0)
