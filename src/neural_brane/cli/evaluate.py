"""`brane evaluate`: how good vectors are, whichever program made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural_brane.cli import evaluate_options as o
from neural_brane.cli.console import echo
from neural_brane.cli.evaluate_tasks import (
    DIVIDED,
    choose_tasks,
    score_divided,
    score_whole,
    settle_tasks,
    wanted_kind,
)
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.embedding import Embedding
    from neural_brane.evaluate import HeldOutEdges, Labelled, Splits


def evaluate(
    file: o.File,
    labels: o.Labels = None,
    id_column: o.IdColumn = None,
    label_column: o.LabelColumn = None,
    separator: o.Separator = None,
    task: o.Tasks = None,
    train: o.Train = None,
    splits: o.Splits = None,
    stratify: o.Stratify = False,
    save_splits: o.SaveSplits = None,
    splits_from: o.SplitsFrom = None,
    C: o.Penalty = "1",
    starts: o.Starts = 10,
    k: o.Lengths = None,
    queries: o.Queries = 10_000,
    held_out: o.HeldOut = None,
    similarity: o.Similarity = None,
    ids: o.Ids = None,
    allow_missing: o.AllowMissing = False,
    seed: o.Seed = 0,
    as_json: o.AsJson = False,
) -> None:
    """Score vectors by what they are good for, whichever program made them.

    Nodes are matched by id, never by position. Vectors are taken as they are.

    \b
    classification  logistic regression (liblinear, one class against the
                    rest, C = 1) on random divisions of the nodes, as in
                    the paper: Macro-F1 and Micro-F1
    multilabel      the same for nodes with several labels: of a test node
                    with k labels the k likeliest are predicted
    regression      ridge regression of numbers: R² and Spearman's rank
                    correlation
    clustering      k-means with the true number of classes, ten starts:
                    NMI, purity and ARI
    retrieval       the nearest nodes by cosine: how many have the same
                    class or share a label (precision), how many of those
                    are found (recall), beside chance
    links           edges taken out before training against pairs without
                    an edge: AUC and average precision, by similarity, by
                    logistic regression on products of the two vectors,
                    and by the method's own score where it has one

    \b
    brane evaluate vectors.npz --labels citeseer
    brane evaluate gensim.txt --labels classes.txt --task all --json
    brane evaluate vectors.npz --labels people.csv --id name --label team
    brane evaluate vectors.npz --labels people.csv --id name --label tags
    brane evaluate vectors.npz --labels ages.txt --task regression
    brane evaluate vectors.npz --labels citeseer --task retrieval --k 10
    brane evaluate table.npy --ids nodes.txt --labels classes.txt --C cv

    \b
    brane split-edges citeseer -o train.npz --held-out pairs.npz
    brane embed train.npz -o vectors.npz
    brane evaluate vectors.npz --held-out pairs.npz
    """
    from neural_brane.cli.progress import counting
    from neural_brane.cli.scores import show
    from neural_brane.datasets import read_targets
    from neural_brane.embedding import Embedding
    from neural_brane.evaluate import match, predict_links
    from neural_brane.io.atomic import check_distinct, check_writable

    tasks = choose_tasks(task, labels, held_out)
    penalty = read_penalty(C)
    if save_splits is not None:
        given = {"FILE": file, "--labels": labels, "--ids": ids, "--held-out": held_out, "--splits-from": splits_from}
        check_distinct({"--save-splits": save_splits}, given)
        check_writable(save_splits, ParameterError)
    embedding = Embedding.load(file, ids)
    pairs = read_pairs(held_out, embedding) if "links" in tasks else None
    known = None
    if labels is not None and tasks != {"links"}:
        columns = {"id": id_column, "label": label_column, "separator": separator}
        nodes, targets = read_targets(labels, kind=wanted_kind(tasks), **columns)
        tasks = settle_tasks(tasks, targets)
        known = match(embedding, nodes, targets, allow_missing=allow_missing)
    results: dict[str, Any] = {}
    if known is not None and tasks & set(DIVIDED.values()):
        chosen = choose_splits(known, splits_from, splits, seed, stratify)
        if save_splits is not None:
            chosen.save(save_splits)
        results |= score_divided(known, tasks, chosen, penalty, train)
    if known is not None:
        results |= score_whole(known, tasks, seed=seed, starts=starts, k=k, queries=queries)
    if pairs is not None:
        options: dict[str, Any] = {
            "similarity": similarity or own_similarity(embedding),
            "allow_missing": allow_missing,
        }
        with counting("links") as report:
            results["links"] = predict_links(embedding, pairs, seed=seed, progress=report, **options)
    numbered = file.suffix == ".npy" and ids is None
    if as_json:
        about = {"file": str(file), "labels": labels, "ids": "row numbers" if numbered else "given"}
        echo(json.dumps(about | as_record(embedding, known, results), indent=2))
    else:
        show(results, known, f"{file}: {len(embedding):,} x {embedding.dim}", numbered=numbered)
    if known is not None and (seen := embedding.provenance.get("labels")):
        echo(
            f"these vectors were learned from the labels of {seen:,} nodes too: scores on those nodes predict "
            "nothing; give --labels without them, or have 'brane compare' learn from each split's training part alone",
            err=True,
        )


def read_penalty(text: str) -> Any:
    """C as a number, or "cv"."""
    try:
        return text if text == "cv" else float(text)
    except ValueError:
        raise ParameterError(f"--C {text} makes no sense; give a number above 0, or cv to choose it") from None


def read_pairs(path: Path | None, embedding: Embedding) -> HeldOutEdges | None:
    """The pairs to predict, once it is known that these vectors were not trained on them."""
    from neural_brane.evaluate import HeldOutEdges

    if path is None:
        return None
    pairs = HeldOutEdges.load(path)
    pairs.check_unseen(embedding.provenance)
    return pairs


def choose_splits(known: Labelled, path: Path | None, splits: int | None, seed: int, stratify: bool) -> Splits:
    """The divisions that a file holds, or new ones."""
    import numpy as np

    from neural_brane.evaluate import Splits

    has_classes = isinstance(known.labels, np.ndarray) and known.labels.dtype.kind != "f"
    if stratify and not has_classes:
        raise ParameterError("--stratify is for classes; leave it out for several labels and for numbers")
    if path is None:
        number, classes = 10 if splits is None else splits, known.labels if has_classes else np.zeros(len(known.ids))
        return Splits.draw(known.ids, classes, splits=number, seed=seed, stratify=stratify)
    if splits is not None or stratify:
        raise ParameterError(
            f"{path} says how many divisions there are and how they were drawn; leave out --splits and --stratify"
        )
    return Splits.load(path).in_order_of(known.ids)


def own_similarity(embedding: Embedding) -> str:
    """The similarity that the method means, where the vectors' provenance names one of our methods; else cosine."""
    from neural_brane.methods import METHODS

    method = METHODS.get(embedding.provenance.get("method", ""))
    return "cosine" if method is None else method.similarity


def as_record(embedding: Embedding, known: Labelled | None, results: dict[str, Any]) -> dict[str, Any]:
    """The vectors' shape, the nodes that did not match (with examples) and the scores, for JSON."""
    record: dict[str, Any] = {"nodes": len(embedding), "dim": embedding.dim}
    if known is not None:
        for name, ids in (("unlabelled", known.unlabelled), ("missing", known.missing)):
            record[name] = {"count": len(ids), "examples": ids[:3].tolist()}
    scored = {name: result.as_dict() for name, result in results.items()}
    # The encoder of columns lists every category and word: it is for programs that open the file.
    provenance = {name: value for name, value in embedding.provenance.items() if name != "encoder"}
    return record | scored | {"provenance": provenance}
