"""Skip-gram with negative sampling in plain NumPy: the definition that fast kernels are tested against."""

import numpy as np


def train(source, target, items, negatives, starts, schedule, first_rate: float, last_rate: float):
    """Take one SGD step per item, changing source and target in place: round by round, cell by cell, in order.

    The arguments are those of `sgns.train`. The rate falls evenly over the rounds, and over a cell within its round.
    """
    fall = (first_rate - last_rate) / len(schedule)
    for turn, cells in enumerate(schedule):
        for cell in cells:
            count = starts[cell + 1] - starts[cell]
            for k in range(count):
                row, hit = items[starts[cell] + k]
                others = negatives[starts[cell] + k]
                rows, sign = ([hit], 1) if hit >= 0 else (others[others >= 0], -1)
                step(source, target, row, rows, sign, first_rate - fall * (turn + k / count))


def step(source, target, row, rows, sign, rate: float):
    """One step down the loss of a source row with target rows, all scored beforehand."""
    slopes = gradient(target[rows] @ source[row], sign)
    own = source[row].copy()
    for hit, slope in zip(rows, slopes, strict=True):
        source[row] -= rate * slope * target[hit]
        target[hit] -= rate * slope * own


def loss(scores, sign):
    """−Σ ln σ(sign × s): of a pair, whose sign is 1, or of its negatives, whose sign is −1."""
    return np.logaddexp(0, -sign * scores).sum()


def gradient(scores, sign):
    """The derivative of `loss` by each score."""
    return -sign / (1 + np.exp(sign * scores))
