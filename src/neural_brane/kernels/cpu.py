"""Neural-Brane on the CPU, in Numba: the kernels of `reference`, fast, and the same bit for bit on any threads.

A step has two parallel passes. One owns columns: each task finishes the step before on its LANE columns of a table
(or its rows of W), then pools this step's bags in them. The other owns blocks of triplets, whose number does not
depend on the threads: each runs its own small matrix products and keeps its share of W's gradient. So no two
threads write one number, and every sum has one order.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

# Threads meet twice a step. Left alone, OpenMP's spin for milliseconds there, which starves whatever else the
# machine runs and, through it, themselves. It is read when Numba first starts its threads.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

import numba
import numpy as np
import scipy.linalg.cython_blas  # noqa: F401  (np.dot inside Numba calls it: load it before BLAS is limited)
from numba import prange
from threadpoolctl import ThreadpoolController

from neural_brane.errors import ParameterError
from neural_brane.kernels import reference
from neural_brane.kernels.columns import pool_columns, scale_columns, update_columns
from neural_brane.kernels.types import LANE, Bags, Model, Settings

BLOCK_TRIPLETS = 25  # smaller blocks spread over more threads, larger ones make faster matrix products
MAX_BLOCKS = 64
WEIGHT_TASKS = 4
ATTRIBUTES, NEIGHBOURS, WEIGHT = 0, 1, 2  # what a task of the pass over columns owns a part of
SMALLEST_SCALE = 0.25
EMBED_NODES = 256  # embedded by one task at a time
_BLAS = ThreadpoolController().select(user_api="blas")  # made once: finding the libraries takes a millisecond


class Workspace(NamedTuple):
    """Scratch of one batch: made once, reused by every step. A block's slots are all its u, then all i, then all j."""

    pooled: np.ndarray  # f (slots, dim)
    hidden: np.ndarray  # h, then dL/dz (slots, hidden)
    slope: np.ndarray  # dL/df (slots, dim)
    attribute_winner: np.ndarray  # (slots, padded d1) int32
    neighbour_winner: np.ndarray  # (slots, padded d2) int32
    bounds: np.ndarray  # (blocks + 1,) int64: the triplets where each block begins
    weight_share: np.ndarray  # (blocks, hidden, dim)
    bias_share: np.ndarray  # (blocks, hidden)
    loss_share: np.ndarray  # (blocks,) float64
    tasks: np.ndarray  # (tasks, 2) int64: what a task of the pass over columns owns, and which part of it


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
    work = _workspace(model, triplets.shape[1])
    blocks = [triplets[:, start:stop].transpose(0, 2, 1) for start, stop in pairwise(work.bounds)]
    slots = np.concatenate([block.reshape(len(triplets), -1) for block in blocks], axis=1)
    losses = np.empty(len(triplets))
    with _BLAS.limit(limits=1):
        _train(model, attribute_bags, neighbour_bags, slots, settings, work, losses)
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
    with _BLAS.limit(limits=1):
        return reference.hide(model, pooled)


