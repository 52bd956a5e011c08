"""`brane evaluate`: score vectors, whichever program made them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Option

from neural_brane.cli import options as o
from neural_brane.cli.options import bundled
from neural_brane.cli.scores import show
from neural_brane.cli.terminal import counting, echo
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.embedding import Embedding
    from neural_brane.evaluate import HeldOutEdges, Labelled, Splits
    from neural_brane.files.nodes import Kind, Targets


LABELS, LINKS = "All tasks but links", "Links"


class Task(StrEnum):
    """Tasks that score vectors."""

    classification = "classification"
    multilabel = "multilabel"
    regression = "regression"
    clustering = "clustering"
    retrieval = "retrieval"
    links = "links"
    all = "all"


about_labels = partial(Option, rich_help_panel=LABELS)


@dataclass(frozen=True)
class Source:
    """Options that say where the labels are."""

    labels: Annotated[str | None, about_labels(metavar="<source>", help="Dataset, graph, table or label file.")] = None
    id_column: Annotated[str | None, about_labels("--id", metavar="<column>", help="Ids in a table.")] = None
    label_column: Annotated[str | None, about_labels("--label", metavar="<column>", help="Labels in a table.")] = None
    separator: Annotated[
        str | None, about_labels(metavar="<text>", help="Separator of several labels (found if unset).")
    ] = None


@dataclass(frozen=True)
class Scoring:
    """Options that say how vectors are scored."""

    train: Annotated[
        list[float] | None, about_labels(metavar="<share>", help="Training share; may repeat (0.3 0.5 0.7).")
    ] = None
    splits: Annotated[int | None, about_labels(metavar="<whole>", help="Random splits (default 10).")] = None
    stratify: Annotated[bool, about_labels("--stratify", help="Split every class alike.")] = False
    save_splits: Annotated[Path | None, about_labels(metavar="<file>", help="Write the splits as JSON.")] = None
    splits_from: Annotated[Path | None, about_labels(metavar="<file>", help="Use the splits of a file.")] = None
    C: Annotated[str, about_labels("--C", metavar="<number>", help="Inverse penalty, or cv.")] = "1"
    starts: Annotated[int, about_labels(metavar="<whole>", help="Starts of k-means.")] = 10
    k: Annotated[
        list[int] | None, about_labels("--k", metavar="<whole>", help="Nodes to retrieve; may repeat (1 10 100).")
    ] = None
    queries: Annotated[int, about_labels(metavar="<whole>", help="Most nodes to ask for.")] = 10_000
    seed: o.Seed = 0

    def penalty(self) -> Any:
        """C as a number, or "cv"."""
        try:
            return self.C if self.C == "cv" else float(self.C)
        except ValueError:
            raise ParameterError(f"--C {self.C} makes no sense; give a number above 0, or cv to choose it") from None


USUAL, ALL = "usual", "all"  # tasks that depend on the labels
NEEDS: dict[str, Kind] = {
    "classification": "class", "clustering": "class", "multilabel": "several", "regression": "number",
}  # fmt: skip
DIVIDED: dict[Kind, str] = {"class": "classification", "several": "multilabel", "number": "regression"}
EVERY = {"class": {"classification", "clustering", "retrieval"}, "several": {"multilabel", "retrieval"}}


def choose_tasks(asked: list[Task] | None, labels: str | None, held_out: Path | None) -> set[str]:
    """Return the tasks asked for; `USUAL` and `ALL` stand for tasks that depend on the labels."""
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
    """Return the kind of labels that these tasks need; None if any kind will do."""
    needing = {NEEDS[task]: task for task in sorted(tasks) if task in NEEDS}
    if len(needing) > 1:
        first, second, *_ = needing.values()
        raise ParameterError(f"--task {first} and --task {second} take labels differently; score one at a time")
    return next(iter(needing), None)


def settle_tasks(tasks: set[str], targets: Targets) -> set[str]:
    """Replace `USUAL` and `ALL` by tasks that fit the labels; print on stderr if those are not classes."""
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


def score(known: Labelled, task: str, splits: Splits | None, how: Scoring) -> Any:
    """Score vectors by a task that uses labels."""
    from neural_brane import evaluate as scores

    vectors, labels = known.vectors, known.labels
    divided: dict[str, Any] = {"splits": splits} | ({"train": how.train} if how.train else {})
    if task == "multilabel" and how.penalty() == "cv":
        raise ParameterError("--C cv is for --task classification; give --task multilabel a number")
    with counting(task) as report:
        if task == "classification":
            return scores.classify(vectors, labels, C=how.penalty(), progress=report, **divided)
        if task == "multilabel":
            return scores.classify_several(vectors, labels, C=how.penalty(), progress=report, **divided)
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
    task: Annotated[list[Task] | None, Option("--task", metavar="<task>", help="Listed above; may repeat.")] = None,
    held_out: Annotated[
        Path | None, Option(metavar="<file>", help="Pairs from 'brane split-edges'.", rich_help_panel=LINKS)
    ] = None,
    similarity: Annotated[
        Literal["cosine", "dot", "distance"] | None,
        Option(metavar="<name>", help="cosine, dot or distance (the method's own).", rich_help_panel=LINKS),
    ] = None,
    ids: o.Ids = None,
    allow_missing: Annotated[bool, Option("--allow-missing", help="Skip nodes without a vector.")] = False,
    as_json: o.AsJson = False,
) -> None:
    """Score vectors, whichever program made them.

    \b
    classification  Macro-F1 and Micro-F1 of logistic regression
    multilabel      the same for nodes with several labels
    regression      R² and Spearman's rank correlation of ridge regression
    clustering      NMI, purity and ARI of k-means
    retrieval       precision and recall of the nearest nodes by cosine
    links           AUC of edges held out before training
    all             all that --labels and --held-out allow

    \b
    brane evaluate vectors.npz --labels citeseer
    brane evaluate gensim.txt --labels classes.txt --task all --json
    brane evaluate vectors.npz --labels people.csv --id name --label team
    brane evaluate vectors.npz --held-out pairs.npz
    """
    from neural_brane.embedding import Embedding
    from neural_brane.evaluate import predict_links
    from neural_brane.files.storage import check_distinct, check_writable

    tasks = choose_tasks(task, source.labels, held_out)
    how.penalty()  # refuse it before reading
    if how.save_splits is not None:
        given = {"FILE": file, "--labels": source.labels, "--ids": ids, "--held-out": held_out}
        check_distinct({"--save-splits": how.save_splits}, given | {"--splits-from": how.splits_from})
        check_writable(how.save_splits, ParameterError)
    embedding = Embedding.load(file, ids)
    pairs = read_pairs(held_out, embedding) if "links" in tasks else None
    known, tasks = match_labels(embedding, source, tasks, allow_missing)
    results: dict[str, Any] = {}
    if known is not None:
        chosen = choose_splits(known, how) if tasks & set(DIVIDED.values()) else None
        results = {str(one): score(known, one, chosen, how) for one in Task if one in tasks - {"links"}}
    if pairs is not None:
        own = similarity or own_similarity(embedding)
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
            f"these vectors were learned from the labels of {seen:,} nodes too: scores on those nodes predict "
            "nothing; give --labels without them, or have 'brane compare' learn from each split's training part alone",
            err=True,
        )


def match_labels(
    embedding: Embedding, source: Source, tasks: set[str], allow_missing: bool
) -> tuple[Labelled | None, set[str]]:
    """Read the labels and match them with the vectors by id; return them with the tasks that they allow."""
    from neural_brane.evaluate import match
    from neural_brane.files.datasets import read_targets

    if source.labels is None or tasks == {"links"}:
        return None, tasks
    columns = {"id": source.id_column, "label": source.label_column, "separator": source.separator}
    nodes, targets = read_targets(source.labels, kind=wanted_kind(tasks), **columns)
    tasks = settle_tasks(tasks, targets)
    return match(embedding, nodes, targets, allow_missing=allow_missing), tasks


def read_pairs(path: Path | None, embedding: Embedding) -> HeldOutEdges | None:
    """Read the pairs to predict; refuse vectors that were trained on them."""
    from neural_brane.evaluate import HeldOutEdges

    if path is None:
        return None
    pairs = HeldOutEdges.load(path)
    pairs.check_unseen(embedding.provenance)
    return pairs


def choose_splits(known: Labelled, how: Scoring) -> Splits:
    """Read the splits of a file, or draw new ones; write them if asked to."""
    import numpy as np

    from neural_brane.evaluate import Splits

    has_classes = isinstance(known.labels, np.ndarray) and known.labels.dtype.kind != "f"
    if how.stratify and not has_classes:
        raise ParameterError("--stratify is for classes; leave it out for several labels and for numbers")
    if how.splits_from is None:
        number = 10 if how.splits is None else how.splits
        classes = known.labels if has_classes else np.zeros(len(known.ids))
        chosen = Splits.draw(known.ids, classes, splits=number, seed=how.seed, stratify=how.stratify)
    elif how.splits is not None or how.stratify:
        raise ParameterError(f"{how.splits_from} already fixes the splits; leave out --splits and --stratify")
    else:
        chosen = Splits.load(how.splits_from).in_order_of(known.ids)
    if how.save_splits is not None:
        chosen.save(how.save_splits)
    return chosen


def own_similarity(embedding: Embedding) -> str:
    """Return the similarity of the method that the vectors' provenance names, or cosine."""
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
    # The encoder of columns lists every category and word, which is too long for a report.
    provenance = {name: value for name, value in embedding.provenance.items() if name != "encoder"}
    return record | scored | {"provenance": provenance}
