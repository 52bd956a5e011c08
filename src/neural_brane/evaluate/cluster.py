"""Find the nodes' classes again without looking at labels: k-means, as the paper does it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate.labelled import prepare
from neural_brane.evaluate.summary import counter, deviation, summarise
from neural_brane.progress import Reporter


@dataclass(frozen=True, slots=True)
class Clustering:
    """How well the clusters of each start of k-means agree with the classes."""

    nmi: tuple[float, ...]
    purity: tuple[float, ...]
    ari: tuple[float, ...]
    labelled: int
    unlabelled: int
    classes: tuple[str, ...]
    seed: int

    @property
    def starts(self) -> int:
        """How many times k-means was started."""
        return len(self.nmi)

    @property
    def nmi_mean(self) -> float:
        """The mean normalised mutual information (by the arithmetic mean of the two entropies)."""
        return float(np.mean(self.nmi))

    @property
    def nmi_sd(self) -> float:
        """Its standard deviation from start to start (of the sample)."""
        return deviation(self.nmi)

    @property
    def purity_mean(self) -> float:
        """The mean share of nodes that belong to the commonest class of their cluster."""
        return float(np.mean(self.purity))

    @property
    def purity_sd(self) -> float:
        """Its standard deviation from start to start (of the sample)."""
        return deviation(self.purity)

    @property
    def ari_mean(self) -> float:
        """The mean adjusted Rand index: 0 for clusters at random."""
        return float(np.mean(self.ari))

    @property
    def ari_sd(self) -> float:
        """Its standard deviation from start to start (of the sample)."""
        return deviation(self.ari)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "labelled": self.labelled,
            "unlabelled": self.unlabelled,
            "classes": list(self.classes),
            "starts": self.starts,
            "seed": self.seed,
            "nmi": summarise(self.nmi, "starts"),
            "purity": summarise(self.purity, "starts"),
            "ari": summarise(self.ari, "starts"),
        }


def cluster(
    vectors: Embedding | np.ndarray,
    labels: Any,
    *,
    starts: int = 10,
    seed: int = 0,
    progress: Reporter | None = None,
) -> Clustering:
    """Run k-means with as many clusters as there are classes, and compare the two.

    Vectors are taken as they are. Every start is a run of its own (k-means++, one thread) and is scored; none
    is chosen over another. `labels` stand in the order of the vectors; nodes labelled "" are left out.

    >>> labels = np.repeat(["net", "text"], 50)
    >>> vectors = np.random.default_rng(0).normal(size=(100, 4)) + 9 * (labels == "net")[:, None]
    >>> cluster(vectors, labels).nmi_mean
    1.0
    """
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
    from threadpoolctl import threadpool_limits

    if starts < 1 or seed < 0:
        raise ParameterError(f"starts={starts}, seed={seed}: at least one start, and a seed from 0, are needed")
    table, target, classes, unlabelled = prepare(vectors, labels)
    done = counter(starts, "starts", progress)
    scores = []
    with threadpool_limits(1):  # the order of sums, and so the last bits, would follow the number of threads
        for start in range(starts):
            own_seed = int(np.random.SeedSequence((seed, start)).generate_state(1)[0])
            found = _partition(table, len(classes), own_seed)
            scores.append(
                (
                    float(normalized_mutual_info_score(target, found)),
                    purity(target, found),
                    float(adjusted_rand_score(target, found)),
                )
            )
            done()
    nmi, pure, ari = zip(*scores, strict=True)
    return Clustering(nmi, pure, ari, len(table), unlabelled, classes, seed)


def purity(target: np.ndarray, found: np.ndarray) -> float:
    """The share of nodes that belong to the commonest class of their cluster.

    >>> purity(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]))
    0.75
    """
    table = np.zeros((found.max() + 1, target.max() + 1), dtype=np.int64)
    np.add.at(table, (found, target), 1)
    return float(table.max(axis=1).sum() / len(target))


def _partition(table: np.ndarray, clusters: int, seed: int) -> np.ndarray:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if len(table) < clusters:
        raise EmbeddingError(f"{len(table)} vectors cannot make {clusters} clusters; label more nodes")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            return KMeans(clusters, n_init=1, random_state=seed).fit_predict(table)
        except ConvergenceWarning:
            raise EmbeddingError(
                f"fewer distinct vectors than the {clusters} classes: no clusters to find; did training collapse?"
            ) from None
