"""Take training steps on the CPU: scratch memory, the passes of small and large batches, and the updates."""

from typing import NamedTuple

import numpy as np
from numba import prange

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.cpu.lanes import (
    Side,
    compiled,
    fill,
    if_greater,
    inlined,
    load,
    multiply,
    multiply_add,
    pool,
    prefetch_bag,
    prefetch_indices,
    prefetch_row,
    store,
    total,
)
from neural_brane.kernels.model import LANE, MAX, MEAN, Model, Settings, padded, zeros

# The scratch memory of steps, allocated once per trainer. Rows are padded to whole lanes.

BLOCK_TRIPLETS = 25  # smaller blocks keep more threads busy, larger ones make faster matrix products
BLOCK_NODES = 60  # nodes per task: their vectors stay in the first caches from pooling to product
SCORE_TRIPLETS = 128  # triplets per scoring task
MAX_BLOCKS = 64
BUCKETS = 4096  # buckets for sorting distinct nodes


class Space(NamedTuple):
    """W, b and scratch arrays, float32 by default. A vector belongs to a slot or, in large batches, to a node."""

    bias: np.ndarray  # b (hidden,), shared with the model
    weight: np.ndarray  # current W (hidden, dim)
    weight_transposed: np.ndarray  # (dim, hidden)
    weight_share: np.ndarray  # each block's share of W's gradient (blocks, hidden, dim)
    bias_share: np.ndarray  # each block's share of b's gradient (blocks, hidden)
    loss_share: np.ndarray  # (tasks,) float64
    nodes: np.ndarray  # (vectors,) int32: node of each vector
    pooled: np.ndarray  # f, overwritten by dL/df (vectors, dim)
    hidden: np.ndarray  # h (vectors, hidden); in small batches overwritten by dL/dz

    # Only large batches use the rest. Distinct node v has the slots order[bounds[v]:bounds[v + 1]], in order.
    slot_vectors: np.ndarray  # (slots,) int32: vector of each slot
    order: np.ndarray  # (slots,) int32: slots sorted by vector
    bounds: np.ndarray  # (vectors + 2,) int32
    buckets: np.ndarray  # (BUCKETS + 1,) int32: start of each bucket's slots
    places: np.ndarray  # (nodes of the graph,) int32: vector of each node; -1 between steps
    hidden_slope: np.ndarray  # dL/dz for some nodes (blocks, BLOCK_NODES, hidden)
    pulls: np.ndarray  # (batch,) float32: derivative of the loss by each triplet's margin


class Step(NamedTuple):
    """The arguments of a step's tasks. The tables contain P / scale."""

    attributes: Side
    neighbours: Side
    space: Space
    settings: Settings
    scale: np.float32
    vectors: int  # number of vectors in the batch
    threads: int


def pooled_width(model: Model, settings: Settings) -> int:
    """Return the row length of f, with room for all columns of P, and for all columns of P' after the first d1."""
    return padded(max(model.attribute_table.shape[1], settings.attribute_dim + model.neighbour_table.shape[1]))


