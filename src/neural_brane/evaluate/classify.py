"""Predict nodes' classes from their vectors by logistic regression: the paper's first table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate.labelled import prepare
from neural_brane.evaluate.splits import Splits
from neural_brane.evaluate.summary import counter, deviation, summarise
from neural_brane.progress import Reporter

MAX_ITERATIONS = 10_000  # a bound, not a setting: a fit stops when it has converged
C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)  # what C="cv" chooses from
FOLDS = 5

Done = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Score:
    """F1 of each split at one training share."""

    train: float
    macro: tuple[float, ...]
    micro: tuple[float, ...]
    C: tuple[float, ...] = ()  # the one in force in each split, chosen there or given

    @property
    def macro_mean(self) -> float:
        """The mean Macro-F1: every class counts the same."""
        return float(np.mean(self.macro))

    @property
    def macro_sd(self) -> float:
        """The standard deviation of Macro-F1 from split to split (of the sample; 0 for one split)."""
        return deviation(self.macro)

    @property
    def micro_mean(self) -> float:
        """The mean Micro-F1: every node counts the same (here the same as accuracy)."""
        return float(np.mean(self.micro))

    @property
    def micro_sd(self) -> float:
        """The standard deviation of Micro-F1 from split to split (of the sample; 0 for one split)."""
        return deviation(self.micro)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, for JSON."""
        macro, micro = summarise(self.macro, "splits"), summarise(self.micro, "splits")
        return {"train": self.train, "macro_f1": macro, "micro_f1": micro, "C": list(self.C)}


@dataclass(frozen=True, slots=True)
class Classification:
    """The scores of a set of vectors, one per training share, and what they were computed on."""

    scores: tuple[Score, ...]
    labelled: int
    unlabelled: int
    classes: tuple[str, ...]
    splits: int
    seed: int | None
    stratify: bool
    C: float | str = 1.0

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
            "C": self.C,
            "scores": [score.as_dict() for score in self.scores],
        }


def classify(
    vectors: Embedding | np.ndarray,
    labels: Any,
    *,
    train: Sequence[float] = (0.3, 0.5, 0.7),
    splits: int | Splits = 10,
    seed: int = 0,
    stratify: bool = False,
    C: float | Literal["cv"] = 1.0,
    progress: Reporter | None = None,
) -> Classification:
    """Train logistic regression on part of the nodes, predict the rest, and score by F1.

    Vectors are taken as they are, on random splits as in the paper, or on splits that divide every class alike
    (`stratify`), the same for every method. `splits` may also be `Splits`, kept in
    a file: rows of the labelled nodes. `labels` stand in the order of the vectors; nodes labelled "" are left
    out and counted. `C` (the inverse of the penalty) is a number, or "cv": the best of `C_GRID` by Macro-F1 in
    stratified five-fold cross-validation, inside each training part.

    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["net", "text"], 50)
    >>> vectors = rng.normal(size=(100, 4)) + 5 * (labels == "net")[:, None]
    >>> classify(vectors, labels, train=[0.5]).at(0.5).macro_mean
    1.0
    """
    from threadpoolctl import threadpool_limits

    if C != "cv" and (isinstance(C, str) or not 0 < C < np.inf):
        raise ParameterError(f"C={C!r} makes no sense; give a number above 0, or 'cv' to choose it")
    table, target, classes, unlabelled = prepare(vectors, labels)
    _check_counts(target, classes)
    if not isinstance(splits, Splits):
        splits = Splits.draw(np.arange(len(table)), target, splits=splits, seed=seed, stratify=stratify)
    if len(splits.ids) != len(table):
        raise EmbeddingError(f"splits of {len(splits.ids)} nodes, {len(table)} labelled vectors: they must be the same")
    fits = 1 + FOLDS * len(C_GRID) if C == "cv" else 1
    done = counter(len(train) * len(splits) * fits, "regressions", progress)
    scores = []
    # BLAS on one thread: the order of sums, and so the last bits, would follow the number of threads.
    with threadpool_limits(1):
        for share in train:
            results = [_score(table, target, *parts, C, done) for parts in splits.parts(share)]
            scores.append(Score(share, *zip(*results, strict=True)))
    origin = (len(splits), splits.seed, splits.stratify)
    return Classification(tuple(scores), len(table), unlabelled, classes, *origin, C)


def _score(
    table: np.ndarray, target: np.ndarray, rows: np.ndarray, held_out: np.ndarray, C: float | str, done: Done
) -> tuple[float, float, float]:
    """Macro-F1 and Micro-F1 of one split, and the C in force."""
    chosen = _best_c(table[rows], target[rows], done) if C == "cv" else float(C)
    macro, micro = _fit(table, target, rows, held_out, chosen)
    done()
    return macro, micro, chosen


def _fit(
    table: np.ndarray, target: np.ndarray, rows: np.ndarray, held_out: np.ndarray, C: float
) -> tuple[float, float]:
    """Macro-F1 and Micro-F1 of one regression."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score

    if (target[rows] == target[rows[0]]).all():
        raise EmbeddingError(
            f"a random training part of {len(rows)} nodes holds one class only; label more nodes or train on more"
        )
    model = LogisticRegression(C=C, max_iter=MAX_ITERATIONS).fit(table[rows], target[rows])
    predicted, true = model.predict(table[held_out]), target[held_out]
    macro, micro = (f1_score(true, predicted, average=average) for average in ("macro", "micro"))
    return float(macro), float(micro)


def _best_c(table: np.ndarray, target: np.ndarray, done: Done) -> float:
    """The C of the grid with the best mean Macro-F1 over folds of a training part; the smallest of equals."""
    # Rows come shuffled, so members of a class, dealt out in turn, make folds that are random and stratified.
    folds = np.empty(len(target), dtype=np.int64)
    folds[np.argsort(target, kind="stable")] = np.arange(len(target)) % FOLDS
    if len(target) < FOLDS:
        raise EmbeddingError(f"{len(target)} training nodes are too few to choose C by {FOLDS} folds; give C a number")
    means = []
    for C in C_GRID:
        scores = []
        for fold in range(FOLDS):
            macro, _ = _fit(table, target, np.flatnonzero(folds != fold), np.flatnonzero(folds == fold), C)
            scores.append(macro)
            done()
        means.append(np.mean(scores))
    return C_GRID[int(np.argmax(means))]


def _check_counts(target: np.ndarray, classes: tuple[str, ...]) -> None:
    counts = np.bincount(target)
    if counts.min() < 2:
        more = f" (and {(counts < 2).sum() - 1} other classes)" if (counts < 2).sum() > 1 else ""
        raise EmbeddingError(
            f"class {classes[counts.argmin()]!r}{more} has one node, which cannot be both trained on and tested; "
            'merge it into another class or leave its node unlabelled ("")'
        )
