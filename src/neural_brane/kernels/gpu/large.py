"""Train on large batches with launches over all vectors; memory and matrix units limit the speed."""

from typing import NamedTuple, cast

import torch
import triton
import triton.language as tl

from neural_brane.kernels.gpu.bundles import (
    DEPTH,
    HALF,
    INTERPRETED,
    Change,
    Slope,
    Split,
    add_product,
    load_split,
    losses_of,
    slopes_of,
    store_split,
)
from neural_brane.kernels.gpu.layer import Context, LayerStep, Scatter
from neural_brane.kernels.gpu.pool import NodePlan
from neural_brane.kernels.model import Array

ROWS, COLUMNS, TAIL, WARPS, STAGES = 128, 128, 32, 4, 3  # tile of a product, its warps and stages of loads
TRIPLETS = 4  # triplets per program
WEIGHT_UNITS, WEIGHT_COLUMNS, WEIGHT_WARPS, WEIGHT_STAGES = 64, 64, 4, 4
SHARES = 2 if INTERPRETED else 44  # shares of W's gradient
TOGETHER, NODE_WARPS = 2, 1  # slots or pieces of a node read at a time, warps per program


class Factor(NamedTuple):
    """The right factor of a product: W or its transpose, depending on the strides."""

    split: Split
    depth_stride: int
    column_stride: int


class Hidden(NamedTuple):
    """The hidden layer of every vector before b and ReLU are applied."""

    product: Array  # W f (vectors, hidden) float32
    bias: Array  # b (hidden,) float32


class ProductTiles(NamedTuple):
    """Compile-time options of a product."""

    depths: int  # inner dimension
    width: int  # columns of the result
    rows: int
    columns: int
    tail: int  # additional columns per program, which can save a second read of the left factor
    depth: int  # inner dimension per iteration


class TripletTiles(NamedTuple):
    """Compile-time options of the kernels for the loss and its derivatives."""

    hidden: int
    units: int  # hidden, rounded up to a power of two
    rows: int  # triplets, slots or pieces that a program reads at a time


class WeightTiles(NamedTuple):
    """Compile-time options of the kernel for W's gradient."""

    width: int
    hidden: int
    bias: bool
    shares: int
    units: int = WEIGHT_UNITS
    columns: int = WEIGHT_COLUMNS
    depth: int = DEPTH


class LargeLayer(LayerStep):
    """The launches of a step at large batches."""

    def __init__(self, context: Context):
        super().__init__(context, shares=SHARES)
        shape, settings, empty = context.shape, context.settings, context.allocate
        self.tiles = TripletTiles(shape.hidden, triton.next_power_of_2(shape.hidden), TRIPLETS)
        self.hidden = Hidden(empty(self.vectors, shape.hidden), self.arrays.bias)
        self.dz = Split.of(empty(2, self.vectors, shape.hidden, dtype=HALF))  # dL/dz
        self.losses = empty(context.plan.steps, triton.cdiv(self.batch, TRIPLETS))
        self.slope = Slope(settings.triplet_scale, 2 * settings.hidden_l2)
        self.scatter = Scatter(context) if context.scatter else None

    def step(self, step: int, rate: float) -> None:
        """Launch the hidden layer and dL/dz, then the gradients and updates of W, b and the tables."""
        shape, bias = self.context.shape, self.context.settings.train_bias
        width = shape.width
        self._multiply(self.pooled, Factor(self.arrays.split, depth_stride=1, column_stride=width), self.hidden.product)
        self._differentiate(step)
        tiles = triton.cdiv(shape.hidden, WEIGHT_UNITS) * triton.cdiv(width, WEIGHT_COLUMNS)
        add_gradients[tiles * SHARES,](
            self.pooled, self.dz, self.arrays, self.vectors, TILES=WeightTiles(width, shape.hidden, bias, SHARES),
            num_warps=WEIGHT_WARPS, num_stages=WEIGHT_STAGES,
        )  # fmt: skip
        if self.context.settings.table_rate > 0:
            self._multiply(self.dz, Factor(self.arrays.split, depth_stride=width, column_stride=1), self.gradient)
        self.descend()
        if self.scatter:
            self.scatter(Change(self.gradient, self.winner, rate))

    def _differentiate(self, step: int) -> None:
        """Launch the kernel that computes dL/dz from W f."""
        differentiate[self.losses.shape[1],](
            self.hidden, self.dz, self.losses[step], self.batch, self.slope, TILES=self.tiles
        )

    def _multiply(self, left: Split, right: Factor, result: torch.Tensor) -> None:
        """Launch result = left × right."""
        width = result.shape[1]
        columns = min(COLUMNS, triton.next_power_of_2(width))
        tail = TAIL if triton.cdiv(width, columns + TAIL) < triton.cdiv(width, columns) else 0
        multiply[triton.cdiv(width, columns + tail), triton.cdiv(self.vectors, ROWS)](
            left, right, result, self.vectors,
            TILES=ProductTiles(left.data.shape[2], width, ROWS, columns, tail, DEPTH),
            num_warps=WARPS, num_stages=STAGES,
        )  # fmt: skip


