"""The second half of a step, the gradients and who subtracts them, and the scratch memory of steps."""

from typing import NamedTuple

import numpy as np

from neural_brane.kernels.cpu.lanes import compiled, inlined
from neural_brane.kernels.cpu.products import multiply
from neural_brane.kernels.model import LANE, MAX, MEAN, Model, Settings, padded, zeros

# The scratch memory of the CPU's steps, allocated once per call of `train`. Rows are padded to whole lanes.

BLOCK_TRIPLETS = 25  # smaller blocks keep more threads busy, larger ones make faster matrix products
BLOCK_NODES = 60  # that a task takes at a time: their vectors stay in the first caches from pooling to product
SCORE_TRIPLETS = 128  # that a task scores
MAX_BLOCKS = 64
BUCKETS = 4096  # by which distinct nodes are sorted


class Layer(NamedTuple):
    """The ReLU layer, and its gradient in the shares of the blocks."""

    weight: np.ndarray  # W as it is now (hidden, dim)
    weight_transposed: np.ndarray  # (dim, hidden)
    weight_share: np.ndarray  # (blocks, hidden, dim)
    bias_share: np.ndarray  # (blocks, hidden)


class Vectors(NamedTuple):
    """A row for every slot of a batch or, in large batches, for every distinct node."""

    nodes: np.ndarray  # (rows,) int32
    pooled: np.ndarray  # f, then dL/df (rows, dim)
    hidden: np.ndarray  # h (rows, hidden)
    attribute_winner: np.ndarray  # (rows, padded d1) int32
    neighbour_winner: np.ndarray  # (rows, padded d2) int32


class SlotSpace(NamedTuple):
    """The arrays of a batch that is computed slot by slot."""

    layer: Layer
    vectors: Vectors  # hidden becomes dL/dz
    loss_share: np.ndarray  # (blocks,) float64


class NodeSlots(NamedTuple):
    """A batch's slots by node: distinct node v has the slots order[bounds[v]:bounds[v + 1]], from first to last."""

    vectors: np.ndarray  # (slots,) int32: which of the distinct nodes each slot holds
    order: np.ndarray  # (slots,) int32
    bounds: np.ndarray  # (rows + 2,) int32
    buckets: np.ndarray  # (BUCKETS + 1,) int32: where each bucket's slots begin
    places: np.ndarray  # (nodes of the graph,) int32: where a node is among the distinct ones; -1 between two steps


class NodeScratch(NamedTuple):
    """What the tasks of each pass need besides."""

    hidden_slope: np.ndarray  # dL/dz of some nodes (blocks, BLOCK_NODES, hidden)
    pulls: np.ndarray  # (batch,) float32: each triplet's slope of the loss by its margin
    loss_share: np.ndarray  # (tasks,) float64


class NodeSpace(NamedTuple):
    """The arrays of a batch that is computed node by node."""

    layer: Layer
    vectors: Vectors
    slots: NodeSlots
    scratch: NodeScratch


def pooled_width(model: Model, settings: Settings) -> int:
    """The row length of f: there is room for all columns of P, and for all columns of P' after the first d1."""
    return padded(max(model.attribute_table.shape[1], settings.attribute_dim + model.neighbour_table.shape[1]))


