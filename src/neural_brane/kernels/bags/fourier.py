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
from neural_brane.sampling.draws import draw_alias
from neural_brane.sampling.random import advance, stream, uniform


class Tables(NamedTuple):
    """What is trained, with the running means of Adam. Spare columns are zero and stay so."""

    maps: np.ndarray  # (attributes, padded(half)) float32
    maps_mean: np.ndarray
    maps_square: np.ndarray
    contexts: np.ndarray  # (nodes, 2 × padded(half)) float32: for the cosines, then for the sines
    contexts_mean: np.ndarray
    contexts_square: np.ndarray


class Draws(NamedTuple):
    """How targets are found: in the windows of walks, and negatives at random."""

    window: int
    negatives: int
    keep: np.ndarray  # these two are an AliasTable of the nodes' frequencies
    other: np.ndarray
    seed: np.uint64


def empty_tables(attributes: int, nodes: int, dim: int) -> Tables:
    """Tables of zeros for vectors of this width."""
    width = padded(dim - dim // 2)
    return Tables(*(zeros(attributes, width) for _ in range(3)), *(zeros(nodes, 2 * width) for _ in range(3)))


def train(tables: Tables, own: Rows, walks, places, draws: Draws, *, dim: int, rate: float, step: int, batch: int):
    """Train the tables in place, with one place (k,) int64 of each of the walks (k, length) as a source.

    step: how many steps were taken before; it also numbers the draws, so every batch but the last of a training is
    full. Returns the mean loss of a target, walk by walk.
    """
    losses = np.empty(len(walks), np.float32)
    width, slots = tables.maps.shape[1], min(batch, len(walks))
    angles, vectors, slopes = zeros(slots, width), zeros(slots, 2 * width), zeros(slots, 2 * width)
    spare = [np.full(len(table), -1, np.int64) for table in (tables.maps, tables.contexts)]
    _train(tables, own, walks, places, draws, dim, rate, step, batch, losses, angles, vectors, slopes, *spare)
    return losses


@njit(error_model="numpy", parallel=True)
def _train(
    tables, own, walks, places, draws, dim, rate, step, batch, losses, angles, vectors, slopes, maps_at, contexts_at
):
    most = 2 * draws.window * (1 + draws.negatives)
    for start in range(0, len(walks), batch):
        count = min(batch, len(walks) - start)
        sources = np.empty(count, np.int64)
        drawn, factors = np.empty((count, most), np.int32), np.empty((count, most), np.float32)
        indptr = np.zeros(count + 1, np.int64)
        for k in range(count):
            sources[k] = walks[start + k, places[start + k]]
        bags, rows, amounts = _bags_of(own, sources)
        for k in prange(count):
            pool(tables.maps, rows, amounts, bags[k], bags[k + 1], angles, k)
            _embed(angles, vectors, k, dim)
            found = _draw(walks[start + k], places[start + k], draws, step * batch + k, drawn[k])
            indptr[k + 1] = found
            losses[start + k] = _score(tables.contexts, vectors, k, draws.negatives, drawn[k, :found], factors, slopes)
            _turn_back(angles, vectors, slopes, k, dim)
        hits, shares = _flat(indptr, drawn, factors)
        step += 1
        own_rate = np.float32(rate * np.sqrt(1 - SQUARE_DECAY**step) / (1 - MEAN_DECAY**step))
        distinct, starts, entries, slots = turn(bags, rows, maps_at)
        gradient = np.empty((len(distinct), angles.shape[1]), np.float32)
        for k in prange(len(distinct)):
            gathered(angles, amounts, entries, slots, starts[k], starts[k + 1], gradient, k)
            descend(tables.maps, tables.maps_mean, tables.maps_square, distinct[k], gradient, k, own_rate)
        others, firsts, picks, places_of = turn(indptr, hits, contexts_at)
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
def _turn_back(angles, vectors, slopes, k, dim):
    """angles[k] becomes the derivative by the angles: a cosine falls by its sine, a sine grows by its cosine."""
    half, middle = dim - dim // 2, angles.shape[1]
    scale = np.float32(1 / np.sqrt(half))
    for c in range(half):
        angle = angles[k, c]
        angles[k, c] = -scale * np.sin(angle) * slopes[k, c]
        if c < dim - half:
            angles[k, c] += scale * np.cos(angle) * slopes[k, middle + c]


@njit(error_model="numpy")
def _draw(walk, place, draws, number, hits):
    """Fill hits with each context and, after it, as many negatives as it takes; -1 for one that is the context itself.

    Returns how many there are.
    """
    state, found = stream(draws.seed, number), 0
    for at in range(max(place - draws.window, 0), min(place + draws.window + 1, len(walk))):
        if at == place or walk[at] < 0:
            continue
        hits[found] = walk[at]
        for other in range(1, draws.negatives + 1):
            state = advance(state)
            drawn = draw_alias(draws, uniform(state))
            hits[found + other] = drawn if drawn != walk[at] else -1
        found += 1 + draws.negatives
    return found


@njit(error_model="numpy")
def _score(contexts, vectors, k, negatives, hits, factors, slopes):
    """The mean loss of the targets of vectors[k]; factors[k] are its derivatives by the scores, slopes[k] by itself."""
    loss, targets = 0.0, 0
    for at in range(len(hits)):
        factors[k, at] = 0
        if hits[at] < 0:
            continue
        score = fill(np.float32(0))
        for c in range(0, contexts.shape[1], LANE):
            score = multiply_add(load(vectors, k, c), load(contexts, hits[at], c), score)
        sign = 1.0 if at % (1 + negatives) == 0 else -1.0
        signed = sign * total(score)
        factors[k, at] = np.float32(-sign / (1 + np.exp(signed)))
        loss += np.log1p(np.exp(-signed)) if signed > -30 else -signed
        targets += 1
    for c in range(0, contexts.shape[1], LANE):
        slope = fill(np.float32(0))
        for at in range(len(hits)):
            if hits[at] >= 0:
                slope = multiply_add(fill(factors[k, at]), load(contexts, hits[at], c), slope)
        store(slope, slopes, k, c)
    return loss / max(targets, 1)


@njit(error_model="numpy")
def _flat(indptr, drawn, factors):
    """The targets of all sources one after another, without those left out; indptr becomes where each begins."""
    hits = np.empty(indptr.sum(), np.int32)
    shares = np.empty(len(hits), np.float32)
    found = 0
    for k in range(len(indptr) - 1):
        count = indptr[k + 1]
        for at in range(count):
            if drawn[k, at] >= 0:
                hits[found] = drawn[k, at]
                shares[found] = factors[k, at]
                found += 1
        indptr[k + 1] = found
    return hits[:found], shares[:found]
