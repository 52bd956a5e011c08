"""Triton kernels of the ReLU layer: products of numbers split in two, W's step, and all else at large batches.

A float32 is kept as the bfloat16 nearest to it and the bfloat16 nearest to what is left, in two planes: of a product's
four terms the three that matter are as exact as float32 but for a digit, and go to the matrix units as they are loaded.
Slots and columns are those of `gpu_pool`; W has the same columns, in `HIDDEN` rows. A `…_plane` is how far the second
plane lies behind the first.
"""

import triton
import triton.language as tl


@triton.jit
def split(value, HALF: tl.constexpr):
    """Numbers as the nearest ones of a shorter kind, and the nearest to what is left."""
    near = value.to(HALF)
    return near, (value - near.to(tl.float32)).to(HALF)


@triton.jit
def store_split(place, plane, value, mask):
    """Write numbers to both planes."""
    near, rest = split(value, place.dtype.element_ty)
    tl.store(place, near, mask=mask)
    tl.store(place + plane, rest, mask=mask)


@triton.jit
def load_split(place, plane, mask):
    """Read numbers from both planes."""
    return tl.load(place, mask=mask, other=0.0), tl.load(place + plane, mask=mask, other=0.0)


@triton.jit
def add_product(total, left, left_rest, right, right_rest):
    """total + left × right: the small terms first."""
    total = tl.dot(left, right_rest, total)
    total = tl.dot(left_rest, right, total)
    return tl.dot(left, right, total)


