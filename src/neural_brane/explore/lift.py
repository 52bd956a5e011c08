"""Which attributes some nodes have more often than all nodes do."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def lifts(inside: np.ndarray, size: int, overall: np.ndarray, nodes: int) -> np.ndarray:
    """How many times more often each attribute is had among some nodes than among all.

    inside: (attributes,) how many of `size` nodes have each; overall: (attributes,) how many of all `nodes` have it.

    >>> lifts(np.array([2, 1]), 2, np.array([4, 4]), 8).tolist()
    [2.0, 1.0]
    """
    expected = overall * (size / max(nodes, 1))
    return np.divide(inside, expected, out=np.zeros(len(inside)), where=expected > 0)


def outstanding(inside: np.ndarray, size: int, overall: np.ndarray, nodes: int, most: int) -> np.ndarray:
    """The attributes that set some nodes apart: had more often than by chance, those that say most first.

    Ranked by count times the logarithm of the lift, the surprise at finding so many, so that neither what everyone
    has nor what one node alone has comes first.
    """
    lift = lifts(inside, size, overall, nodes)
    fewest = 2 if size > 3 else 1
    candidates = np.flatnonzero((lift > 1) & (inside >= fewest))
    surprise = inside[candidates] * np.log(lift[candidates])
    return candidates[np.argsort(-surprise, kind="stable")[:most]]


def counts_by_group(groups: np.ndarray, number: int, attributes: sparse.csr_array) -> sparse.csr_array:
    """(groups, attributes) how many nodes of each group have each attribute; nodes of group -1 do not count."""
    rows = np.flatnonzero(groups >= 0)
    ones = np.ones(len(rows), np.float32)
    membership = sparse.csr_array((ones, (groups[rows], rows)), shape=(number, len(groups)))
    present = sparse.csr_array(
        (np.ones(attributes.nnz, np.float32), attributes.indices, attributes.indptr), shape=attributes.shape
    )
    return sparse.csr_array(membership @ present)
