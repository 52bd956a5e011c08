"""`brane compare`: find the best method for a graph."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Exit, Option

from neural_brane.cli import options as o
from neural_brane.cli.options import Reading, bundled, split_names
from neural_brane.cli.terminal import counting, echo, log_to, show_table
from neural_brane.errors import ParameterError
from neural_brane.methods.parameters import DIM

if TYPE_CHECKING:
    from neural_brane.experiments.compare import Comparison, Order, Standing
    from neural_brane.experiments.compute import Targets, Task
    from neural_brane.graph import AttributedGraph

WIDEST, NARROWEST = 30, 8  # columns of a bar
BESIDE = 46  # columns of the texts beside it
EIGHTHS = " ▏▎▍▌▋▊▉"


@bundled
def compare(
    source: o.Source,
    reading: Reading,
    methods: Annotated[list[str] | None, Option(metavar="<name,…>", help="Methods, or all (a short list).")] = None,
    task: Annotated[list[str] | None, Option(metavar="<name,…>", help="Tasks listed above (all possible).")] = None,
    runs: Annotated[int, Option(metavar="<whole>", help="Trainings per method.")] = 3,
    dim: Annotated[int, Option(metavar="<whole>", help="Width of a vector.")] = DIM,
    device: Annotated[Literal["cpu", "cuda", "auto"], Option(metavar="<name>", help="cpu, cuda or auto.")] = "cpu",
    jobs: o.Jobs = None,
    time_limit: Annotated[float | None, Option(metavar="<seconds>", help="Longest time of a training.")] = None,
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="<folder>", help="Results and finished trainings."),
    ] = None,
    log: o.Log = None,
) -> None:
    """Find the best method for a graph, by task.

    \b
    classify    Macro-F1 of logistic regression on half of the nodes
    multilabel  the same for nodes with several labels
    regress     R² of ridge regression, where labels are numbers
    cluster     NMI of k-means with the true number of classes
    retrieve    precision of the ten nearest nodes by cosine
    link        AUC of edges held out before training

    --labels may also name a dataset, graph or table. ≈ marks methods that
    these runs cannot tell from the best, † those that learn from the labels
    of each split's training part. With -o, a stopped run resumes.

    \b
    brane compare stdlib
    brane compare graph.txt --attributes words.txt --labels classes.txt
    brane compare edges.csv --nodes people.csv --label team -o comparison
    """
    from neural_brane.experiments.compare import JSON, PAGE, USUAL, prepare
    from neural_brane.files.storage import check_distinct, check_target

    written = {} if output is None else {"--output": output / JSON, "the page of --output": output / PAGE}
    check_distinct(written | {"--log": log}, reading.files(source))
    if output is not None:
        check_target(output / PAGE, (".html",), ".html", ParameterError)
    log_to(log)
    graph = replace(reading, labels=None).read(source)
    tasks = split_names(task)
    graph, targets = choose_labels(graph, reading.labels, tasks, from_table=reading.label_column is not None)
    names = split_names(methods) or USUAL
    order = prepare(graph, names, tasks or None, labels=targets, runs=runs, dim=dim, device=device)
    result = train_and_rank(order, graph, output, jobs, time_limit)
    show(result)
    if output is not None:
        result.save(output)
        echo(f"wrote {output / PAGE} and {output / JSON}")
    echo(result.advice)
    if not any(result.best(name) for name in result.standings):
        raise Exit(1)


def train_and_rank(
    order: Order, graph: AttributedGraph, output: Path | None, jobs: int | None, time_limit: float | None
) -> Comparison:
    """Train what is not kept from an earlier run, with progress, and rank the methods."""
    from neural_brane.experiments.compare import open_store, run

    for note in order.notes:
        echo(note, err=True)
    links = "; those for links are without the held-out edges" if "link" in (one.name for one in order.tasks) else ""
    echo(f"trainings: {len(order.trainings)}{links}", err=True)
    with open_store(graph, output) as store:
        if kept := len(order.trainings) - len(store.missing(order.trainings)):
            echo(f"kept in {store.folder}: {kept} of them", err=True)
        with counting("comparison", steady=False) as progress:
            return run(order, store, jobs=jobs or os.cpu_count() or 1, time_limit=time_limit, progress=progress)


def choose_labels(
    graph: AttributedGraph, source: Path | None, tasks: Sequence[str], *, from_table: bool
) -> tuple[AttributedGraph, Targets | None]:
    """Return the graph with its classes; or the graph and its labels, if those are numbers or several per node.

    source: where the labels are, if not in the graph. from_table: the graph's labels are a column of a table, which
    may hold anything.
    """
    import numpy as np

    from neural_brane.experiments.compute import in_order_of
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
    from neural_brane.experiments.compute import TASKS

    for name, standings in result.standings.items():
        show_bars(TASKS[name], standings)
        show_measures(TASKS[name], standings)
    for remark in result.remarks:
        echo(remark)


def show_bars(task: Task, standings: Sequence[Standing]) -> None:
    """Print a bar per method, best first."""
    from rich.console import Console

    from neural_brane.experiments.compare import with_spread

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
    from neural_brane.experiments.compare import short_time, three_digits

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
