"""Scores for people: a table per task, and a line on what they were computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neural_brane.cli.console import echo, show_table
from neural_brane.errors import shorten

if TYPE_CHECKING:
    from neural_brane.evaluate import Classification, Clustering, Labelled, LinkPrediction, Repeats


def show(results: dict[str, Any], known: Labelled | None, title: str, *, numbered: bool) -> None:
    """Print the results of all tasks, and which nodes were left out."""
    for name, result in results.items():
        _SHOWN[name](result, title)
    if known is not None:
        for ids, what in ((known.unlabelled, "a vector and no label"), (known.missing, "a label and no vector")):
            if len(ids):
                some = shorten(", ".join(map(str, ids[:3].tolist())), most=200)
                echo(f"left out: {len(ids):,} nodes that have {what}, such as {some}")
    if numbered:
        echo("the file names no nodes: its rows were taken as nodes 0, 1, 2, …; --ids FILE gives their ids")


def show_classification(result: Classification, title: str) -> None:
    """Print Macro-F1 and Micro-F1 by share."""
    rows = [
        (f"{100 * score.train:g} %", _mean_and_deviation(score.macro), _mean_and_deviation(score.micro))
        for score in result.scores
    ]
    show_table(("trained on", "Macro-F1", "Micro-F1"), rows, title=title)
    drawn = "stratified" if result.stratify else "random"
    seed = "drawn elsewhere" if result.seed is None else f"seed {result.seed}"
    classes = f"{result.labelled:,} nodes, {len(result.classes)} classes"
    echo(f"{classes}; mean ± sd of {result.splits} {drawn} splits, {seed}; {_penalty(result)}")


def _mean_and_deviation(score: Repeats) -> str:
    return f"{score.mean:.4f} ± {score.sd:.4f}"


def _penalty(result: Classification) -> str:
    """The regression's C, or the range of those that cross-validation chose."""
    if result.C != "cv":
        return f"C = {result.C:g}"
    chosen = sorted(C for score in result.scores for C in score.C)
    return f"C by cross-validation: {chosen[0]:g} to {chosen[-1]:g}, mostly {max(chosen, key=chosen.count):g}"


def show_clustering(result: Clustering, title: str) -> None:
    """Print the agreement of clusters and classes."""
    row = [_mean_and_deviation(score) for score in (result.nmi, result.purity, result.ari)]
    show_table(("NMI", "purity", "ARI"), [row], title=title)
    nodes = f"{result.labelled:,} nodes, {len(result.classes)} classes"
    echo(f"{nodes}; k-means with as many clusters, mean ± sd of {result.starts} starts, seed {result.seed}")


def show_links(result: LinkPrediction, title: str) -> None:
    """Print how well held-out edges are ranked."""
    rows = [
        (result.similarity, f"{result.auc:.4f}", f"{result.average_precision:.4f}"),
        ("regression", f"{result.regression_auc:.4f}", f"{result.regression_average_precision:.4f}"),
    ]
    if result.own_auc is not None:
        rows.append(("own score", f"{result.own_auc:.4f}", f"{result.own_average_precision:.4f}"))
    else:
        rows.append(("own score", "none", "none"))
    show_table(("links scored by", "AUC", "average precision"), rows, title=title)
    echo(
        f"{result.positives:,} held-out edges against {result.negatives:,} pairs without an edge, seed {result.seed}; "
        f"the regression learned from {result.training_edges:,} other edges"
    )
    if result.missing:
        echo(f"{result.missing:,} nodes of the graph have no vector and were given zeros")
    if result.extra:
        echo(f"left out: {result.extra:,} vectors of nodes that the graph lacks")
    if not result.verified:
        echo("the file does not say which graph it was trained on: make sure that it lacked the held-out edges")


_SHOWN: dict[str, Any] = {
    "classification": show_classification,
    "clustering": show_clustering,
    "links": show_links,
}
