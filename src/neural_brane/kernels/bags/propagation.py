"""Embedding propagation on the CPU, in Numba: follows `bags.reference.propagate`, with the same bits on any threads."""

from typing import NamedTuple

import numpy as np
from numba import prange

from neural_brane.compiling import njit
from neural_brane.kernels.bags.cpu import Rows, descend, gathered, pool, turn
from neural_brane.kernels.bags.reference import MEAN_DECAY, SQUARE_DECAY
from neural_brane.kernels.model import zeros


class Bags(NamedTuple):
    """What nodes are pooled of: their own rows, and those of their neighbours."""

    links: Rows
    own: Rows
    sizes: np.ndarray  # (nodes,) float64: of every node's own bag
    around: np.ndarray  # (nodes,) float64: of the bag of its neighbours


def propagate(table, mean, square, bags: Bags, nodes, others, *, margin: float, rate: float, step: int, batch: int):
    """Train a table (rows, width) in place, width a multiple of LANE; returns the loss of each of the nodes.

    nodes: to reconstruct, int64: each has a bag of its own and some around it. others: as many, int64, with a bag of
    their own. step: how many steps were taken before.
    """
    losses = np.empty(len(nodes), np.float32)
    pooled = zeros(3 * min(batch, len(nodes)), table.shape[1])
    place = np.full(len(table), -1, np.int64)
    _propagate(table, mean, square, bags, nodes, others, margin, rate, step, batch, losses, pooled, place)
    return losses


@njit(error_model="numpy", parallel=True)
def _propagate(table, mean, square, bags, nodes, others, margin, rate, step, batch, losses, pooled, place):
    for start in range(0, len(nodes), batch):
        stop = min(start + batch, len(nodes))
        count = stop - start
        indptr, rows, shares = _fill_bags(bags, nodes[start:stop], others[start:stop])
        for slot in prange(3 * count):
            pool(table, rows, shares, indptr[slot], indptr[slot + 1], pooled, slot)
        for k in prange(count):
            losses[start + k] = _rank(pooled, k, count + k, 2 * count + k, margin)
        distinct, starts, entries, slots = turn(indptr, rows, place)
        step += 1
        own_rate = np.float32(rate * np.sqrt(1 - SQUARE_DECAY**step) / (1 - MEAN_DECAY**step))
        gradient = np.empty((len(distinct), table.shape[1]), np.float32)
        for k in prange(len(distinct)):
            gathered(pooled, shares, entries, slots, starts[k], starts[k + 1], gradient, k)
            descend(table, mean, square, distinct[k], gradient, k, own_rate)


@njit(error_model="numpy")
def _fill_bags(bags, nodes, others):
    """The bags around the nodes, their own and those of the others, as (3 k + 1,) indptr, rows and their shares."""
    own, links = bags.own, bags.links
    indptr = np.zeros(3 * len(nodes) + 1, np.int64)
    for k in range(len(nodes)):
        node, other = nodes[k], others[k]
        for link in range(links.indptr[node], links.indptr[node + 1]):
            neighbour = links.indices[link]
            indptr[k + 1] += own.indptr[neighbour + 1] - own.indptr[neighbour]
        indptr[len(nodes) + k + 1] = own.indptr[node + 1] - own.indptr[node]
        indptr[2 * len(nodes) + k + 1] = own.indptr[other + 1] - own.indptr[other]
    for slot in range(3 * len(nodes)):
        indptr[slot + 1] += indptr[slot]
    rows, shares = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    at = 0
    for node in nodes:
        for link in range(links.indptr[node], links.indptr[node + 1]):
            scale = links.values[link] / bags.around[node]
            at = _copy_bag(own, links.indices[link], scale, rows, shares, at)
    for some in (nodes, others):
        for node in some:
            at = _copy_bag(own, node, 1 / bags.sizes[node], rows, shares, at)
    return indptr, rows, shares


@njit(error_model="numpy")
def _copy_bag(own, node, scale, rows, shares, at):
    """Append a node's own bag, its amounts times a scale; returns where the next entry goes."""
    for entry in range(own.indptr[node], own.indptr[node + 1]):
        rows[at] = own.indices[entry]
        shares[at] = scale * own.values[entry]
        at += 1
    return at


@njit(error_model="numpy")
def _rank(pooled, around, own, other, margin):
    """The loss of one node; its three slots of `pooled` become the gradients."""
    near = far = 0.0
    for c in range(pooled.shape[1]):
        near += np.float64(pooled[around, c] - pooled[own, c]) ** 2
        far += np.float64(pooled[around, c] - pooled[other, c]) ** 2
    near, far = np.sqrt(near), np.sqrt(far)
    loss = margin + near - far
    near_scale = np.float32(1 / near) if loss > 0 and near > 0 else np.float32(0)
    far_scale = np.float32(1 / far) if loss > 0 and far > 0 else np.float32(0)
    for c in range(pooled.shape[1]):
        to_own = near_scale * (pooled[around, c] - pooled[own, c])
        to_other = far_scale * (pooled[around, c] - pooled[other, c])
        pooled[around, c] = to_own - to_other
        pooled[own, c] = -to_own
        pooled[other, c] = to_other
    return max(loss, 0.0)
