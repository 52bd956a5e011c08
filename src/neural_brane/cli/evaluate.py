"""`brane evaluate`: how good vectors are, wherever they were made."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option, echo

from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.embedding import Embedding
    from neural_brane.evaluate import Labelled, Splits

CLASSES, LINKS, MATCHING = "Classes: classification and clustering", "Links", "Matching"


class Task(StrEnum):
    """What vectors can be scored by."""

    classification = "classification"
    clustering = "clustering"
    links = "links"
    all = "all"


def evaluate(
    file: Annotated[
        Path,
        Argument(help="Vectors: .npz, .txt .w2v .vec .emb (word2vec text), .bin (binary), .tsv, .parquet or .npy."),
    ],
    labels: Annotated[
        str | None,
        Option(
            help="Where the classes are: a dataset's name, a graph (.npz, .content) "
            "or a file of 'node<TAB>label' lines.",
            rich_help_panel=CLASSES,
        ),
    ] = None,
    task: Annotated[
        list[Task] | None,
        Option(
            metavar="<classification|clustering|links|all>",
            help="What to score by; may be repeated. all: whatever --labels and --held-out are enough for "
            "(default classification if --labels, links if --held-out).",
        ),
    ] = None,
    train: Annotated[
        list[float] | None,
        Option(
            metavar="<share>",
            help="Share of the nodes to train on; may be repeated (default 0.3 0.5 0.7).",
            rich_help_panel=CLASSES,
        ),
    ] = None,
    splits: Annotated[
        int | None, Option(help="Random divisions to average over (default 10).", rich_help_panel=CLASSES)
    ] = None,
    stratify: Annotated[
        bool,
        Option(
            "--stratify",
            help="Divide every class in the same proportion; the paper draws plainly.",
            rich_help_panel=CLASSES,
        ),
    ] = False,
    save_splits: Annotated[
        Path | None,
        Option(help="Write the divisions to this JSON file, by node id.", rich_help_panel=CLASSES),
    ] = None,
    splits_from: Annotated[
        Path | None,
        Option(help="Score on the divisions of this file, not on new ones.", rich_help_panel=CLASSES),
    ] = None,
    C: Annotated[
        str,
        Option(
            "--C",
            metavar="<number|cv>",
            help="Inverse of the regression's penalty, or 'cv': chosen inside each training part by five-fold "
            "cross-validation from 0.01, 0.1, 1, 10, 100, 1000.",
            rich_help_panel=CLASSES,
        ),
    ] = "1",
    starts: Annotated[int, Option(help="Starts of k-means to average over.", rich_help_panel=CLASSES)] = 10,
    held_out: Annotated[
        Path | None, Option(help="The pairs to predict, from 'brane split-edges'.", rich_help_panel=LINKS)
    ] = None,
    similarity: Annotated[
        Literal["cosine", "dot", "distance"] | None,
        Option(
            help="How two vectors are compared (default the method's own where the file names it, or cosine).",
            rich_help_panel=LINKS,
        ),
    ] = None,
    ids: Annotated[
        Path | None,
        Option(help="For an .npy file: one id per line, in the order of its rows.", rich_help_panel=MATCHING),
    ] = None,
    allow_missing: Annotated[
        bool,
        Option(
            "--allow-missing",
            help="Leave out labelled nodes that have no vector (give them zeros, for links) instead of stopping.",
            rich_help_panel=MATCHING,
        ),
    ] = False,
    seed: Annotated[int, Option(help="The same seed gives every file the same divisions and starts.")] = 0,
    as_json: Annotated[bool, Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Score vectors by what they are good for, whichever program made them.

    Nodes are matched by id, never by position. Vectors are taken as they are.

    \b
    classification  logistic regression (C = 1) on random divisions of the
                    nodes, as in the paper: Macro-F1 and Micro-F1
    clustering      k-means with the true number of classes, ten starts:
                    NMI, purity and ARI
    links           edges taken out before training against pairs without
                    an edge: AUC and average precision, by similarity and
                    by logistic regression on products of the two vectors

    \b
    brane evaluate vectors.npz --labels citeseer
    brane evaluate gensim.txt --labels classes.txt --task all --json
    brane evaluate table.npy --ids nodes.txt --labels classes.txt --C cv

    \b
    brane split-edges citeseer -o train.npz --held-out pairs.npz
    brane embed train.npz -o vectors.npz
    brane evaluate vectors.npz --held-out pairs.npz
    """
    from neural_brane.cli.progress import counting
    from neural_brane.cli.scores import show
    from neural_brane.evaluate import HeldOutEdges, classify, cluster, match, predict_links, read_truth
    from neural_brane.io.vectors import read_vectors

    tasks = choose_tasks(task, labels, held_out)
    penalty = read_penalty(C)
    embedding = read_vectors(file, ids=ids)
    pairs = HeldOutEdges.load(held_out) if "links" in tasks and held_out else None
    if pairs is not None:
        pairs.check_unseen(embedding.provenance)
    known = None
    if labels is not None and tasks & {"classification", "clustering"}:
        known = match(embedding, *read_truth(labels), allow_missing=allow_missing)
    results: dict[str, Any] = {}
    if known is not None and "classification" in tasks:
        chosen = choose_splits(known, splits_from, splits, seed, stratify)
        if save_splits is not None:
            chosen.save(save_splits)
        with counting("classification") as report:
            shares = train or (0.3, 0.5, 0.7)
            results["classification"] = classify(
                known.vectors, known.labels, train=shares, splits=chosen, C=penalty, progress=report
            )
    if known is not None and "clustering" in tasks:
        with counting("clustering") as report:
            results["clustering"] = cluster(known.vectors, known.labels, starts=starts, seed=seed, progress=report)
    if pairs is not None:
        own = similarity or own_similarity(embedding)
        with counting("links") as report:
            results["links"] = predict_links(
                embedding, pairs, similarity=own, seed=seed, allow_missing=allow_missing, progress=report
            )
    numbered = file.suffix == ".npy" and ids is None
    if as_json:
        about = {"file": str(file), "labels": labels, "ids": "row numbers" if numbered else "given"}
        echo(json.dumps(about | describe(embedding, known, results), indent=2))
    else:
        show(results, known, f"{file}: {len(embedding):,} x {embedding.dim}", numbered=numbered)


