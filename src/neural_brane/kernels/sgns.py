"""Skip-gram with negative sampling on the CPU, in Numba: `reference_sgns`, fast, and the same on any threads.

Training is plain sequential SGD within a cell of pairs. The cells of a round share no row, so they run side by
side, every number has one writer at a time, and the threads change no bit.
"""

import numba
import numpy as np
from numba import prange

from neural_brane.kernels.cpu import padded
from neural_brane.kernels.lanes import LANE, fill, load, multiply_add, store, total


def train(source, target, pairs, negatives, starts, schedule, first_rate: float, last_rate: float):
    """Take one SGD step per pair, changing source and target in place; the rate falls evenly from first to last.

    source, target: (rows, width) float32, width a multiple of LANE; they may be one and the same table.
    pairs: (k, 2) int32 source and target rows, sorted by cell. negatives: (k, n) int32 target rows, -1 for none.
    starts: (cells + 1,) int64 bounds of the cells in pairs. schedule: (rounds, tasks) int64; the cells of a round
    must share no row.
    """
    steps = np.empty((schedule.shape[1], padded(1 + negatives.shape[1])), np.float32)
    _train(source, target, pairs, negatives, starts, schedule, first_rate, last_rate, steps)


@numba.njit(cache=True, error_model="numpy", parallel=True)
def _train(source, target, pairs, negatives, starts, schedule, first_rate, last_rate, steps):
    rounds, tasks = schedule.shape
    fall = (first_rate - last_rate) / rounds
    for turn in range(rounds):
        for task in prange(tasks):
            cell = schedule[turn, task]
            rate = first_rate - turn * fall
            _cell(source, target, pairs, negatives, starts[cell], starts[cell + 1], rate, fall, steps, np.int64(task))


@numba.njit(cache=True, error_model="numpy")
def _cell(source, target, pairs, negatives, start, stop, first_rate, fall, steps, task):
    """Train the pairs of one cell in order; steps[task] keeps, for each target, how far to go."""
    targets = 1 + negatives.shape[1]
    for k in range(start, stop):
        rate = np.float32(first_rate - fall * (k - start) / (stop - start))
        row = pairs[k, 0]
        for n in range(targets):
            hit = pairs[k, 1] if n == 0 else negatives[k, n - 1]
            steps[task, n] = rate * ((n == 0) - _sigmoid(_score(source, row, target, hit))) if hit >= 0 else 0
        for c in range(0, source.shape[1], LANE):
            own = load(source, row, c)
            moved = own
            for n in range(targets):
                hit = pairs[k, 1] if n == 0 else negatives[k, n - 1]
                if hit >= 0:
                    step = fill(steps[task, n])
                    other = load(target, hit, c)
                    moved = multiply_add(step, other, moved)
                    store(multiply_add(step, own, other), target, hit, c)
            store(moved, source, row, c)


@numba.njit(cache=True, error_model="numpy")
def _score(source, row, target, hit):
    """The inner product of a source row and a target row."""
    score = fill(np.float32(0))
    for c in range(0, source.shape[1], LANE):
        score = multiply_add(load(source, row, c), load(target, hit, c), score)
    return total(score)


@numba.njit(cache=True, error_model="numpy")
def _sigmoid(score):
    return np.float32(1) / (np.float32(1) + np.exp(-score))