def _workspace(model: Model, batch: int) -> Workspace:
    blocks = min(MAX_BLOCKS, -(-batch // BLOCK_TRIPLETS))
    slots = 3 * batch
    hidden, dim = model.weight.shape
    d1, d2 = model.attribute_table.shape[1], model.neighbour_table.shape[1]
    return Workspace(
        pooled=np.empty((slots, dim), np.float32),
        hidden=np.empty((slots, hidden), np.float32),
        slope=np.empty((slots, dim), np.float32),
        attribute_winner=np.empty((slots, d1), np.int32),
        neighbour_winner=np.empty((slots, d2), np.int32),
        bounds=np.arange(blocks + 1) * batch // blocks,
        weight_share=np.empty((blocks, hidden, dim), np.float32),
        bias_share=np.empty((blocks, hidden), np.float32),
        loss_share=np.empty(blocks),
        tasks=_tasks(d1 // LANE, d2 // LANE, WEIGHT_TASKS),
    )


def _tasks(*counts: int) -> np.ndarray:
    """The parts of each kind, spread evenly: threads take runs of tasks, and each should get some of every kind."""
    parts = [((part + 0.5) / count, kind, part) for kind, count in enumerate(counts) for part in range(count)]
    return np.array([(kind, part) for _, kind, part in sorted(parts)])


@numba.njit(cache=True, error_model="numpy", parallel=True)
def _train(model, attribute_bags, neighbour_bags, slots, settings, work, losses):
    """The loop of `train` over slots (steps, slots), the nodes of every step in the order of the workspace.

    L2 on the parameters shrinks every row of both tables at every step. A common factor does it in no time:
    the tables hold P / scale, and pooling commutes with a positive factor.
    """
    decay = np.float32(1 - 2 * settings.learning_rate * settings.parameter_l2)
    scale = np.float32(1)
    for step in range(len(slots) + 1):
        fold = scale < SMALLEST_SCALE or step == len(slots)
        # Numba compiles a function anew for every type of its arguments, and the index of prange changes its type on
        # the way: the casts, here and below, save seconds at the first run.
        for task in prange(len(work.tasks)):
            kind, part = work.tasks[task]
            if kind == ATTRIBUTES:
                _columns(
                    model.attribute_table, attribute_bags, slots, step, settings, scale, fold, work,
                    work.attribute_winner, part * LANE, np.int64(0), settings.attribute_dim,
                )  # fmt: skip
            elif kind == NEIGHBOURS:
                _columns(
                    model.neighbour_table, neighbour_bags, slots, step, settings, scale, fold, work,
                    work.neighbour_winner, part * LANE, settings.attribute_dim, work.pooled.shape[1],
                )  # fmt: skip
            elif step > 0:
                _update_weight(model, settings, decay, work, part)
        scale = np.float32(1) if fold else scale
        if step < len(slots):
            for block in prange(len(work.loss_share)):
                _block(model, settings, work, np.int64(block))
            losses[step] = _mean(work.loss_share, slots.shape[1] // 3)
            scale *= decay


@numba.njit(cache=True, error_model="numpy")
def _columns(table, bags, slots, step, settings, scale, fold, work, winner, column, first, last):
    """Finish the step before and begin this one, in LANE columns of one table: columns first to last of f."""
    columns = min(LANE, last - first - column)
    if step > 0:
        update_columns(
            bags, table, column, slots[step - 1], settings, scale, work.slope, winner, first + column, columns
        )
    if fold and scale != 1:
        scale_columns(table, column, scale)
    if step < len(slots):
        scale = np.float32(1) if fold else scale
        pool_columns(bags, table, column, slots[step], settings, scale, work.pooled, winner, first + column, columns)


@numba.njit(cache=True, error_model="numpy")
def _mean(shares, count):
    """The shares added up in order, over a count."""
    total = 0.0
    for share in shares:
        total += share
    return total / count


@numba.njit(cache=True, error_model="numpy")
def _block(model, settings, work, block):
    """Forward and backward for the triplets of one block; writes its slots of the workspace."""
    start, stop = work.bounds[block], work.bounds[block + 1]
    pooled, hidden = work.pooled[3 * start : 3 * stop], work.hidden[3 * start : 3 * stop]
    np.dot(pooled, model.weight.T, hidden)
    work.loss_share[block] = _score(hidden, model.bias, settings, stop - start)
    np.dot(hidden, model.weight, work.slope[3 * start : 3 * stop])
    np.dot(hidden.T, pooled, work.weight_share[block])
    if settings.train_bias:
        share = work.bias_share[block]
        share[:] = 0
        for row in range(len(hidden)):
            for k in range(len(share)):
                share[k] += hidden[row, k]


@numba.njit(cache=True, error_model="numpy", fastmath=True)
def _score(hidden, bias, settings, count):
    """Turn Wf of a block's u, i and j rows into dL/dz in place; returns the block's sum of −ln σ."""
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
def _update_weight(model, settings, decay, work, task):
    """Add up the blocks' shares in order and take the step on this task's rows of W and b."""
    hidden, dim = model.weight.shape
    rate = np.float32(settings.learning_rate)
    for k in range(task * hidden // WEIGHT_TASKS, (task + 1) * hidden // WEIGHT_TASKS):
        for block in range(1, work.weight_share.shape[0]):
            for c in range(dim):
                work.weight_share[0, k, c] += work.weight_share[block, k, c]
        for c in range(dim):
            model.weight[k, c] = decay * model.weight[k, c] - rate * work.weight_share[0, k, c]
        if settings.train_bias:
            slope = np.float32(0)
            for block in range(work.bias_share.shape[0]):
                slope += work.bias_share[block, k]
            model.bias[k] = decay * model.bias[k] - rate * slope


@numba.njit(cache=True, error_model="numpy", parallel=True)
def _embed(bags, table, nodes, settings, pooled, first, last):
    """Pool one table for every node of nodes (k,) into columns first to last of pooled (k, dim)."""
    chunks = -(-len(nodes) // EMBED_NODES)
    for chunk in prange(chunks):
        start, stop = chunk * EMBED_NODES, min((chunk + 1) * EMBED_NODES, len(nodes))
        winner = np.empty((EMBED_NODES, table.shape[1]), np.int32)
        for column in range(0, last - first, LANE):
            columns = min(LANE, last - first - column)
            pool_columns(
                bags, table, column, nodes[start:stop], settings, np.float32(1), pooled[start:stop], winner,
                first + column, columns,
            )  # fmt: skip
