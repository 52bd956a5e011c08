"""Hold out edges before training, and predict them from the vectors of their two nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, GraphError, ParameterError
from neural_brane.evaluate.labelled import Result, check_finite, find_rows
from neural_brane.files.npz import open_npz, write_npz
from neural_brane.files.storage import atomic, check_target
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import assemble
from neural_brane.graph.build import attribute_matrix
from neural_brane.graph.ids import as_ids
from neural_brane.insight.pairs import PairFeatures, draw_non_edges, edge_keys, edge_pairs, keys_of, without_edges
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.progress import Meter, Reporter

KEYS = ("ids", "training", "positives", "negatives", "about")


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutEdges:
    """A training graph, the edges that were held out, and the same number of pairs of nodes without an edge."""

    graph: AttributedGraph  # the training graph, without the held-out edges
    positives: np.ndarray  # (k, 2) rows of nodes u < v: the held-out edges
    negatives: np.ndarray  # (k, 2) rows of nodes u < v: pairs that are no edge of the full graph
    training_digest: str  # digest of the training graph
    full_digest: str  # digest of the graph with all edges; vectors trained on it have seen the positives

    def __post_init__(self) -> None:
        for pairs, what in ((self.positives, "positives"), (self.negatives, "negatives")):
            inside = pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iu" and len(pairs) > 0
            if not inside or pairs.min() < 0 or pairs.max() >= len(self.graph):
                raise GraphError(f"{what} must be at least one pair of rows from 0 to {len(self.graph) - 1}")
            if leaked := int(np.isin(keys_of(pairs, len(self.graph)), edge_keys(self.graph)).sum()):
                raise GraphError(
                    f"{leaked:,} of the {len(pairs):,} {what} are edges of the training graph; "
                    "remove them first (hold_out_edges, brane split-edges)"
                )

    def check_unseen(self, provenance: dict[str, Any]) -> bool:
        """Return whether the provenance of vectors names the training graph; raise an error if it names another.

        False means that the provenance names no graph, so it is not certain that the training saw no held-out edge.
        """
        data = provenance.get("data")
        digest = data.get("digest") if isinstance(data, dict) else None
        if digest is None or digest == self.training_digest:
            return digest is not None
        full = digest == self.full_digest
        seen = "the full graph, which contains the held-out edges" if full else "another graph than the training graph"
        raise EmbeddingError(
            f"these vectors were trained on {seen} (digest {digest}, expected {self.training_digest}); "
            "train them on the graph that 'brane split-edges' wrote"
        )

    def labelled_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return all pairs as ids (2k, 2), and 1 for an edge, 0 for none (2k,): X and y for scikit-learn.

        The order is random, but always the same, so that every fold of a cross-validation has both classes.
        """
        order = np.random.default_rng(0).permutation(len(self.positives) + len(self.negatives))
        rows = np.concatenate([self.positives, self.negatives])[order]
        return self.graph.ids[rows], (order < len(self.positives)).astype(np.int64)

    def save(self, path: str | Path) -> None:
        """Write the pairs and the edges of the training graph to an .npz file, which names nodes by their ids."""
        about = {"training_digest": self.training_digest, "full_digest": self.full_digest}
        pairs = {"training": edge_pairs(self.graph), "positives": self.positives, "negatives": self.negatives}
        arrays = {"ids": self.graph.ids} | {name: rows.astype(np.int32) for name, rows in pairs.items()}
        with atomic(check_pairs_target(path)) as draft:
            write_npz(draft, arrays | {"about": np.array(json.dumps(about))})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return held-out edges read from a file of `save`; the graph has no weights, attributes and labels."""
        try:
            with open_npz(path, GraphError, f"the arrays {', '.join(KEYS)}") as archive:
                if missing := [name for name in KEYS if name not in archive]:
                    raise GraphError(
                        f"not a file of held-out edges ('{missing[0]}' is missing); 'brane split-edges' makes one"
                    )
                ids, training, positives, negatives, about = (archive[name] for name in KEYS)
            digests = json.loads(about.item())
            adjacency = assemble(training, None, len(ids))
            ids = as_ids(ids)
            attributes, names = attribute_matrix(None, None, ids)
            graph = AttributedGraph(adjacency, attributes, ids, names, name=Path(path).stem)
            return cls(graph, positives, negatives, digests["training_digest"], digests["full_digest"])
        except FileNotFoundError:
            raise GraphError(f"{path}: no such file; make one with 'brane split-edges GRAPH -o TRAIN'") from None
        except GraphError as error:
            raise GraphError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise GraphError(f"{path}: not a file of held-out edges ({error}); 'brane split-edges' makes one") from None


def check_pairs_target(path: str | Path) -> Path:
    """Return a path if `HeldOutEdges.save` can write to it, else raise an error; call this before any work."""
    return check_target(path, (".npz",), ".npz, as pairs to predict are written", GraphError)


def hold_out_edges(graph: AttributedGraph, *, share: float = 0.1, seed: int = 0) -> HeldOutEdges:
    """Return a graph without a random share of its edges, these edges, and as many pairs of nodes without an edge.

    A node may lose all its edges. Self-loops are never held out. The pairs without an edge are distinct, and none is an
    edge of the full graph.

    Parameters
    ----------
    graph : AttributedGraph
        The full graph.
    share, seed : float, int
        Share of the edges to hold out, and seed of the random numbers.

    Examples
    --------
    >>> from neural_brane import load
    >>> held_out = hold_out_edges(load("stdlib"), share=0.5)
    >>> len(held_out.positives) == len(held_out.negatives)
    True
    """
    pairs = edge_pairs(graph)
    count = round(share * len(pairs))
    if not 0 < share < 1 or not 0 < count < graph.edges:
        raise ParameterError(
            f"share={share} of {len(pairs)} edges leaves no edge to train on or to predict; give a share such as 0.1"
        )
    if seed < 0:
        raise ParameterError(f"seed={seed} makes no sense; give 0 or more")
    rng = np.random.default_rng((seed, 0))
    positives = pairs[np.sort(rng.choice(len(pairs), count, replace=False))]
    negatives = draw_non_edges(edge_keys(graph), len(graph), count, rng)
    remaining = without_edges(graph, positives)
    return HeldOutEdges(remaining, positives, negatives, remaining.digest(), graph.digest())


def _cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    dots = np.einsum("ij,ij->i", left, right)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)


SIMILARITIES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {  # compare two tables row by row
    "cosine": _cosines,
    "dot": lambda left, right: np.einsum("ij,ij->i", left, right),
    "distance": lambda left, right: -np.linalg.norm(left - right, axis=1),
}
BLOCK_PAIRS = 65_536  # pairs scored at a time
FOLDS = 5  # parts of the pairs, each scored by a regression that has seen the others


@dataclass(frozen=True, slots=True)
class LinkPrediction(Result):
    """The scores of ranking held-out edges above pairs without an edge."""

    similarity: str
    auc: float
    average_precision: float
    scorer_auc: float | None  # by a regression over the vectors and the graph; None with too few pairs for its folds
    scorer_average_precision: float | None
    positives: int
    negatives: int
    missing: int  # nodes without a vector, which get a vector of zeros
    extra: int  # vectors of nodes that are not in the graph
    verified: bool  # True if the provenance proves that the held-out edges were not seen in training
    seed: int


def predict_links(
    vectors: Embedding | np.ndarray,
    held_out: HeldOutEdges,
    *,
    similarity: str = "dot",
    seed: int = 0,
    allow_missing: bool = False,
    progress: Reporter | None = None,
) -> LinkPrediction:
    """Return how well vectors rank held-out edges above pairs without an edge: ROC AUC and average precision.

    Pairs are ranked by the similarity of their vectors, and by all evidence: a logistic regression over `PairFeatures`,
    which are made of the vectors, common neighbours, eigenvectors and degrees in the training graph. No training has
    seen the pairs, so the regression learns from four fifths of them to score the last. All methods are treated alike.

    Parameters
    ----------
    vectors : Embedding or numpy.ndarray
        An embedding is matched by id, and refused if its provenance names another graph than the training graph. An
        array (nodes, dim) must have the order of the graph's nodes, and its training graph cannot be checked.
    held_out : HeldOutEdges
        The training graph and the pairs to rank.
    similarity : {"dot", "cosine", "distance"}
        Similarity of two vectors; with "distance", nearer vectors are more similar.
    allow_missing : bool
        Give nodes without a vector a vector of zeros; by default they raise an error.
    seed, progress
        As in `classify`.

    Examples
    --------
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
    with one_blas_thread():  # else the order of sums, and so the last bits, would depend on the number of threads
        similar = _rank(truth, np.concatenate([SIMILARITIES[similarity](*ends) for ends in _ends(table, pairs)]))
        meter.advance()
        scored: tuple[float | None, float | None] = (None, None)
        if len(held_out.positives) >= FOLDS:
            scored = _rank(truth, _cross_validate(PairFeatures(table, held_out.graph, seed=seed)(pairs), truth, seed))
        meter.advance()
    counts = (len(held_out.positives), len(held_out.negatives), missing, extra)
    return LinkPrediction(similarity, *similar, *scored, *counts, verified, seed)


