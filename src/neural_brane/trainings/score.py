"""Score the vectors of a training in the ways that its `scoring` names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.evaluate import classify, cluster, map_2d, predict_links
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
    held_out: HeldOutEdges | None = None,
    own: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Record:
    """The scores that `scoring` names, with their options:

    classes: Macro- and Micro-F1; options of `classify`. clusters: NMI, purity and ARI; options of `cluster`.
    map: whether to lay the nodes out in the plane. links: AUC; options of `hold_out_edges`, whose result is `held_out`.
    own: the method's own score of pairs of ids, where it has one.
    Splits and starts are drawn with the training's seed, unless the options have one: so run k of every method has the
    same splits.
    """
    record: Record = {}
    if "classes" in scoring:
        record |= _classes(embedding.vectors, graph.labels, {"seed": seed} | scoring["classes"])
    if "clusters" in scoring:
        found = cluster(embedding.vectors, graph.labels, **{"seed": seed} | scoring["clusters"])
        record |= {name: rounded(getattr(found, name).values) for name in ("nmi", "purity", "ari")}
    if scoring.get("map"):
        points = map_2d(embedding.vectors, seed=seed)
        labels = np.asarray(graph.labels).tolist()
        record["map"] = {"points": np.round(points.astype(float), 2).tolist(), "labels": labels}
    if held_out is not None:
        pairs = held_out.graph.ids[np.concatenate([held_out.positives, held_out.negatives])]
        scores = own(pairs) if own else None
        links = predict_links(embedding, held_out, similarity="cosine", seed=seed, own=scores)
        record |= {"auc": round(links.regression_auc, DIGITS), "auc_of_cosines": round(links.auc, DIGITS)}
        if links.own_auc is not None:
            record["auc_own"] = round(links.own_auc, DIGITS)
    return record


def _classes(vectors: np.ndarray, labels: np.ndarray | None, options: Record) -> Record:
    found = classify(vectors, labels, **options)
    return {
        "macro_f1": {f"{one.train:g}": rounded(one.macro.values) for one in found.scores},
        "micro_f1": {f"{one.train:g}": rounded(one.micro.values) for one in found.scores},
    }


def rounded(values: Iterable[float]) -> list[float]:
    """Numbers with the digits that a record keeps."""
    return [round(float(value), DIGITS) for value in values]
