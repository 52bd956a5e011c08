"""Take edges out before training, and predict them from the vectors of their two ends."""

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
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.progress import Meter, Reporter

KEYS = ("ids", "training", "positives", "negatives", "about")


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutEdges:
    """A graph to train on, edges that were taken out of it, and as many pairs of nodes without an edge."""

    graph: AttributedGraph  # without the positives
    positives: np.ndarray  # (k, 2) rows of nodes: edges that were taken out, u < v
    negatives: np.ndarray  # (k, 2) rows of nodes that never had an edge, u < v
    training_digest: str  # of the graph to train on
    full_digest: str  # of the graph with all edges: vectors learned from it have seen the positives

    def __post_init__(self) -> None:
        for pairs, what in ((self.positives, "positives"), (self.negatives, "negatives")):
            inside = pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "iu" and len(pairs) > 0
            if not inside or pairs.min() < 0 or pairs.max() >= len(self.graph):
                raise GraphError(f"{what} must be pairs of rows from 0 to {len(self.graph) - 1}, at least one")
            leaked = int(np.isin(keys_of(pairs, len(self.graph)), edge_keys(self.graph)).sum())
            if leaked:
                raise GraphError(
                    f"{leaked:,} of the {len(pairs):,} {what} are edges of the graph to train on; "
                    "take them out first (hold_out_edges, brane split-edges)"
                )

    def check_unseen(self, provenance: dict[str, Any]) -> bool:
        """Refuse vectors whose provenance names another graph than the training graph.

        Returns whether it names the training graph: False where it names none, so that nothing is proved.
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
        """All pairs of ids (2k, 2), and 1 for those that were an edge, 0 for the others: X and y of scikit-learn.

        They are shuffled, always alike, so that every fold of a cross-validation has both kinds.
        """
        order = np.random.default_rng(0).permutation(len(self.positives) + len(self.negatives))
        rows = np.concatenate([self.positives, self.negatives])[order]
        return self.graph.ids[rows], (order < len(self.positives)).astype(np.int64)

    def save(self, path: str | Path) -> None:
        """Write the pairs, and the edges that remain, to an .npz file; nodes are named by their ids."""
        about = {"training_digest": self.training_digest, "full_digest": self.full_digest}
        pairs = {"training": edge_pairs(self.graph), "positives": self.positives, "negatives": self.negatives}
        arrays = {"ids": self.graph.ids} | {name: rows.astype(np.int32) for name, rows in pairs.items()}
        with atomic(check_pairs_target(path)) as draft:
            write_npz(draft, arrays | {"about": np.array(json.dumps(about))})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote; the graph comes back without weights, attributes and labels."""
        try:
            with open_npz(path, GraphError, f"the arrays {', '.join(KEYS)}") as archive:
                if missing := [name for name in KEYS if name not in archive]:
                    raise GraphError(
                        f"not a file of held-out edges (it lacks '{missing[0]}'); 'brane split-edges' makes one"
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
    """Refuse, before any work is done, a path that `HeldOutEdges.save` cannot write to."""
    return check_target(path, (".npz",), ".npz, as pairs to predict are written", GraphError)


def hold_out_edges(graph: AttributedGraph, *, share: float = 0.1, seed: int = 0) -> HeldOutEdges:
    """Take a share of a graph's edges out, at random, and draw the same number of pairs of nodes without an edge.

    A node may lose all its edges. Self-loops are never taken out. The pairs without an edge are distinct, and
    none of them is an edge of the full graph.

    >>> from neural_brane import load
    >>> held_out = hold_out_edges(load("stdlib"), share=0.5)
    >>> len(held_out.positives) == len(held_out.negatives)
    True
    """
    pairs = edge_pairs(graph)
    count = round(share * len(pairs))
    if not 0 < share < 1 or not 0 < count < graph.edges:
        raise ParameterError(
            f"share={share} of {len(pairs)} edges between two nodes leaves nothing to train on or to predict; "
            "give a share between 0 and 1, as in 0.1"
        )
    if seed < 0:
        raise ParameterError(f"seed={seed} makes no sense; give 0 or more")
    rng = np.random.default_rng((seed, 0))
    positives = pairs[np.sort(rng.choice(len(pairs), count, replace=False))]
    negatives = draw_non_edges(edge_keys(graph), len(graph), count, rng)
    entries = graph.adjacency.tocoo()
    ends = np.stack([entries.row, entries.col], axis=1)
    kept = ~np.isin(keys_of(ends, len(graph)), keys_of(positives, len(graph)))
    remaining = graph.relinked(assemble(ends[kept], entries.data[kept], len(graph)))
    return HeldOutEdges(remaining, positives, negatives, remaining.digest(), graph.digest())


def draw_non_edges(taken: np.ndarray, nodes: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Draw distinct pairs u < v whose keys are not taken: (count, 2), every such pair equally likely."""
    free = nodes * (nodes - 1) // 2 - len(taken)
    if free < count:
        raise GraphError(
            f"{count:,} pairs without an edge are needed, and there are {free:,}; hold out a smaller share"
        )
    if free < 4 * (len(taken) + count):  # a dense graph: the list of all such pairs is about as long as its edges
        low, high = np.triu_indices(nodes, 1)
        keys = np.setdiff1d(low * nodes + high, taken)
        return np.stack(np.divmod(rng.choice(keys, count, replace=False), nodes), axis=1)
    found = np.empty(0, dtype=np.int64)
    while len(found) < count:
        ends = np.sort(rng.integers(nodes, size=(2 * count, 2)), axis=1)
        keys = keys_of(ends[ends[:, 0] < ends[:, 1]], nodes)
        both = np.concatenate([found, keys[~np.isin(keys, taken)]])
        # Kept in the order drawn, so that cutting at `count` favours no pair.
        _, first = np.unique(both, return_index=True)
        found = both[np.sort(first)]
    return np.stack(np.divmod(found[:count], nodes), axis=1)


def edge_pairs(graph: AttributedGraph) -> np.ndarray:
    """The edges between two nodes as rows u < v: (edges, 2), sorted."""
    entries = graph.adjacency.tocoo()
    upper = entries.row < entries.col
    return np.stack([entries.row[upper], entries.col[upper]], axis=1).astype(np.int64)


def edge_keys(graph: AttributedGraph) -> np.ndarray:
    """One number per edge between two nodes, as `keys_of` makes it."""
    return keys_of(edge_pairs(graph), len(graph))


def keys_of(pairs: np.ndarray, nodes: int) -> np.ndarray:
    """One number per pair of nodes, the same for (u, v) and (v, u)."""
    ends = np.sort(pairs.astype(np.int64), axis=1)
    return ends[:, 0] * nodes + ends[:, 1]


def _cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    dots = np.einsum("ij,ij->i", left, right)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)


SIMILARITIES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {  # of two tables, row by row
    "cosine": _cosines,
    "dot": lambda left, right: np.einsum("ij,ij->i", left, right),
    "distance": lambda left, right: -np.linalg.norm(left - right, axis=1),
}
TRAINING_EDGES = 50_000  # the regression learns from at most this many edges, and from the same number of negatives
BLOCK_PAIRS = 65_536  # pairs scored at a time
MAX_ITERATIONS = 10_000  # a bound, not a setting: the regression stops when it has converged


@dataclass(frozen=True, slots=True)
class LinkPrediction(Result):
    """Scores of ranking held-out edges above pairs without an edge."""

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
        similar = _rank(truth, np.concatenate([SIMILARITIES[similarity](*ends) for ends in _ends(table, pairs)]))
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
