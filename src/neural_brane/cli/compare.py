"""`brane compare`: which method is best for a graph of one's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Exit, Option

from neural_brane.cli import evaluate, options
from neural_brane.cli.options import split_names
from neural_brane.cli.tables import Tables, read, takes_tables
from neural_brane.cli.terminal import echo
from neural_brane.errors import ParameterError
from neural_brane.methods.parameters import DIM

if TYPE_CHECKING:
    from neural_brane.experiments.comparison import Comparison, Standing
    from neural_brane.experiments.tasks import Targets, Task
    from neural_brane.graph import AttributedGraph

WIDEST, NARROWEST = 30, 8  # columns of a bar
BESIDE = 46  # columns of what stands beside it
EIGHTHS = " ▏▎▍▌▋▊▉"


@takes_tables
def compare(
    source: options.Source,
    tables: Tables,
    labels: evaluate.Labels = None,
    attributes: options.Attributes = None,
    duplicates: options.Duplicates = "max",
    self_loops: options.SelfLoops = "keep",
    methods: Annotated[
        list[str] | None,
        Option(
            metavar="<name,name|all>",
            help="Methods to compare, or all that can be trained here (default neural-brane, propagated-attributes, "
            "smoothed-attributes, attributes, tadw, aane, deepwalk).",
        ),
    ] = None,
    task: Annotated[
        list[str] | None,
        Option(
            metavar="<classify,multilabel,regress,cluster,retrieve,link>",
            help="What to compare by (default all that the graph allows).",
        ),
    ] = None,
    runs: Annotated[int, Option(help="Trainings of each method, with seeds 0, 1, …")] = 3,
    dim: Annotated[int, Option(help="Width of a vector.")] = DIM,
    device: Annotated[
        Literal["cpu", "cuda", "auto"], Option(help="Where methods train that can train on a GPU.")
    ] = "cpu",
    jobs: Annotated[
        int | None, Option(help="Trainings at a time, one thread each (default the number of cores).")
    ] = None,
    time_limit: Annotated[
        float | None, Option(metavar="<seconds>", help="A training that takes longer fails (default no limit).")
    ] = None,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Folder for compare.html and compare.json; it also keeps finished trainings."),
    ] = None,
    log: options.Log = None,
) -> None:
    """Find out which method is best for a graph: all of them on the same splits, ranked per task.

    \b
    classify  Macro-F1 of logistic regression, half of the nodes to learn
    multilabel  Macro-F1 of nodes with several labels, as many predicted
              as a node has
    regress   R² of ridge regression, where labels are numbers
    cluster   NMI of k-means with the true number of classes
    retrieve  precision of the ten nearest nodes by cosine
    link      AUC of edges held out before training, ranked by the better
              of cosine and the method's own score of a pair; these are
              trainings of their own

    A method that fails comes last, with the reason. ≈ stands before a method that these runs do not tell
    from the best, † behind one that learns from labels: it is trained once more for every split, with the labels of
    its training part alone. With -o a run that was stopped, even killed, goes on where it was. The last line is advice.

    \b
    brane compare stdlib
    brane compare graph.txt --attributes words.txt --labels classes.txt -o comparison
    brane compare edges.csv --nodes people.csv --label team -o comparison
    brane compare graph.txt --task link --methods all --time-limit 600 -o comparison
    """
    from neural_brane.cli.terminal import counting, log_to
    from neural_brane.experiments.compare import USUAL, open_store, prepare, run
    from neural_brane.experiments.comparison import JSON, PAGE
    from neural_brane.files import datasets
    from neural_brane.files.storage import check_distinct, check_target

    written = {} if output is None else {"--output": output / JSON, "the page of --output": output / PAGE}
    given = {"--labels": labels, "--attributes": attributes, "--nodes": tables.nodes, **datasets.source_files(source)}
    check_distinct(written | {"--log": log}, given)
    if output is not None:
        check_target(output / PAGE, (".html",), ".html", ParameterError)
    log_to(log)
    graph = read(source, tables, attributes=attributes, duplicates=duplicates, self_loops=self_loops)
    tasks = split_names(task)
    graph, targets = choose_labels(graph, labels, tasks, from_table=tables.label_column is not None)
    names = split_names(methods) or USUAL
    order = prepare(graph, names, tasks or None, labels=targets, runs=runs, dim=dim, device=device)
    for note in order.notes:
        echo(note, err=True)
    links = "; those for links are without the held-out edges" if "link" in (one.name for one in order.tasks) else ""
    echo(f"trainings: {len(order.trainings)}{links}", err=True)
    with open_store(graph, output) as store:
        if kept := len(order.trainings) - len(store.missing(order.trainings)):
            echo(f"kept in {store.folder}: {kept} of them", err=True)
        with counting("comparison", steady=False) as progress:
            result = run(order, store, jobs=jobs or os.cpu_count() or 1, time_limit=time_limit, progress=progress)
    show(result)
    if output is not None:
        result.save(output)
        echo(f"wrote {output / PAGE} and {output / JSON}")
    echo(result.advice)
    if not any(result.best(name) for name in result.standings):
        raise Exit(1)


def choose_labels(
    graph: AttributedGraph, source: str | None, tasks: Sequence[str], *, from_table: bool
) -> tuple[AttributedGraph, Targets | None]:
    """The graph with the classes of `source`, if any; or labels that are not classes, which come apart from it.

    from_table: whether the graph's own labels are a column of a table, which may hold anything.
    """
    import numpy as np

    from neural_brane.experiments.tasks import in_order_of
    from neural_brane.files import datasets
    from neural_brane.files.nodes import as_series, kind_of, plain_lines, to_targets

    kind = "several" if "multilabel" in tasks else "number" if "regress" in tasks else None
    kind = "class" if {"classify", "cluster"} & set(tasks) else kind
    if source is not None:
        ids, targets = datasets.read_targets(source, kind=kind)  # type: ignore[arg-type]
    elif graph.labels is not None and (from_table or kind):
        known = graph.labels != ""
        lines = plain_lines(f"labels of '{graph.name}'", graph.ids[known], as_series(graph.labels[known]))
        kind = kind or (kind_of(lines) if known.any() else "class")
        ids, targets = (graph.ids, graph.labels) if kind == "class" else to_targets(lines, kind)  # type: ignore[arg-type]
    else:
        return graph, None
    if isinstance(targets, np.ndarray) and targets.dtype.kind != "f":
        return graph.relabelled(dict(zip(ids.tolist(), targets.tolist(), strict=True))), None
    return graph, in_order_of(graph, ids, targets)


def show(result: Comparison) -> None:
    """Print the bars and the table of every task."""
    from neural_brane.experiments.tasks import TASKS

    for name, standings in result.standings.items():
        show_bars(TASKS[name], standings)
        show_measures(TASKS[name], standings)
    for remark in result.remarks:
        echo(remark)


def show_bars(task: Task, standings: Sequence[Standing]) -> None:
    """Print a bar per method, best first."""
    from rich.console import Console

    from neural_brane.cli.terminal import show_table
    from neural_brane.experiments.comparison import with_spread

    width = min(max(Console().width - BESIDE, NARROWEST), WIDEST)
    rows = [
        ("", one.name, "failed", one.failure)
        if one.failure
        else (f"{place}", one.heading, with_spread(one.score), _bar(task, one, width))
        for place, one in enumerate(standings, 1)
    ]
    title = f"{task.about}: {' or '.join(task.measures[name] for name in task.ranked_by)}"
    show_table(("", "method", "mean ± sd", f"from {task.least:g} to 1"), rows, title=title, fold=True)


def _bar(task: Task, one: Standing, width: int) -> str:
    """A bar of full blocks and one that is partly filled."""
    full, part = divmod(round(8 * width * task.share(one.score.mean)), 8)
    return ("█" * full + EIGHTHS[part]).rstrip()


def show_measures(task: Task, standings: Sequence[Standing]) -> None:
    """Print every measure of every method, and what a training of it takes."""
    from neural_brane.cli.terminal import show_table
    from neural_brane.experiments.comparison import short_time, three_digits

    scored = [one for one in standings if not one.failure]
    measured = [name for name in task.measures if any(name in one.measures for one in scored)]
    rows = [
        (
            one.name,
            *(three_digits(one.measures[name].mean) if name in one.measures else "-" for name in measured),
            short_time(one.seconds.mean),
            f"{one.peak_mb:,.0f}",
        )
        for one in scored
    ]
    columns = [task.measures[name].removeprefix("AUC by ") for name in measured]
    if rows:
        show_table(("method", *columns, "seconds", "MB"), rows, right=(*columns, "seconds", "MB"))
