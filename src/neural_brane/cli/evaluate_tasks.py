"""Which tasks `brane evaluate` scores by, and the scores of each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural_brane.cli import evaluate_options as o
from neural_brane.cli.console import echo
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.evaluate import Labelled, Splits
    from neural_brane.io.targets import Kind, Targets

USUAL, ALL = "usual", "all"  # until it is known what the labels are
NEEDS: dict[str, Kind] = {
    "classification": "class", "clustering": "class", "multilabel": "several", "regression": "number",
}  # fmt: skip
DIVIDED: dict[Kind, str] = {"class": "classification", "several": "multilabel", "number": "regression"}
EVERY = {"class": {"classification", "clustering", "retrieval"}, "several": {"multilabel", "retrieval"}}


def choose_tasks(asked: list[o.Task] | None, labels: str | None, held_out: Path | None) -> set[str]:
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
    from neural_brane.graph.multilabels import MultiLabels

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
    from neural_brane.cli.progress import counting
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
    from neural_brane.cli.progress import counting
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
