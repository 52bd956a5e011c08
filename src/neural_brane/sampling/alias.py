"""Alias tables: draw from any fixed distribution with one random number and two look-ups."""

import numba
import numpy as np


@numba.njit(cache=True)
def draw_alias(table, uniform):
    """One draw from an AliasTable, given one uniform number in [0, 1)."""
    position = uniform * len(table.keep)
    k = np.int64(position)
    return np.int64(k) if position - k < table.keep[k] else np.int64(table.other[k])
