"""Small batches: every slot has a vector of its own.

A batch is cut into blocks whose number does not depend on the threads. A first parallel pass runs over the blocks: each
pools its rows, computes its own small matrix products, and keeps its share of W's gradient. A second parallel pass
subtracts the gradients.
"""

import numpy as np
from numba import prange

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.cpu.lanes import compiled, inlined
from neural_brane.kernels.cpu.pooling import Side, pool, prefetch_bag
from neural_brane.kernels.cpu.products import multiply
from neural_brane.kernels.cpu.updates import Step, deal, mean, propagate, score_margin, settle, update, update_tasks

COMPUTE, UPDATE = 0, 1  # the passes of a step
TWIN_ROWS = 32  # rows: for a longer bag, an earlier slot of the same node is looked for


@njit(error_model="numpy", parallel=True, nogil=True)
def train(attributes, neighbours, space, settings, batches, threads):
    """Take one step per batch of triplets; batches: (steps, batch, 3) int32, and the losses (steps,) to write.

    L2 on the parameters shrinks every row of both tables at every step. One common factor does that without touching
    the rows: the tables hold P / scale, and pooling commutes with a positive factor.
    """
    triplets, losses = batches
    decay = np.float32(1 - 2 * settings.table_rate * settings.parameter_l2)
    scale = np.float32(1)
    for number in range(len(triplets)):
        batch = triplets[number]
        # One parallel loop for all passes: Numba takes seconds to compile each.
        for stage in range(2):
            tasks = len(space.loss_share) if stage == COMPUTE else update_tasks(attributes, neighbours, threads)[0]
            for place in prange(-(-tasks // threads) * threads):
                task = deal(np.int64(place), tasks, threads)
                if task < tasks:
                    # Parallel loops take no tuples of tuples, so this one is put together inside.
                    step = Step(attributes, neighbours, space, settings, scale, 3 * len(batch), threads)
                    _run(step, batch, stage, task)
            if stage == COMPUTE:
                losses[number] = mean(space.loss_share, len(batch))
                scale *= decay
        scale = settle(attributes, neighbours, scale, number == len(triplets) - 1)


@compiled
def _run(step, batch, stage, task):
    """One task of a pass."""
    if stage == COMPUTE:
        _block(step, batch, task)
    else:
        update(step, task)


@inlined
def _block(step, batch, block):
    """Forward and backward for the triplets of one block; writes their rows of the vectors."""
    space, settings, blocks = step.space, step.settings, len(step.space.loss_share)
    begin, end = block * len(batch) // blocks, (block + 1) * len(batch) // blocks
    triplets, first, last = batch[begin:end], 3 * begin, 3 * end
    pooled, hidden = space.pooled[first:last], space.hidden[first:last]
    _pool_all(_rows_of(step.attributes, first, last), settings, step.scale, triplets, pooled)
    _pool_all(_rows_of(step.neighbours, first, last), settings, step.scale, triplets, pooled)
    for slot in range(3 * len(triplets)):
        space.nodes[first + slot] = triplets[slot % len(triplets), slot // len(triplets)]
    multiply(pooled[:, : step.neighbours.last], space.weight_transposed, hidden, False)
    space.loss_share[block] = _score(hidden, space.bias, settings, len(triplets))
    propagate(space, settings, hidden, pooled, block, False)


@inlined
def _rows_of(side, first, last):
    """A side for the vectors first … last - 1 alone."""
    return Side(side.indptr, side.indices, side.table, side.winner[first:last], side.first, side.last)


@compiled
def _pool_all(side, settings, scale, triplets, pooled):
    """Pool one table for all u, then all i, then all j; writes its columns of pooled, and the winners."""
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
    """Copy columns first to last of one row to another."""
    for c in range(first, last):
        rows[target, c] = rows[source, c]


@inlined
def _twin(indptr, triplets, role, t):
    """An earlier slot of the same node, or -1. A short bag has none: pooling it again is faster than looking.

    Hubs occur many times in every batch, and their bags are most of what a batch reads.
    """
    node = triplets[t, role]
    if indptr[node + 1] - indptr[node] < TWIN_ROWS:
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