def _align(vectors: Embedding | np.ndarray, held_out: HeldOutEdges, allow_missing: bool) -> tuple[np.ndarray, int, int]:
    """Return the vectors in the order of the graph's nodes, and the numbers of missing and of extra vectors."""
    nodes = len(held_out.graph)
    if not isinstance(vectors, Embedding):
        table = np.asarray(vectors, dtype=np.float32)
        if table.ndim != 2 or len(table) != nodes:
            raise EmbeddingError(f"vectors have shape {table.shape} for {nodes} nodes; give one vector per node")
        return table, 0, 0
    rows = find_rows(vectors, held_out.graph.ids, "nodes of the graph", allow_missing=allow_missing)
    found = rows >= 0
    table = np.zeros((nodes, vectors.dim), dtype=np.float32)
    table[found] = vectors.vectors[rows[found]]
    return table, int((~found).sum()), len(vectors) - int(found.sum())


def _ends(table: np.ndarray, pairs: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the vectors of both nodes of each pair, in blocks of pairs, because all may not fit in memory."""
    for at in range(0, len(pairs), BLOCK_PAIRS):
        low, high = pairs[at : at + BLOCK_PAIRS].T
        yield table[low].astype(np.float64), table[high].astype(np.float64)


def _cross_validate(features: np.ndarray, truth: np.ndarray, seed: int) -> np.ndarray:
    """Return scores of pairs by logistic regression; it learns from the other folds to score a fold of the pairs."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))
    return cross_val_predict(model, features, truth, cv=folds, method="decision_function")


def _rank(truth: np.ndarray, scores: np.ndarray) -> tuple[float, float]:
    """Return the area under the ROC curve and the average precision."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    return float(roc_auc_score(truth, scores)), float(average_precision_score(truth, scores))
