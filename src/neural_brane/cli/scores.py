"""Print scores: a table per task, and a line that says what they were computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neural_brane.cli.terminal import echo, show_table
from neural_brane.errors import shorten

if TYPE_CHECKING:
    from neural_brane.evaluate import (
        Classification,
        Clustering,
        Labelled,
        LinkPrediction,
        MultilabelClassification,
        Regression,
        Repeats,
        Retrieval,
    )


F1 = {"macro": "Macro-F1", "micro": "Micro-F1"}


def show(results: dict[str, Any], known: Labelled | None, title: str, *, numbered: bool) -> None:
    """Print the results of all tasks, and which nodes were left out."""
    for name, result in results.items():
        SHOWN[name](result, title)
    if known is not None:
        for ids, what in ((known.unlabelled, "a vector and no label"), (known.missing, "a label and no vector")):
            if len(ids):
                some = shorten(", ".join(map(str, ids[:3].tolist())), most=200)
                echo(f"left out: {len(ids):,} nodes that have {what}, such as {some}")
    if numbered:
        echo("the file has no ids: its rows were taken as nodes 0, 1, 2, …; give their ids with --ids FILE")


def show_shares(result: Any, columns: dict[str, str], title: str) -> None:
    """Print scores by the share trained on; `columns` maps a score's attribute to its heading."""
    rows = [(f"{100 * one.train:g} %", *(spread(getattr(one, name)) for name in columns)) for one in result.scores]
    show_table(("trained on", *columns.values()), rows, title=title)


def show_classification(result: Classification, title: str) -> None:
    """Print Macro-F1 and Micro-F1 by share."""
    show_shares(result, F1, title)
    if result.C == "cv":
        chosen = sorted(C for score in result.scores for C in score.C)
        most = max(chosen, key=chosen.count)
        penalty = f"C by cross-validation: {chosen[0]:g} to {chosen[-1]:g}, mostly {most:g}"
    else:
        penalty = f"C = {result.C:g}"
    classes = f"{result.labelled:,} nodes, {len(result.classes)} classes"
    echo(f"{classes}; {splits_of(result, 'stratified' if result.stratify else 'random')}; {penalty}")


def show_multilabel(result: MultilabelClassification, title: str) -> None:
    """Print Macro-F1 and Micro-F1 by share, and how many labels are predicted."""
    from neural_brane.evaluate.classify import RULE

    show_shares(result, F1, title)
    labels = f"{result.labelled:,} nodes, {len(result.labels)} labels, {result.labels_per_node:.2f} per node"
    echo(f"{labels}; {splits_of(result)}; C = {result.C:g}")
    echo(RULE)


def show_regression(result: Regression, title: str) -> None:
    """Print R² and the rank correlation by share."""
    show_shares(result, {"r2": "R²", "spearman": "Spearman"}, title)
    numbers = f"{result.labelled:,} numbers, {result.mean:.4g} ± {result.sd:.4g}"
    echo(f"{numbers}; ridge regression, {splits_of(result)}; the penalty is chosen inside each training part")


def splits_of(result: Any, drawn: str = "random") -> str:
    """The splits that scores are averaged over, in words."""
    seed = "drawn elsewhere" if result.seed is None else f"seed {result.seed}"
    return f"mean ± sd of {result.splits} {drawn} splits, {seed}"


def show_retrieval(result: Retrieval, title: str) -> None:
    """Print what lists of each length hold, and what they would hold by chance."""
    columns = ("precision", "chance_precision", "recall", "chance_recall", "most_recall", "average_precision")
    rows = [(f"{one.k}", *(f"{getattr(one, name):.4f}" for name in columns)) for one in result.scores]
    show_table(("nearest", "precision", "by chance", "recall", "by chance", "at most", "MAP"), rows, title=title)
    alike = "share a label" if result.several else "have the same class"
    nodes = f"{result.labelled:,} nodes, {len(result.classes)} {'labels' if result.several else 'classes'}"
    sample = "" if result.queries + result.alone == result.labelled else f", drawn with seed {result.seed}"
    echo(f"{nodes}; {result.queries:,} asked for{sample}; hits are nodes that {alike}, nearest by cosine")
    if result.alone:
        echo(f"left out: {result.alone:,} nodes whose class no other node has")


def spread(score: Repeats) -> str:
    """Mean and standard deviation."""
    return f"{score.mean:.4f} ± {score.sd:.4f}"


def show_clustering(result: Clustering, title: str) -> None:
    """Print the agreement of clusters and classes."""
    row = [spread(score) for score in (result.nmi, result.purity, result.ari)]
    show_table(("NMI", "purity", "ARI"), [row], title=title)
    nodes = f"{result.labelled:,} nodes, {len(result.classes)} classes"
    echo(f"{nodes}; k-means with as many clusters, mean ± sd of {result.starts} starts, seed {result.seed}")


def show_links(result: LinkPrediction, title: str) -> None:
    """Print how well held-out edges are ranked."""
    own = ("none", "none")
    if result.own_auc is not None:
        own = (f"{result.own_auc:.4f}", f"{result.own_average_precision:.4f}")
    rows = [
        (result.similarity, f"{result.auc:.4f}", f"{result.average_precision:.4f}"),
        ("regression", f"{result.regression_auc:.4f}", f"{result.regression_average_precision:.4f}"),
        ("own score", *own),
    ]
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


SHOWN: dict[str, Any] = {
    "classification": show_classification,
    "multilabel": show_multilabel,
    "regression": show_regression,
    "clustering": show_clustering,
    "retrieval": show_retrieval,
    "links": show_links,
}