class NodeLayer(LargeLayer):
    """The launches at large batches with one vector per node; the gradients of a node's slots are summed."""

    def __init__(self, context: Context):
        super().__init__(context)
        self.plan = cast(NodePlan, context.plan)
        self.pulls = context.allocate(self.batch)
        self.sums = context.allocate(self.plan.most_pieces, context.shape.hidden)

    def _differentiate(self, step: int) -> None:
        """Launch the kernels that compute dL/dz from W f."""
        slots, tiles = self.plan.slots_by_node(step), self.tiles._replace(rows=TOGETHER)
        score[self.losses.shape[1],](
            self.hidden, slots, self.pulls, self.losses[step], self.slope, TILES=self.tiles
        )  # fmt: skip
        add_pulls[self.plan.most_pieces,](
            self.hidden, slots, self.pulls, self.sums, TILES=tiles, num_warps=NODE_WARPS
        )  # fmt: skip
        slope_of_nodes[self.vectors,](
            self.hidden, slots, self.sums, self.dz, self.slope, TILES=tiles, num_warps=NODE_WARPS
        )  # fmt: skip


@triton.jit
def multiply(left, right, result, rows, TILES: tl.constexpr):
    """Write left (`Split`) × right (`Factor`) to result (rows, width) float32."""
    ROWS: tl.constexpr = TILES.rows
    COLUMNS: tl.constexpr = TILES.columns
    TAIL: tl.constexpr = TILES.tail
    row = (tl.program_id(1) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    first_column = tl.program_id(0) * (COLUMNS + TAIL)
    column = first_column + tl.arange(0, COLUMNS)[None, :]
    live = row < rows
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    if TAIL > 0:
        tail_column = first_column + COLUMNS + tl.arange(0, TAIL)[None, :]
        tail = tl.zeros([ROWS, TAIL], tl.float32)
    for first in range(0, TILES.depths, TILES.depth):
        depth = first + tl.arange(0, TILES.depth)
        at = right.split.data + depth[:, None] * right.depth_stride
        x, x_rest = load_split(left.data + row * TILES.depths + depth[None, :], left.plane, live)
        y, y_rest = load_split(at + column * right.column_stride, right.split.plane, column < TILES.width)
        total = add_product(total, x, x_rest, y, y_rest)
        if TAIL > 0:
            places = at + tail_column * right.column_stride
            y, y_rest = load_split(places, right.split.plane, tail_column < TILES.width)
            tail = add_product(tail, x, x_rest, y, y_rest)
    tl.store(result + row * TILES.width + column, total, mask=live & (column < TILES.width))
    if TAIL > 0:
        tl.store(result + row * TILES.width + tail_column, tail, mask=live & (tail_column < TILES.width))


@triton.jit
def load_bias(hidden, unit, HIDDEN: tl.constexpr):
    """Return b of hidden units `unit`."""
    return tl.load(hidden.bias + unit, mask=unit < HIDDEN, other=0.0)


@triton.jit
def load_hidden(hidden, row, unit, bias, inside, HIDDEN: tl.constexpr):
    """Return h of vectors `row`, from hidden (`Hidden`)."""
    place = hidden.product + row.to(tl.int64)[:, None] * HIDDEN + unit
    return tl.maximum(tl.load(place, mask=inside, other=0.0) + bias, 0.0)


@triton.jit
def differentiate(hidden, dz, losses, batch, slope, TILES: tl.constexpr):
    """Write dL/dz (`Split`) of the slots of TILES.rows triplets from hidden (`Hidden`), and sums of −ln σ to losses."""
    HIDDEN: tl.constexpr = TILES.hidden
    triplet = tl.program_id(0) * TILES.rows + tl.arange(0, TILES.rows)
    unit = tl.arange(0, TILES.units)[None, :]
    inside = (triplet < batch)[:, None] & (unit < HIDDEN)
    b = load_bias(hidden, unit, HIDDEN)
    u = load_hidden(hidden, 3 * triplet, unit, b, inside, HIDDEN)
    i = load_hidden(hidden, 3 * triplet + 1, unit, b, inside, HIDDEN)
    j = load_hidden(hidden, 3 * triplet + 2, unit, b, inside, HIDDEN)
    pull = score_triplets(u, i, j, triplet < batch, slope.triplet_scale, losses)[:, None]
    at = dz.data + 3 * triplet.to(tl.int64)[:, None] * HIDDEN + unit
    store_split(at, dz.plane, tl.where(u > 0, pull * (i - j) + slope.shrink * u, 0.0), inside)
    store_split(at + HIDDEN, dz.plane, tl.where(i > 0, pull * u + slope.shrink * i, 0.0), inside)
    store_split(at + 2 * HIDDEN, dz.plane, tl.where(j > 0, slope.shrink * j - pull * u, 0.0), inside)


@triton.jit
def score_triplets(u, i, j, live, triplet_scale, losses):
    """Return the derivatives of the loss by the margins of a program's triplets; write their sum of −ln σ to losses."""
    margin = tl.sum(u * (i - j), 1)
    decay = tl.exp(-tl.abs(margin))
    tl.store(losses + tl.program_id(0), tl.sum(tl.where(live, losses_of(margin, decay), 0.0), 0))
    return slopes_of(margin, decay, triplet_scale)


@triton.jit
def add_gradients(pooled, dz, layer, vectors, TILES: tl.constexpr):
    """Write dL/dW = dL/dzᵀ f and dL/db, summed over one of TILES.shares parts of the vectors, to layer's shares."""
    UNITS: tl.constexpr = TILES.units
    COLUMNS: tl.constexpr = TILES.columns
    ACROSS: tl.constexpr = (TILES.width + COLUMNS - 1) // COLUMNS
    share, tile = tl.program_id(0) % TILES.shares, tl.program_id(0) // TILES.shares
    unit = tile // ACROSS * UNITS + tl.arange(0, UNITS)
    column = tile % ACROSS * COLUMNS + tl.arange(0, COLUMNS)
    known, inside = unit < TILES.hidden, column < TILES.width
    span = tl.cdiv(vectors, TILES.shares)
    last = tl.minimum(vectors, (share + 1) * span)
    dw = tl.zeros([UNITS, COLUMNS], tl.float32)
    db = tl.zeros([UNITS], tl.float32)
    for first in range(share * span, last, TILES.depth):
        slot = (first + tl.arange(0, TILES.depth)).to(tl.int64)[:, None]
        live = slot < last
        z, z_rest = load_split(dz.data + slot * TILES.hidden + unit[None, :], dz.plane, live & known[None, :])
        places = pooled.data + slot * TILES.width + column[None, :]
        f, f_rest = load_split(places, pooled.plane, live & inside[None, :])
        dw = add_product(dw, tl.trans(z), tl.trans(z_rest), f, f_rest)
        if TILES.bias:
            db += tl.sum(z.to(tl.float32) + z_rest.to(tl.float32), 0)
    at = unit[:, None] * TILES.width + column[None, :]
    places = layer.weight_shares + share * TILES.hidden * TILES.width + at
    tl.store(places, dw, mask=known[:, None] & inside[None, :])
    if TILES.bias:  # noqa: SIM102  (known when compiling)
        if tile % ACROSS == 0:
            tl.store(layer.bias_shares + share * TILES.hidden + unit, db, mask=known)


# A large batch with clearly more slots than the graph has nodes computes one vector per node.


@triton.jit
def score(hidden, slots, pulls, losses, slope, TILES: tl.constexpr):
    """Write the derivative of the loss by each triplet's margin to pulls (batch,) float32, sums of −ln σ to losses."""
    HIDDEN: tl.constexpr = TILES.hidden
    triplet = tl.program_id(0) * TILES.rows + tl.arange(0, TILES.rows)
    unit = tl.arange(0, TILES.units)[None, :]
    known = triplet < slots.triplets
    inside = known[:, None] & (unit < HIDDEN)
    b = load_bias(hidden, unit, HIDDEN)
    u = load_hidden(hidden, tl.load(slots.nodes + 3 * triplet, mask=known, other=0), unit, b, inside, HIDDEN)
    i = load_hidden(hidden, tl.load(slots.nodes + 3 * triplet + 1, mask=known, other=0), unit, b, inside, HIDDEN)
    j = load_hidden(hidden, tl.load(slots.nodes + 3 * triplet + 2, mask=known, other=0), unit, b, inside, HIDDEN)
    tl.store(pulls + triplet, score_triplets(u, i, j, known, slope.triplet_scale, losses), mask=known)


@triton.jit
def add_pulls(hidden, slots, pulls, sums, TILES: tl.constexpr):
    """Write the gradient by a node's hidden vector, summed over one piece of its slots, to sums (pieces, hidden).

    A program has one piece and reads TILES.rows slots at a time. The gradient by h_u is pull · (h_i − h_j), by h_i it
    is pull · h_u, and by h_j it is −pull · h_u.
    """
    HIDDEN: tl.constexpr = TILES.hidden
    SLOTS: tl.constexpr = TILES.rows
    UNITS: tl.constexpr = TILES.units
    piece = tl.program_id(0)
    start, last = tl.load(slots.pieces + piece), tl.load(slots.pieces + piece + 1)
    if start == last:
        return
    unit = tl.arange(0, UNITS)[None, :]
    b = load_bias(hidden, unit, HIDDEN)
    total = tl.zeros([SLOTS, UNITS], tl.float32)
    for first in range(start, last, SLOTS):
        place = first + tl.arange(0, SLOTS)
        live = place < last
        slot = tl.load(slots.order + place, mask=live, other=0)
        triplet, is_u = slot // 3, slot % 3 == 0
        pull = tl.load(pulls + triplet, mask=live, other=0.0)
        pull = tl.where(slot % 3 == 2, -pull, pull)[:, None]
        other = tl.load(slots.nodes + 3 * triplet + tl.where(is_u, 1, 0), mask=live, other=0)
        j = tl.load(slots.nodes + 3 * triplet + 2, mask=live & is_u, other=0)
        h = load_hidden(hidden, other, unit, b, live[:, None] & (unit < HIDDEN), HIDDEN)
        h_j = load_hidden(hidden, j, unit, b, (live & is_u)[:, None] & (unit < HIDDEN), HIDDEN)
        total += pull * tl.where(is_u[:, None], h - h_j, h)
    tl.store(sums + piece.to(tl.int64) * HIDDEN + unit, tl.sum(total, 0)[None, :], mask=unit < HIDDEN)


@triton.jit
def slope_of_nodes(hidden, slots, sums, dz, slope, TILES: tl.constexpr):
    """Write dL/dz of each node, from the sums of its pieces, to dz (`Split`; nodes, hidden); one program per node."""
    HIDDEN: tl.constexpr = TILES.hidden
    PIECES: tl.constexpr = TILES.rows
    UNITS: tl.constexpr = TILES.units
    node = tl.program_id(0)
    start, last = tl.load(slots.bounds + node), tl.load(slots.bounds + node + 1)
    unit = tl.arange(0, UNITS)[None, :]
    inside = unit < HIDDEN
    total = tl.zeros([PIECES, UNITS], tl.float32)
    for first in range(start, last, PIECES):
        piece = first + tl.arange(0, PIECES)[:, None]
        total += tl.load(sums + piece.to(tl.int64) * HIDDEN + unit, mask=(piece < last) & inside, other=0.0)
    count = tl.load(slots.pieces + last) - tl.load(slots.pieces + start)
    at = node.to(tl.int64) * HIDDEN + unit
    h = tl.maximum(tl.load(hidden.product + at, mask=inside, other=0.0) + load_bias(hidden, unit, HIDDEN), 0.0)
    gradient = tl.sum(total, 0)[None, :] + slope.shrink * count * h
    store_split(dz.data + at, dz.plane, tl.where(h > 0, gradient, 0.0), inside)