def choose_tasks(asked: list[Task] | None, labels: str | None, held_out: Path | None) -> set[str]:
    """The tasks asked for, or those that what is given is enough for."""
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
    return tasks


def choose_splits(known: Labelled, path: Path | None, splits: int | None, seed: int, stratify: bool) -> Splits:
    """The divisions of a file, or new ones."""
    from neural_brane.evaluate import Splits

    if path is None:
        number = 10 if splits is None else splits
        return Splits.draw(known.ids, known.labels, splits=number, seed=seed, stratify=stratify)
    if splits is not None or stratify:
        raise ParameterError(
            f"{path} says how many divisions there are and how they were drawn; leave out --splits and --stratify"
        )
    return Splits.load(path).of(known.ids)


def read_penalty(text: str) -> Any:
    """C as a number, or "cv"."""
    try:
        return text if text == "cv" else float(text)
    except ValueError:
        raise ParameterError(f"--C {text} makes no sense; give a number above 0, or cv to choose it") from None


def own_similarity(embedding: Embedding) -> str:
    """The similarity that the method of these vectors means, if it is one of ours."""
    from neural_brane.methods import METHODS

    method = METHODS.get(embedding.provenance.get("method", ""))
    return "cosine" if method is None else method.similarity


def describe(embedding: Embedding, known: Labelled | None, results: dict[str, Any]) -> dict[str, Any]:
    """The vectors, what did not match (with examples) and the scores, for JSON."""
    record: dict[str, Any] = {"nodes": len(embedding), "dim": embedding.dim}
    if known is not None:
        for name, ids in (("unlabelled", known.extra), ("missing", known.absent)):
            record[name] = {"count": len(ids), "examples": ids[:3].tolist()}
    scored = {name: result.as_dict() for name, result in results.items()}
    return record | scored | {"provenance": embedding.provenance}
