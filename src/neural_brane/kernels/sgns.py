"""Skip-gram with negative sampling: the definition in NumPy and the fast version in Numba."""

import numpy as np
from numba import prange

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.cpu.lanes import fill, load, multiply_add, prefetch, store, total
from neural_brane.kernels.model import LANE, padded

# Skip-gram with negative sampling in plain NumPy: the definition that fast kernels are tested against.


def train_reference(source, target, items, negatives, starts, schedule, first_rate: float, last_rate: float):
    """Take one SGD step per item, changing source and target in place: round by round, tile by tile, in order.

    The arguments are those of `sgns.cpu.train`. The rate falls linearly over the rounds, and within
    a round over each tile.
    """
    fall = (first_rate - last_rate) / len(schedule)
    for turn, tiles in enumerate(schedule):
        for tile in tiles:
            count = starts[tile + 1] - starts[tile]
            for k in range(count):
                row, hit = items[starts[tile] + k]
                others = negatives[starts[tile] + k]
                rows, sign = ([hit], 1) if hit >= 0 else (others[others >= 0], -1)
                step(source, target, row, rows, sign, first_rate - fall * (turn + k / count))


def step(source, target, row, rows, sign, rate: float):
    """One gradient step on the loss of a source row with target rows, all scored before any changes."""
    slopes = gradient(target[rows] @ source[row], sign)
    own = source[row].copy()
    for hit, slope in zip(rows, slopes, strict=True):
        source[row] -= rate * slope * target[hit]
        target[hit] -= rate * slope * own


def loss(scores, sign):
    """−Σ ln σ(sign × s), with sign 1 for a pair and −1 for its negatives."""
    return np.logaddexp(0, -sign * scores).sum()


def gradient(scores, sign):
    """The derivative of `loss` by each score."""
    return -sign / (1 + np.exp(sign * scores))


# Skip-gram with negative sampling on the CPU, in Numba: follows `sgns.reference`, with the same bits on any threads.
#
# Training is sequential SGD within a tile of pairs. The tiles of a round share no row, so they run in parallel, every
# number has one writer at a time, and the number of threads changes no bit.

FAR_BYTES = (
    8 << 20
)  # a table this large does not fit the caches: rows are prefetched; for a smaller one that costs time


def train(source, target, items, negatives, starts, schedule, first_rate: float, last_rate: float):
    """Take one SGD step per item, changing source and target in place; the rate falls linearly from first to last.

    source, target: (rows, width) float32, width a multiple of LANE; they may be one and the same table.
    items: (k, 2) int32, sorted by tile: a source row and the target row of a positive pair, or a source row and any
    number below 0 for its negatives: (k, n) int32 target rows, -1 for none.
    starts: (tiles + 1,) int64 bounds of the tiles in items. schedule: (rounds, tasks) int64; the tiles of a round
    must share no row.
    """
    steps = np.empty((schedule.shape[1], padded(negatives.shape[1])), np.float32)
    _train(source, target, items, negatives, starts, schedule, first_rate, last_rate, steps)


@njit(error_model="numpy", parallel=True)
def _train(source, target, items, negatives, starts, schedule, first_rate, last_rate, steps):
    rounds, tasks = schedule.shape
    fall = (first_rate - last_rate) / rounds
    for turn in range(rounds):
        for task in prange(tasks):
            tile = schedule[turn, task]
            rate = first_rate - turn * fall
            _tile(source, target, items, negatives, starts[tile], starts[tile + 1], rate, fall, steps, np.int64(task))


@njit(error_model="numpy")
def _tile(source, target, items, negatives, start, stop, first_rate, fall, steps, task):
    """Train the items of one tile in order."""
    far = source.size * source.itemsize >= FAR_BYTES
    for k in range(start, stop):
        rate = np.float32(first_rate - fall * (k - start) / (stop - start))
        if far and k + 1 < stop:
            _prefetch(source, target, items, negatives, k + 1)
        if items[k, 1] >= 0:
            _step_positive(source, items[k, 0], target, items[k, 1], rate)
        else:
            _step_negatives(source, items[k, 0], target, negatives, k, rate, steps, task)


@njit(error_model="numpy")
def _prefetch(source, target, items, negatives, k):
    """Prefetch the rows of an item."""
    for c in range(0, source.shape[1], LANE):
        prefetch(source, items[k, 0], c)
        if items[k, 1] >= 0:
            prefetch(target, items[k, 1], c)
    if items[k, 1] < 0:
        for n in range(negatives.shape[1]):
            for c in range(0, source.shape[1], LANE):
                prefetch(target, max(negatives[k, n], 0), c)


@njit(error_model="numpy")
def _step_positive(source, row, target, hit, rate):
    """A gradient step that increases ln σ(source · target)."""
    step = fill(rate * _sigmoid(-_score(source, row, target, hit)))
    for c in range(0, source.shape[1], LANE):
        own, other = load(source, row, c), load(target, hit, c)
        store(multiply_add(step, other, own), source, row, c)
        store(multiply_add(step, own, other), target, hit, c)


@njit(error_model="numpy")
def _step_negatives(source, row, target, negatives, k, rate, steps, task):
    """A gradient step that increases Σ ln σ(−source · negative), scored first; steps[task] holds the factors."""
    for n in range(negatives.shape[1]):
        hit = negatives[k, n]
        steps[task, n] = -rate * _sigmoid(_score(source, row, target, hit)) if hit >= 0 else np.float32(0)
    for c in range(0, source.shape[1], LANE):
        own = load(source, row, c)
        moved = own
        for n in range(negatives.shape[1]):
            hit = negatives[k, n]
            if hit >= 0:
                step, other = fill(steps[task, n]), load(target, hit, c)
                moved = multiply_add(step, other, moved)
                store(multiply_add(step, own, other), target, hit, c)
        store(moved, source, row, c)


@njit(error_model="numpy")
def _score(source, row, target, hit):
    """The inner product of a source row and a target row."""
    score = fill(np.float32(0))
    for c in range(0, source.shape[1], LANE):
        score = multiply_add(load(source, row, c), load(target, hit, c), score)
    return total(score)


@njit(error_model="numpy")
def _sigmoid(score):
    return np.float32(1) / (np.float32(1) + np.exp(-score))