def make_space(model: Model, settings: Settings, batch: int, *, by_node: bool) -> Space:
    """Return the arrays for batches of `batch` triplets, with a copy of W; by_node: one vector per distinct node."""
    (hidden, dim), nodes, slots = model.weight.shape, len(model.neighbour_table), 3 * batch
    vectors = min(nodes, slots) if by_node else slots
    blocks = min(MAX_BLOCKS, -(-vectors // BLOCK_NODES) if by_node else -(-batch // BLOCK_TRIPLETS))
    width = pooled_width(model, settings)
    weight, transposed = zeros(hidden, width), zeros(dim, padded(hidden))
    weight[:, :dim], transposed[:, :hidden] = model.weight, model.weight.T
    return Space(
        bias=model.bias,
        weight=weight,
        weight_transposed=transposed,
        weight_share=np.empty((blocks, hidden, width), np.float32),
        bias_share=np.empty((blocks, hidden), np.float32),
        loss_share=np.empty(-(-batch // SCORE_TRIPLETS) if by_node else blocks),
        nodes=np.empty(vectors, np.int32),
        pooled=zeros(vectors, width),
        hidden=zeros(vectors, padded(hidden)),
        slot_vectors=np.empty(by_node * slots, np.int32),
        order=np.empty(by_node * slots, np.int32),
        bounds=np.empty(by_node * (vectors + 2), np.int32),
        buckets=np.empty(by_node * (BUCKETS + 1), np.int32),
        places=np.full(by_node * nodes, -1, np.int32),
        hidden_slope=np.empty((by_node * blocks, BLOCK_NODES, padded(hidden)), np.float32),
        pulls=np.empty(by_node * batch, np.float32),
    )


# The second half of a step: gradients by W and f, and updates.
#
# An update task writes some columns of some rows of one table, or some rows of W, in the order of the vectors or the
# blocks. So no two threads write the same number, and every sum has one order.

WEIGHT_TASKS = 4  # tasks that share the rows of W
SMALLEST_SCALE = 0.25  # smallest common factor of the tables


@inlined
def task_at(place, tasks, threads):
    """Return the task at one place of a parallel loop; tasks are dealt in turn, so that all threads get long ones."""
    each = -(-tasks // threads)
    return (place % each) * threads + place // each


@inlined
def mean(shares, count):
    """Return the sum of the shares, in order, divided by count."""
    total = 0.0
    for share in shares:
        total += share
    return total / count


@inlined
def score_margin(margin, settings):
    """Return −ln σ of a triplet's margin h_u · (h_i − h_j), and the derivative of the batch's loss by it, float32."""
    decay = np.exp(-abs(np.float64(margin)))
    loss = np.log1p(decay) + max(-np.float64(margin), 0.0)
    return loss, np.float32(-settings.triplet_scale * (decay if margin > 0 else 1.0) / (1 + decay))


@inlined
def backpropagate(space, settings, slopes, pooled, block, add):
    """Write the block's share of W's and b's gradient from slopes (k, ≥ hidden), and dL/df over f = pooled (k, dim)."""
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
    """Return the number of tasks of `update`, and the number of tasks that share a lane of columns."""
    lanes = (attributes.table.shape[1] + neighbours.table.shape[1]) // LANE
    parts = -(-threads // max(lanes, 1))
    return lanes * parts + WEIGHT_TASKS, parts


class Region(NamedTuple):
    """The region of a table that one task updates: LANE columns, and one of `parts` ranges of rows."""

    column: int  # first column
    part: int
    parts: int


@inlined
def update(step, task):
    """Run one update task: subtract gradients from a region of a table, or from some rows of W."""
    attributes, neighbours, settings = step.attributes, step.neighbours, step.settings
    parts = update_tasks(attributes, neighbours, step.threads)[1]
    attribute_lanes = attributes.table.shape[1] // LANE
    lane = task // parts
    weight_task = task - parts * (attribute_lanes + neighbours.table.shape[1] // LANE)
    if weight_task >= 0:
        _update_weight(step.space, neighbours.last, settings, weight_task)
    elif settings.table_rate > 0:
        if lane < attribute_lanes:
            region = Region(lane * LANE, task % parts, parts)
            _update_table(attributes, step.space, settings, step.scale, step.vectors, region)
        else:
            region = Region((lane - attribute_lanes) * LANE, task % parts, parts)
            _update_table(neighbours, step.space, settings, step.scale, step.vectors, region)


@compiled
def _update_table(side, space, settings, scale, count, region):
    """Subtract the gradients of the first `count` vectors, in order, from a region of a table."""
    table, pooled = side.table, space.pooled
    # Unsigned indices save Numba's test for negative ones, and make -1 (no row) larger than every row.
    columns = np.uint64(min(LANE, side.last - side.first - region.column))
    at, column = np.uint64(side.first + region.column), np.uint64(region.column)
    low = region.part * len(table) // region.parts
    rows = np.uint64((region.part + 1) * len(table) // region.parts - low)
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
    """Sum the blocks' shares in order, and update this task's rows of W and b."""
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
def apply_scale(attributes, neighbours, scale, is_last):
    """Multiply the tables by their common factor if it is small or the step is the last; return the new factor."""
    if scale >= SMALLEST_SCALE and (scale == 1 or not is_last):
        return scale
    for table in (attributes.table, neighbours.table):
        for row in range(len(table)):
            for c in range(table.shape[1]):
                table[row, c] *= scale
    return np.float32(1)


# Small batches: one vector per slot.
#
# A batch is cut into blocks, and their number does not depend on the threads. In the first pass each block pools its
# rows, computes small products, and stores its share of W's gradient. The second pass subtracts the gradients.

TWIN_ROWS = 32  # shortest bag that is copied from an earlier slot of the same node


@njit(error_model="numpy", parallel=True, nogil=True)
def train_slots(attributes, neighbours, space, settings, batches, threads):
    """Take one step per batch; batches: triplets (steps, batch, 3) int32, and losses (steps,) float64 to write.

    L2 on the parameters shrinks every row of both tables at every step. A common factor does this without changing the
    rows: the tables contain P / scale, and pooling commutes with a positive factor.
    """
    triplets, losses = batches
    decay = np.float32(1 - 2 * settings.table_rate * settings.parameter_l2)
    scale = np.float32(1)
    for number in range(len(triplets)):
        batch = triplets[number]
        # All passes share one parallel loop, because Numba takes seconds to compile each loop.
        for stage in range(2):
            tasks = update_tasks(attributes, neighbours, threads)[0] if stage else len(space.loss_share)
            for place in prange(-(-tasks // threads) * threads):
                task = task_at(np.int64(place), tasks, threads)
                if task < tasks:
                    # A parallel loop cannot capture a tuple of tuples, so it is built inside.
                    step = Step(attributes, neighbours, space, settings, scale, 3 * len(batch), threads)
                    _run_slots(step, batch, stage, task)
            if stage == 0:
                losses[number] = mean(space.loss_share, len(batch))
                scale *= decay
        scale = apply_scale(attributes, neighbours, scale, number == len(triplets) - 1)


@compiled
def _run_slots(step, batch, stage, block):
    """Run one task: an update if stage is 1, else the forward and backward pass of one block of triplets."""
    if stage:
        update(step, block)
        return
    space, settings, blocks = step.space, step.settings, len(step.space.loss_share)
    begin, end = block * len(batch) // blocks, (block + 1) * len(batch) // blocks
    triplets, first, last = batch[begin:end], 3 * begin, 3 * end
    pooled, hidden = space.pooled[first:last], space.hidden[first:last]
    _pool_slots(_slice_side(step.attributes, first, last), settings, step.scale, triplets, pooled)
    _pool_slots(_slice_side(step.neighbours, first, last), settings, step.scale, triplets, pooled)
    for slot in range(3 * len(triplets)):
        space.nodes[first + slot] = triplets[slot % len(triplets), slot // len(triplets)]
    multiply(pooled[:, : step.neighbours.last], space.weight_transposed, hidden, False)
    space.loss_share[block] = _score_slots(hidden, space.bias, settings, len(triplets))
    backpropagate(space, settings, hidden, pooled, block, False)


@inlined
def _slice_side(side, first, last):
    """Return a side with the winners of vectors first … last - 1 only."""
    return Side(side.indptr, side.indices, side.table, side.winner[first:last], side.first, side.last)


@compiled
def _pool_slots(side, settings, scale, triplets, pooled):
    """Pool one table for all u, then all i, then all j of triplets (k, 3); write its columns of pooled, and winners."""
    count = len(triplets)
    for role in range(3):
        for t in range(count):
            slot = role * count + t
            if t + 1 < count:
                prefetch_bag(side, triplets[t + 1, role])
            twin = _twin(side.indptr, triplets, role, t)
            if twin >= 0:
                _copy(side.winner, twin, slot, np.int64(0), side.table.shape[1])
                _copy(pooled, twin, slot, side.first, side.last)
            else:
                pool(side, settings, scale, triplets[t, role], pooled, slot)


@inlined
def _copy(rows, source, target, first, last):
    """Copy columns first … last - 1 of row source to row target."""
    for c in range(first, last):
        rows[target, c] = rows[source, c]


@inlined
def _twin(indptr, triplets, role, t):
    """Return an earlier slot of the same node, or -1; a short bag gives -1, as pooling it is faster than a search."""
    node = triplets[t, role]
    if indptr[node + 1] - indptr[node] < TWIN_ROWS:
        return -1
    for other_role in range(role + 1):
        for other in range(t if other_role == role else len(triplets)):
            if triplets[other, other_role] == node:
                return other_role * len(triplets) + other
    return -1


@njit(error_model="numpy", fastmath=True)
def _score_slots(hidden, bias, settings, count):
    """Replace hidden = W f (3 count, ≥ hidden) by dL/dz, in place; return the block's sum of −ln σ."""
    total = 0.0
    zero = np.float32(0)
    shrink = np.float32(2 * settings.hidden_l2)
    for u in range(count):
        i, j = count + u, 2 * count + u
        margin = zero
        for k in range(len(bias)):
            hidden[u, k] = max(hidden[u, k] + bias[k], zero)
            hidden[i, k] = max(hidden[i, k] + bias[k], zero)
            hidden[j, k] = max(hidden[j, k] + bias[k], zero)
            margin += hidden[u, k] * (hidden[i, k] - hidden[j, k])
        loss, slope = score_margin(margin, settings)
        total += loss
        for k in range(len(bias)):
            h_u, h_i, h_j = hidden[u, k], hidden[i, k], hidden[j, k]
            hidden[u, k] = slope * (h_i - h_j) + shrink * h_u if h_u > 0 else zero
            hidden[i, k] = slope * h_u + shrink * h_i if h_i > 0 else zero
            hidden[j, k] = shrink * h_j - slope * h_u if h_j > 0 else zero
    return total


# Large batches: one vector per distinct node, because nodes repeat.
#
# The four passes compute the vectors of the nodes, the margins of the triplets, the gradients of the nodes, and the
# updates. The gradients of a node's slots are summed in the order of the slots.

POOL, SCORE, BACKPROPAGATE, UPDATE = 0, 1, 2, 3  # the passes of a step
AHEAD = 4  # distance in triplets to the prefetch of hidden vectors


@njit(error_model="numpy", parallel=True, nogil=True)
def train_nodes(attributes, neighbours, space, settings, batches, threads):
    """Take one step per batch, with the arguments and results of `train_slots`."""
    triplets, losses = batches
    decay = np.float32(1 - 2 * settings.table_rate * settings.parameter_l2)
    scale = np.float32(1)
    for number in range(len(triplets)):
        batch = triplets[number]
        count = sort_slots(batch, space)
        for stage in range(4):
            if stage == UPDATE:
                losses[number] = mean(space.loss_share, len(batch))
                scale *= decay
            tasks = _tasks(attributes, neighbours, space, count, stage, threads)
            for place in prange(-(-tasks // threads) * threads):
                task = task_at(np.int64(place), tasks, threads)
                if task < tasks:
                    _run_nodes(Step(attributes, neighbours, space, settings, scale, count, threads), stage, task)
        scale = apply_scale(attributes, neighbours, scale, number == len(triplets) - 1)


@compiled
def sort_slots(batch, space):
    """Write the distinct nodes of a batch (k, 3) int32 and the slots of each to space; return the number of nodes."""
    nodes, order, bounds, places = space.nodes, space.order, space.bounds, space.places
    # Sort by bucket of nodes first, because the rows that neighbouring nodes pool are close together in memory.
    buckets, shift = space.buckets, 0
    while len(places) >> shift >= len(buckets) - 1:
        shift += 1
    buckets[:] = 0
    for slot in range(len(order)):
        buckets[(batch[slot // 3, slot % 3] >> shift) + 1] += 1
    for bucket in range(len(buckets) - 1):
        buckets[bucket + 1] += buckets[bucket]
    for slot in range(len(order)):
        bucket = batch[slot // 3, slot % 3] >> shift
        order[buckets[bucket]] = slot
        buckets[bucket] += 1
    count = 0
    for slot in order:
        node = batch[slot // 3, slot % 3]
        if places[node] < 0:
            places[node], nodes[count] = count, node
            count += 1
            bounds[count + 1] = 0
        vector = places[node]
        space.slot_vectors[slot] = vector
        bounds[vector + 2] += 1
    bounds[0] = bounds[1] = 0
    for vector in range(count):
        places[nodes[vector]] = -1
        bounds[vector + 2] += bounds[vector + 1]
    for slot in range(len(order)):  # bounds[v + 1] moves from the first to the last of node v's slots
        following = space.slot_vectors[slot] + 1
        order[bounds[following]] = slot
        bounds[following] += 1
    return count


@inlined
def _tasks(attributes, neighbours, space, count, stage, threads):
    """Return the number of tasks of a pass; inside the kernel Numba would use only the first of several assignments."""
    if stage == POOL:
        return -(-count // BLOCK_NODES)
    if stage == SCORE:
        return len(space.loss_share)
    return len(space.hidden_slope) if stage == BACKPROPAGATE else update_tasks(attributes, neighbours, threads)[0]


@compiled
def _run_nodes(step, stage, task):
    """Run one task of a pass."""
    if stage == POOL:
        _embed_nodes(step, task)
    elif stage == SCORE:
        _score_nodes(step.settings, step.space, task)
    elif stage == BACKPROPAGATE:
        _backpropagate_nodes(step.settings, step.space, step.vectors, task)
    else:
        update(step, task)


@inlined
def _embed_nodes(step, task):
    """Write f and h of the task's BLOCK_NODES distinct nodes to space."""
    first, last = task * BLOCK_NODES, min((task + 1) * BLOCK_NODES, step.vectors)
    space = step.space
    _pool_nodes(step.attributes, step.settings, step.scale, space, first, last)
    _pool_nodes(step.neighbours, step.settings, step.scale, space, first, last)
    hidden = space.hidden[first:last]
    multiply(space.pooled[first:last, : step.neighbours.last], space.weight_transposed, hidden, False)
    for row in range(len(hidden)):
        for k in range(len(space.bias)):
            hidden[row, k] = max(hidden[row, k] + space.bias[k], np.float32(0))


@compiled
def _pool_nodes(side, settings, scale, space, first, last):
    """Pool one table for the distinct nodes first … last - 1."""
    nodes = space.nodes
    for row in range(first, last):
        prefetch_indices(side, nodes, row, last - 1)
        prefetch_bag(side, nodes[min(row + 1, last - 1)])
        pool(side, settings, scale, nodes[row], space.pooled, row)


@inlined
def _score_nodes(settings, space, task):
    """Write the pulls of the task's SCORE_TRIPLETS triplets, and their share of the loss, to space."""
    hidden, slots = space.hidden, space.slot_vectors
    minus, loss = fill(np.float32(-1)), 0.0
    last = min((task + 1) * SCORE_TRIPLETS, len(space.pulls))
    for triplet in range(task * SCORE_TRIPLETS, last):
        following = 3 * min(triplet + AHEAD, last - 1)
        for role in range(3):
            prefetch_row(hidden, slots[following + role])
        u, i, j = slots[3 * triplet], slots[3 * triplet + 1], slots[3 * triplet + 2]
        margin = fill(np.float32(0))
        for column in range(0, hidden.shape[1], LANE):
            difference = multiply_add(minus, load(hidden, j, column), load(hidden, i, column))
            margin = multiply_add(load(hidden, u, column), difference, margin)
        own_loss, space.pulls[triplet] = score_margin(total(margin), settings)
        loss += own_loss
    space.loss_share[task] = loss


@inlined
def _backpropagate_nodes(settings, space, count, block):
    """Write dL/df of one block of distinct nodes, and their share of W's gradient, BLOCK_NODES at a time."""
    blocks = len(space.hidden_slope)
    begin, end = block * count // blocks, (block + 1) * count // blocks
    for first in range(begin, max(end, begin + 1), BLOCK_NODES):
        last = min(first + BLOCK_NODES, end)
        slopes = space.hidden_slope[block, : last - first]
        for vector in range(first, last):
            _add_pulls(settings, space, vector, slopes, vector - first)
        backpropagate(space, settings, slopes, space.pooled[first:last], block, first > begin)


@inlined
def _add_pulls(settings, space, vector, slopes, row):
    """Write dL/dz of a node, summed over its slots, to slopes[row]: pull · (h_i − h_j), pull · h_u or −pull · h_u."""
    hidden, vectors, zero, minus = space.hidden, space.slot_vectors, fill(np.float32(0)), fill(np.float32(-1))
    start, stop = space.bounds[vector], space.bounds[vector + 1]
    shrink = fill(np.float32(2 * settings.hidden_l2 * (stop - start)))
    for column in range(0, hidden.shape[1], LANE):
        own = load(hidden, vector, column)
        gradient = multiply_add(shrink, own, zero)
        for place in range(start, stop):
            slot = space.order[place]
            triplet, role = slot // 3, slot % 3
            pull = space.pulls[triplet]
            if role == 0:
                other = load(hidden, vectors[slot + 1], column)
                other = multiply_add(minus, load(hidden, vectors[slot + 2], column), other)
            else:
                other = load(hidden, vectors[3 * triplet], column)
                pull = pull if role == 1 else -pull
            gradient = multiply_add(fill(pull), other, gradient)
        store(if_greater(own, zero, gradient, zero), slopes, row, column)
