"""Skip-gram with negative sampling in plain NumPy: the definition that fast kernels are tested against."""

import numpy as np


def train(source, target, items, negatives, starts, schedule, first_rate: float, last_rate: float):
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
