"""The second half of a step, the gradients and who subtracts them, and the scratch memory of steps."""

from typing import NamedTuple

import numpy as np

from neural_brane.kernels.cpu.lanes import compiled, inlined
from neural_brane.kernels.cpu.pooling import Side
from neural_brane.kernels.cpu.products import multiply
from neural_brane.kernels.model import LANE, MAX, MEAN, Model, Settings, padded, zeros

# The scratch memory of the CPU's steps, allocated once per call of `train`. Rows are padded to whole lanes.

BLOCK_TRIPLETS = 25  # smaller blocks keep more threads busy, larger ones make faster matrix products
BLOCK_NODES = 60  # that a task takes at a time: their vectors stay in the first caches from pooling to product
SCORE_TRIPLETS = 128  # that a task scores
MAX_BLOCKS = 64
BUCKETS = 4096  # by which distinct nodes are sorted


class Space(NamedTuple):
    """W and b, and the scratch arrays of steps. A vector is a slot's or, in large batches, a distinct node's."""

    bias: np.ndarray  # b (hidden,), the model's own
    weight: np.ndarray  # W as it is now (hidden, dim)
    weight_transposed: np.ndarray  # (dim, hidden)
    weight_share: np.ndarray  # W's gradient in the shares of the blocks (blocks, hidden, dim)
    bias_share: np.ndarray  # (blocks, hidden)
    loss_share: np.ndarray  # (tasks,) float64
    nodes: np.ndarray  # (vectors,) int32
    pooled: np.ndarray  # f, then dL/df (vectors, dim)
    hidden: np.ndarray  # h (vectors, hidden); slot by slot it becomes dL/dz

    # The rest is for large batches alone. Distinct node v has the slots order[bounds[v]:bounds[v + 1]], in order.
    slot_vectors: np.ndarray  # (slots,) int32: which of the distinct nodes each slot holds
    order: np.ndarray  # (slots,) int32
    bounds: np.ndarray  # (vectors + 2,) int32
    buckets: np.ndarray  # (BUCKETS + 1,) int32: where each bucket's slots begin
    places: np.ndarray  # (nodes of the graph,) int32: where a node is among the distinct ones; -1 between two steps
    hidden_slope: np.ndarray  # dL/dz of some nodes (blocks, BLOCK_NODES, hidden)
    pulls: np.ndarray  # (batch,) float32: each triplet's slope of the loss by its margin


class Step(NamedTuple):
    """One step as its tasks see it. The tables hold P / scale."""

    attributes: Side
    neighbours: Side
    space: Space
    settings: Settings
    scale: np.float32
    vectors: int  # of the batch
    threads: int


def pooled_width(model: Model, settings: Settings) -> int:
    """The row length of f: there is room for all columns of P, and for all columns of P' after the first d1."""
    return padded(max(model.attribute_table.shape[1], settings.attribute_dim + model.neighbour_table.shape[1]))


