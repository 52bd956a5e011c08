"""Skip-gram with negative sampling in plain NumPy: the definition that fast kernels are tested against."""

import numpy as np


def train(source, target, pairs, negatives, starts, schedule, first_rate: float, last_rate: float):
    """Take one SGD step per pair, changing source and target in place: round by round, cell by cell, in order.

    The arguments are those of `sgns.train`. The rate falls evenly over the rounds, and over a cell within its round.
    """
    fall = (first_rate - last_rate) / len(schedule)
    for turn, cells in enumerate(schedule):
        for cell in cells:
            count = starts[cell + 1] - starts[cell]
            for k in range(count):
                at = starts[cell] + k
                rate = first_rate - fall * (turn + k / count)
                others = negatives[at][negatives[at] >= 0]
                step(source, target, pairs[at, 0], np.array([pairs[at, 1], *others]), rate)


def step(source, target, row, rows, rate: float):
    """One step on a source row and its target rows, the first of which is the true one; all scored beforehand."""
    slopes = gradient(target[rows] @ source[row])
    own = source[row].copy()
    for hit, slope in zip(rows, slopes, strict=True):
        source[row] -= rate * slope * target[hit]
        target[hit] -= rate * slope * own


def loss(scores):
    """−ln σ(s₀) − Σ ln σ(−s) over the others, of scores (1 + negatives,)."""
    signs = np.where(np.arange(len(scores)) == 0, 1, -1)
    return np.logaddexp(0, -signs * scores).sum()


def gradient(scores):
    """The derivative of `loss` by each score: σ(s), less one for the first."""
    return 1 / (1 + np.exp(-scores)) - (np.arange(len(scores)) == 0)
