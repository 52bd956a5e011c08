"""Predict a number of each node from its vector by ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neural_brane.errors import EmbeddingError
from neural_brane.evaluate.labelled import Repeats, Scored, Vectors, vectors_of
from neural_brane.evaluate.splits import Splits, score_splits, splits_of
from neural_brane.progress import Meter, Reporter

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)  # times the mean squared length of the centred training vectors
FEWEST = 3  # nodes to train on, and to test on


@dataclass(frozen=True, slots=True)
class NumberScore:
    """Scores of predicted numbers in each split, at one training share."""

    train: float
    r2: Repeats  # 1 is perfect, 0 as good as the mean of the test part, below 0 worse
    spearman: Repeats  # correlation of ranks, from -1 to 1: whether the order is right
    penalty: tuple[float, ...]  # chosen in each split, one of PENALTIES

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain numbers, for JSON."""
        r2, spearman = self.r2.as_dict("splits"), self.spearman.as_dict("splits")
        return {"train": self.train, "r2": r2, "spearman": spearman, "penalty": list(self.penalty)}


@dataclass(frozen=True, slots=True)
class Regression(Scored):
    """The scores of a set of vectors, one per training share, and what they were computed on."""

    scores: tuple[NumberScore, ...]
    labelled: int
    unlabelled: int
    mean: float  # of the numbers
    sd: float
    splits: int
    seed: int | None


def regress(
    vectors: Vectors,
    numbers: Any,
    *,
    train: Sequence[float] = (0.3, 0.5, 0.7),
    splits: int | Splits = 10,
    seed: int = 0,
    progress: Reporter | None = None,
) -> Regression:
    """Learn the numbers of part of the nodes by ridge regression and predict the others: R² and rank correlation.

    The penalty is the one of `PENALTIES` with the least squared error when each training node is left out in turn;
    no test node is looked at. Penalties are relative to the length of the vectors, so scaling all vectors changes
    nothing. Where all predictions are the same, the rank correlation counts as 0.

    Parameters
    ----------
    numbers
        In the order of the vectors; nodes with NaN are left out and counted.
    vectors, train, splits, seed
        As `classify` takes them.

    Examples
    --------
    >>> vectors = np.random.default_rng(0).normal(size=(60, 2))
    >>> found = regress(vectors, vectors @ [3.0, -1.0] + 7, train=[0.5]).at(0.5)
    >>> round(found.r2.mean, 4), found.spearman.mean
    (1.0, 1.0)
    """
    values = read_numbers(numbers)
    kept = ~np.isnan(values)
    table = vectors_of(vectors, kept, "numbers")
    target = values[kept]
    if len(target) == 0 or (target == target[0]).all():
        raise EmbeddingError(f"all {len(target)} numbers are the same: there is nothing to predict")
    divisions = splits_of(splits, len(table), seed)
    meter = Meter(progress, len(train) * len(divisions), "regressions")

    def score(rows: np.ndarray, held_out: np.ndarray) -> tuple[float, float, float]:
        found = _score(table, target, rows, held_out)
        meter.advance()
        return found

    scores = tuple(
        NumberScore(share, Repeats(r2), Repeats(spearman), chosen)
        for share, r2, spearman, chosen in score_splits(divisions, train, score)
    )
    about = (float(target.mean()), float(target.std()), len(divisions), divisions.seed)
    return Regression(scores, len(table), int((~kept).sum()), *about)


def read_numbers(numbers: Any) -> np.ndarray:
    """Numbers as float64, NaN where there is none."""
    try:
        values = np.ma.filled(np.ma.asarray(numbers, dtype=np.float64), np.nan)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(
            f"not numbers to predict ({error}); give a number per node, NaN where it has none"
        ) from None
    if np.isinf(values).any():
        raise EmbeddingError(
            f"{np.isinf(values).sum():,} of {len(values):,} numbers are infinite; give finite ones, or NaN"
        )
    return values


def _score(table: np.ndarray, target: np.ndarray, rows: np.ndarray, held_out: np.ndarray) -> tuple[float, float, float]:
    """R², rank correlation and the penalty of one split."""
    from sklearn.linear_model import RidgeCV
    from sklearn.metrics import r2_score

    true = target[held_out]
    for part, what in ((target[rows], "train on"), (true, "test on")):
        if len(part) < FEWEST or (part == part[0]).all():
            raise EmbeddingError(
                f"a random part of {len(part)} nodes to {what} is too small or has one number only; "
                "give numbers of more nodes, or another share to train on"
            )
    center = table[rows].mean(axis=0)
    unit = float(np.mean(np.sum((table[rows] - center) ** 2, axis=1))) or 1.0
    model = RidgeCV(alphas=[unit * one for one in PENALTIES]).fit(table[rows], target[rows])
    predicted = model.predict(table[held_out])
    chosen = min(PENALTIES, key=lambda one: abs(unit * one - model.alpha_))
    return float(r2_score(true, predicted)), rank_correlation(true, predicted), chosen


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's rank correlation; equal numbers share their mean rank, and it is 0 where one side has one number only.

    >>> round(rank_correlation(np.array([1, 2, 3]), np.array([10, 40, 1000])), 12)
    1.0
    """
    from scipy.stats import rankdata

    ranks = [rankdata(values) - (len(values) + 1) / 2 for values in (one, other)]
    lengths = np.sqrt([float(own @ own) for own in ranks])
    return float(np.clip(ranks[0] @ ranks[1] / lengths.prod(), -1, 1)) if lengths.all() else 0.0
