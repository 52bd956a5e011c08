"""`brane evaluate`: score vectors, whichever program made them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from neural_brane.cli import options as o
from neural_brane.cli.options import bundled
from neural_brane.cli.terminal import counting, echo, show_table
from neural_brane.errors import ParameterError, shorten

if TYPE_CHECKING:
    from neural_brane.embedding import Embedding
    from neural_brane.evaluate import (
        Clustering,
        Labelled,
        LinkPrediction,
        Repeats,
        Retrieval,
        Splits,
    )
    from neural_brane.files.nodes import Kind, Targets

LABELS, LINKS = "Tasks that use labels (all but links)", "Links"
Task = StrEnum("Task", "classification multilabel regression clustering retrieval links all")
about_labels = partial(o.option, panel=LABELS)


@dataclass(frozen=True)
class Source:
    """Options that name the labels."""

    labels: Annotated[str | None, about_labels("source", "Dataset, graph, table or label file.")] = None
    id_column: Annotated[str | None, about_labels("column", "Column of a table with ids.", "--id")] = None
    label_column: Annotated[str | None, about_labels("column", "Column of a table with labels.", "--label")] = None
    separator: Annotated[str | None, about_labels("text", "Text between labels (default: detected).")] = None


@dataclass(frozen=True)
class Scoring:
    """Options that control the scores."""

    train: Annotated[list[float] | None, about_labels("share", "Training share; may repeat (0.3 0.5 0.7).")] = None
    splits: Annotated[int | None, about_labels("whole", "Random splits (default: 10).")] = None
    stratify: Annotated[bool, o.flag("--stratify", "Give each class the same share.", LABELS)] = False
    save_splits: Annotated[Path | None, about_labels("file", "Write the splits as JSON.")] = None
    splits_from: Annotated[Path | None, about_labels("file", "Use the splits of this file.")] = None
    C: Annotated[str, about_labels("number", "Inverse penalty; cv searches.", "--C")] = "1"
    as_they_are: Annotated[bool, o.flag("--as-they-are", "Classify the vectors unscaled.", LABELS)] = False
    starts: Annotated[int, about_labels("whole", "Starts of k-means; the best counts.")] = 10
    k: Annotated[list[int] | None, about_labels("whole", "Nodes to retrieve; may repeat (1 10 100).", "--k")] = None
    queries: Annotated[int, about_labels("whole", "Query nodes, at most.")] = 10_000
    seed: o.Seed = 0

    def penalty(self) -> Any:
        """Return C as a number, or "cv"."""
        try:
            return self.C if self.C == "cv" else float(self.C)
        except ValueError:
            raise ParameterError(
                f"--C {self.C} is not a number; give one above 0, or cv to search by cross-validation"
            ) from None


USUAL, ALL = "usual", "all"  # stand for tasks that depend on the kind of labels
NEEDS: dict[str, Kind] = {
    "classification": "class", "clustering": "class", "multilabel": "several", "regression": "number",
}  # fmt: skip
DIVIDED: dict[Kind, str] = {"class": "classification", "several": "multilabel", "number": "regression"}
EVERY = {"class": {"classification", "clustering", "retrieval"}, "several": {"multilabel", "retrieval"}}


def choose_tasks(given: list[Task] | None, labels: str | None, held_out: Path | None) -> set[str]:
    """Return the names of the given tasks; they may contain `USUAL` and `ALL` until the labels are read."""
    if labels is None and held_out is None:
        raise ParameterError("no labels and no edges; give --labels (a dataset or a file), --held-out (pairs) or both")
    tasks = {USUAL} if given is None else {str(one) for one in given}
    if tasks & {USUAL, ALL}:
        return ({min(tasks & {USUAL, ALL})} if labels else set()) | ({"links"} if held_out else set())
    if tasks - {"links"} and labels is None:
        raise ParameterError(f"--task {min(tasks - {'links'})} needs labels; give --labels with a dataset or a file")
    if "links" in tasks and held_out is None:
        raise ParameterError("--task links needs --held-out FILE; 'brane split-edges' writes the file before training")
    if held_out is not None and "links" not in tasks:
        raise ParameterError(f"--held-out {held_out} is used by --task links only; add --task links or leave it out")
    return tasks


def settle_tasks(tasks: set[str], targets: Targets) -> set[str]:
    """Replace `USUAL` and `ALL` by tasks that fit the labels; print a note on stderr if the labels are not classes."""
    from neural_brane.graph.labels import MultiLabels

    several = isinstance(targets, MultiLabels)
    kind: Kind = "several" if isinstance(targets, MultiLabels) else "number" if targets.dtype.kind == "f" else "class"
    if kind == "number" and "retrieval" in tasks:
        raise ParameterError(
            "--task retrieval needs classes, but these labels are numbers; add --task classification to read them as "
            "classes"
        )
    if tasks & {USUAL, ALL} and kind != "class":
        found = "nodes have several labels" if several else "labels are numbers"
        echo(f"{found}: scored by {DIVIDED[kind]}; --task classification reads them as classes", err=True)
    for name, fitting in ((USUAL, {DIVIDED[kind]}), (ALL, EVERY.get(kind, {"regression"}))):
        tasks = (tasks - {name}) | fitting if name in tasks else tasks
    return tasks


def score(known: Labelled, task: str, splits: Splits | None, how: Scoring) -> Any:
    """Return the scores of vectors in a task that uses labels."""
    from neural_brane import evaluate as scores

    vectors, labels = known.vectors, known.labels
    divided: dict[str, Any] = {"splits": splits} | ({"train": how.train} if how.train else {})
    regression: dict[str, Any] = {"C": how.penalty(), "as_they_are": how.as_they_are}
    if task == "multilabel" and regression["C"] == "cv":
        raise ParameterError("--C cv works with --task classification only; for --task multilabel give a number")
    with counting(task) as report:
        if task == "classification":
            return scores.classify(vectors, labels, **regression, progress=report, **divided)
        if task == "multilabel":
            return scores.classify_several(vectors, labels, **regression, progress=report, **divided)
        if task == "regression":
            return scores.regress(vectors, labels, progress=report, **divided)
        if task == "clustering":
            return scores.cluster(vectors, labels, starts=how.starts, seed=how.seed, progress=report)
        return scores.retrieve(vectors, labels, k=how.k, queries=how.queries, seed=how.seed, progress=report)


@bundled
def evaluate(
    file: o.Vectors,
    source: Source,
    how: Scoring,
    task: Annotated[list[Task] | None, o.option("task", "A task from above; may be repeated.")] = None,
    held_out: Annotated[Path | None, o.option("file", "Pairs from 'brane split-edges'.", panel=LINKS)] = None,
    similarity: Annotated[
        Literal["cosine", "dot", "distance"] | None,
        o.option("name", "cosine, dot or distance (default: by method).", panel=LINKS),
    ] = None,
    ids: o.Ids = None,
    allow_missing: Annotated[bool, o.flag("--allow-missing", "Skip nodes without a vector.")] = False,
    as_json: o.AsJson = False,
) -> None:
    r"""Score vectors of this or any other program.

    \b
    classification  Macro-F1 and Micro-F1 of logistic regression, on vectors of
                    one root-mean-square length (see --as-they-are)
    multilabel      the same for nodes with several labels
    regression      R² and Spearman's rank correlation of ridge regression
    clustering      NMI, purity and ARI of k-means
    retrieval       precision and recall of the nearest nodes by cosine
    links           AUC of edges held out before training
    all             every task that --labels and --held-out allow

    \b
    brane evaluate vectors.npz --labels stdlib
    brane evaluate gensim.txt --labels classes.txt --task all --json
    brane evaluate vectors.npz --labels people.csv --id name --label team
    brane evaluate vectors.npz --held-out pairs.npz
    """
    from neural_brane.embedding import Embedding
    from neural_brane.evaluate import HeldOutEdges, predict_links
    from neural_brane.files.storage import check_distinct, check_writable
    from neural_brane.methods import METHODS

    tasks = choose_tasks(task, source.labels, held_out)
    how.penalty()  # refuses a wrong value before any file is read
    if how.save_splits is not None:
        given = {"FILE": file, "--labels": source.labels, "--ids": ids, "--held-out": held_out}
        check_distinct({"--save-splits": how.save_splits}, given | {"--splits-from": how.splits_from})
        check_writable(how.save_splits, ParameterError)
    embedding = Embedding.load(file, ids)
    pairs = HeldOutEdges.load(held_out) if held_out is not None and "links" in tasks else None
    if pairs is not None:
        pairs.check_unseen(embedding.provenance)  # the vectors must not be trained on the held-out edges
    known, tasks = match_labels(embedding, source, tasks, allow_missing)
    results: dict[str, Any] = {}
    if known is not None:
        chosen = choose_splits(known, how) if tasks & set(DIVIDED.values()) else None
        results = {str(one): score(known, one, chosen, how) for one in Task if one in tasks - {"links"}}
    if pairs is not None:
        method = METHODS.get(embedding.provenance.get("method", ""))
        own = similarity or ("cosine" if method is None else method.similarity)
        with counting("links") as report:
            results["links"] = predict_links(
                embedding, pairs, seed=how.seed, progress=report, similarity=own, allow_missing=allow_missing
            )
    numbered = file.suffix == ".npy" and ids is None
    if as_json:
        about = {"file": str(file), "labels": source.labels, "ids": "row numbers" if numbered else "given"}
        echo(json.dumps(about | as_record(embedding, known, results), indent=2))
    else:
        show(results, known, f"{file}: {len(embedding):,} x {embedding.dim}", numbered=numbered)
    if known is not None and (seen := embedding.provenance.get("labels")):
        echo(
            f"these vectors were also learned from the labels of {seen:,} nodes: scores on those nodes are too high; "
            "leave them out of --labels, or run 'brane compare', which learns from the training part of each split",
            err=True,
        )


def match_labels(
    embedding: Embedding, source: Source, tasks: set[str], allow_missing: bool
) -> tuple[Labelled | None, set[str]]:
    """Return the labels, matched with the vectors by id, and the tasks that they allow."""
    from neural_brane.evaluate import match
    from neural_brane.files.datasets import read_targets

    if source.labels is None or tasks == {"links"}:
        return None, tasks
    columns = {"id": source.id_column, "label": source.label_column, "separator": source.separator}
    needing = {NEEDS[task]: task for task in sorted(tasks) if task in NEEDS}
    if len(needing) > 1:
        first, second, *_ = needing.values()
        raise ParameterError(
            f"--task {first} and --task {second} need different kinds of labels; run the command once for each"
        )
    nodes, targets = read_targets(source.labels, kind=next(iter(needing), None), **columns)
    tasks = settle_tasks(tasks, targets)
    return match(embedding, nodes, targets, allow_missing=allow_missing), tasks


def choose_splits(known: Labelled, how: Scoring) -> Splits:
    """Return the splits of a file, or draw new ones; write them if --save-splits was given."""
    import numpy as np

    from neural_brane.evaluate import Splits

    has_classes = isinstance(known.labels, np.ndarray) and known.labels.dtype.kind != "f"
    if how.stratify and not has_classes:
        raise ParameterError("--stratify needs classes; leave it out for several labels per node and for numbers")
    if how.splits_from is None:
        number = 10 if how.splits is None else how.splits
        classes = known.labels if has_classes else np.zeros(len(known.ids))
        chosen = Splits.draw(known.ids, classes, splits=number, seed=how.seed, stratify=how.stratify)
    elif how.splits is not None or how.stratify:
        raise ParameterError(f"{how.splits_from} determines the splits; leave out --splits and --stratify")
    else:
        chosen = Splits.load(how.splits_from).align_labels(known.ids)
    if how.save_splits is not None:
        chosen.save(how.save_splits)
    return chosen


def as_record(embedding: Embedding, known: Labelled | None, results: dict[str, Any]) -> dict[str, Any]:
    """Return the vectors' shape, the nodes that did not match (with examples) and the scores, for JSON."""
    record: dict[str, Any] = {"nodes": len(embedding), "dim": embedding.dim}
    if known is not None:
        for name, ids in (("unlabelled", known.unlabelled), ("missing", known.missing)):
            record[name] = {"count": len(ids), "examples": ids[:3].tolist()}
    scored = {name: result.as_dict() for name, result in results.items()}
    # The encoder of columns lists every category and word, which is too long for a report.
    provenance = {name: value for name, value in embedding.provenance.items() if name != "encoder"}
    return record | scored | {"provenance": provenance}


