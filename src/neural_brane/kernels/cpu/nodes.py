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
    score_margin,
    store,
    total,
)
from neural_brane.kernels.cpu.pooling import pool, prefetch_bag, prefetch_indices, prefetch_row
from neural_brane.kernels.cpu.products import multiply
from neural_brane.kernels.cpu.updates import (
    BLOCK_NODES,
    SCORE_TRIPLETS,
    NodeSpace,
    deal,
    mean,
    propagate,
    settle,
    update,
    update_tasks,
)
from neural_brane.kernels.model import LANE

POOL, SCORE, PROPAGATE, UPDATE = 0, 1, 2, 3  # the passes of a step
AHEAD = 4  # triplets, or slots, whose hidden vectors are prefetched


@njit(error_model="numpy", parallel=True, nogil=True)
def train(model, attribute_bags, neighbour_bags, triplets, settings, layer, vectors, slots, scratch, losses, threads):
    """Take one step per batch of triplets (steps, batch, 3); writes losses (steps,). The tables hold P / scale."""
    decay = np.float32(1 - 2 * settings.table_rate * settings.parameter_l2)
    scale = np.float32(1)
    for step in range(len(triplets)):
        batch = triplets[step]
        count = sort_slots(batch, vectors.nodes, slots)
        for stage in range(4):
            if stage == UPDATE:
                losses[step] = mean(scratch.loss_share, len(batch))
                scale *= decay
            tasks = _tasks(model, scratch, count, stage, threads)
            for place in prange(-(-tasks // threads) * threads):
                task = deal(np.int64(place), tasks, threads)
                if task < tasks:
                    # Parallel loops take no tuples of tuples, so these are put together inside.
                    bags, space = (attribute_bags, neighbour_bags), NodeSpace(layer, vectors, slots, scratch)
                    _run(model, bags, settings, scale, space, count, stage, task, threads)
        scale = settle(model, scale, step == len(triplets) - 1)


@compiled
def sort_slots(batch, nodes, slots):
    """Find the distinct nodes of a batch and the slots of each; returns how many nodes there are."""
    _sort_by_bucket(batch, slots)
    count = 0
    for slot in slots.order:
        node = batch[slot // 3, slot % 3]
        if slots.places[node] < 0:
            slots.places[node], nodes[count] = count, node
            count += 1
            slots.bounds[count + 1] = 0
        vector = slots.places[node]
        slots.vectors[slot] = vector
        slots.bounds[vector + 2] += 1
    slots.bounds[0] = slots.bounds[1] = 0
    for vector in range(count):
        slots.places[nodes[vector]] = -1
        slots.bounds[vector + 2] += slots.bounds[vector + 1]
    for slot in range(len(slots.order)):  # bounds[v + 1] moves from the first slot of node v to the end of them
        following = slots.vectors[slot] + 1
        slots.order[slots.bounds[following]] = slot
        slots.bounds[following] += 1
    return count


@inlined
def _sort_by_bucket(batch, slots):
    """Sort the slots by bucket of nodes into slots.order: what neighbouring nodes pool is close together in memory."""
    buckets, shift = slots.buckets, 0
    while len(slots.places) >> shift >= len(buckets) - 1:
        shift += 1
    buckets[:] = 0
    for slot in range(len(slots.order)):
        buckets[(batch[slot // 3, slot % 3] >> shift) + 1] += 1
    for bucket in range(len(buckets) - 1):
        buckets[bucket + 1] += buckets[bucket]
    for slot in range(len(slots.order)):
        bucket = batch[slot // 3, slot % 3] >> shift
        slots.order[buckets[bucket]] = slot
        buckets[bucket] += 1


@inlined
def _tasks(model, scratch, count, stage, threads):
    """How many tasks a pass has."""
    if stage == POOL:
        return -(-count // BLOCK_NODES)
    if stage == SCORE:
        return len(scratch.loss_share)
    return len(scratch.hidden_slope) if stage == PROPAGATE else update_tasks(model, threads)[0]


@compiled
def _run(model, bags, settings, scale, space, count, stage, task, threads):
    """One task of a pass."""
    if stage == POOL:
        _compute(model, bags, settings, scale, space, count, task)
    elif stage == SCORE:
        _score(settings, space, task)
    elif stage == PROPAGATE:
        _propagate(settings, space, count, task)
    else:
        update(model, bags, settings, scale, space.layer, space.vectors, count, task, update_tasks(model, threads)[1])


@inlined
def _compute(model, bags, settings, scale, space, count, task):
    """f and h of BLOCK_NODES of the distinct nodes."""
    first, last = task * BLOCK_NODES, min((task + 1) * BLOCK_NODES, count)
    vectors, dim = space.vectors, model.weight.shape[1]
    d1, winner = settings.attribute_dim, vectors.attribute_winner
    _pool_all(bags[0], model.attribute_table, vectors, settings, scale, winner, np.int64(0), first, last)
    winner = vectors.neighbour_winner
    _pool_all(bags[1], model.neighbour_table, vectors, settings, scale, winner, d1, first, last)
    hidden = vectors.hidden[first:last]
    multiply(vectors.pooled[first:last, :dim], space.layer.weight_transposed, hidden, False)
    for row in range(len(hidden)):
        for k in range(len(model.bias)):
            hidden[row, k] = max(hidden[row, k] + model.bias[k], np.float32(0))


@compiled
def _pool_all(bags, table, vectors, settings, scale, winner, column, first, last):
    """Pool one table for the distinct nodes first to last."""
    nodes = vectors.nodes
    for row in range(first, last):
        prefetch_indices(bags, nodes, row, last - 1)
        prefetch_bag(bags, table, nodes[min(row + 1, last - 1)])
        pool(bags, table, nodes[row], settings, scale, winner, vectors.pooled, row, column)


@inlined
def _score(settings, space, task):
    """The pulls of SCORE_TRIPLETS of the triplets, and their share of the loss."""
    hidden, slots = space.vectors.hidden, space.slots.vectors
    minus, loss = fill(np.float32(-1)), 0.0
    last = min((task + 1) * SCORE_TRIPLETS, len(space.scratch.pulls))
    for triplet in range(task * SCORE_TRIPLETS, last):
        following = 3 * min(triplet + AHEAD, last - 1)
        for role in range(3):
            prefetch_row(hidden, slots[following + role])
        u, i, j = slots[3 * triplet], slots[3 * triplet + 1], slots[3 * triplet + 2]
        margin = fill(np.float32(0))
        for column in range(0, hidden.shape[1], LANE):
            difference = multiply_add(minus, load(hidden, j, column), load(hidden, i, column))
            margin = multiply_add(load(hidden, u, column), difference, margin)
        own_loss, space.scratch.pulls[triplet] = score_margin(total(margin), settings)
        loss += own_loss
    space.scratch.loss_share[task] = loss


@inlined
def _propagate(settings, space, count, block):
    """dL/df of one block of the distinct nodes, and their share of W's gradient, BLOCK_NODES at a time."""
    blocks = len(space.scratch.hidden_slope)
    begin, end = block * count // blocks, (block + 1) * count // blocks
    for first in range(begin, max(end, begin + 1), BLOCK_NODES):
        last = min(first + BLOCK_NODES, end)
        slopes = space.scratch.hidden_slope[block, : last - first]
        for vector in range(first, last):
            _add_pulls(settings, space, vector, slopes, vector - first)
        propagate(space.layer, settings, slopes, space.vectors.pooled[first:last], block, first > begin)


@inlined
def _add_pulls(settings, space, vector, slopes, row):
    """slopes[row] = dL/dz of a node: the sum over its slots.

    The gradient by h_u is pull · (h_i − h_j), by h_i it is pull · h_u, and by h_j −pull · h_u.
    """
    hidden, slots, zero, minus = space.vectors.hidden, space.slots, fill(np.float32(0)), fill(np.float32(-1))
    start, stop = slots.bounds[vector], slots.bounds[vector + 1]
    shrink = fill(np.float32(2 * settings.hidden_l2 * (stop - start)))
    for column in range(0, hidden.shape[1], LANE):
        own = load(hidden, vector, column)
        gradient = multiply_add(shrink, own, zero)
        for place in range(start, stop):
            slot = slots.order[place]
            triplet, role = slot // 3, slot % 3
            pull = space.scratch.pulls[triplet]
            if role == 0:
                other = load(hidden, slots.vectors[slot + 1], column)
                other = multiply_add(minus, load(hidden, slots.vectors[slot + 2], column), other)
            else:
                other = load(hidden, slots.vectors[3 * triplet], column)
                pull = pull if role == 1 else -pull
            gradient = multiply_add(fill(pull), other, gradient)
        store(if_greater(own, zero, gradient, zero), slopes, row, column)
