"""Triton kernels of the ReLU layer at small batches: to the loss, back to dL/dz, the step on W, b and the tables.

Slots and columns are those of `gpu_tables`; W has the same columns, in `HIDDEN` rows, a multiple of 32 with spare ones
zero, so that no product has an edge. What a kernel reads was written by one launched before it: W is read from one
copy and written to another, and tables are written when all were pooled.
"""

import triton
import triton.language as tl

from neural_brane.kernels.gpu_tables import follow, subtract


@triton.jit
def hide(
    pooled, weight, bias, hidden, margins, arrivals, shares, slots, triplet_scale, shrink,
    WIDTH: tl.constexpr, HIDDEN: tl.constexpr, STRIPS: tl.constexpr, PRECISION: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, UNITS: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """h = ReLU(W f + b), then dL/dz: program (strip, tile) has COLUMNS hidden units of ROWS // 3 triplets.

    Writes h to hidden (slots, HIDDEN), and to margins (STRIPS, triplets) its units' share of s(u,i) − s(u,j): with H
    the tile of h, all inner products are H Hᵀ. The tile's last program to arrive, by the count in arrivals (tiles,)
    int32, then turns the tile's rows of hidden into dL/dz, and writes its sum of −ln σ to shares (tiles,).
    """
    follow(AHEAD)
    strip, tile = tl.program_id(0), tl.program_id(1)
    each: tl.constexpr = ROWS // 3 * 3
    row = tl.arange(0, ROWS)
    slot = tile * each + row
    live = (row < each) & (slot < slots)
    at = slot.to(tl.int64)[:, None]
    unit = strip * COLUMNS + tl.arange(0, COLUMNS)
    known = (unit < HIDDEN)[None, :]
    z = tl.zeros([ROWS, COLUMNS], tl.float32)
    for k in range(0, WIDTH, DEPTH):
        column = k + tl.arange(0, DEPTH)
        f = tl.load(pooled + at * WIDTH + column[None, :], mask=live[:, None], other=0.0)
        w = tl.load(weight + unit[None, :] * WIDTH + column[:, None], mask=known, other=0.0)
        z = tl.dot(f, w, z, input_precision=PRECISION)
    b = tl.load(bias + unit, mask=unit < HIDDEN, other=0.0)
    h = tl.where(live[:, None], tl.maximum(z + b[None, :], 0.0), 0.0)
    tl.store(hidden + at * HIDDEN + unit[None, :], h, mask=live[:, None] & known)

    products = tl.dot(h, tl.trans(h), input_precision=PRECISION)
    here, other = row[:, None], row[None, :]
    margin = tl.sum(tl.where(other == here + 1, products, 0.0) - tl.where(other == here + 2, products, 0.0), 1)
    tl.store(margins + strip * (slots // 3) + slot // 3, margin, mask=live & (row % 3 == 0))
    if is_last(arrivals + tile, STRIPS):
        _differentiate(hidden, margins, shares + tile, slot, live, slots, triplet_scale, shrink, HIDDEN, STRIPS, UNITS)


@triton.jit
def is_last(arrivals, COUNT: tl.constexpr):
    """Whether this program is the last of COUNT to arrive: it then sees what the others have written."""
    tl.debug_barrier()
    return tl.atomic_add(arrivals, 1, sem="acq_rel") % COUNT == COUNT - 1


@triton.jit
def _differentiate(
    hidden, margins, share, slot, live, slots, triplet_scale, shrink,
    HIDDEN: tl.constexpr, STRIPS: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Turn rows of h into dL/dz in place; all three rows of a triplet are among them."""
    margin = tl.zeros(slot.shape, tl.float32)
    for strip in tl.static_range(STRIPS):
        there = strip * (slots // 3) + slot // 3
        margin += tl.load(margins + there, mask=live, other=0.0, cache_modifier=".cg")
    decay = tl.exp(-tl.abs(margin))
    slope = slopes_of(margin, decay, triplet_scale)[:, None]
    role = (slot % 3)[:, None]
    for k in range(0, HIDDEN, UNITS):
        unit = k + tl.arange(0, UNITS)[None, :]
        known = live[:, None] & (unit < HIDDEN)
        at = slot.to(tl.int64)[:, None] * HIDDEN + unit
        u = at - role * HIDDEN
        partner = tl.where(role == 0, u + HIDDEN, u)
        own = tl.load(hidden + at, mask=known, other=0.0, cache_modifier=".cg")
        toward = tl.load(hidden + partner, mask=known, other=0.0, cache_modifier=".cg")
        against = tl.load(hidden + u + 2 * HIDDEN, mask=known & (role == 0), other=0.0, cache_modifier=".cg")
        pull = tl.where(role == 2, -toward, toward) - against
        tl.debug_barrier()  # all have read these units before any is overwritten
        tl.store(hidden + at, tl.where(own > 0, slope * pull + shrink * own, 0.0), mask=known)
    tl.store(share, tl.sum(tl.where(live & (slot % 3 == 0), losses_of(margin, decay), 0.0), 0))


@triton.jit
def slopes_of(margin, decay, scale):
    """The slope of −scale · ln σ at margins whose e^−|margin| is decay."""
    return -scale * tl.where(margin > 0, decay, 1.0) / (1 + decay)


@triton.jit
def losses_of(margin, decay):
    """−ln σ of margins whose e^−|margin| is decay."""
    tail = tl.where(decay < 1e-3, decay * (1 - 0.5 * decay), tl.log(1 + decay))  # of ln(1 + x) where 1 + x rounds
    return tl.maximum(-margin, 0.0) + tail


@triton.jit
def descend(
    pooled, slope, weight, next_weight, bias, weight_shares, bias_shares, arrivals, winner, gradient,
    attribute_table, attribute_stride, neighbour_table, neighbour_stride,
    slots, second, rate, table_rate, decay, weight_tiles,
    WIDTH: tl.constexpr, HIDDEN: tl.constexpr, PRECISION: tl.constexpr,
    SCATTER: tl.constexpr, BIAS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
    TILE: tl.constexpr, SPLITS: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Take the step: the first `weight_tiles` programs on W and b, the others on the tables.

    slope (slots, HIDDEN) is dL/dz. The first add up a tile of dL/dW over one of SPLITS splits of the slots, into
    weight_shares (SPLITS, HIDDEN, WIDTH) and bias_shares (SPLITS, HIDDEN); the tile's last to arrive adds them up, in
    order, and writes next_weight and bias. The others make a tile of dL/df and subtract it from the winning rows
    (SCATTER), or leave it in gradient (slots, WIDTH).
    """
    follow(AHEAD)
    program = tl.program_id(0)
    if program < weight_tiles:
        _descend_weight(
            pooled, slope, weight, next_weight, bias, weight_shares, bias_shares, arrivals, program, slots, rate, decay,
            WIDTH, HIDDEN, PRECISION, BIAS, TILE, DEPTH, SPLITS,
        )  # fmt: skip
    else:
        _descend_tables(
            slope, weight, winner, gradient, attribute_table, attribute_stride, neighbour_table, neighbour_stride,
            program - weight_tiles, slots, second, table_rate,
            WIDTH, HIDDEN, PRECISION, SCATTER, ROWS, COLUMNS, DEPTH,
        )  # fmt: skip


@triton.jit
def _descend_tables(
    slope, weight, winner, gradient, attribute_table, attribute_stride, neighbour_table, neighbour_stride,
    program, slots, second, rate, WIDTH: tl.constexpr, HIDDEN: tl.constexpr, PRECISION: tl.constexpr,
    SCATTER: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    across: tl.constexpr = (WIDTH + COLUMNS - 1) // COLUMNS
    slot = (program // across * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    column = program % across * COLUMNS + tl.arange(0, COLUMNS)
    live = (slot < slots)[:, None]
    inside = (column < WIDTH)[None, :]
    at = slot[:, None] * WIDTH + column[None, :]
    if SCATTER:
        row = tl.load(winner + at, mask=live & inside, other=-1)
    df = tl.zeros([ROWS, COLUMNS], tl.float32)
    for k in range(0, HIDDEN, DEPTH):
        unit = k + tl.arange(0, DEPTH)
        dz = tl.load(slope + slot[:, None] * HIDDEN + unit[None, :], mask=live, other=0.0)
        w = tl.load(weight + unit[:, None] * WIDTH + column[None, :], mask=inside, other=0.0)
        df = tl.dot(dz, w, df, input_precision=PRECISION)
    if SCATTER:
        subtract(
            attribute_table, attribute_stride, neighbour_table, neighbour_stride,
            row, column[None, :], rate * df, second,
        )  # fmt: skip
    else:
        tl.store(gradient + at, df, mask=live & inside)


@triton.jit
def _descend_weight(
    pooled, slope, weight, next_weight, bias, weight_shares, bias_shares, arrivals, program, slots, rate, decay,
    WIDTH: tl.constexpr, HIDDEN: tl.constexpr, PRECISION: tl.constexpr, BIAS: tl.constexpr,
    TILE: tl.constexpr, DEPTH: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    across: tl.constexpr = (WIDTH + TILE - 1) // TILE
    split, tile = program % SPLITS, program // SPLITS
    unit = tile // across * TILE + tl.arange(0, TILE)
    column = tile % across * TILE + tl.arange(0, TILE)
    known, inside = unit < HIDDEN, column < WIDTH
    span = tl.cdiv(slots, SPLITS)
    last = tl.minimum(slots, (split + 1) * span)
    dw = tl.zeros([TILE, TILE], tl.float32)
    db = tl.zeros([TILE], tl.float32)
    for first in range(split * span, last, DEPTH):
        slot = (first + tl.arange(0, DEPTH)).to(tl.int64)[:, None]
        live = slot < last
        dz = tl.load(slope + slot * HIDDEN + unit[None, :], mask=live & known[None, :], other=0.0)
        f = tl.load(pooled + slot * WIDTH + column[None, :], mask=live & inside[None, :], other=0.0)
        dw = tl.dot(tl.trans(dz), f, dw, input_precision=PRECISION)
        if BIAS:
            db += tl.sum(dz, 0)
    at = unit[:, None] * WIDTH + column[None, :]
    whole = known[:, None] & inside[None, :]
    tl.store(weight_shares + split * HIDDEN * WIDTH + at, dw, mask=whole)
    if BIAS:  # noqa: SIM102  (known when compiling)
        if tile % across == 0:
            tl.store(bias_shares + split * HIDDEN + unit, db, mask=known)
    if is_last(arrivals + tile, SPLITS):
        w = add_up(weight, weight_shares, at, whole, HIDDEN * WIDTH, rate, decay, SPLITS)
        tl.store(next_weight + at, w, mask=whole)
        if BIAS:  # noqa: SIM102
            if tile % across == 0:
                b = add_up(bias, bias_shares, unit, known, HIDDEN, rate, decay, SPLITS)
                tl.store(bias + unit, b, mask=known)


@triton.jit
def add_up(theta, shares, at, inside, size, rate, decay, SPLITS: tl.constexpr):
    """decay * theta − rate * (the sum of shares (SPLITS, size), in order), at some places."""
    total = tl.zeros(at.shape, tl.float32)
    for split in tl.range(SPLITS, loop_unroll_factor=4):
        total += tl.load(shares + split * size + at, mask=inside, other=0.0, cache_modifier=".cg")
    return decay * tl.load(theta + at, mask=inside, other=0.0) - rate * total