F1 = {"macro": "Macro-F1", "micro": "Micro-F1"}


def show(results: dict[str, Any], known: Labelled | None, title: str, *, numbered: bool) -> None:
    """Print the results of all tasks, and which nodes were left out."""
    for name, result in results.items():
        if name in SHOWN:
            SHOWN[name](result, title)
        else:
            show_divided(name, result, title)
    if known is not None:
        for ids, what in ((known.unlabelled, "a vector and no label"), (known.missing, "a label and no vector")):
            if len(ids):
                examples = shorten(", ".join(map(str, ids[:3].tolist())), most=200)
                echo(f"left out: {len(ids):,} nodes that have {what}, such as {examples}")
    if numbered:
        echo("the file has no ids: its rows were read as nodes 0, 1, 2, …; give their ids with --ids FILE")


def show_divided(name: str, result: Any, title: str) -> None:
    """Print the scores of a task that divides the nodes into training and test parts, by share of training nodes."""
    from neural_brane.evaluate.classify import RULE

    columns = {"r2": "R²", "spearman": "Spearman"} if name == "regression" else F1
    rows = [(f"{100 * one.train:g} %", *(spread(getattr(one, score)) for score in columns)) for one in result.scores]
    show_table(("trained on", *columns.values()), rows, title=title)
    drawn = "stratified" if name == "classification" and result.stratify else "random"
    seed = "unknown seed" if result.seed is None else f"seed {result.seed}"
    splits = f"mean ± sd of {result.splits} {drawn} splits, {seed}"
    if name == "regression":
        numbers = f"{result.labelled:,} numbers, {result.mean:.4g} ± {result.sd:.4g}"
        echo(f"{numbers}; ridge regression, {splits}; the penalty is chosen inside each training part")
    elif name == "multilabel":
        labels = f"{result.labelled:,} nodes, {len(result.labels)} labels, {result.labels_per_node:.2f} per node"
        echo(f"{labels}; {splits}; C = {result.C:g}, {_length(result)}\n{RULE}")
    else:
        if result.C != "cv":
            penalty = f"C = {result.C:g}"
        else:
            chosen = sorted(C for score in result.scores for C in score.C)
            most = max(chosen, key=chosen.count)
            penalty = f"C by cross-validation: {chosen[0]:g} to {chosen[-1]:g}, mostly {most:g}"
        echo(f"{result.labelled:,} nodes, {len(result.classes)} classes; {splits}; {penalty}, {_length(result)}")


