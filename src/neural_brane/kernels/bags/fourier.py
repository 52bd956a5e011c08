"""Skip-gram whose sources are cosines and sines of attributes, on the CPU in Numba; the same bits on any threads.

Follows `bags.reference.profile_loss`: the gradients of a batch of sources are added up, and Adam steps down them.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from neural_brane.compiling import njit
from neural_brane.kernels.bags.cpu import Rows, descend, gathered, pool, turn
from neural_brane.kernels.bags.reference import MEAN_DECAY, SQUARE_DECAY
from neural_brane.kernels.cpu.lanes import fill, load, multiply_add, store, total
from neural_brane.kernels.model import LANE, padded, zeros


class Tables(NamedTuple):
    """What is trained, with the running means of Adam. Spare columns are zero and stay so."""

    maps: np.ndarray  # (attributes, padded(half)) float32
    maps_mean: np.ndarray
    maps_square: np.ndarray
    contexts: np.ndarray  # (nodes, 2 × padded(half)) float32: for the cosines, then for the sines
    contexts_mean: np.ndarray
    contexts_square: np.ndarray


def empty_tables(attributes: int, nodes: int, dim: int) -> Tables:
    """Tables of zeros for vectors of this width."""
    width = padded(dim - dim // 2)
    return Tables(*(zeros(attributes, width) for _ in range(3)), *(zeros(nodes, 2 * width) for _ in range(3)))


def train(tables: Tables, own: Rows, sources, targets, *, negatives: int, dim: int, rate: float, step: int, batch: int):
    """Train the tables in place: a step for every `batch` of the sources (k,); returns the mean loss of their targets.

    targets: (k, any) int32: nodes that a source predicts, each followed by its negatives; -1 for none. step: how many
    steps were taken before.
    """
    losses = np.empty(len(sources), np.float32)
    width, slots = tables.maps.shape[1], min(batch, len(sources))
    angles, vectors, slopes = zeros(slots, width), zeros(slots, 2 * width), zeros(slots, 2 * width)
    spare = [np.full(len(table), -1, np.int64) for table in (tables.maps, tables.contexts)]
    _train(tables, own, sources, targets, negatives, dim, rate, step, batch, losses, angles, vectors, slopes, *spare)
    return losses


@njit(error_model="numpy", parallel=True)
def _train(
    tables, own, sources, targets, negatives, dim, rate, step, batch, losses, angles, vectors, slopes, maps_at, nodes_at
):
    for start in range(0, len(sources), batch):
        count = min(batch, len(sources) - start)
        drawn, factors = targets[start : start + count], np.zeros((count, targets.shape[1]), np.float32)
        bags, rows, amounts = _bags_of(own, sources[start : start + count])
        for k in prange(count):
            pool(tables.maps, rows, amounts, bags[k], bags[k + 1], angles, k)
            _embed(angles, vectors, k, dim)
            losses[start + k] = _score(tables.contexts, vectors, k, negatives, drawn, factors, slopes)
            _turn_back(angles, slopes, k, dim)
        indptr, hits, shares = _flat(drawn, factors)
        step += 1
        own_rate = np.float32(rate * np.sqrt(1 - SQUARE_DECAY**step) / (1 - MEAN_DECAY**step))
        distinct, starts, entries, slots = turn(bags, rows, maps_at)
        gradient = np.empty((len(distinct), angles.shape[1]), np.float32)
        for k in prange(len(distinct)):
            gathered(angles, amounts, entries, slots, starts[k], starts[k + 1], gradient, k)
            descend(tables.maps, tables.maps_mean, tables.maps_square, distinct[k], gradient, k, own_rate)
        others, firsts, picks, places_of = turn(indptr, hits, nodes_at)
        gradients = np.empty((len(others), vectors.shape[1]), np.float32)
        for k in prange(len(others)):
            gathered(vectors, shares, picks, places_of, firsts[k], firsts[k + 1], gradients, k)
            descend(tables.contexts, tables.contexts_mean, tables.contexts_square, others[k], gradients, k, own_rate)


@njit(error_model="numpy")
def _bags_of(own, nodes):
    """The rows of some nodes as one CSR matrix: indptr, columns and values."""
    indptr = np.zeros(len(nodes) + 1, np.int64)
    for k in range(len(nodes)):
        indptr[k + 1] = indptr[k] + own.indptr[nodes[k] + 1] - own.indptr[nodes[k]]
    rows, amounts = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    for k in range(len(nodes)):
        first = own.indptr[nodes[k]]
        for at in range(indptr[k], indptr[k + 1]):
            rows[at] = own.indices[first + at - indptr[k]]
            amounts[at] = own.values[first + at - indptr[k]]
    return indptr, rows, amounts


@njit(error_model="numpy")
def _embed(angles, vectors, k, dim):
    """vectors[k]: the cosines of angles[k] and, from the middle on, its sines."""
    half, middle = dim - dim // 2, angles.shape[1]
    scale = np.float32(1 / np.sqrt(half))
    for c in range(half):
        vectors[k, c] = scale * np.cos(angles[k, c])
    for c in range(dim - half):
        vectors[k, middle + c] = scale * np.sin(angles[k, c])


@njit(error_model="numpy")
def _turn_back(angles, slopes, k, dim):
    """angles[k] becomes the derivative by the angles: a cosine falls by its sine, a sine grows by its cosine."""
    half, middle = dim - dim // 2, angles.shape[1]
    scale = np.float32(1 / np.sqrt(half))
    for c in range(half):
        angle = angles[k, c]
        angles[k, c] = -scale * np.sin(angle) * slopes[k, c]
        if c < dim - half:
            angles[k, c] += scale * np.cos(angle) * slopes[k, middle + c]


@njit(error_model="numpy")
def _score(contexts, vectors, k, negatives, drawn, factors, slopes):
    """The mean loss of the targets of vectors[k]; factors[k] are its derivatives by the scores, slopes[k] by itself."""
    loss, targets = 0.0, 0
    for at in range(drawn.shape[1]):
        if drawn[k, at] < 0:
            continue
        score = fill(np.float32(0))
        for c in range(0, contexts.shape[1], LANE):
            score = multiply_add(load(vectors, k, c), load(contexts, drawn[k, at], c), score)
        sign = 1.0 if at % (1 + negatives) == 0 else -1.0
        signed = sign * total(score)
        factors[k, at] = np.float32(-sign / (1 + np.exp(signed)))
        loss += np.log1p(np.exp(-signed)) if signed > -30 else -signed
        targets += 1
    for c in range(0, contexts.shape[1], LANE):
        slope = fill(np.float32(0))
        for at in range(drawn.shape[1]):
            if drawn[k, at] >= 0:
                slope = multiply_add(fill(factors[k, at]), load(contexts, drawn[k, at], c), slope)
        store(slope, slopes, k, c)
    return loss / max(targets, 1)


@njit(error_model="numpy")
def _flat(drawn, factors):
    """The targets of all sources one after another and their factors, and where those of each source begin."""
    indptr = np.zeros(len(drawn) + 1, np.int64)
    hits, shares = np.empty(drawn.size, np.int32), np.empty(drawn.size, np.float32)
    found = 0
    for k in range(len(drawn)):
        for at in range(drawn.shape[1]):
            if drawn[k, at] >= 0:
                hits[found] = drawn[k, at]
                shares[found] = factors[k, at]
                found += 1
        indptr[k + 1] = found
    return indptr, hits[:found], shares[:found]
