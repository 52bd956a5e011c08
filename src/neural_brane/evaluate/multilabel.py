"""Predict the labels of nodes that have several, as the paper of DeepWalk scores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.blas import one_blas_thread
from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate.classify import MAX_ITERATIONS, Score
from neural_brane.evaluate.labelled import vectors_of
from neural_brane.evaluate.repeats import Repeats, score_at
from neural_brane.evaluate.splits import Splits, splits_of
from neural_brane.graph.multilabels import MultiLabels
from neural_brane.progress import Meter, Reporter

RULE = "of each test node as many labels are predicted as it has, the likeliest ones"


@dataclass(frozen=True, slots=True)
class MultilabelClassification:
    """The scores of vectors of nodes with several labels, one per training share."""

    scores: tuple[Score, ...]
    labelled: int
    unlabelled: int
    labels: tuple[str, ...]
    labels_per_node: float  # on average, over the labelled nodes
    splits: int
    seed: int | None
    C: float

    def at(self, train: float) -> Score:
        """The score at one training share."""
        return score_at(self.scores, train)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "labelled": self.labelled,
            "unlabelled": self.unlabelled,
            "labels": list(self.labels),
            "labels_per_node": self.labels_per_node,
            "rule": RULE,
            "splits": self.splits,
            "seed": self.seed,
            "C": self.C,
            "scores": [score.as_dict() for score in self.scores],
        }


def classify_several(
    vectors: Embedding | np.ndarray,
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
    all pairs of a node and a label alike. The regression is that of `classify`. A label that no training node has is
    predicted last.

    Parameters
    ----------
    vectors
        One row per node, neither scaled nor centred before the regression.
    labels
        In the order of the vectors: a list of labels per node, a table (nodes, labels) of 0 and 1, sparse or not, or
        `MultiLabels`. Nodes without a label are left out and counted.
    train, splits, seed
        As `classify` takes them.
    C
        The inverse of the penalty.

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
    table = vectors_of(vectors, len(given), "lists of labels", kept)
    known = given[kept].without_unused()
    if len(known.names) < 2:
        raise EmbeddingError(f"{len(known.names)} different label(s); at least two are needed to tell apart")
    divisions = splits_of(splits, len(table), seed)
    meter = Meter(progress, len(train) * len(divisions), "splits")
    scores = []
    with one_blas_thread():  # the order of sums, and so the last bits, would follow the number of threads
        for share in train:
            results = []
            for rows, held_out in divisions.parts(share):
                results.append(_score(table, known.members, rows, held_out, C))
                meter.advance()
            macro, micro = map(Repeats, zip(*results, strict=True))
            scores.append(Score(share, macro, micro, (float(C),) * len(divisions)))
    mean = float(known.counts.mean())
    counts = (len(table), int((~kept).sum()), known.names, mean, len(divisions), divisions.seed)
    return MultilabelClassification(tuple(scores), *counts, float(C))


def _score(
    table: np.ndarray, members: sparse.csr_array, rows: np.ndarray, held_out: np.ndarray, C: float
) -> tuple[float, float]:
    """Macro-F1 and Micro-F1 of one split."""
    learned, true = members[rows].tocsc(), members[held_out]
    certain = _decide(table[rows], learned, table[held_out], C)
    predicted = likeliest(certain, np.diff(true.indptr))
    return f1_of_labels(true, predicted)


def _decide(known: np.ndarray, labels: sparse.csc_array, asked: np.ndarray, C: float) -> np.ndarray:
    """How surely each node has each label, in logits, (asked, labels) float64: of a label never seen, not at all."""
    from sklearn.linear_model import LogisticRegression

    certain = np.empty((len(asked), labels.shape[1]))
    for label in range(labels.shape[1]):
        has = np.zeros(len(known), dtype=bool)
        has[labels.indices[labels.indptr[label] : labels.indptr[label + 1]]] = True
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
