"""Random divisions of the labelled nodes, the same for every method that is compared."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neural_brane.errors import ParameterError


def random_splits(
    classes: np.ndarray, train: float, *, splits: int = 10, seed: int = 0, stratify: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield `splits` pairs (rows to train on, rows to test on) of nodes whose classes (nodes,) are given.

    Nodes are drawn at random, whatever their class, as the paper does; with `stratify`, every class is
    divided in the same proportion. They depend on the classes, `train`, `splits` and `seed` alone, so that
    methods are scored on the same divisions. Split k shuffles the same way at every share: its 30 % part
    lies within its 50 % part.

    >>> [(len(a), len(b)) for a, b in random_splits(np.zeros(10), 0.3, splits=2)]
    [(3, 7), (3, 7)]
    """
    nodes = len(classes)
    if not 0 < train < 1:
        raise ParameterError(f"train={train}: the share to train on must lie between 0 and 1, as in 0.3")
    if splits < 1:
        raise ParameterError(f"splits={splits}: at least one is needed")
    if seed < 0:
        raise ParameterError(f"seed={seed}: must be 0 or more")
    size = round(train * nodes)
    if not 0 < size < nodes:
        raise ParameterError(f"train={train} of {nodes} labelled nodes leaves nothing to train on or to test on")
    for split in range(splits):
        order = np.random.default_rng((seed, split)).permutation(nodes)
        if stratify:
            order = order[np.argsort(_place_in_class(classes[order]), kind="stable")]
        yield order[:size], order[size:]


def _place_in_class(classes: np.ndarray) -> np.ndarray:
    """How far through its own class each node stands, from 0 to 1: sorting by it interleaves the classes."""
    _, codes, counts = np.unique(classes, return_inverse=True, return_counts=True)
    place = np.empty(len(codes))
    place[np.argsort(codes, kind="stable")] = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
    return place
