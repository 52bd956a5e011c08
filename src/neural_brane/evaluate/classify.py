"""Predict nodes' classes from their vectors by logistic regression: the paper's first table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError
from neural_brane.evaluate.splits import random_splits

MAX_ITERATIONS = 10_000  # a bound, not a setting: a fit stops when it has converged


@dataclass(frozen=True, slots=True)
class Score:
    """F1 of each split at one training share."""

    train: float
    macro: tuple[float, ...]
    micro: tuple[float, ...]

    @property
    def macro_mean(self) -> float:
        """The mean Macro-F1: every class counts the same."""
        return float(np.mean(self.macro))

    @property
    def macro_sd(self) -> float:
        """The standard deviation of Macro-F1 from split to split (of the sample; 0 for one split)."""
        return _deviation(self.macro)

    @property
    def micro_mean(self) -> float:
        """The mean Micro-F1: every node counts the same (here the same as accuracy)."""
        return float(np.mean(self.micro))

    @property
    def micro_sd(self) -> float:
        """The standard deviation of Micro-F1 from split to split (of the sample; 0 for one split)."""
        return _deviation(self.micro)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, for JSON."""
        macro = {"mean": self.macro_mean, "sd": self.macro_sd, "splits": list(self.macro)}
        micro = {"mean": self.micro_mean, "sd": self.micro_sd, "splits": list(self.micro)}
        return {"train": self.train, "macro_f1": macro, "micro_f1": micro}


@dataclass(frozen=True, slots=True)
class Classification:
    """The scores of a set of vectors, one per training share, and what they were computed on."""

    scores: tuple[Score, ...]
    labelled: int
    unlabelled: int
    classes: tuple[str, ...]
    splits: int
    seed: int
    stratify: bool

    def at(self, train: float) -> Score:
        """The score at one training share."""
        for score in self.scores:
            if score.train == train:
                return score
        raise EmbeddingError(f"no score at train={train}; there are {[score.train for score in self.scores]}")

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "labelled": self.labelled,
            "unlabelled": self.unlabelled,
            "classes": list(self.classes),
            "splits": self.splits,
            "seed": self.seed,
            "stratify": self.stratify,
            "scores": [score.as_dict() for score in self.scores],
        }


def classify(
    vectors: Embedding | np.ndarray,
    labels: Any,
    *,
    train: Sequence[float] = (0.3, 0.5, 0.7),
    splits: int = 10,
    seed: int = 0,
    stratify: bool = False,
) -> Classification:
    """Train logistic regression on part of the nodes, predict the rest, and score by F1.

    The regression is scikit-learn's as it was when the paper was written: liblinear, one class against the rest,
    C = 1, vectors as they are. Splits are random as in the paper, or divide every class alike
    (`stratify`); `random_splits` makes them, the same for every method. `labels` stand in the order of the
    vectors; nodes labelled "" are left out and counted.

    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["net", "text"], 50)
    >>> vectors = rng.normal(size=(100, 4)) + 5 * (labels == "net")[:, None]
    >>> classify(vectors, labels, train=[0.5]).at(0.5).macro_mean
    1.0
    """
    from threadpoolctl import threadpool_limits

    table, target, classes, unlabelled = _prepare(vectors, labels)
    scores = []
    # BLAS on one thread: the order of sums, and so the last bits, would follow the number of threads.
    with threadpool_limits(1):
        for share in train:
            pairs = random_splits(target, share, splits=splits, seed=seed, stratify=stratify)
            macro, micro = zip(*(_fit(table, target, *pair) for pair in pairs), strict=True)
            scores.append(Score(share, macro, micro))
    return Classification(tuple(scores), len(table), unlabelled, classes, splits, seed, stratify)


def _fit(table: np.ndarray, target: np.ndarray, rows: np.ndarray, held_out: np.ndarray) -> tuple[float, float]:
    """Macro-F1 and Micro-F1 of one split."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.multiclass import OneVsRestClassifier

    if (target[rows] == target[rows[0]]).all():
        raise EmbeddingError(
            f"a random training part of {len(rows)} nodes holds one class only; label more nodes or train on more"
        )
    regression = LogisticRegression(C=1.0, solver="liblinear", max_iter=MAX_ITERATIONS)
    model = OneVsRestClassifier(regression).fit(table[rows], target[rows])
    predicted, true = model.predict(table[held_out]), target[held_out]
    macro, micro = (f1_score(true, predicted, average=average) for average in ("macro", "micro"))
    return float(macro), float(micro)


def _prepare(vectors: Embedding | np.ndarray, labels: Any) -> tuple[np.ndarray, np.ndarray, tuple[str, ...], int]:
    """The labelled rows in float64, their classes as numbers."""
    table = vectors.vectors if isinstance(vectors, Embedding) else np.asarray(vectors)
    names = np.asarray(labels).astype(str)
    if table.ndim != 2 or names.shape != table.shape[:1]:
        raise EmbeddingError(f"vectors {table.shape} and labels {names.shape}: one row and one label per node")
    kept = names != ""
    classes, target, counts = np.unique(names[kept], return_inverse=True, return_counts=True)
    if len(classes) < 2:
        raise EmbeddingError(f"{len(classes)} class(es) among the labels; at least two are needed to tell apart")
    if counts.min() < 2:
        raise EmbeddingError(
            f"class {classes[counts.argmin()].item()!r} has one node, "
            "which cannot be both trained on and tested; "
            'merge it into another class or leave its node unlabelled ("")'
        )
    table = table[kept].astype(np.float64)
    if not np.isfinite(table).all():
        bad = int((~np.isfinite(table)).any(axis=1).sum())
        raise EmbeddingError(f"{bad:,} of {len(table):,} vectors hold NaN or infinity; did training diverge?")
    return table, target, tuple(classes.tolist()), int((~kept).sum())


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
