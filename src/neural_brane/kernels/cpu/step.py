"""Neural-Brane on the CPU, in Numba: the functions of `reference`, with the same bits on any number of threads.

A batch is cut into blocks whose number does not depend on the threads. A first parallel pass runs over the blocks: each
pools its rows, computes its own small matrix products, and keeps its share of W's gradient. A second parallel pass runs
over columns: each task goes through all slots in order and writes only its own columns of a table, or its own rows of
W. So no two threads write the same number, and every sum has one order.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

# Threads wait for each other twice a step. By default OpenMP's threads spin for milliseconds there, which takes time
# from other processes and from each other. OpenMP reads this variable when Numba first starts its threads.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

import numba
import numpy as np
from numba import prange
from threadpoolctl import threadpool_limits

from neural_brane.errors import ParameterError
from neural_brane.kernels import reference
from neural_brane.kernels.cpu.pooling import pool, prefetch_bag
from neural_brane.kernels.cpu.products import multiply
from neural_brane.kernels.cpu.workspace import make_workspace
from neural_brane.kernels.model import LANE, MAX, MEAN, Bags, Model, Settings

WEIGHT_TASKS = 4  # that share the rows of W
TWIN_ROWS = 32  # rows: for a longer bag, an earlier slot of the same node is looked for
SMALLEST_SCALE = 0.25  # of the tables' common factor


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Run kernels on this many threads inside the block; None leaves the number as it is."""
    before, most = numba.get_num_threads(), numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    if count is not None and not 1 <= count <= most:
        raise ParameterError(f"threads={count} makes no sense; give 1 to {most}, the number of cores here")
    numba.set_num_threads(count or before)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def train(model: Model, attribute_bags: Bags, neighbour_bags: Bags, triplets: np.ndarray, settings: Settings):
    """Take one SGD step per batch of triplets (steps, batch, 3) int32, changing the model in place.

    Returns (steps,) float64: each batch's mean of −ln σ before its step.
    """
    workspace = make_workspace(model, triplets.shape[1])
    losses = np.empty(len(triplets))
    _train(model, attribute_bags, neighbour_bags, triplets, settings, workspace, losses)
    model.weight[:] = workspace.weight[:, : model.weight.shape[1]]
    return losses


def embed(model: Model, attribute_bags: Bags, neighbour_bags: Bags, nodes: np.ndarray, settings: Settings):
    """f(u), the embedding: pooled attributes beside pooled neighbours. Returns (k, d1 + d2)."""
    nodes = np.asarray(nodes, np.int32)
    d1, dim = settings.attribute_dim, model.weight.shape[1]
    pooled = np.empty((len(nodes), dim), np.float32)
    _embed(attribute_bags, model.attribute_table, nodes, settings, pooled, 0, d1)
    _embed(neighbour_bags, model.neighbour_table, nodes, settings, pooled, d1, dim)
    return pooled


def hide(model: Model, pooled: np.ndarray):
    """h(u) = ReLU(W f(u) + b). Returns (k, hidden)."""
    with threadpool_limits(1, "blas"):  # on more threads the order of its sums, and so their last bits, may change
        return reference.hide(model, pooled)


@numba.njit(cache=True, error_model="numpy", parallel=True)
def _train(model, attribute_bags, neighbour_bags, triplets, settings, work, losses):
    """The loop of `train`: per step one pass over blocks, then one over columns.

    L2 on the parameters shrinks every row of both tables at every step. One common factor does that without touching
    the rows: the tables hold P / scale, and pooling commutes with a positive factor.
    """
    tasks = (model.attribute_table.shape[1] + model.neighbour_table.shape[1]) // LANE + WEIGHT_TASKS
    decay = np.float32(1 - 2 * settings.table_rate * settings.parameter_l2)
    scale = np.float32(1)
    for step in range(len(triplets)):
        batch = triplets[step]
        # Numba compiles a function once per type of its arguments, and prange's index changes its type during
        # compilation: the casts, here and below, save seconds at the first run.
        for block in prange(work.pooled.shape[0]):
            _block(model, attribute_bags, neighbour_bags, batch, settings, scale, work, np.int64(block))
        losses[step] = _mean(work.loss_share, len(batch))
        scale *= decay
        for task in prange(tasks):
            _update(model, attribute_bags, neighbour_bags, batch, settings, scale, work, np.int64(task))
        if scale < SMALLEST_SCALE or (step == len(triplets) - 1 and scale != 1):
            _rescale(model.attribute_table, scale)
            _rescale(model.neighbour_table, scale)
            scale = np.float32(1)


