"""Predict classes, several labels, or numbers of nodes from their vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
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
    as_splits,
    check_several,
    equal_length,
    labelled_rows,
    score_splits,
)
from neural_brane.graph.labels import MultiLabels
from neural_brane.progress import Meter, Reporter

MAX_ITERATIONS = 10_000  # an upper limit; a regression stops when it has converged
C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)  # values from which C="cv" chooses
FOLDS = 5  # folds of this choice


@dataclass(frozen=True, slots=True)
class Score(Result):
    """The F1 scores of all splits at one training share."""

    train: float
    macro: Repeats  # Macro-F1: every class counts the same
    micro: Repeats  # Micro-F1: every node counts the same; with one class per node it equals the accuracy
    C: tuple[float, ...] = ()  # inverse penalty of the regression in each split, given or chosen
    renamed: ClassVar = {"macro": "macro_f1", "micro": "micro_f1"}


@dataclass(frozen=True, slots=True)
class Classification(Scored):
    """The scores of `classify`, one per training share, and how they were computed."""

    scores: tuple[Score, ...]
    labelled: int
    unlabelled: int
    classes: tuple[str, ...]
    splits: int
    seed: int | None
    stratify: bool
    tuning: float = 0.0
    C: float | str = 1.0
    as_they_are: bool = False


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
    as_they_are: bool = False,
    progress: Reporter | None = None,
) -> Classification:
    """Return the F1 scores of logistic regression, trained on some of the nodes and tested on the others.

    The regression is scikit-learn's of the time of the paper: liblinear, one class against the rest.

    Parameters
    ----------
    vectors : Embedding, numpy.ndarray or function
        One vector per node (nodes, dim). For a method that learns from labels, a function from labels to vectors; for
        each split it gets the labels of the training nodes, and "" for all others.
    labels : array_like
        One label per vector, "" for none; nodes without a label are left out and counted.
    train : sequence of float
        Shares of the nodes to train on.
    splits, seed : int
        Number and seed of random splits, which are the same for every method. `splits` may also be a `Splits` of the
        labelled nodes.
    stratify, tuning
        As in `random_splits`.
    C : float or "cv"
        Inverse penalty; "cv" chooses one of `C_GRID` by five-fold cross-validation of the training nodes (Macro-F1).
    as_they_are : bool
        Do not scale the vectors. By default, one factor scales those of the labelled nodes to a root-mean-square length
        of 5, because the penalty favours methods whose vectors are long.
    progress : function, optional
        Called with a `neural_brane.progress.Progress`, a few times a second.

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
    classes = Classes.from_labels(labels)
    target = classes.target
    counts = np.bincount(target)
    if counts.min() < 2:
        more = f" (and {(counts < 2).sum() - 1} other classes)" if (counts < 2).sum() > 1 else ""
        raise EmbeddingError(
            f"class {classes.names[counts.argmin()]!r}{more} has only one node, but needs one to train on and one to "
            'test on; merge it into another class, or remove the label of its node ("")'
        )
    drawn = as_splits(splits, len(target), seed, target, stratify=stratify, tuning=tuning)
    prepare = classes.rows if as_they_are else lambda given: equal_length(classes.rows(given))
    meter = Meter(progress, len(train) * len(drawn) * (1 + FOLDS * len(C_GRID) if C == "cv" else 1), "regressions")
    table = None if callable(vectors) else prepare(vectors)

    def score(rows: np.ndarray, held_out: np.ndarray) -> tuple[float, float, float]:
        # A function sees only the labels of this split's training nodes.
        own = prepare(vectors(classes.labels_at(rows))) if callable(vectors) else cast(np.ndarray, table)
        chosen = _best_c(own[rows], target[rows], meter) if C == "cv" else float(C)
        return *fit_split(own, target, rows, held_out, chosen), chosen

    scores = _by_share(score_splits(drawn, train, score, meter))
    origin = (len(drawn), drawn.seed, drawn.stratify, drawn.tuning)
    return Classification(scores, len(target), int((~classes.labelled).sum()), classes.names, *origin, C, as_they_are)


def _by_share(values: Iterable[tuple[Any, ...]]) -> tuple[Score, ...]:
    """Return a score per training share, made from the share and the Macro-F1, Micro-F1 and C of all splits."""
    return tuple(Score(share, Repeats(macro), Repeats(micro), C) for share, macro, micro, C in values)


