"""Predict classes, several labels or numbers of nodes from their vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, cast

import numpy as np
from scipy import sparse

from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate.labelled import (
    Classes,
    Repeats,
    Result,
    Scored,
    Splits,
    Vectors,
    score_splits,
    splits_of,
    vectors_of,
)
from neural_brane.graph.labels import MultiLabels
from neural_brane.progress import Meter, Reporter

MAX_ITERATIONS = 10_000  # a bound, not a setting: a fit stops when it has converged
C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)  # what C="cv" chooses from
FOLDS = 5


@dataclass(frozen=True, slots=True)
class Score(Result):
    """F1 of each split at one training share."""

    train: float
    macro: Repeats  # Macro-F1: every class counts the same
    micro: Repeats  # Micro-F1: every node counts the same (here it equals accuracy)
    C: tuple[float, ...] = ()  # of the regression in each split: the one given, or chosen there
    renamed: ClassVar = {"macro": "macro_f1", "micro": "micro_f1"}


@dataclass(frozen=True, slots=True)
class Classification(Scored):
    """The scores of a set of vectors, one per training share, and what they were computed on."""

    scores: tuple[Score, ...]
    labelled: int
    unlabelled: int
    classes: tuple[str, ...]
    splits: int
    seed: int | None
    stratify: bool
    tuning: float = 0.0
    C: float | str = 1.0


def classify(
    vectors: Vectors | Callable[[np.ndarray], Vectors],
    labels: Any,
    *,
    train: Sequence[float] = (0.3, 0.5, 0.7),
    splits: int | Splits = 10,
    seed: int = 0,
    stratify: bool = False,
    tuning: float = 0.0,
    C: float | Literal["cv"] = 1.0,
    progress: Reporter | None = None,
) -> Classification:
    """Train logistic regression on part of the nodes, predict the rest, and score by F1.

    The regression is scikit-learn's as it was when the paper was written: liblinear, one class against the rest.

    Parameters
    ----------
    vectors
        One row per node, neither scaled nor centred before the regression. For a method that learns from labels, a
        function: it gets the labels of one split's training part, "" for all other nodes, and returns vectors that are
        scored on that split alone.
    labels
        In the order of the vectors; nodes labelled "" are left out and counted.
    train
        The shares of the nodes to train on.
    splits
        How many random splits to average over, the same for every method; or `Splits`, whose ids are the labelled
        nodes in the order of the vectors.
    stratify, tuning
        As `random_splits` takes them; the paper draws without regard to class.
    C
        The inverse of the penalty; or "cv", the best of `C_GRID` by Macro-F1 in stratified five-fold
        cross-validation inside each training part.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat(["net", "text"], 50)
    >>> vectors = rng.normal(size=(100, 4)) + 5 * (labels == "net")[:, None]
    >>> classify(vectors, labels, train=[0.5]).at(0.5).macro.mean
    1.0
    """
    if C != "cv" and (isinstance(C, str) or not 0 < C < np.inf):
        raise ParameterError(f"C={C!r} makes no sense; give a number above 0, or 'cv' to choose it")
    classes = Classes.of(labels)
    target = classes.target
    counts = np.bincount(target)
    if counts.min() < 2:
        more = f" (and {(counts < 2).sum() - 1} other classes)" if (counts < 2).sum() > 1 else ""
        raise EmbeddingError(
            f"class {classes.names[counts.argmin()]!r}{more} has one node, which cannot be both trained on and tested; "
            'merge it into another class or leave its node unlabelled ("")'
        )
    divisions = splits_of(splits, len(target), seed, target, stratify=stratify, tuning=tuning)
    meter = Meter(progress, len(train) * len(divisions) * (1 + FOLDS * len(C_GRID) if C == "cv" else 1), "regressions")
    table = None if callable(vectors) else classes.rows(vectors)

    def score(rows: np.ndarray, held_out: np.ndarray) -> tuple[float, float, float]:
        # A function that learns sees the labels of this split's training part alone.
        own = classes.rows(vectors(classes.only(rows))) if callable(vectors) else cast(np.ndarray, table)
        chosen = _best_c(own[rows], target[rows], meter) if C == "cv" else float(C)
        found = (*fit_split(own, target, rows, held_out, chosen), chosen)
        meter.advance()
        return found

    scores = _by_share(score_splits(divisions, train, score))
    origin = (len(divisions), divisions.seed, divisions.stratify, divisions.tuning)
    return Classification(scores, len(target), int((~classes.kept).sum()), classes.names, *origin, C)


def _by_share(values: Iterable[tuple[Any, ...]]) -> tuple[Score, ...]:
    """The scores at each training share, from its values of Macro-F1, Micro-F1 and C."""
    return tuple(Score(share, Repeats(macro), Repeats(micro), C) for share, macro, micro, C in values)


def fit_split(
    table: np.ndarray, target: np.ndarray, rows: np.ndarray, held_out: np.ndarray, C: float
) -> tuple[float, float]:
    """Macro-F1 and Micro-F1 of one regression."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.multiclass import OneVsRestClassifier

    if (target[rows] == target[rows[0]]).all():
        raise EmbeddingError(
            f"a random training part of {len(rows)} nodes holds one class only; label more nodes or train on more"
        )
    regression = LogisticRegression(C=C, solver="liblinear", max_iter=MAX_ITERATIONS)
    model = OneVsRestClassifier(regression).fit(table[rows], target[rows])
    predicted, true = model.predict(table[held_out]), target[held_out]
    macro, micro = (f1_score(true, predicted, average=average) for average in ("macro", "micro"))
    return float(macro), float(micro)


