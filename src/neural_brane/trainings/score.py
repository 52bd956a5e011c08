"""Score the vectors of a training in the ways that its `scoring` names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.evaluate import classify, classify_several, cluster, map_2d, predict_links, regress, retrieve
from neural_brane.evaluate.held_out import HeldOutEdges
from neural_brane.graph import AttributedGraph
from neural_brane.trainings.training import Record

DIGITS = 6  # decimal places of a score in a record


def score(
    embedding: Embedding,
    graph: AttributedGraph,
    scoring: Record,
    *,
    seed: int,
    labels: Any = None,
    held_out: HeldOutEdges | None = None,
    own: Callable[[np.ndarray], np.ndarray] | None = None,
    learn: Callable[[np.ndarray], Embedding] | None = None,
) -> Record:
    """The scores that `scoring` names, with their options:

    classes: Macro- and Micro-F1; options of `classify`. clusters: NMI, purity and ARI; options of `cluster`.
    labels: Macro- and Micro-F1 of several labels; options of `classify_several`. numbers: R² and rank correlation;
    options of `regress`. retrieval: precision, recall and MAP of lists of one length; options of `retrieve`. These take
    `labels` in the order of the nodes, or without them the graph's own.
    map: whether to lay the nodes out in the plane. links: AUC; options of `hold_out_edges`, whose result is `held_out`.
    own: the method's own score of pairs of ids, where it has one.
    learn: for a method that learns from labels: gives vectors learned from the labels of a training part, "" for other
    nodes. Classes are then predicted from these, split by split; all else is scored by `embedding`, which no label has
    had a part in.
    Splits and starts are drawn with the training's seed, unless the options have one: so run k of every method has the
    same splits.
    """
    record, vectors = Record(), embedding.vectors
    if "classes" in scoring:
        classes = classify(learn or vectors, graph.labels, **{"seed": seed} | scoring["classes"])
        record |= _by_share(classes.scores, {"macro_f1": "macro", "micro_f1": "micro"})
    if "clusters" in scoring:
        found = cluster(vectors, graph.labels, **{"seed": seed} | scoring["clusters"])
        record |= {name: rounded(getattr(found, name).values) for name in ("nmi", "purity", "ari")}
    labels = graph.labels if labels is None else labels
    if "labels" in scoring:
        several = classify_several(vectors, labels, **_with_seed(scoring["labels"], seed))
        record |= _by_share(several.scores, {"macro_f1": "macro", "micro_f1": "micro"})
    if "numbers" in scoring:
        numbers = regress(vectors, labels, **_with_seed(scoring["numbers"], seed))
        record |= _by_share(numbers.scores, {"r2": "r2", "spearman": "spearman"})
    if "retrieval" in scoring:
        (lists,) = retrieve(vectors, labels, **_with_seed(scoring["retrieval"], seed)).scores
        found_in = {"precision": lists.precision, "recall": lists.recall, "map": lists.average_precision}
        record |= {name: round(value, DIGITS) for name, value in found_in.items()}
    if scoring.get("map"):
        points = map_2d(vectors, seed=seed)
        names = np.asarray(graph.labels).tolist()
        record["map"] = {"points": np.round(points.astype(float), 2).tolist(), "labels": names}
    if held_out is not None:
        pairs = held_out.graph.ids[np.concatenate([held_out.positives, held_out.negatives])]
        scores = own(pairs) if own else None
        links = predict_links(embedding, held_out, similarity="cosine", seed=seed, own=scores)
        record |= {"auc": round(links.regression_auc, DIGITS), "auc_of_cosines": round(links.auc, DIGITS)}
        if links.own_auc is not None:
            record["auc_own"] = round(links.own_auc, DIGITS)
    return record


def _with_seed(options: Record, seed: int) -> Record:
    """Options without the digest of labels, which only tells records apart; splits are drawn with the seed."""
    return {"seed": seed} | {name: value for name, value in options.items() if name != "digest"}


def _by_share(scores: Sequence[Any], measures: dict[str, str]) -> Record:
    """Measures, by their names in a record and in a score: their values at each share of nodes trained on."""
    return {
        name: {f"{one.train:g}": rounded(getattr(one, field).values) for one in scores}
        for name, field in measures.items()
    }


def rounded(values: Iterable[float]) -> list[float]:
    """Numbers with the digits that a record keeps."""
    return [round(float(value), DIGITS) for value in values]
