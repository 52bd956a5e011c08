"""Predict edges that training did not see, from the vectors of their two ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from neural_brane.blas import one_blas_thread
from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate.held_out import HeldOutEdges, draw_non_edges, edge_keys, edge_pairs, keys_of
from neural_brane.evaluate.labelled import check_finite, find_rows
from neural_brane.progress import Meter, Reporter

SIMILARITIES = ("cosine", "dot", "distance")
TRAINING_EDGES = 50_000  # the regression learns from at most this many edges, and from the same number of negatives
BLOCK_PAIRS = 65_536  # pairs scored at a time
MAX_ITERATIONS = 10_000  # a bound, not a setting: the regression stops when it has converged


@dataclass(frozen=True, slots=True)
class LinkPrediction:
    """How well held-out edges are told from pairs without an edge."""

    similarity: str
    auc: float
    average_precision: float
    regression_auc: float
    regression_average_precision: float
    own_auc: float | None  # by the method's own score; None where it has none
    own_average_precision: float | None
    positives: int
    negatives: int
    training_edges: int  # that the regression learned from
    missing: int  # nodes without a vector, given one of zeros
    extra: int  # vectors of nodes that the graph lacks
    verified: bool  # the vectors' provenance proves that they were trained without the held-out edges
    seed: int

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return asdict(self)


def predict_links(
    vectors: Embedding | np.ndarray,
    held_out: HeldOutEdges,
    *,
    similarity: str = "dot",
    seed: int = 0,
    allow_missing: bool = False,
    own: np.ndarray | None = None,
    progress: Reporter | None = None,
) -> LinkPrediction:
    """Rank held-out edges above pairs without one: area under the ROC curve, and average precision.

    Pairs are scored by `similarity` ("dot", "cosine", or "distance": the nearer, the higher), by logistic
    regression on the Hadamard product of the two vectors (at unit variance, C = 1), and by the method's own score
    where it has one: that of the vectors' layer, or `own`, the scores of all positives and then all negatives. The
    regression learns from edges of the training graph and the same number of new pairs without an edge.

    Vectors with ids are matched by them, and refused where their provenance says that they were trained on
    another graph than `held_out.graph`. An array stands in the order of the graph's nodes and cannot be checked.

    >>> from neural_brane import Attributes, load
    >>> from neural_brane.evaluate import hold_out_edges
    >>> held_out = hold_out_edges(load("stdlib"))
    >>> predict_links(Attributes(dim=16, seed=0).fit_transform(held_out.graph), held_out).auc > 0.6
    True
    """
    if similarity not in SIMILARITIES:
        raise ParameterError(f"similarity={similarity!r} makes no sense; give one of {', '.join(SIMILARITIES)}")
    verified = isinstance(vectors, Embedding) and held_out.check_unseen(vectors.provenance)
    table, missing, extra = _align(vectors, held_out, allow_missing)
    check_finite(table)
    pairs = np.concatenate([held_out.positives, held_out.negatives])
    truth = np.repeat([1, 0], [len(held_out.positives), len(held_out.negatives)])
    meter = Meter(progress, 2, "scorings")
    with one_blas_thread():  # the order of sums, and so the last bits, would follow the number of threads
        similar = _rank(truth, np.concatenate([_similar(*ends, similarity) for ends in _ends(table, pairs)]))
        meter.advance()
        scores, learned = _regress(table, held_out, pairs, seed)
        regression = _rank(truth, scores)
        meter.advance()
        if own is None and isinstance(vectors, Embedding) and vectors.layer is not None:
            own = vectors.layer.score(table, pairs)
        own_auc, own_precision = (None, None) if own is None else _rank(truth, own)
    counts = (len(held_out.positives), len(held_out.negatives), learned, missing, extra)
    return LinkPrediction(similarity, *similar, *regression, own_auc, own_precision, *counts, verified, seed)


def _align(vectors: Embedding | np.ndarray, held_out: HeldOutEdges, allow_missing: bool) -> tuple[np.ndarray, int, int]:
    """The vectors in the order of the graph's nodes, the number of nodes without a vector, and of vectors left over."""
    nodes = len(held_out.graph)
    if not isinstance(vectors, Embedding):
        table = np.asarray(vectors, dtype=np.float32)
        if table.ndim != 2 or len(table) != nodes:
            raise EmbeddingError(f"vectors {table.shape} for a graph of {nodes} nodes: give one row per node")
        return table, 0, 0
    rows = find_rows(vectors, held_out.graph.ids, "nodes of the graph", allow_missing=allow_missing)
    found = rows >= 0
    table = np.zeros((nodes, vectors.dim), dtype=np.float32)
    table[found] = vectors.vectors[rows[found]]
    return table, int((~found).sum()), len(vectors) - int(found.sum())


def _ends(table: np.ndarray, pairs: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The vectors of both ends of each pair, in blocks of pairs: all at once may not fit in memory."""
    for at in range(0, len(pairs), BLOCK_PAIRS):
        low, high = pairs[at : at + BLOCK_PAIRS].T
        yield table[low].astype(np.float64), table[high].astype(np.float64)


def _similar(left: np.ndarray, right: np.ndarray, similarity: str) -> np.ndarray:
    """The similarity of two vectors, row by row."""
    if similarity == "distance":
        return -np.linalg.norm(left - right, axis=1)
    dots = np.einsum("ij,ij->i", left, right)
    if similarity == "dot":
        return dots
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)


def _regress(table: np.ndarray, held_out: HeldOutEdges, pairs: np.ndarray, seed: int) -> tuple[np.ndarray, int]:
    """Score the pairs by a regression on products; also return how many edges it learned from."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng((seed, 1))
    edges = edge_pairs(held_out.graph)
    nodes = len(table)
    if len(edges) > TRAINING_EDGES:
        edges = edges[rng.choice(len(edges), TRAINING_EDGES, replace=False)]
    taken = np.union1d(edge_keys(held_out.graph), keys_of(pairs, nodes))
    count = min(len(edges), nodes * (nodes - 1) // 2 - len(taken))
    if count < 1:
        raise EmbeddingError("no pair without an edge is left for the regression to learn from; hold out fewer edges")
    learned = np.concatenate([edges, draw_non_edges(taken, nodes, count, rng)])
    # At unit variance, because the penalty would suppress the tiny products of short vectors.
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=MAX_ITERATIONS))
    products = np.concatenate([left * right for left, right in _ends(table, learned)])
    model.fit(products, np.repeat([1, 0], [len(edges), count]))
    scores = [model.decision_function(left * right) for left, right in _ends(table, pairs)]
    return np.concatenate(scores), len(edges)


def _rank(truth: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Area under the ROC curve and average precision."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    return float(roc_auc_score(truth, scores)), float(average_precision_score(truth, scores))