def _best_c(table: np.ndarray, target: np.ndarray, meter: Meter) -> float:
    """The C of the grid with the best mean Macro-F1 over the folds of a training part; in a tie, the smallest."""
    # Rows are shuffled already, so dealing out the members of each class in turn makes random, stratified folds.
    folds = np.empty(len(target), dtype=np.int64)
    folds[np.argsort(target, kind="stable")] = np.arange(len(target)) % FOLDS
    if len(target) < FOLDS:
        raise EmbeddingError(f"{len(target)} training nodes are too few to choose C by {FOLDS} folds; give C a number")
    means = []
    for C in C_GRID:
        scores = []
        for fold in range(FOLDS):
            macro, _ = fit_split(table, target, np.flatnonzero(folds != fold), np.flatnonzero(folds == fold), C)
            scores.append(macro)
            meter.advance()
        means.append(np.mean(scores))
    return C_GRID[int(np.argmax(means))]


# Predict the labels of nodes that have several, as the paper of DeepWalk scores them.


RULE = "of each test node as many labels are predicted as it has, the likeliest ones"


@dataclass(frozen=True, slots=True)
class MultilabelClassification(Scored):
    """The scores of vectors of nodes with several labels, one per training share."""

    scores: tuple[Score, ...]
    labelled: int
    unlabelled: int
    labels: tuple[str, ...]
    labels_per_node: float  # on average, over the labelled nodes
    splits: int
    seed: int | None
    C: float
    constants: ClassVar = {"rule": RULE}


