"""Small batches: every slot has a vector of its own.

A batch is cut into blocks whose number does not depend on the threads. A first parallel pass runs over the blocks: each
pools its rows, computes its own small matrix products, and keeps its share of W's gradient. A second parallel pass
subtracts the gradients.
"""

import numpy as np
from numba import prange

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.cpu.lanes import compiled, inlined, score_margin
from neural_brane.kernels.cpu.pooling import pool, prefetch_bag
from neural_brane.kernels.cpu.products import multiply
from neural_brane.kernels.cpu.updates import SlotSpace, deal, mean, propagate, settle, update, update_tasks

COMPUTE, UPDATE = 0, 1  # the passes of a step
TWIN_ROWS = 32  # rows: for a longer bag, an earlier slot of the same node is looked for


@njit(error_model="numpy", parallel=True, nogil=True)
def train(model, attribute_bags, neighbour_bags, triplets, settings, layer, vectors, loss_share, losses, threads):
    """Take one step per batch of triplets (steps, batch, 3); writes losses (steps,).

    L2 on the parameters shrinks every row of both tables at every step. One common factor does that without touching
    the rows: the tables hold P / scale, and pooling commutes with a positive factor.
    """
    decay = np.float32(1 - 2 * settings.table_rate * settings.parameter_l2)
    scale = np.float32(1)
    for step in range(len(triplets)):
        batch = triplets[step]
        # One parallel loop for all passes: Numba takes seconds to compile each.
        for stage in range(2):
            tasks = len(loss_share) if stage == COMPUTE else update_tasks(model, threads)[0]
            for place in prange(-(-tasks // threads) * threads):
                task = deal(np.int64(place), tasks, threads)
                if task < tasks:
                    # Parallel loops take no tuples of tuples, so these are put together inside.
                    bags, space = (attribute_bags, neighbour_bags), SlotSpace(layer, vectors, loss_share)
                    _run(model, bags, batch, settings, scale, space, stage, task, threads)
            if stage == COMPUTE:
                losses[step] = mean(loss_share, len(batch))
                scale *= decay
        scale = settle(model, scale, step == len(triplets) - 1)


@compiled
def _run(model, bags, batch, settings, scale, space, stage, task, threads):
    """One task of a pass."""
    if stage == COMPUTE:
        _block(model, bags, batch, settings, scale, space, task)
    else:
        parts = update_tasks(model, threads)[1]
        update(model, bags, settings, scale, space.layer, space.vectors, 3 * len(batch), task, parts)


@inlined
def _block(model, bags, batch, settings, scale, space, block):
    """Forward and backward for the triplets of one block; writes their rows of the vectors."""
    blocks, dim, d1 = len(space.loss_share), model.weight.shape[1], settings.attribute_dim
    begin, end = block * len(batch) // blocks, (block + 1) * len(batch) // blocks
    triplets, vectors = batch[begin:end], space.vectors
    pooled, hidden = vectors.pooled[3 * begin : 3 * end], vectors.hidden[3 * begin : 3 * end]
    winner = vectors.attribute_winner[3 * begin : 3 * end]
    _pool_all(bags[0], model.attribute_table, triplets, settings, scale, winner, pooled, np.int64(0), d1)
    winner = vectors.neighbour_winner[3 * begin : 3 * end]
    _pool_all(bags[1], model.neighbour_table, triplets, settings, scale, winner, pooled, d1, dim)
    for slot in range(3 * len(triplets)):
        vectors.nodes[3 * begin + slot] = triplets[slot % len(triplets), slot // len(triplets)]
    multiply(pooled[:, :dim], space.layer.weight_transposed, hidden, False)
    space.loss_share[block] = _score(hidden, model.bias, settings, len(triplets))
    propagate(space.layer, settings, hidden, pooled, block, False)


@compiled
def _pool_all(bags, table, triplets, settings, scale, winner, pooled, first, last):
    """Pool one table for all u, then all i, then all j; writes columns first to last of pooled, and winner."""
    count = len(triplets)
    for role in range(3):
        for t in range(count):
            slot = role * count + t
            if t + 1 < count:
                prefetch_bag(bags, table, triplets[t + 1, role])
            twin = _twin(bags, triplets, role, t)
            if twin >= 0:
                _copy(winner, twin, slot, np.int64(0), table.shape[1])
                _copy(pooled, twin, slot, first, last)
            else:
                pool(bags, table, triplets[t, role], settings, scale, winner, pooled, slot, first)


@inlined
def _copy(rows, source, target, first, last):
    """Copy columns first to last of one row to another."""
    for c in range(first, last):
        rows[target, c] = rows[source, c]


@inlined
def _twin(bags, triplets, role, t):
    """An earlier slot of the same node, or -1. A short bag has none: pooling it again is faster than looking.

    Hubs occur many times in every batch, and their bags are most of what a batch reads.
    """
    node = triplets[t, role]
    if bags.indptr[node + 1] - bags.indptr[node] < TWIN_ROWS:
        return -1
    for other_role in range(role + 1):
        for other in range(t if other_role == role else len(triplets)):
            if triplets[other, other_role] == node:
                return other_role * len(triplets) + other
    return -1


@njit(error_model="numpy", fastmath=True)
def _score(hidden, bias, settings, count):
    """Replace W f of a block's u, i and j rows by dL/dz, in place; returns the block's sum of −ln σ."""
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