@numba.njit(cache=True, error_model="numpy")
def _mean(shares, count):
    """The sum of the shares, in order, divided by count."""
    total = 0.0
    for share in shares:
        total += share
    return total / count


@numba.njit(cache=True, error_model="numpy")
def _block(model, attribute_bags, neighbour_bags, batch, settings, scale, work, block):
    """Forward and backward for the triplets of one block; writes its slices of the workspace."""
    blocks = work.pooled.shape[0]
    triplets = batch[block * len(batch) // blocks : (block + 1) * len(batch) // blocks]
    count, dim = len(triplets), model.weight.shape[1]
    pooled = work.pooled[block, : 3 * count]
    hidden = work.hidden[block, : 3 * count]
    _pool_all(
        attribute_bags, model.attribute_table, triplets, settings, scale,
        work.attribute_best[block], work.attribute_winner[block], pooled, np.int64(0), settings.attribute_dim,
    )  # fmt: skip
    _pool_all(
        neighbour_bags, model.neighbour_table, triplets, settings, scale,
        work.neighbour_best[block], work.neighbour_winner[block], pooled, settings.attribute_dim, dim,
    )  # fmt: skip
    multiply(pooled[:, :dim], work.weight_transposed, hidden)
    work.loss_share[block] = _score(hidden, model.bias, settings, count)
    slopes = hidden[:, : len(model.bias)]
    multiply(slopes, work.weight, work.slope[block, : 3 * count])
    multiply(slopes.T, pooled, work.weight_share[block])
    if settings.train_bias:
        share = work.bias_share[block]
        share[:] = 0
        for row in range(3 * count):
            for k in range(len(share)):
                share[k] += hidden[row, k]


@numba.njit(cache=True, error_model="numpy")
def _pool_all(bags, table, triplets, settings, scale, best, winner, pooled, first, last):
    """Pool one table for all u, then all i, then all j; writes columns first to last of pooled, and winner."""
    count = len(triplets)
    for role in range(3):
        for t in range(count):
            slot = role * count + t
            if t + 1 < count:
                prefetch_bag(bags, table, triplets[t + 1, role])
            twin = _twin(bags, triplets, role, t)
            if twin >= 0:
                winner[slot], pooled[slot, first:last] = winner[twin], pooled[twin, first:last]
                continue
            pool(bags, table, triplets[t, role], settings, best, winner, slot)
            for c in range(np.uint64(last - first)):
                pooled[slot, np.uint64(first) + c] = scale * best[0, c]


@numba.njit(cache=True, error_model="numpy")
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


@numba.njit(cache=True, error_model="numpy", fastmath=True)
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
        decay = np.exp(-abs(np.float64(margin)))
        total += np.log1p(decay) + max(-np.float64(margin), 0.0)
        slope = np.float32(-settings.triplet_scale * (decay if margin > 0 else 1.0) / (1 + decay))
        for k in range(len(bias)):
            h_u, h_i, h_j = hidden[u, k], hidden[i, k], hidden[j, k]
            hidden[u, k] = slope * (h_i - h_j) + shrink * h_u if h_u > 0 else zero
            hidden[i, k] = slope * h_u + shrink * h_i if h_i > 0 else zero
            hidden[j, k] = shrink * h_j - slope * h_u if h_j > 0 else zero
    return total


@numba.njit(cache=True, error_model="numpy")
def _update(model, attribute_bags, neighbour_bags, batch, settings, scale, work, task):
    """One task of the second pass: some columns of a table, or some rows of W."""
    d1, dim = settings.attribute_dim, model.weight.shape[1]
    attribute_tasks = model.attribute_table.shape[1] // LANE
    weight_task = task - attribute_tasks - model.neighbour_table.shape[1] // LANE
    if task < attribute_tasks:
        _update_table(
            model.attribute_table, attribute_bags, batch, settings, scale,
            work.attribute_winner, work.slope, task * LANE, np.int64(0), d1,
        )  # fmt: skip
    elif weight_task < 0:
        _update_table(
            model.neighbour_table, neighbour_bags, batch, settings, scale,
            work.neighbour_winner, work.slope, (task - attribute_tasks) * LANE, d1, dim,
        )  # fmt: skip
    else:
        _update_weight(model, settings, work, weight_task)


@numba.njit(cache=True, error_model="numpy")
def _update_table(table, bags, triplets, settings, scale, winner, slope, column, first, last):
    """Subtract the gradients of all slots, in order, from LANE columns of one table.

    The table's gradients are columns first to last of slope (blocks, rows, dim).
    """
    columns = min(LANE, last - first - column)
    # Unsigned, because Numba tests signed indices for negative values.
    at, column = np.uint64(first + column), np.uint64(column)
    rate = np.float32(settings.table_rate / scale)
    blocks, batch = slope.shape[0], len(triplets)
    for block in range(blocks):
        begin, end = block * batch // blocks, (block + 1) * batch // blocks
        for slot in range(3 * (end - begin)):
            if settings.pooling == MAX:
                for c in range(np.uint64(columns)):
                    row = winner[block, slot, column + c]
                    if row >= 0:
                        table[np.uint64(row), column + c] -= rate * slope[block, slot, at + c]
            else:
                role, t = divmod(slot, end - begin)
                node = triplets[begin + t, role]
                start, stop = bags.indptr[node], bags.indptr[node + 1]
                share = rate / np.float32(stop - start) if settings.pooling == MEAN else rate
                for k in range(start, stop):
                    row = bags.indices[k]
                    for c in range(np.uint64(columns)):
                        table[row, column + c] -= share * slope[block, slot, at + c]


@numba.njit(cache=True, error_model="numpy")
def _update_weight(model, settings, work, task):
    """Add up the blocks' shares in order and update this task's rows of W and b."""
    hidden, dim = model.weight.shape
    rate = np.float32(settings.learning_rate)
    decay = np.float32(1 - 2 * settings.learning_rate * settings.parameter_l2)
    for k in range(task * hidden // WEIGHT_TASKS, (task + 1) * hidden // WEIGHT_TASKS):
        for block in range(1, work.weight_share.shape[0]):
            for c in range(dim):
                work.weight_share[0, k, c] += work.weight_share[block, k, c]
        for c in range(dim):
            work.weight[k, c] = decay * work.weight[k, c] - rate * work.weight_share[0, k, c]
            work.weight_transposed[c, k] = work.weight[k, c]
        if settings.train_bias:
            slope = np.float32(0)
            for block in range(work.bias_share.shape[0]):
                slope += work.bias_share[block, k]
            model.bias[k] = decay * model.bias[k] - rate * slope


@numba.njit(cache=True, error_model="numpy")
def _rescale(table, scale):
    for row in range(len(table)):
        for c in range(table.shape[1]):
            table[row, c] *= scale


@numba.njit(cache=True, error_model="numpy", parallel=True)
def _embed(bags, table, nodes, settings, pooled, first, last):
    """Pool one table for every node of nodes (k,) into columns first to last of pooled (k, dim)."""
    for slot in prange(len(nodes)):
        best = np.empty((1, table.shape[1]), np.float32)
        winner = np.empty((1, table.shape[1]), np.int32)
        pool(bags, table, nodes[slot], settings, best, winner, 0)
        for c in range(last - first):
            pooled[slot, first + c] = best[0, c]