def classify_several(
    vectors: Vectors,
    labels: Any,
    *,
    train: Sequence[float] = (0.3, 0.5, 0.7),
    splits: int | Splits = 10,
    seed: int = 0,
    C: float = 1.0,
    progress: Reporter | None = None,
) -> MultilabelClassification:
    """Learn each label against the rest on part of the nodes, predict those of the others, and score by F1.

    As in the paper of DeepWalk (Perozzi et al., 2014), how many labels a test node has is known: of k labels, the k
    likeliest are predicted. Macro-F1 is the mean over the labels that a test node has or was given; Micro-F1 counts
    all pairs of a node and a label alike. A label that no training node has is predicted last.

    Parameters
    ----------
    labels
        In the order of the vectors: a list of labels per node, a table (nodes, labels) of 0 and 1, sparse or not, or
        `MultiLabels`. Nodes without a label are left out and counted.
    vectors, train, splits, seed, C
        As `classify` takes them; C is a number.

    Examples
    --------
    >>> some = [["net"], ["net", "text"], ["text"]] * 20
    >>> vectors = np.array([[5.0, -5.0], [5.0, 5.0], [-5.0, 5.0]] * 20)
    >>> classify_several(vectors, some, train=[0.5]).at(0.5).macro.mean
    1.0
    """
    if not 0 < C < np.inf:
        raise ParameterError(f"C={C!r} makes no sense; give a number above 0")
    given = MultiLabels.of(labels)
    kept = given.counts > 0
    table = vectors_of(vectors, kept, "lists of labels")
    known = given[kept].without_unused()
    if len(known.names) < 2:
        raise EmbeddingError(f"{len(known.names)} different label(s); at least two are needed to tell apart")
    divisions = splits_of(splits, len(table), seed)
    meter = Meter(progress, len(train) * len(divisions), "splits")

    def score(rows: np.ndarray, held_out: np.ndarray) -> tuple[float, float, float]:
        true = known.members[held_out]
        certain = _decide(table[rows], known.members[rows].tocsc(), table[held_out], C)
        meter.advance()
        return *f1_of_labels(true, likeliest(certain, np.diff(true.indptr))), float(C)

    scores = _by_share(score_splits(divisions, train, score))
    mean = float(known.counts.mean())
    counts = (len(table), int((~kept).sum()), known.names, mean, len(divisions), divisions.seed)
    return MultilabelClassification(scores, *counts, float(C))


def _decide(known: np.ndarray, labels: sparse.csc_array, asked: np.ndarray, C: float) -> np.ndarray:
    """Logits of each node having each label, (asked, labels) float64; −inf for a label that no training node has."""
    from sklearn.linear_model import LogisticRegression

    certain = np.empty((len(asked), labels.shape[1]))
    for label in range(labels.shape[1]):
        has = labels[:, [label]].toarray()[:, 0]
        if has.all() or not has.any():
            certain[:, label] = np.inf if has.all() else -np.inf
            continue
        regression = LogisticRegression(C=C, solver="liblinear", max_iter=MAX_ITERATIONS)
        certain[:, label] = regression.fit(known, has).decision_function(asked)
    return certain


def likeliest(certain: np.ndarray, counts: np.ndarray) -> sparse.csr_array:
    """The likeliest labels of each node, as many as `counts` says: (nodes, labels) bool; of equals, the first.

    >>> likeliest(np.array([[0.1, 0.9, 0.5]]), np.array([2])).toarray().tolist()
    [[False, True, True]]
    """
    order = np.argsort(-certain, axis=1, kind="stable")
    taken = np.arange(certain.shape[1]) < counts[:, None]
    ends = np.concatenate([[0], np.cumsum(counts)])
    table = sparse.csr_array((np.ones(ends[-1], bool), order[taken], ends), shape=certain.shape)
    table.sort_indices()
    return table


def f1_of_labels(true: sparse.csr_array, predicted: sparse.csr_array) -> tuple[float, float]:
    """Macro-F1, over the labels that occur in one of the two, and Micro-F1.

    >>> one, other = sparse.csr_array([[True, False], [True, True]]), sparse.csr_array([[True, False], [True, False]])
    >>> f1_of_labels(one, other)
    (0.5, 0.8)
    """
    labels = true.shape[1]
    hits = np.bincount(true.multiply(predicted).tocsr().indices, minlength=labels)
    total = np.bincount(true.indices, minlength=labels) + np.bincount(predicted.indices, minlength=labels)
    occurs = total > 0
    return float(np.mean(2 * hits[occurs] / total[occurs])), float(2 * hits.sum() / total.sum())


PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)  # times the mean squared length of the centred training vectors
FEWEST = 3  # nodes to train on, and to test on


@dataclass(frozen=True, slots=True)
class NumberScore(Result):
    """Scores of predicted numbers in each split, at one training share."""

    train: float
    r2: Repeats  # 1 is perfect, 0 as good as the mean of the test part, below 0 worse
    spearman: Repeats  # correlation of ranks, from -1 to 1: whether the order is right
    penalty: tuple[float, ...]  # chosen in each split, one of PENALTIES


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
