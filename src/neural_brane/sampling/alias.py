"""Alias tables: draw from any fixed distribution with one random number and two look-ups."""

from typing import NamedTuple

import numba
import numpy as np


class AliasTable(NamedTuple):
    """A distribution over 0 … n-1, ready to draw from."""

    keep: np.ndarray  # (n,) float32: the chance to stay at a slot once it is hit
    other: np.ndarray  # (n,) int32: where to go instead


def alias_table(weights: np.ndarray) -> AliasTable:
    """Build the table of a distribution proportional to weights (n,), which must be ≥ 0 with a positive sum.

    >>> alias_table(np.array([1.0, 1.0])).keep
    array([1., 1.], dtype=float32)
    """
    share = np.asarray(weights, np.float64) * (len(weights) / np.sum(weights, dtype=np.float64))
    table = AliasTable(np.ones(len(share), np.float32), np.arange(len(share), dtype=np.int32))
    _fill(share, table.keep, table.other)
    return table


@numba.njit(cache=True)
def _fill(share, keep, other):
    """Vose's method: give each slot poorer than average the surplus of one richer slot. Consumes share (n,)."""
    order = np.empty(len(share), np.int32)  # the poor from the left, the rich from the right
    poor, rich = 0, len(share)
    for k in range(len(share)):
        if share[k] < 1:
            order[poor] = k
            poor += 1
        else:
            rich -= 1
            order[rich] = k
    while poor > 0 and rich < len(share):
        poor -= 1
        k, giver = order[poor], order[rich]
        keep[k] = share[k]
        other[k] = giver
        share[giver] -= 1 - share[k]
        if share[giver] < 1:
            rich += 1
            order[poor] = giver
            poor += 1


@numba.njit(cache=True)
def draw_alias(table, uniform):
    """One draw from an AliasTable, given one uniform number in [0, 1)."""
    position = uniform * len(table.keep)
    k = np.int64(position)
    return np.int64(k) if position - k < table.keep[k] else np.int64(table.other[k])
