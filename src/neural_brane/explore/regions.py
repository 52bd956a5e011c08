"""Names for parts of the map: a few for the whole, more as one comes nearer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from neural_brane.blas import one_blas_thread
from neural_brane.explore.lift import counts_by_group, outstanding
from neural_brane.explore.nodes import Nodes

LEVELS = (8, 32, 128)  # regions of the whole map, of a part of it, and from near
FEWEST = 12  # nodes in a region, on average
SAMPLE = 20_000  # nodes from which the regions are found
ITERATIONS = 20  # of k-means; regions need not be the best ones
CLEAR = 0.6  # share of a region's nodes with one label, from which the label names it
WORDS = 2  # attributes that name a region


def regions(points: np.ndarray, nodes: Nodes, *, seed: int = 0) -> list[list[dict[str, Any]]]:
    """For each level, the regions of a map with their name, place and size; the largest first."""
    finest = [count for count in LEVELS if len(points) >= FEWEST * count] or ([1] if len(points) else [])
    return [_level(points, nodes, count, seed) for count in finest]


def _level(points: np.ndarray, nodes: Nodes, count: int, seed: int) -> list[dict[str, Any]]:
    groups = partition(points, count, seed)
    names = _names(points, nodes, groups, count)
    found = []
    for group, name in enumerate(names):
        members = np.flatnonzero(groups == group)
        if len(members) and name:
            x, y = np.median(points[members], axis=0).tolist()
            found.append({"name": name, "x": x, "y": y, "size": len(members)})
    return sorted(found, key=lambda region: -region["size"])


def partition(points: np.ndarray, count: int, seed: int) -> np.ndarray:
    """The region of every point, by k-means on a sample of them; the same seed, the same regions."""
    from scipy.cluster.vq import kmeans2

    rng = np.random.default_rng(seed)
    sample = points if len(points) <= SAMPLE else points[np.sort(rng.choice(len(points), SAMPLE, replace=False))]
    different = np.unique(sample, axis=0).astype(np.float64)
    if len(different) <= count:
        return np.asarray(cKDTree(different).query(points)[1])
    with one_blas_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a region that stays empty has no name, and is left out
        middles = kmeans2(sample.astype(np.float64), count, iter=ITERATIONS, minit="++", rng=rng)[0]
    return np.asarray(cKDTree(middles).query(points)[1])


def _names(points: np.ndarray, nodes: Nodes, groups: np.ndarray, count: int) -> list[str]:
    """What to call each region: by a common label, else by outstanding attributes, else by the node in the middle."""
    counts = counts_by_group(groups, count, nodes.attributes).toarray()
    classes, codes = nodes.classes
    names = []
    for group in range(count):
        members = np.flatnonzero(groups == group)
        if not len(members):
            names.append("")
            continue
        commonest = np.bincount(codes[members], minlength=len(classes) + 1)[: len(classes)]
        if len(classes) and commonest.max() >= CLEAR * len(members):
            names.append(str(classes[commonest.argmax()]))
            continue
        best = outstanding(counts[group], len(members), nodes.attribute_counts, len(nodes), WORDS)
        middle = members[np.argmin(np.square(points[members] - points[members].mean(axis=0)).sum(axis=1))]
        words = [str(nodes.attribute_names[int(at)]) for at in best]
        names.append(" · ".join(words) if words else nodes.name(int(middle)))
    return names
