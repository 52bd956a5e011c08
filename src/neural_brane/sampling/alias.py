"""Alias tables: a fixed distribution, ready to be drawn from with one random number and two look-ups.

NumPy alone: samplers on the GPU build the same tables where Numba is not installed. `draws` draws from them.
"""

from typing import NamedTuple

import numpy as np


class AliasTable(NamedTuple):
    """A distribution over 0 … n-1."""

    keep: np.ndarray  # (n,) float32: the chance to stay at a slot once it is hit
    other: np.ndarray  # (n,) int32: where to go instead


def alias_table(weights: np.ndarray) -> AliasTable:
    """Build the table of a distribution proportional to weights (n,), which must be ≥ 0 with a positive sum.

    Vose's method: slots below the average are filled up, one after the other, by the surplus of the current slot above
    it; a slot that has given too much is itself filled up by the next. Who gives to whom follows from the running sums
    of what the slots below lack and the slots above can spare.

    >>> alias_table(np.array([1.0, 1.0])).keep
    array([1., 1.], dtype=float32)
    """
    share = np.asarray(weights, np.float64) * (len(weights) / np.sum(weights, dtype=np.float64))
    table = AliasTable(np.ones(len(share), np.float32), np.arange(len(share), dtype=np.int32))
    poor = np.flatnonzero(share < 1)[::-1]
    rich = np.flatnonzero(share >= 1)[::-1]
    lack, spare = np.cumsum(1 - share[poor]), np.cumsum(share[rich] - 1)

    giver = np.searchsorted(spare, np.concatenate([[0.0], lack])[: len(poor)])  # the first that can still spare
    served = giver < len(rich)  # rounding can leave the last poor slots, which are almost full, without a giver
    table.keep[poor[served]] = share[poor[served]]
    table.other[poor[served]] = rich[giver[served]]

    last = np.searchsorted(lack, spare[:-1], side="right")  # the poor slot to which a rich one gives too much
    spent = np.flatnonzero(last < len(poor))
    table.keep[rich[spent]] = 1 + spare[spent] - lack[last[spent]]
    table.other[rich[spent]] = rich[spent + 1]
    return table