def slot_space(model: Model, settings: Settings, batch: int) -> SlotSpace:
    """The arrays for batches of `batch` triplets, with a copy of W."""
    blocks = min(MAX_BLOCKS, -(-batch // BLOCK_TRIPLETS))
    return SlotSpace(*_model_space(model, settings, blocks, 3 * batch), loss_share=np.empty(blocks))


def node_space(model: Model, settings: Settings, batch: int) -> NodeSpace:
    """The same for batches that are computed node by node."""
    nodes, slots = len(model.neighbour_table), 3 * batch
    rows = min(nodes, slots)
    blocks = min(MAX_BLOCKS, -(-rows // BLOCK_NODES))
    slots_by_node = NodeSlots(
        vectors=np.empty(slots, np.int32),
        order=np.empty(slots, np.int32),
        bounds=np.empty(rows + 2, np.int32),
        buckets=np.empty(BUCKETS + 1, np.int32),
        places=np.full(nodes, -1, np.int32),
    )
    scratch = NodeScratch(
        hidden_slope=np.empty((blocks, BLOCK_NODES, padded(len(model.weight))), np.float32),
        pulls=np.empty(batch, np.float32),
        loss_share=np.empty(-(-batch // SCORE_TRIPLETS)),
    )
    return NodeSpace(*_model_space(model, settings, blocks, rows), slots_by_node, scratch)


def _model_space(model: Model, settings: Settings, blocks: int, rows: int) -> tuple[Layer, Vectors]:
    hidden, dim = model.weight.shape
    width = pooled_width(model, settings)
    weight, transposed = zeros(hidden, width), zeros(dim, padded(hidden))
    weight[:, :dim], transposed[:, :hidden] = model.weight, model.weight.T
    layer = Layer(
        weight=weight,
        weight_transposed=transposed,
        weight_share=np.empty((blocks, hidden, width), np.float32),
        bias_share=np.empty((blocks, hidden), np.float32),
    )
    return layer, Vectors(
        nodes=np.empty(rows, np.int32),
        pooled=zeros(rows, width),
        hidden=zeros(rows, padded(hidden)),
        attribute_winner=np.empty((rows, model.attribute_table.shape[1]), np.int32),
        neighbour_winner=np.empty((rows, model.neighbour_table.shape[1]), np.int32),
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
def propagate(layer, settings, slopes, pooled, block, add):
    """From dL/dz = slopes (k, ≥ hidden) of some vectors to the block's share of W's and b's gradient, and to dL/df.

    dL/df takes the place of f = pooled (k, dim). With add, the block's share grows by that of these vectors.
    """
    hidden = layer.weight.shape[0]
    inner = slopes[:, :hidden]
    multiply(inner.T, pooled, layer.weight_share[block], add)
    if settings.table_rate > 0:
        multiply(inner, layer.weight, pooled, False)
    if settings.train_bias:
        if not add:
            for k in range(hidden):
                layer.bias_share[block, k] = 0
        for row in range(len(slopes)):
            for k in range(hidden):
                layer.bias_share[block, k] += slopes[row, k]


@inlined
def update_tasks(model, threads):
    """How many tasks `update` has, and among how many of them the rows of a lane of columns are divided."""
    lanes = (model.attribute_table.shape[1] + model.neighbour_table.shape[1]) // LANE
    parts = -(-threads // max(lanes, 1))
    return lanes * parts + WEIGHT_TASKS, parts


@inlined
def update(model, bags, settings, scale, layer, vectors, count, task, parts):
    """One task: some columns and rows of a table, by the gradients of `count` vectors, or some rows of W."""
    d1, dim = settings.attribute_dim, model.weight.shape[1]
    attribute_lanes = model.attribute_table.shape[1] // LANE
    lane, part = task // parts, task % parts
    lane_of_neighbours = lane - attribute_lanes
    weight_task = task - parts * (attribute_lanes + model.neighbour_table.shape[1] // LANE)
    if settings.table_rate == 0 and weight_task < 0:  # rows that stay as they are
        return
    if lane < attribute_lanes:
        _update_table(
            model.attribute_table, bags[0], settings, scale, vectors, vectors.attribute_winner,
            count, lane * LANE, np.int64(0), d1, part, parts,
        )  # fmt: skip
    elif weight_task < 0:
        _update_table(
            model.neighbour_table, bags[1], settings, scale, vectors, vectors.neighbour_winner,
            count, lane_of_neighbours * LANE, d1, dim, part, parts,
        )  # fmt: skip
    else:
        _update_weight(model, settings, layer, weight_task)


@compiled
def _update_table(table, bags, settings, scale, vectors, winner, count, column, first, last, part, parts):
    """Subtract the gradients of all vectors, in order, from LANE columns of one part of a table's rows.

    The table's gradients are columns first to last of what is now in vectors.pooled.
    """
    # Unsigned, because Numba tests signed indices for negative values; and -1, no row, is then beyond every part.
    columns = np.uint64(min(LANE, last - first - column))
    at, column = np.uint64(first + column), np.uint64(column)
    low = part * len(table) // parts
    rows = np.uint64((part + 1) * len(table) // parts - low)
    rate = np.float32(settings.table_rate / scale)
    for vector in range(np.uint64(count)):
        if settings.pooling == MAX:
            for c in range(columns):
                row = winner[vector, column + c]
                if np.uint64(row - low) < rows:
                    table[np.uint64(row), column + c] -= rate * vectors.pooled[vector, at + c]
            continue
        node = vectors.nodes[vector]
        start, stop = bags.indptr[node], bags.indptr[node + 1]
        share = rate / np.float32(stop - start) if settings.pooling == MEAN else rate
        for k in range(start, stop):
            row = bags.indices[k]
            if np.uint64(row - low) < rows:
                for c in range(columns):
                    table[row, column + c] -= share * vectors.pooled[vector, at + c]


@inlined
def _update_weight(model, settings, layer, task):
    """Add up the blocks' shares in order and update this task's rows of W and b."""
    hidden, dim = model.weight.shape
    rate = np.float32(settings.learning_rate)
    decay = np.float32(1 - 2 * settings.learning_rate * settings.parameter_l2)
    for k in range(task * hidden // WEIGHT_TASKS, (task + 1) * hidden // WEIGHT_TASKS):
        for block in range(1, layer.weight_share.shape[0]):
            for c in range(dim):
                layer.weight_share[0, k, c] += layer.weight_share[block, k, c]
        for c in range(dim):
            layer.weight[k, c] = decay * layer.weight[k, c] - rate * layer.weight_share[0, k, c]
            layer.weight_transposed[c, k] = layer.weight[k, c]
        if settings.train_bias:
            slope = np.float32(0)
            for block in range(layer.bias_share.shape[0]):
                slope += layer.bias_share[block, k]
            model.bias[k] = decay * model.bias[k] - rate * slope


@inlined
def settle(model, scale, is_last):
    """Multiply the tables by their common factor where it has become small, or at the end; returns the factor left."""
    if scale >= SMALLEST_SCALE and (scale == 1 or not is_last):
        return scale
    for table in (model.attribute_table, model.neighbour_table):
        for row in range(len(table)):
            for c in range(table.shape[1]):
                table[row, c] *= scale
    return np.float32(1)
