"""`brane evaluate`: how good vectors are, whichever program made them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural_brane.cli import evaluate_options as o
from neural_brane.cli.console import echo
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.embedding import Embedding
    from neural_brane.evaluate import HeldOutEdges, Labelled, Splits


def evaluate(
    file: o.File,
    labels: o.Labels = None,
    id_column: o.IdColumn = None,
    label_column: o.LabelColumn = None,
    task: o.Tasks = None,
    train: o.Train = None,
    splits: o.Splits = None,
    stratify: o.Stratify = False,
    save_splits: o.SaveSplits = None,
    splits_from: o.SplitsFrom = None,
    C: o.Penalty = "1",
    starts: o.Starts = 10,
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
    clustering      k-means with the true number of classes, ten starts:
                    NMI, purity and ARI
    links           edges taken out before training against pairs without
                    an edge: AUC and average precision, by similarity, by
                    logistic regression on products of the two vectors,
                    and by the method's own score where it has one

    \b
    brane evaluate vectors.npz --labels citeseer
    brane evaluate gensim.txt --labels classes.txt --task all --json
    brane evaluate vectors.npz --labels people.csv --id name --label team
    brane evaluate table.npy --ids nodes.txt --labels classes.txt --C cv

    \b
    brane split-edges citeseer -o train.npz --held-out pairs.npz
    brane embed train.npz -o vectors.npz
    brane evaluate vectors.npz --held-out pairs.npz
    """
    from neural_brane.cli.progress import counting
    from neural_brane.cli.scores import show
    from neural_brane.embedding import Embedding
    from neural_brane.evaluate import classify, cluster, predict_links
    from neural_brane.io.atomic import check_distinct, check_writable

    tasks = choose_tasks(task, labels, held_out)
    penalty = read_penalty(C)
    if save_splits is not None:
        given = {"FILE": file, "--labels": labels, "--ids": ids, "--held-out": held_out, "--splits-from": splits_from}
        check_distinct({"--save-splits": save_splits}, given)
        check_writable(save_splits, ParameterError)
    embedding = Embedding.load(file, ids)
    pairs = read_pairs(held_out, embedding) if "links" in tasks else None
    scored = bool(tasks & {"classification", "clustering"})
    known = read_classes(labels, embedding, allow_missing, id_column, label_column) if scored else None
    results: dict[str, Any] = {}
    if known is not None and "classification" in tasks:
        chosen = choose_splits(known, splits_from, splits, seed, stratify)
        if save_splits is not None:
            chosen.save(save_splits)
        options: dict[str, Any] = {"train": train} if train else {}
        with counting("classification") as report:
            results["classification"] = classify(
                known.vectors, known.labels, splits=chosen, C=penalty, progress=report, **options
            )
    if known is not None and "clustering" in tasks:
        with counting("clustering") as report:
            results["clustering"] = cluster(known.vectors, known.labels, starts=starts, seed=seed, progress=report)
    if pairs is not None:
        options = {"similarity": similarity or own_similarity(embedding), "allow_missing": allow_missing}
        with counting("links") as report:
            results["links"] = predict_links(embedding, pairs, seed=seed, progress=report, **options)
    numbered = file.suffix == ".npy" and ids is None
    if as_json:
        about = {"file": str(file), "labels": labels, "ids": "row numbers" if numbered else "given"}
        echo(json.dumps(about | as_record(embedding, known, results), indent=2))
    else:
        show(results, known, f"{file}: {len(embedding):,} x {embedding.dim}", numbered=numbered)


def choose_tasks(asked: list[o.Task] | None, labels: str | None, held_out: Path | None) -> set[str]:
    """The tasks asked for; by default, those that --labels and --held-out are enough for."""
    if labels is None and held_out is None:
        raise ParameterError(
            "nothing to score by; give --labels (a dataset or a file of classes) or --held-out (pairs to predict)"
        )
    if asked is None:
        return {"classification"} if held_out is None else {"links"} if labels is None else {"classification", "links"}
    tasks = {str(one) for one in asked}
    if "all" in tasks:
        return ({"classification", "clustering"} if labels else set()) | ({"links"} if held_out else set())
    if tasks - {"links"} and labels is None:
        raise ParameterError(f"--task {min(tasks - {'links'})} needs --labels, a dataset's name or a file of classes")
    if "links" in tasks and held_out is None:
        raise ParameterError("--task links needs --held-out, a file that 'brane split-edges' writes before training")
    if held_out is not None and "links" not in tasks:
        raise ParameterError(
            f"--held-out {held_out} is for --task links, which is not asked for; add it, or leave --held-out out"
        )
    return tasks


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


def read_classes(
    source: str | None, embedding: Embedding, allow_missing: bool, id: str | None, label: str | None
) -> Labelled | None:
    """The vectors of the nodes that have a label, and their labels."""
    from neural_brane.datasets import read_labels
    from neural_brane.evaluate import match

    if source is None:
        return None
    return match(embedding, *read_labels(source, id=id, label=label), allow_missing=allow_missing)


def choose_splits(known: Labelled, path: Path | None, splits: int | None, seed: int, stratify: bool) -> Splits:
    """The divisions that a file holds, or new ones."""
    from neural_brane.evaluate import Splits

    if path is None:
        number = 10 if splits is None else splits
        return Splits.draw(known.ids, known.labels, splits=number, seed=seed, stratify=stratify)
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