@triton.jit
def multiply(
    left, left_plane, right, right_plane, depth_stride, column_stride, result, rows,
    DEPTHS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TAIL: tl.constexpr,
    DEPTH: tl.constexpr,
):  # fmt: skip
    """result (rows, WIDTH) = left (2 planes, rows, DEPTHS) × right, W or Wᵀ by its strides: program (strip, tile).

    A strip is COLUMNS columns and TAIL more, so that left is read once where both make up the width.
    """
    row = (tl.program_id(1) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    first_column = tl.program_id(0) * (COLUMNS + TAIL)
    column = first_column + tl.arange(0, COLUMNS)[None, :]
    live = row < rows
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    if TAIL > 0:
        tail_column = first_column + COLUMNS + tl.arange(0, TAIL)[None, :]
        tail = tl.zeros([ROWS, TAIL], tl.float32)
    for first in range(0, DEPTHS, DEPTH):
        depth = first + tl.arange(0, DEPTH)
        at = right + depth[:, None] * depth_stride
        x, x_rest = load_split(left + row * DEPTHS + depth[None, :], left_plane, live)
        y, y_rest = load_split(at + column * column_stride, right_plane, column < WIDTH)
        total = add_product(total, x, x_rest, y, y_rest)
        if TAIL > 0:
            y, y_rest = load_split(at + tail_column * column_stride, right_plane, tail_column < WIDTH)
            tail = add_product(tail, x, x_rest, y, y_rest)
    tl.store(result + row * WIDTH + column, total, mask=live & (column < WIDTH))
    if TAIL > 0:
        tl.store(result + row * WIDTH + tail_column, tail, mask=live & (tail_column < WIDTH))


@triton.jit
def _hidden(product, row, unit, bias, inside, HIDDEN: tl.constexpr):
    """h of some rows of product (rows, HIDDEN) = W f."""
    return tl.maximum(tl.load(product + row.to(tl.int64)[:, None] * HIDDEN + unit, mask=inside, other=0.0) + bias, 0.0)


@triton.jit
def differentiate(
    product, bias, slope, plane, shares, batch, triplet_scale, shrink,
    HIDDEN: tl.constexpr, TRIPLETS: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """From product (slots, HIDDEN) = W f to dL/dz in slope (2 planes, slots, HIDDEN): a program has TRIPLETS triplets.

    UNITS are all hidden units, up to a power of two. Writes the program's sum of −ln σ to shares.
    """
    triplet = tl.program_id(0) * TRIPLETS + tl.arange(0, TRIPLETS)
    unit = tl.arange(0, UNITS)[None, :]
    inside = (triplet < batch)[:, None] & (unit < HIDDEN)
    b = tl.load(bias + unit, mask=unit < HIDDEN, other=0.0)
    u = _hidden(product, 3 * triplet, unit, b, inside, HIDDEN)
    i = _hidden(product, 3 * triplet + 1, unit, b, inside, HIDDEN)
    j = _hidden(product, 3 * triplet + 2, unit, b, inside, HIDDEN)
    pull = _pull(u, i, j, triplet, batch, triplet_scale, shares)[:, None]
    at = slope + 3 * triplet.to(tl.int64)[:, None] * HIDDEN + unit
    store_split(at, plane, tl.where(u > 0, pull * (i - j) + shrink * u, 0.0), inside)
    store_split(at + HIDDEN, plane, tl.where(i > 0, pull * u + shrink * i, 0.0), inside)
    store_split(at + 2 * HIDDEN, plane, tl.where(j > 0, shrink * j - pull * u, 0.0), inside)


@triton.jit
def _pull(u, i, j, triplet, batch, triplet_scale, shares):
    """The slopes of −ln σ at the margins of a program's triplets, whose sum of −ln σ goes to shares."""
    margin = tl.sum(u * (i - j), 1)
    decay = tl.exp(-tl.abs(margin))
    tl.store(shares + tl.program_id(0), tl.sum(tl.where(triplet < batch, losses_of(margin, decay), 0.0), 0))
    return slopes_of(margin, decay, triplet_scale)


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
def score(
    product, bias, nodes, pulls, shares, batch, triplet_scale,
    HIDDEN: tl.constexpr, TRIPLETS: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """The first part of `differentiate` where product has a row for each node: pulls (batch,), and losses in shares.

    nodes (slots,) int32 are the triplets'.
    """
    triplet = tl.program_id(0) * TRIPLETS + tl.arange(0, TRIPLETS)
    unit = tl.arange(0, UNITS)[None, :]
    known = triplet < batch
    inside = known[:, None] & (unit < HIDDEN)
    b = tl.load(bias + unit, mask=unit < HIDDEN, other=0.0)
    u = _hidden(product, tl.load(nodes + 3 * triplet, mask=known, other=0), unit, b, inside, HIDDEN)
    i = _hidden(product, tl.load(nodes + 3 * triplet + 1, mask=known, other=0), unit, b, inside, HIDDEN)
    j = _hidden(product, tl.load(nodes + 3 * triplet + 2, mask=known, other=0), unit, b, inside, HIDDEN)
    tl.store(pulls + triplet, _pull(u, i, j, triplet, batch, triplet_scale, shares), mask=known)


@triton.jit
def add_pulls(
    product, bias, nodes, pulls, order, pieces, sums,
    HIDDEN: tl.constexpr, SLOTS: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Add up what pulls at a node, over a piece of its slots: sums (pieces, HIDDEN), a program has one.

    Piece p is the slots order[pieces[p]:pieces[p + 1]]. At u pulls i − j, at i pulls u, and at j −u.
    """
    piece = tl.program_id(0)
    start, last = tl.load(pieces + piece), tl.load(pieces + piece + 1)
    if start == last:
        return
    unit = tl.arange(0, UNITS)[None, :]
    b = tl.load(bias + unit, mask=unit < HIDDEN, other=0.0)
    total = tl.zeros([SLOTS, UNITS], tl.float32)
    for first in range(start, last, SLOTS):
        place = first + tl.arange(0, SLOTS)
        live = place < last
        slot = tl.load(order + place, mask=live, other=0)
        triplet, is_u = slot // 3, slot % 3 == 0
        pull = tl.load(pulls + triplet, mask=live, other=0.0)
        pull = tl.where(slot % 3 == 2, -pull, pull)[:, None]
        other = tl.load(nodes + 3 * triplet + tl.where(is_u, 1, 0), mask=live, other=0)
        j = tl.load(nodes + 3 * triplet + 2, mask=live & is_u, other=0)
        h = _hidden(product, other, unit, b, live[:, None] & (unit < HIDDEN), HIDDEN)
        h_j = _hidden(product, j, unit, b, (live & is_u)[:, None] & (unit < HIDDEN), HIDDEN)
        total += pull * tl.where(is_u[:, None], h - h_j, h)
    tl.store(sums + piece.to(tl.int64) * HIDDEN + unit, tl.sum(total, 0)[None, :], mask=unit < HIDDEN)


@triton.jit
def slope_of_nodes(
    product, bias, sums, pieces, bounds, slope, plane, shrink,
    HIDDEN: tl.constexpr, PIECES: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """The last part of `differentiate` for each node: the sums of its pieces bounds[node] to bounds[node + 1]."""
    node = tl.program_id(0)
    start, last = tl.load(bounds + node), tl.load(bounds + node + 1)
    unit = tl.arange(0, UNITS)[None, :]
    inside = unit < HIDDEN
    total = tl.zeros([PIECES, UNITS], tl.float32)
    for first in range(start, last, PIECES):
        piece = first + tl.arange(0, PIECES)[:, None]
        total += tl.load(sums + piece.to(tl.int64) * HIDDEN + unit, mask=(piece < last) & inside, other=0.0)
    slots = tl.load(pieces + last) - tl.load(pieces + start)
    at = node.to(tl.int64) * HIDDEN + unit
    b = tl.load(bias + unit, mask=inside, other=0.0)
    h = tl.maximum(tl.load(product + at, mask=inside, other=0.0) + b, 0.0)
    dz = tl.sum(total, 0)[None, :] + shrink * slots * h
    store_split(slope + at, plane, tl.where(h > 0, dz, 0.0), inside)


@triton.jit
def add_gradients(
    pooled, pooled_plane, slope, slope_plane, weight_shares, bias_shares, slots,
    WIDTH: tl.constexpr, HIDDEN: tl.constexpr, BIAS: tl.constexpr, UNITS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    """Add up tiles of dL/dW = dL/dzᵀ f, and dL/db, each program over one of SPLITS parts of the slots.

    Writes weight_shares (SPLITS, HIDDEN, WIDTH) and bias_shares (SPLITS, HIDDEN).
    """
    across: tl.constexpr = (WIDTH + COLUMNS - 1) // COLUMNS
    part, tile = tl.program_id(0) % SPLITS, tl.program_id(0) // SPLITS
    unit = tile // across * UNITS + tl.arange(0, UNITS)
    column = tile % across * COLUMNS + tl.arange(0, COLUMNS)
    known, inside = unit < HIDDEN, column < WIDTH
    span = tl.cdiv(slots, SPLITS)
    last = tl.minimum(slots, (part + 1) * span)
    dw = tl.zeros([UNITS, COLUMNS], tl.float32)
    db = tl.zeros([UNITS], tl.float32)
    for first in range(part * span, last, DEPTH):
        slot = (first + tl.arange(0, DEPTH)).to(tl.int64)[:, None]
        live = slot < last
        dz, dz_rest = load_split(slope + slot * HIDDEN + unit[None, :], slope_plane, live & known[None, :])
        f, f_rest = load_split(pooled + slot * WIDTH + column[None, :], pooled_plane, live & inside[None, :])
        dw = add_product(dw, tl.trans(dz), tl.trans(dz_rest), f, f_rest)
        if BIAS:
            db += tl.sum(dz.to(tl.float32) + dz_rest.to(tl.float32), 0)
    at = unit[:, None] * WIDTH + column[None, :]
    tl.store(weight_shares + part * HIDDEN * WIDTH + at, dw, mask=known[:, None] & inside[None, :])
    if BIAS:  # noqa: SIM102  (known when compiling)
        if tile % across == 0:
            tl.store(bias_shares + part * HIDDEN + unit, db, mask=known)


@triton.jit
def descend(
    weight, weight_shares, split_weight, weight_plane, bias, bias_shares, learning_rate, decay,
    SIZE: tl.constexpr, HIDDEN: tl.constexpr, BIAS: tl.constexpr, SHARES: tl.constexpr, BLOCK: tl.constexpr,
    TOGETHER: tl.constexpr,
):  # fmt: skip
    """Take W's and b's step by the shares of their gradient: a program has BLOCK numbers of each."""
    descend_block(
        weight, weight_shares, split_weight, weight_plane, bias, bias_shares, learning_rate, decay, tl.program_id(0),
        SIZE, HIDDEN, BIAS, SHARES, BLOCK, TOGETHER,
    )  # fmt: skip


@triton.jit
def descend_block(
    weight, weight_shares, split_weight, weight_plane, bias, bias_shares, learning_rate, decay, block,
    SIZE: tl.constexpr, HIDDEN: tl.constexpr, BIAS: tl.constexpr, SHARES: tl.constexpr, BLOCK: tl.constexpr,
    TOGETHER: tl.constexpr,
):  # fmt: skip
    """The step of BLOCK numbers of W, and as many of b.

    weight (SIZE,) is W in float32, changed in place; split_weight (2 planes, SIZE) gets it split. The shares
    (SHARES, SIZE) and (SHARES, HIDDEN) are added up TOGETHER at a time, in an order that is always the same.
    """
    at = block * BLOCK + tl.arange(0, BLOCK)
    inside = at < SIZE
    result = decay * tl.load(weight + at, mask=inside, other=0.0)
    result -= learning_rate * _add_up(weight_shares, at, inside, SIZE, SHARES, TOGETHER)
    tl.store(weight + at, result, mask=inside)
    store_split(split_weight + at, weight_plane, result, inside)
    if BIAS:
        known = at < HIDDEN
        result = decay * tl.load(bias + at, mask=known, other=0.0)
        result -= learning_rate * _add_up(bias_shares, at, known, HIDDEN, SHARES, TOGETHER)
        tl.store(bias + at, result, mask=known)


@triton.jit
def _add_up(shares, at, inside, SIZE: tl.constexpr, SHARES: tl.constexpr, TOGETHER: tl.constexpr):
    """The sum of shares (SHARES, SIZE) at some places."""
    total = tl.zeros([TOGETHER, at.shape[0]], tl.float32)
    for first in range(0, SHARES, TOGETHER):
        share = (first + tl.arange(0, TOGETHER))[:, None]
        total += tl.load(shares + share * SIZE + at[None, :], mask=(share < SHARES) & inside[None, :], other=0.0)
    return tl.sum(total, 0)