def _length(result: Any) -> str:
    """Return whether the vectors were scaled."""
    from neural_brane.evaluate.labelled import LENGTH

    return "vectors as they are" if result.as_they_are else f"vectors at root-mean-square length {LENGTH:g}"


def show_retrieval(result: Retrieval, title: str) -> None:
    """Print the scores of lists of each length, and the scores of random lists."""
    columns = ("precision", "chance_precision", "recall", "chance_recall", "most_recall", "average_precision")
    rows = [(f"{one.k}", *(f"{getattr(one, name):.4f}" for name in columns)) for one in result.scores]
    show_table(("nearest", "precision", "by chance", "recall", "by chance", "at most", "MAP"), rows, title=title)
    alike = "share a label" if result.several else "have the same class"
    nodes = f"{result.labelled:,} nodes, {len(result.classes)} {'labels' if result.several else 'classes'}"
    sample = "" if result.queries + result.alone == result.labelled else f", drawn with seed {result.seed}"
    echo(f"{nodes}; {result.queries:,} queries{sample}; hits are nodes that {alike}, nearest by cosine")
    if result.alone:
        echo(f"left out: {result.alone:,} nodes that are alone in their class")


def spread(score: Repeats) -> str:
    """Return mean and standard deviation as text."""
    return f"{score.mean:.4f} ± {score.sd:.4f}"


