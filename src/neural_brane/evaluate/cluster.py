"""Compare clusters of the vectors, which k-means finds without labels, with the classes of the nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate.labelled import Classes, Result, Vectors
from neural_brane.insight.groups import run_k_means
from neural_brane.progress import Reporter


@dataclass(frozen=True, slots=True)
class Clustering(Result):
    """The agreement between the classes and the clusters."""

    nmi: float  # normalised mutual information, by the arithmetic mean of the two entropies
    purity: float  # share of nodes in the most common class of their cluster
    ari: float  # adjusted Rand index; random clusters have 0 on average
    labelled: int
    unlabelled: int
    classes: tuple[str, ...]
    starts: int
    seed: int


def cluster(
    vectors: Vectors, labels: Any, *, starts: int = 10, seed: int = 0, progress: Reporter | None = None
) -> Clustering:
    """Return scores of the agreement between the classes and as many clusters, found by k-means.

    Vectors are neither scaled nor centred. Of several starts of k-means (k-means++), the one with the smallest inertia
    counts; labels do not choose it.

    Parameters
    ----------
    starts, seed : int
        Number of starts of k-means, and seed of their random numbers.
    vectors, labels, progress
        As in `classify`; vectors are no function.

    Examples
    --------
    >>> labels = np.repeat(["net", "text"], 50)
    >>> vectors = np.random.default_rng(0).normal(size=(100, 4)) + 9 * (labels == "net")[:, None]
    >>> cluster(vectors, labels).nmi
    1.0
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    if starts < 1 or seed < 0:
        raise ParameterError(f"starts={starts}, seed={seed}: give at least one start, and a seed of 0 or more")
    classes = Classes.from_labels(labels)
    table, target, k = classes.rows(vectors), classes.target, len(classes.names)
    if len(table) < k:
        raise EmbeddingError(f"{len(table)} labelled vectors are too few for {k} clusters; label more nodes")
    found = run_k_means(table, k, seed, starts=starts, advice="did training collapse?", progress=progress).labels_
    nmi, ari = normalized_mutual_info_score(target, found), adjusted_rand_score(target, found)
    scores = (float(nmi), purity(target, found), float(ari))
    return Clustering(*scores, len(table), int((~classes.labelled).sum()), classes.names, starts, seed)


def purity(target: np.ndarray, found: np.ndarray) -> float:
    """Return the share of nodes that belong to the most common class of their cluster.

    >>> purity(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]))
    0.75
    """
    from sklearn.metrics.cluster import contingency_matrix

    return float(contingency_matrix(target, found).max(axis=0).sum() / len(target))
