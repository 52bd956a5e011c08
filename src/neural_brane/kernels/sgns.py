"""Train skip-gram with negative sampling, with the same bits on any number of threads; tests define it in NumPy."""

from typing import NamedTuple

import numpy as np
from numba import prange

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.cpu.lanes import fill, load, multiply_add, prefetch, store, total
from neural_brane.kernels.model import LANE, padded


class Tiles(NamedTuple):
    """Pairs and their negatives, sorted into tiles, and the rounds of tiles that may be trained in parallel."""

    items: np.ndarray  # (k, 2) int32: source row and target row; a negative target marks an item of negatives
    negatives: np.ndarray  # (k, n) int32: target rows of an item of negatives, -1 for an empty place
    starts: np.ndarray  # (tiles + 1,) int64: start of each tile's items
    schedule: np.ndarray  # (rounds, tasks) int64: tiles; the tiles of a round share no row


# Within a tile, training is sequential SGD. The tiles of a round share no row, so they run in parallel, and each number
# has one writer at a time.

FAR_BYTES = 8 << 20  # smallest table whose rows are prefetched: smaller ones fit the caches, and prefetching slows them


def train(source, target, tiles: Tiles, first_rate: float, last_rate: float):
    """Update both (rows, width) float32 tables in place, a step per item; the rate falls from first to last."""
    factors = np.empty((tiles.schedule.shape[1], padded(tiles.negatives.shape[1])), np.float32)
    _train(source, target, tiles, first_rate, last_rate, factors)


@njit(error_model="numpy", parallel=True)
def _train(source, target, tiles, first_rate, last_rate, factors):
    rounds, tasks = tiles.schedule.shape
    fall = (first_rate - last_rate) / rounds
    for turn in range(rounds):
        for task in prange(tasks):
            rates = first_rate - turn * fall, fall
            _train_tile(source, target, tiles, tiles.schedule[turn, task], rates, factors[task])


@njit(error_model="numpy")
def _train_tile(source, target, tiles, tile, rates, factors):
    """Train the items of one tile in order; rates: the first rate, and its fall over the tile."""
    start, stop = tiles.starts[tile], tiles.starts[tile + 1]
    far = source.size * source.itemsize >= FAR_BYTES
    for k in range(start, stop):
        rate = np.float32(rates[0] - rates[1] * (k - start) / (stop - start))
        if far and k + 1 < stop:
            _prefetch(source, target, tiles, k + 1)
        if tiles.items[k, 1] >= 0:
            _step_positive(source, target, tiles.items[k, 0], tiles.items[k, 1], rate)
        else:
            _step_negatives(source, target, tiles, k, rate, factors)


@njit(error_model="numpy")
def _prefetch(source, target, tiles, k):
    """Prefetch the source row and the target rows of item k."""
    row, hit = tiles.items[k, 0], tiles.items[k, 1]
    for c in range(0, source.shape[1], LANE):
        prefetch(source, row, c)
        if hit >= 0:
            prefetch(target, hit, c)
    if hit < 0:
        for n in range(tiles.negatives.shape[1]):
            for c in range(0, source.shape[1], LANE):
                prefetch(target, max(tiles.negatives[k, n], 0), c)


@njit(error_model="numpy")
def _step_positive(source, target, row, hit, rate):
    """Take a gradient step that increases ln σ(source · target)."""
    step = fill(rate * _sigmoid(-_score(source, row, target, hit)))
    for c in range(0, source.shape[1], LANE):
        own, other = load(source, row, c), load(target, hit, c)
        store(multiply_add(step, other, own), source, row, c)
        store(multiply_add(step, own, other), target, hit, c)


@njit(error_model="numpy")
def _step_negatives(source, target, tiles, k, rate, factors):
    """Take a gradient step that increases Σ ln σ(−source · negative); factors (≥ n,) float32 is scratch."""
    row, negatives = tiles.items[k, 0], tiles.negatives
    for n in range(negatives.shape[1]):
        hit = negatives[k, n]
        factors[n] = -rate * _sigmoid(_score(source, row, target, hit)) if hit >= 0 else np.float32(0)
    for c in range(0, source.shape[1], LANE):
        own = load(source, row, c)
        moved = own
        for n in range(negatives.shape[1]):
            hit = negatives[k, n]
            if hit >= 0:
                step, other = fill(factors[n]), load(target, hit, c)
                moved = multiply_add(step, other, moved)
                store(multiply_add(step, own, other), target, hit, c)
        store(moved, source, row, c)


@njit(error_model="numpy")
def _score(source, row, target, hit):
    """Return the inner product of a source row and a target row."""
    score = fill(np.float32(0))
    for c in range(0, source.shape[1], LANE):
        score = multiply_add(load(source, row, c), load(target, hit, c), score)
    return total(score)


@njit(error_model="numpy")
def _sigmoid(score):
    return np.float32(1) / (np.float32(1) + np.exp(-score))
