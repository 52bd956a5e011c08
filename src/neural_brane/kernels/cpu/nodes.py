"""Large batches, where nodes repeat: every distinct node is pooled, multiplied by W and subtracted once.

Four parallel passes make a step: vectors of the nodes, margins of the triplets, gradients of the nodes, and the
subtraction. Each node adds up the gradients of its slots in their order.
"""

import numpy as np
from numba import prange

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.cpu.lanes import (
    compiled,
    fill,
    if_greater,
    inlined,
    load,
    multiply_add,
    store,
    total,
)
from neural_brane.kernels.cpu.pooling import pool, prefetch_bag, prefetch_indices, prefetch_row
from neural_brane.kernels.cpu.products import multiply
from neural_brane.kernels.cpu.updates import (
    BLOCK_NODES,
    SCORE_TRIPLETS,
    Step,
    deal,
    mean,
    propagate,
    score_margin,
    settle,
    update,
    update_tasks,
)
from neural_brane.kernels.model import LANE

POOL, SCORE, PROPAGATE, UPDATE = 0, 1, 2, 3  # the passes of a step
AHEAD = 4  # triplets, or slots, whose hidden vectors are prefetched


@njit(error_model="numpy", parallel=True, nogil=True)
def train(attributes, neighbours, space, settings, batches, threads):
    """Take one step per batch of triplets; batches: (steps, batch, 3) int32, and the losses (steps,) to write.

    The tables hold P / scale, as in `slots.train`.
    """
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
                task = deal(np.int64(place), tasks, threads)
                if task < tasks:
                    # Parallel loops take no tuples of tuples, so this one is put together inside.
                    _run(Step(attributes, neighbours, space, settings, scale, count, threads), stage, task)
        scale = settle(attributes, neighbours, scale, number == len(triplets) - 1)


@compiled
def sort_slots(batch, space):
    """Find the distinct nodes of a batch (k, 3) and the slots of each; returns how many nodes there are.

    Writes space.nodes, slot_vectors, order and bounds.
    """
    nodes, order, bounds, places = space.nodes, space.order, space.bounds, space.places
    _sort_by_bucket(batch, space)
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
    for slot in range(len(order)):  # bounds[v + 1] moves from the first slot of node v to the end of them
        following = space.slot_vectors[slot] + 1
        order[bounds[following]] = slot
        bounds[following] += 1
    return count


@inlined
def _sort_by_bucket(batch, space):
    """Sort the slots by bucket of nodes into space.order: what neighbouring nodes pool is close together in memory."""
    buckets, order, shift = space.buckets, space.order, 0
    while len(space.places) >> shift >= len(buckets) - 1:
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


@inlined
def _tasks(attributes, neighbours, space, count, stage, threads):
    """How many tasks a pass has.

    Not part of `train`, where Numba takes a number that is assigned in several branches for the first of them.
    """
    if stage == POOL:
        return -(-count // BLOCK_NODES)
    if stage == SCORE:
        return len(space.loss_share)
    return len(space.hidden_slope) if stage == PROPAGATE else update_tasks(attributes, neighbours, threads)[0]


@compiled
def _run(step, stage, task):
    """One task of a pass."""
    if stage == POOL:
        _compute(step, task)
    elif stage == SCORE:
        _score(step.settings, step.space, task)
    elif stage == PROPAGATE:
        _propagate(step.settings, step.space, step.vectors, task)
    else:
        update(step, task)


@inlined
def _compute(step, task):
    """f and h of BLOCK_NODES of the distinct nodes."""
    first, last = task * BLOCK_NODES, min((task + 1) * BLOCK_NODES, step.vectors)
    space = step.space
    _pool_all(step.attributes, step.settings, step.scale, space, first, last)
    _pool_all(step.neighbours, step.settings, step.scale, space, first, last)
    hidden = space.hidden[first:last]
    multiply(space.pooled[first:last, : step.neighbours.last], space.weight_transposed, hidden, False)
    for row in range(len(hidden)):
        for k in range(len(space.bias)):
            hidden[row, k] = max(hidden[row, k] + space.bias[k], np.float32(0))


@compiled
def _pool_all(side, settings, scale, space, first, last):
    """Pool one table for the distinct nodes first … last - 1."""
    nodes = space.nodes
    for row in range(first, last):
        prefetch_indices(side, nodes, row, last - 1)
        prefetch_bag(side, nodes[min(row + 1, last - 1)])
        pool(side, settings, scale, nodes[row], space.pooled, row)


@inlined
def _score(settings, space, task):
    """The pulls of SCORE_TRIPLETS of the triplets, and their share of the loss."""
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
def _propagate(settings, space, count, block):
    """dL/df of one block of the distinct nodes, and their share of W's gradient, BLOCK_NODES at a time."""
    blocks = len(space.hidden_slope)
    begin, end = block * count // blocks, (block + 1) * count // blocks
    for first in range(begin, max(end, begin + 1), BLOCK_NODES):
        last = min(first + BLOCK_NODES, end)
        slopes = space.hidden_slope[block, : last - first]
        for vector in range(first, last):
            _add_pulls(settings, space, vector, slopes, vector - first)
        propagate(space, settings, slopes, space.pooled[first:last], block, first > begin)


@inlined
def _add_pulls(settings, space, vector, slopes, row):
    """slopes[row] = dL/dz of a node: the sum over its slots.

    The gradient by h_u is pull · (h_i − h_j), by h_i it is pull · h_u, and by h_j −pull · h_u.
    """
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
