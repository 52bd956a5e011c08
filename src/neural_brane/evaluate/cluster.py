"""Compare clusters of the vectors, which k-means finds without labels, with the classes of the nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate.labelled import Classes, Repeats, Vectors
from neural_brane.insight.groups import run_k_means
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.progress import Meter, Reporter


@dataclass(frozen=True, slots=True)
class Clustering:
    """The agreement between the classes and the clusters, for each start of k-means."""

    nmi: Repeats  # normalised mutual information, by the arithmetic mean of the two entropies
    purity: Repeats  # share of nodes in the most common class of their cluster
    ari: Repeats  # adjusted Rand index; random clusters have 0 on average
    labelled: int
    unlabelled: int
    classes: tuple[str, ...]
    seed: int

    @property
    def starts(self) -> int:
        """The number of starts of k-means."""
        return len(self.nmi.values)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        about = {"labelled": self.labelled, "unlabelled": self.unlabelled, "classes": list(self.classes)}
        scores = {name: getattr(self, name).as_dict("starts") for name in ("nmi", "purity", "ari")}
        return about | {"starts": self.starts, "seed": self.seed} | scores


def cluster(
    vectors: Vectors, labels: Any, *, starts: int = 10, seed: int = 0, progress: Reporter | None = None
) -> Clustering:
    """Return scores of the agreement between the classes and as many clusters, found by k-means.

    Vectors are neither scaled nor centred. Every start of k-means (k-means++, one thread) is scored, not only the best.

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
    >>> cluster(vectors, labels).nmi.mean
    1.0
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    if starts < 1 or seed < 0:
        raise ParameterError(f"starts={starts}, seed={seed}: give at least one start, and a seed of 0 or more")
    classes = Classes.from_labels(labels)
    table, target, k = classes.rows(vectors), classes.target, len(classes.names)
    if len(table) < k:
        raise EmbeddingError(f"{len(table)} labelled vectors are too few for {k} clusters; label more nodes")
    meter = Meter(progress, starts, "starts")
    scores = []
    with one_blas_thread():  # else the order of sums, and so the last bits, would depend on the number of threads
        for start in range(starts):
            own_seed = int(np.random.SeedSequence((seed, start)).generate_state(1)[0])
            found = run_k_means(table, k, own_seed, starts=1, advice="did training collapse?")
            nmi, ari = normalized_mutual_info_score(target, found), adjusted_rand_score(target, found)
            scores.append((float(nmi), purity(target, found), float(ari)))
            meter.advance()
    nmis, purities, aris = map(Repeats, zip(*scores, strict=True))
    return Clustering(nmis, purities, aris, len(table), int((~classes.labelled).sum()), classes.names, seed)


def purity(target: np.ndarray, found: np.ndarray) -> float:
    """Return the share of nodes that belong to the most common class of their cluster.

    >>> purity(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]))
    0.75
    """
    from sklearn.metrics.cluster import contingency_matrix

    return float(contingency_matrix(target, found).max(axis=0).sum() / len(target))
