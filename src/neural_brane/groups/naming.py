"""Which attributes the nodes of a cluster have more often than others."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

SURE = 0.001  # the chance that a cluster of random nodes would be given any such name


class Name(NamedTuple):
    """An attribute that is over-represented in a cluster."""

    attribute: Any
    lift: float  # how many times as often as among all nodes
    share: float  # of the cluster's nodes that have it


def name_clusters(
    attributes: sparse.csr_array, names: np.ndarray, clusters: np.ndarray, k: int, top: int
) -> list[list[Name]]:
    """The attributes that name each cluster, the surest first, at most `top`; none where chance would do.

    An attribute counts that nodes of the cluster have more often than nodes elsewhere, and so much more that k random
    clusters of these sizes would be given any such name with a chance of 0.1 % (hypergeometric, Bonferroni's bound).
    They are ranked by how many deviations lie between what is found and what chance has.
    """
    nodes, width = attributes.shape
    holders = np.bincount(attributes.indices, minlength=width)
    has = sparse.csr_array((np.ones(attributes.nnz), attributes.indices, attributes.indptr), shape=attributes.shape)
    places = clusters, np.arange(nodes)
    counts = (sparse.csr_array((np.ones(nodes), places), shape=(k, nodes)) @ has).tocsr()
    bound = SURE / max(k * int(np.count_nonzero(holders)), 1)
    sizes = np.bincount(clusters, minlength=k).tolist()
    return [_names(counts[[at]], holders, names, (nodes, sizes[at]), bound, top) for at in range(k)]


def _names(
    counts: sparse.csr_array, holders: np.ndarray, names: np.ndarray, sizes: tuple[int, int], bound: float, top: int
) -> list[Name]:
    from scipy.stats import hypergeom

    columns, found, (nodes, size) = counts.indices, counts.data, sizes
    total = holders[columns]
    expected = size * total / nodes
    variance = expected * (1 - total / nodes) * (nodes - size) / max(nodes - 1, 1)
    deviations = np.divide(found - expected, np.sqrt(variance), out=np.zeros(len(found)), where=variance > 0)
    order = np.argsort(-deviations, kind="stable")[: 4 * top]
    chance = hypergeom.sf(found[order] - 1, nodes, total[order], size)
    sure = order[(chance <= bound) & (found[order] > expected[order])][:top]
    return [Name(names[columns[at]].item(), float(found[at] / expected[at]), float(found[at] / size)) for at in sure]