def show_clustering(result: Clustering, title: str) -> None:
    """Print the agreement of clusters and classes."""
    row = [f"{score:.4f}" for score in (result.nmi, result.purity, result.ari)]
    show_table(("NMI", "purity", "ARI"), [row], title=title)
    nodes = f"{result.labelled:,} nodes, {len(result.classes)} classes"
    echo(f"{nodes}; k-means with one cluster per class, best of {result.starts} starts by inertia, seed {result.seed}")


def show_links(result: LinkPrediction, title: str) -> None:
    """Print how well held-out edges are ranked."""
    found = {
        result.similarity: (result.auc, result.average_precision),
        "all evidence": (result.scorer_auc, result.scorer_average_precision),
    }
    rows = [(name, *("none" if one is None else f"{one:.4f}" for one in pair)) for name, pair in found.items()]
    show_table(("links scored by", "AUC", "average precision"), rows, title=title)
    echo(
        f"{result.positives:,} held-out edges against {result.negatives:,} pairs without an edge, seed {result.seed}; "
        "all evidence: a regression over the vectors, common neighbours, eigenvectors and degrees"
    )
    if result.missing:
        echo(f"{result.missing:,} nodes of the graph have no vector; zeros were used for them")
    if result.extra:
        echo(f"left out: {result.extra:,} vectors of nodes that are not in the graph")
    if not result.verified:
        echo("the file does not record its training graph: make sure that the graph did not contain the held-out edges")


SHOWN: dict[str, Any] = {"clustering": show_clustering, "retrieval": show_retrieval, "links": show_links}
