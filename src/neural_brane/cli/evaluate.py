"""`brane evaluate`: score vectors, whichever program made them."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from neural_brane.cli.terminal import echo
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.embedding import Embedding
    from neural_brane.evaluate import HeldOutEdges, Labelled, Splits
    from neural_brane.files.nodes import Kind, Targets


# The options of `brane evaluate`, each with the help that teaches it.

CLASSES, LINKS, MATCHING = "Labels: all tasks but links", "Links", "Matching"


class Task(StrEnum):
    """What vectors can be scored by."""

    classification = "classification"
    multilabel = "multilabel"
    regression = "regression"
    clustering = "clustering"
    retrieval = "retrieval"
    links = "links"
    all = "all"


File = Annotated[
    Path,
    Argument(help="Vectors, in any format that 'brane --help' lists."),
]
Tasks = Annotated[
    list[Task] | None,
    Option(
        "--task",
        metavar="<classification|multilabel|regression|clustering|retrieval|links|all>",
        help="What to score by; may be repeated. all: whatever --labels and --held-out are enough for "
        "(default, if --labels: classification, multilabel or regression, by what the labels are; if --held-out: "
        "links).",
    ),
]

Labels = Annotated[
    str | None,
    Option(
        help="Where the classes, labels or numbers are: a dataset's name, a graph (.npz, .content), a table (--id, "
        "--label) or a file of 'node<TAB>label' lines.",
        rich_help_panel=CLASSES,
    ),
]
IdColumn = Annotated[
    str | None,
    Option("--id", metavar="<column>", help="Column of the nodes' ids, in a table.", rich_help_panel=CLASSES),
]
LabelColumn = Annotated[
    str | None,
    Option("--label", metavar="<column>", help="Column of their classes, in a table.", rich_help_panel=CLASSES),
]
Separator = Annotated[
    str | None,
    Option(
        metavar="<text>",
        help="What stands between several labels of a node (default: found in the file).",
        rich_help_panel=CLASSES,
    ),
]
Train = Annotated[
    list[float] | None,
    Option(
        metavar="<share>",
        help="Share of the nodes to train on; may be repeated (default 0.3 0.5 0.7).",
        rich_help_panel=CLASSES,
    ),
]
SplitCount = Annotated[
    int | None, Option(help="Random divisions to average over (default 10).", rich_help_panel=CLASSES)
]
Stratify = Annotated[
    bool,
    Option(
        "--stratify",
        help="Divide every class in the same proportion; the paper draws plainly.",
        rich_help_panel=CLASSES,
    ),
]
SaveSplits = Annotated[
    Path | None, Option(help="Write the divisions to this JSON file, by node id.", rich_help_panel=CLASSES)
]
SplitsFrom = Annotated[
    Path | None, Option(help="Score on the divisions of this file, not on new ones.", rich_help_panel=CLASSES)
]
Penalty = Annotated[
    str,
    Option(
        "--C",
        metavar="<number|cv>",
        help="Inverse of the regression's penalty, or 'cv': chosen inside each training part by five-fold "
        "cross-validation from 0.01, 0.1, 1, 10, 100, 1000.",
        rich_help_panel=CLASSES,
    ),
]
Lengths = Annotated[
    list[int] | None,
    Option(
        "--k",
        metavar="<number>",
        help="For retrieval: length of the list of nearest nodes; may be repeated (default 1 10 100).",
        rich_help_panel=CLASSES,
    ),
]
Queries = Annotated[
    int,
    Option(help="For retrieval: nodes to ask for at most; of more, a random sample.", rich_help_panel=CLASSES),
]
Starts = Annotated[int, Option(help="Starts of k-means to average over.", rich_help_panel=CLASSES)]

HeldOut = Annotated[Path | None, Option(help="The pairs to predict, from 'brane split-edges'.", rich_help_panel=LINKS)]
Similarity = Annotated[
    Literal["cosine", "dot", "distance"] | None,
    Option(
        help="How two vectors are compared (default the method's own where the file names it, or cosine).",
        rich_help_panel=LINKS,
    ),
]

Ids = Annotated[
    Path | None,
    Option(help="For an .npy file: one id per line, in the order of its rows.", rich_help_panel=MATCHING),
]
AllowMissing = Annotated[
    bool,
    Option(
        "--allow-missing",
        help="Leave out labelled nodes that have no vector (give them zeros, for links) instead of stopping.",
        rich_help_panel=MATCHING,
    ),
]

Seed = Annotated[int, Option(help="The same seed gives every file the same divisions and starts.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON and nothing else.")]


# Which tasks `brane evaluate` scores by, and the scores of each.

USUAL, ALL = "usual", "all"  # until it is known what the labels are
NEEDS: dict[str, Kind] = {
    "classification": "class", "clustering": "class", "multilabel": "several", "regression": "number",
}  # fmt: skip
DIVIDED: dict[Kind, str] = {"class": "classification", "several": "multilabel", "number": "regression"}
EVERY = {"class": {"classification", "clustering", "retrieval"}, "several": {"multilabel", "retrieval"}}


def choose_tasks(asked: list[Task] | None, labels: str | None, held_out: Path | None) -> set[str]:
    """The tasks asked for; `USUAL` and `ALL` stand for what depends on the labels."""
    if labels is None and held_out is None:
        raise ParameterError(
            "nothing to score by; give --labels (a dataset or a file of classes) or --held-out (pairs to predict)"
        )
    tasks = {USUAL} if asked is None else {str(one) for one in asked}
    if tasks & {USUAL, ALL}:
        return ({min(tasks & {USUAL, ALL})} if labels else set()) | ({"links"} if held_out else set())
    if tasks - {"links"} and labels is None:
        raise ParameterError(f"--task {min(tasks - {'links'})} needs --labels, a dataset's name or a file of classes")
    if "links" in tasks and held_out is None:
        raise ParameterError("--task links needs --held-out, a file that 'brane split-edges' writes before training")
    if held_out is not None and "links" not in tasks:
        raise ParameterError(
            f"--held-out {held_out} is for --task links, which is not asked for; add it, or leave --held-out out"
        )
    return tasks


def wanted_kind(tasks: set[str]) -> Kind | None:
    """What the labels must be for these tasks; None where the labels decide."""
    needing = {NEEDS[task]: task for task in sorted(tasks) if task in NEEDS}
    if len(needing) > 1:
        first, second, *_ = needing.values()
        raise ParameterError(f"--task {first} and --task {second} take labels differently; score one at a time")
    return next(iter(needing), None)


def settle_tasks(tasks: set[str], targets: Targets) -> set[str]:
    """The tasks, once the labels are known; what was chosen for the user is told on stderr."""
    from neural_brane.graph.labels import MultiLabels

    several = isinstance(targets, MultiLabels)
    kind: Kind = "several" if isinstance(targets, MultiLabels) else "number" if targets.dtype.kind == "f" else "class"
    if kind == "number" and "retrieval" in tasks:
        raise ParameterError(
            "--task retrieval needs classes or several labels, and these are numbers; add --task classification to "
            "take them for classes"
        )
    if tasks & {USUAL, ALL} and kind != "class":
        what = "several a node" if several else "numbers"
        echo(f"labels are {what}: scored by {DIVIDED[kind]}; --task classification takes them for classes", err=True)
    for name, meant in ((USUAL, {DIVIDED[kind]}), (ALL, EVERY.get(kind, {"regression"}))):
        tasks = (tasks - {name}) | meant if name in tasks else tasks
    return tasks


def score_divided(
    known: Labelled, tasks: set[str], splits: Splits, C: Any, train: list[float] | None
) -> dict[str, Any]:
    """The scores of what is learned on part of the nodes and predicted on the others."""
    from neural_brane.cli.terminal import counting
    from neural_brane.evaluate import classify, classify_several, regress

    options: dict[str, Any] = {"splits": splits} | ({"train": train} if train else {})
    if "multilabel" in tasks and C == "cv":
        raise ParameterError("--C cv is for --task classification; give --task multilabel a number")
    results: dict[str, Any] = {}
    if "classification" in tasks:
        with counting("classification") as report:
            results["classification"] = classify(known.vectors, known.labels, C=C, progress=report, **options)
    if "multilabel" in tasks:
        with counting("multilabel") as report:
            results["multilabel"] = classify_several(known.vectors, known.labels, C=C, progress=report, **options)
    if "regression" in tasks:
        with counting("regression") as report:
            results["regression"] = regress(known.vectors, known.labels, progress=report, **options)
    return results


def score_whole(
    known: Labelled, tasks: set[str], *, seed: int, starts: int, k: list[int] | None, queries: int
) -> dict[str, Any]:
    """The scores of what looks at all nodes and learns nothing from labels."""
    from neural_brane.cli.terminal import counting
    from neural_brane.evaluate import cluster, retrieve

    results: dict[str, Any] = {}
    if "clustering" in tasks:
        with counting("clustering") as report:
            results["clustering"] = cluster(known.vectors, known.labels, starts=starts, seed=seed, progress=report)
    if "retrieval" in tasks:
        with counting("retrieval") as report:
            results["retrieval"] = retrieve(
                known.vectors, known.labels, k=k, queries=queries, seed=seed, progress=report
            )
    return results


# `brane evaluate`: how good vectors are, whichever program made them.


def evaluate(
    file: File,
    labels: Labels = None,
    id_column: IdColumn = None,
    label_column: LabelColumn = None,
    separator: Separator = None,
    task: Tasks = None,
    train: Train = None,
    splits: SplitCount = None,
    stratify: Stratify = False,
    save_splits: SaveSplits = None,
    splits_from: SplitsFrom = None,
    C: Penalty = "1",
    starts: Starts = 10,
    k: Lengths = None,
    queries: Queries = 10_000,
    held_out: HeldOut = None,
    similarity: Similarity = None,
    ids: Ids = None,
    allow_missing: AllowMissing = False,
    seed: Seed = 0,
    as_json: AsJson = False,
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
    from neural_brane.cli.scores import show
    from neural_brane.cli.terminal import counting
    from neural_brane.embedding import Embedding
    from neural_brane.evaluate import match, predict_links
    from neural_brane.files.datasets import read_targets
    from neural_brane.files.storage import check_distinct, check_writable

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