def slot_space(model: Model, settings: Settings, batch: int) -> Space:
    """The arrays for batches of `batch` triplets that are computed slot by slot, with a copy of W."""
    blocks = min(MAX_BLOCKS, -(-batch // BLOCK_TRIPLETS))
    return _space(model, settings, vectors=3 * batch, blocks=blocks, tasks=blocks)


def node_space(model: Model, settings: Settings, batch: int) -> Space:
    """The same for batches that are computed node by node."""
    nodes, slots = len(model.neighbour_table), 3 * batch
    vectors = min(nodes, slots)
    blocks = min(MAX_BLOCKS, -(-vectors // BLOCK_NODES))
    space = _space(model, settings, vectors=vectors, blocks=blocks, tasks=-(-batch // SCORE_TRIPLETS))
    return space._replace(
        slot_vectors=np.empty(slots, np.int32),
        order=np.empty(slots, np.int32),
        bounds=np.empty(vectors + 2, np.int32),
        buckets=np.empty(BUCKETS + 1, np.int32),
        places=np.full(nodes, -1, np.int32),
        hidden_slope=np.empty((blocks, BLOCK_NODES, padded(len(model.weight))), np.float32),
        pulls=np.empty(batch, np.float32),
    )


def _space(model: Model, settings: Settings, *, vectors: int, blocks: int, tasks: int) -> Space:
    hidden, dim = model.weight.shape
    width, none = pooled_width(model, settings), np.empty(0, np.int32)
    weight, transposed = zeros(hidden, width), zeros(dim, padded(hidden))
    weight[:, :dim], transposed[:, :hidden] = model.weight, model.weight.T
    return Space(
        bias=model.bias,
        weight=weight,
        weight_transposed=transposed,
        weight_share=np.empty((blocks, hidden, width), np.float32),
        bias_share=np.empty((blocks, hidden), np.float32),
        loss_share=np.empty(tasks),
        nodes=np.empty(vectors, np.int32),
        pooled=zeros(vectors, width),
        hidden=zeros(vectors, padded(hidden)),
        slot_vectors=none,
        order=none,
        bounds=none,
        buckets=none,
        places=none,
        hidden_slope=np.empty((0, 0, 0), np.float32),
        pulls=np.empty(0, np.float32),
    )


# The second half of a step: the gradients by W and f, and who subtracts which of them.
#
# A task writes some columns of some rows of one table, or some rows of W, and adds up in the order of the vectors or of
# the blocks. So no two threads write the same number, and every sum has one order.

WEIGHT_TASKS = 4  # that share the rows of W
SMALLEST_SCALE = 0.25  # of the tables' common factor


@inlined
def deal(place, tasks, threads):
    """The task at a place, of which there are as many as tasks, rounded up to a multiple of threads.

    Numba gives each thread a run of neighbouring places. Dealt like cards, tasks of unequal length are shared fairly.
    """
    each = -(-tasks // threads)
    return (place % each) * threads + place // each


@inlined
def mean(shares, count):
    """The sum of the shares, in order, divided by count."""
    total = 0.0
    for share in shares:
        total += share
    return total / count


@inlined
def score_margin(margin, settings):
    """−ln σ of a triplet's margin h_u · (h_i − h_j), and the slope of the batch's loss by it as a float32."""
    decay = np.exp(-abs(np.float64(margin)))
    loss = np.log1p(decay) + max(-np.float64(margin), 0.0)
    return loss, np.float32(-settings.triplet_scale * (decay if margin > 0 else 1.0) / (1 + decay))


@inlined
def propagate(space, settings, slopes, pooled, block, add):
    """From dL/dz = slopes (k, ≥ hidden) of some vectors to the block's share of W's and b's gradient, and to dL/df.

    dL/df takes the place of f = pooled (k, dim). With add, the block's share grows by that of these vectors.
    """
    hidden = len(space.bias)
    inner = slopes[:, :hidden]
    multiply(inner.T, pooled, space.weight_share[block], add)
    if settings.table_rate > 0:
        multiply(inner, space.weight, pooled, False)
    if settings.train_bias:
        if not add:
            for k in range(hidden):
                space.bias_share[block, k] = 0
        for row in range(len(slopes)):
            for k in range(hidden):
                space.bias_share[block, k] += slopes[row, k]


@inlined
def update_tasks(attributes, neighbours, threads):
    """How many tasks `update` has, and among how many of them the rows of a lane of columns are divided."""
    lanes = (attributes.table.shape[1] + neighbours.table.shape[1]) // LANE
    parts = -(-threads // max(lanes, 1))
    return lanes * parts + WEIGHT_TASKS, parts


class Cut(NamedTuple):
    """The part of a table that one task updates: LANE columns, and a part of the rows."""

    column: int  # the first one
    part: int
    parts: int


@inlined
def update(step, task):
    """One task: some columns and rows of a table, by the gradients of the step's vectors, or some rows of W."""
    attributes, neighbours, settings = step.attributes, step.neighbours, step.settings
    parts = update_tasks(attributes, neighbours, step.threads)[1]
    attribute_lanes = attributes.table.shape[1] // LANE
    lane = task // parts
    weight_task = task - parts * (attribute_lanes + neighbours.table.shape[1] // LANE)
    if weight_task >= 0:
        _update_weight(step.space, neighbours.last, settings, weight_task)
    elif settings.table_rate > 0:  # else the rows stay as they are
        if lane < attribute_lanes:
            cut = Cut(lane * LANE, task % parts, parts)
            _update_table(attributes, step.space, settings, step.scale, step.vectors, cut)
        else:
            cut = Cut((lane - attribute_lanes) * LANE, task % parts, parts)
            _update_table(neighbours, step.space, settings, step.scale, step.vectors, cut)


@compiled
def _update_table(side, space, settings, scale, count, cut):
    """Subtract the gradients of the first `count` vectors, in order, from LANE columns of one part of a table's rows.

    The table's gradients are in its columns of space.pooled.
    """
    table, pooled = side.table, space.pooled
    # Unsigned, because Numba tests signed indices for negative values; and -1, no row, is then beyond every part.
    columns = np.uint64(min(LANE, side.last - side.first - cut.column))
    at, column = np.uint64(side.first + cut.column), np.uint64(cut.column)
    low = cut.part * len(table) // cut.parts
    rows = np.uint64((cut.part + 1) * len(table) // cut.parts - low)
    rate = np.float32(settings.table_rate / scale)
    for vector in range(np.uint64(count)):
        if settings.pooling == MAX:
            for c in range(columns):
                row = side.winner[vector, column + c]
                if np.uint64(row - low) < rows:
                    table[np.uint64(row), column + c] -= rate * pooled[vector, at + c]
            continue
        node = space.nodes[vector]
        start, stop = side.indptr[node], side.indptr[node + 1]
        share = rate / np.float32(stop - start) if settings.pooling == MEAN else rate
        for k in range(start, stop):
            row = side.indices[k]
            if np.uint64(row - low) < rows:
                for c in range(columns):
                    table[row, column + c] -= share * pooled[vector, at + c]


@inlined
def _update_weight(space, dim, settings, task):
    """Add up the blocks' shares in order and update this task's rows of W and b."""
    hidden, share = len(space.bias), space.weight_share
    rate = np.float32(settings.learning_rate)
    decay = np.float32(1 - 2 * settings.learning_rate * settings.parameter_l2)
    for k in range(task * hidden // WEIGHT_TASKS, (task + 1) * hidden // WEIGHT_TASKS):
        for block in range(1, len(share)):
            for c in range(dim):
                share[0, k, c] += share[block, k, c]
        for c in range(dim):
            space.weight[k, c] = decay * space.weight[k, c] - rate * share[0, k, c]
            space.weight_transposed[c, k] = space.weight[k, c]
        if settings.train_bias:
            slope = np.float32(0)
            for block in range(len(space.bias_share)):
                slope += space.bias_share[block, k]
            space.bias[k] = decay * space.bias[k] - rate * slope


@inlined
def settle(attributes, neighbours, scale, is_last):
    """Multiply the tables by their common factor where it has become small, or at the end; returns the factor left."""
    if scale >= SMALLEST_SCALE and (scale == 1 or not is_last):
        return scale
    for table in (attributes.table, neighbours.table):
        for row in range(len(table)):
            for c in range(table.shape[1]):
                table[row, c] *= scale
    return np.float32(1)