def fit_split(
    table: np.ndarray, target: np.ndarray, rows: np.ndarray, held_out: np.ndarray, C: float
) -> tuple[float, float]:
    """Return the Macro-F1 and the Micro-F1 of one regression, trained on `rows` and tested on `held_out`."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.multiclass import OneVsRestClassifier

    if (target[rows] == target[rows[0]]).all():
        raise EmbeddingError(
            f"all {len(rows)} random training nodes have the same class; label more nodes, or train on a larger share"
        )
    regression = LogisticRegression(C=C, solver="liblinear", max_iter=MAX_ITERATIONS)
    model = OneVsRestClassifier(regression).fit(table[rows], target[rows])
    predicted, true = model.predict(table[held_out]), target[held_out]
    macro, micro = (f1_score(true, predicted, average=average) for average in ("macro", "micro"))
    return float(macro), float(micro)


def _best_c(table: np.ndarray, target: np.ndarray, meter: Meter) -> float:
    """Return the C of the grid with the best mean Macro-F1 over folds of the training nodes; in a tie, the smallest."""
    # The rows are shuffled, so giving the members of each class to the folds in turn makes random, stratified folds.
    folds = np.empty(len(target), dtype=np.int64)
    folds[np.argsort(target, kind="stable")] = np.arange(len(target)) % FOLDS
    if len(target) < FOLDS:
        raise EmbeddingError(f"{len(target)} training nodes are too few for {FOLDS} folds; give a number for C")
    means = []
    for C in C_GRID:
        scores = []
        for fold in range(FOLDS):
            macro, _ = fit_split(table, target, np.flatnonzero(folds != fold), np.flatnonzero(folds == fold), C)
            scores.append(macro)
            meter.advance()
        means.append(np.mean(scores))
    return C_GRID[int(np.argmax(means))]


RULE = "of a test node with k labels, the k most likely labels are predicted"


@dataclass(frozen=True, slots=True)
class MultilabelClassification(Scored):
    """The scores of `classify_several`, one per training share, and how they were computed."""

    scores: tuple[Score, ...]
    labelled: int
    unlabelled: int
    labels: tuple[str, ...]
    labels_per_node: float  # mean over the labelled nodes
    splits: int
    seed: int | None
    C: float
    as_they_are: bool = False
    constants: ClassVar = {"rule": RULE}


def classify_several(
    vectors: Vectors,
    labels: Any,
    *,
    train: Sequence[float] = (0.3, 0.5, 0.7),
    splits: int | Splits = 10,
    seed: int = 0,
    C: float = 1.0,
    as_they_are: bool = False,
    progress: Reporter | None = None,
) -> MultilabelClassification:
    """Return the F1 scores of one logistic regression per label, for nodes with several labels.

    As in the paper of DeepWalk (Perozzi et al., 2014), a test node with k labels is predicted its k most likely labels.
    Macro-F1 is the mean over all true or predicted labels; in Micro-F1 every pair of node and label counts the same.
    A label that no training node has is the least likely.

    Parameters
    ----------
    labels : list of lists, matrix or MultiLabels
        Several labels per vector: a list of labels per node, or a matrix (nodes, labels) of 0 and 1, sparse or not.
        Nodes without a label are left out and counted.
    vectors, train, splits, seed, C, as_they_are, progress
        As in `classify`; C is a number, and vectors are no function.

    Examples
    --------
    >>> labels = [["net"], ["net", "text"], ["text"]] * 20
    >>> vectors = np.array([[5.0, -5.0], [5.0, 5.0], [-5.0, 5.0]] * 20)
    >>> classify_several(vectors, labels, train=[0.5]).at(0.5).macro.mean
    1.0
    """
    if not 0 < C < np.inf:
        raise ParameterError(f"C={C!r} makes no sense; give a number above 0")
    given = MultiLabels.from_labels(labels)
    labelled = given.counts > 0
    table = labelled_rows(vectors, labelled, "lists of labels")
    table = table if as_they_are else equal_length(table)
    known = given[labelled].without_unused()
    check_several(len(known.names))
    drawn = as_splits(splits, len(table), seed)
    meter = Meter(progress, len(train) * len(drawn), "splits")

    def score(rows: np.ndarray, held_out: np.ndarray) -> tuple[float, float, float]:
        true = known.members[held_out]
        logits = _logits(table[rows], known.members[rows].tocsc(), table[held_out], C)
        return *f1_of_labels(true, most_likely(logits, np.diff(true.indptr))), float(C)

    scores = _by_share(score_splits(drawn, train, score, meter))
    mean = float(known.counts.mean())
    counts = (len(table), int((~labelled).sum()), known.names, mean, len(drawn), drawn.seed)
    return MultilabelClassification(scores, *counts, float(C), as_they_are)


def _logits(train: np.ndarray, labels: sparse.csc_array, test: np.ndarray, C: float) -> np.ndarray:
    """Return logits (test, labels) float64; -inf for a label that no training node has, inf for one that all have."""
    from sklearn.linear_model import LogisticRegression

    logits = np.empty((len(test), labels.shape[1]))
    for label in range(labels.shape[1]):
        has = labels[:, [label]].toarray()[:, 0]
        if has.all() or not has.any():
            logits[:, label] = np.inf if has.all() else -np.inf
            continue
        regression = LogisticRegression(C=C, solver="liblinear", max_iter=MAX_ITERATIONS)
        logits[:, label] = regression.fit(train, has).decision_function(test)
    return logits


def most_likely(logits: np.ndarray, counts: np.ndarray) -> sparse.csr_array:
    """Return the `counts` most likely labels of each node (nodes, labels) bool; in a tie, the first.

    >>> most_likely(np.array([[0.1, 0.9, 0.5]]), np.array([2])).toarray().tolist()
    [[False, True, True]]
    """
    order = np.argsort(-logits, axis=1, kind="stable")
    taken = np.arange(logits.shape[1]) < counts[:, None]
    ends = np.concatenate([[0], np.cumsum(counts)])
    table = sparse.csr_array((np.ones(ends[-1], bool), order[taken], ends), shape=logits.shape)
    table.sort_indices()
    return table


def f1_of_labels(true: sparse.csr_array, predicted: sparse.csr_array) -> tuple[float, float]:
    """Return the Macro-F1 over the labels that occur in one of the two matrices (nodes, labels), and the Micro-F1.

    >>> one, other = sparse.csr_array([[True, False], [True, True]]), sparse.csr_array([[True, False], [True, False]])
    >>> f1_of_labels(one, other)
    (0.5, 0.8)
    """
    labels = true.shape[1]
    hits = np.bincount(true.multiply(predicted).tocsr().indices, minlength=labels)
    total = np.bincount(true.indices, minlength=labels) + np.bincount(predicted.indices, minlength=labels)
    occurs = total > 0
    return float(np.mean(2 * hits[occurs] / total[occurs])), float(2 * hits.sum() / total.sum())


PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)  # in units of the centred training vectors' mean squared length
FEWEST = 3  # least number of nodes to train on, and to test on


@dataclass(frozen=True, slots=True)
class NumberScore(Result):
    """The scores of predicted numbers of all splits at one training share."""

    train: float
    r2: Repeats  # 1 is perfect; 0 is as good as predicting the mean of the test nodes
    spearman: Repeats  # rank correlation from -1 to 1; 1 if the order is right
    penalty: tuple[float, ...]  # the one of PENALTIES chosen in each split


@dataclass(frozen=True, slots=True)
class Regression(Scored):
    """The scores of `regress`, one per training share, and how they were computed."""

    scores: tuple[NumberScore, ...]
    labelled: int
    unlabelled: int
    mean: float  # mean of the numbers
    sd: float  # standard deviation of the numbers
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
    """Return R² and rank correlation of numbers predicted by ridge regression, trained on some of the nodes.

    Leave-one-out cross-validation of the training nodes chooses the penalty from `PENALTIES`. Penalties are relative to
    the length of the vectors, so scaling all vectors changes nothing. If all predictions are equal, the rank
    correlation is 0.

    Parameters
    ----------
    numbers : array_like
        One number per vector, NaN for none; nodes without a number are left out and counted.
    vectors, train, splits, seed, progress
        As in `classify`; vectors are no function.

    Examples
    --------
    >>> vectors = np.random.default_rng(0).normal(size=(60, 2))
    >>> found = regress(vectors, vectors @ [3.0, -1.0] + 7, train=[0.5]).at(0.5)
    >>> round(found.r2.mean, 4), round(found.spearman.mean, 4)
    (1.0, 1.0)
    """
    try:
        values = np.ma.filled(np.ma.asarray(numbers, dtype=np.float64), np.nan)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(f"cannot read the numbers ({error}); give one number per node, NaN for none") from None
    if infinite := np.isinf(values).sum():
        raise EmbeddingError(f"{infinite:,} of {len(values):,} numbers are infinite; give finite numbers or NaN")
    labelled = ~np.isnan(values)
    table = labelled_rows(vectors, labelled, "numbers")
    target = values[labelled]
    if len(target) == 0 or (target == target[0]).all():
        raise EmbeddingError(f"all {len(target)} numbers are the same; give numbers that differ between nodes")
    drawn = as_splits(splits, len(table), seed)
    meter = Meter(progress, len(train) * len(drawn), "regressions")
    scores = tuple(
        NumberScore(share, Repeats(r2), Repeats(spearman), chosen)
        for share, r2, spearman, chosen in score_splits(drawn, train, partial(_score, table, target), meter)
    )
    about = (float(target.mean()), float(target.std()), len(drawn), drawn.seed)
    return Regression(scores, len(table), int((~labelled).sum()), *about)


def _score(table: np.ndarray, target: np.ndarray, rows: np.ndarray, held_out: np.ndarray) -> tuple[float, float, float]:
    """Return R², the rank correlation and the chosen penalty of one split."""
    from scipy.stats import spearmanr
    from sklearn.linear_model import RidgeCV
    from sklearn.metrics import r2_score

    true = target[held_out]
    for numbers, what in ((target[rows], "train on"), (true, "test on")):
        if len(numbers) < FEWEST or (numbers == numbers[0]).all():
            raise EmbeddingError(
                f"the {len(numbers)} random nodes to {what} are too few or have the same number; "
                "give numbers of more nodes, or another share to train on"
            )
    center = table[rows].mean(axis=0)
    unit = float(np.mean(np.sum((table[rows] - center) ** 2, axis=1))) or 1.0
    model = RidgeCV(alphas=[unit * one for one in PENALTIES]).fit(table[rows], target[rows])
    predicted = model.predict(table[held_out])
    chosen = min(PENALTIES, key=lambda one: abs(unit * one - model.alpha_))
    spearman = 0.0 if (predicted == predicted[0]).all() else float(spearmanr(true, predicted).statistic)
    return float(r2_score(true, predicted)), spearman, chosen
