"""`brane compare`, `brane tune` and `brane reproduce`: train many times, and compare methods and parameters."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Exit

from neural_brane.cli import options as o
from neural_brane.cli.options import Reading, bundled, parse_grid, parse_settings, split_names
from neural_brane.cli.terminal import counting, echo, echo_and_log, log_to, show_table
from neural_brane.errors import ParameterError
from neural_brane.methods.parameters import DIM

if TYPE_CHECKING:
    from neural_brane.experiments.compare import Comparison, Order, Standing
    from neural_brane.experiments.compute import FinishedCall, Targets, Task
    from neural_brane.experiments.store import Training
    from neural_brane.experiments.tune import Candidate
    from neural_brane.graph import AttributedGraph
    from neural_brane.methods.base import Embedder

WIDEST, NARROWEST = 30, 8  # width of a bar, in characters
BESIDE = 46  # width of the texts beside a bar
EIGHTHS = " ▏▎▍▌▋▊▉"


@bundled
def compare(
    source: o.Source,
    reading: Reading,
    methods: Annotated[list[str] | None, o.option("name,…", "Methods, or all (default: a few).")] = None,
    task: Annotated[list[str] | None, o.option("name,…", "Tasks (default: all that fit).")] = None,
    runs: Annotated[int, o.option("whole", "Trainings per method.")] = 3,
    dim: Annotated[int, o.option("whole", "Width of a vector.")] = DIM,
    device: Annotated[Literal["cpu", "cuda", "auto"], o.option("name", "cpu, cuda or auto.")] = "cpu",
    jobs: o.Jobs = None,
    time_limit: Annotated[float | None, o.option("seconds", "Stop a training after this time.")] = None,
    output: Annotated[Path | None, o.option("folder", "Write results and trainings here.", "--output", "-o")] = None,
    log: o.Log = None,
) -> None:
    r"""Train several methods on a graph and rank them, by task.

    \b
    classify    Macro-F1 of logistic regression on half of the nodes
    multilabel  the same for nodes with several labels
    regress     R² of ridge regression, for labels that are numbers
    cluster     NMI of k-means with the true number of classes
    retrieve    precision of the ten nearest nodes by cosine
    link        AUC of edges held out before training

    --labels may also name a dataset, graph or table. ≈ marks methods that
    these runs cannot distinguish from the best, † those that learn from the
    labels of each split's training part. With -o, a stopped run resumes.

    \b
    brane compare stdlib
    brane compare graph.txt --attributes words.txt --labels classes.txt
    brane compare edges.csv --nodes people.csv --label team -o comparison
    """
    from neural_brane.experiments.compare import JSON, PAGE, USUAL, prepare
    from neural_brane.experiments.compute import TASKS
    from neural_brane.files.storage import check_distinct, check_writable

    written = {} if output is None else {"--output": output / JSON, "the page of --output": output / PAGE}
    check_distinct(written | {"--log": log}, reading.files(source))
    if output is not None:
        check_writable(output, ParameterError, folder=True)
    log_to(log)
    graph = replace(reading, labels=None).read(source)
    tasks = split_names(task)
    graph, targets = choose_labels(graph, reading.labels, tasks, from_table=reading.label_column is not None)
    names = split_names(methods) or USUAL
    order = prepare(graph, names, tasks or None, labels=targets, runs=runs, dim=dim, device=device)
    result = train_and_rank(order, graph, output, jobs, time_limit)
    for name, standings in result.standings.items():
        show_bars(TASKS[name], standings)
        show_measures(TASKS[name], standings)
    for remark in result.remarks:
        echo(remark)
    if output is not None:
        result.save(output)
        echo(f"wrote {output / PAGE} and {output / JSON}")
    echo(result.advice)
    if not any(result.best(name) for name in result.standings):
        raise Exit(1)


def train_and_rank(
    order: Order, graph: AttributedGraph, output: Path | None, jobs: int | None, time_limit: float | None
) -> Comparison:
    """Do the trainings that an earlier run has not finished, show progress, and rank the methods."""
    from neural_brane.experiments.compare import open_store, run

    for note in order.notes:
        echo(note, err=True)
    links = "; those for links are without the held-out edges" if "link" in (one.name for one in order.tasks) else ""
    echo(f"trainings: {len(order.trainings)}{links}", err=True)
    with open_store(graph, output) as store:
        if finished := len(order.trainings) - len(store.missing(order.trainings)):
            echo(f"finished earlier, in {store.folder}: {finished} of them", err=True)
        with counting("comparison", steady=False) as progress:
            return run(order, store, jobs=jobs or os.cpu_count() or 1, time_limit=time_limit, progress=progress)


def choose_labels(
    graph: AttributedGraph, source: Path | None, tasks: Sequence[str], *, from_table: bool
) -> tuple[AttributedGraph, Targets | None]:
    """Return the graph with its classes, or the graph and labels that are numbers or several per node."""
    import numpy as np

    from neural_brane.experiments.compute import align_labels
    from neural_brane.files import datasets
    from neural_brane.files.nodes import label_kind, label_lines, label_series, to_targets

    kind = "several" if "multilabel" in tasks else "number" if "regress" in tasks else None
    kind = "class" if {"classify", "cluster"} & set(tasks) else kind
    if source is not None:
        ids, targets = datasets.read_targets(source, kind=kind)  # type: ignore[arg-type]
    elif graph.labels is not None and (from_table or kind):
        known = graph.labels != ""
        lines = label_lines(f"labels of '{graph.name}'", graph.ids[known], label_series(graph.labels[known]))
        kind = kind or (label_kind(lines) if known.any() else "class")
        ids, targets = (graph.ids, graph.labels) if kind == "class" else to_targets(lines, kind)  # type: ignore[arg-type]
    else:
        return graph, None
    if isinstance(targets, np.ndarray) and targets.dtype.kind != "f":
        return graph.relabelled(dict(zip(ids.tolist(), targets.tolist(), strict=True))), None
    return graph, align_labels(graph, ids, targets)


def show_bars(task: Task, standings: Sequence[Standing]) -> None:
    """Print a bar per method, best first."""
    from rich.console import Console

    from neural_brane.experiments.compare import with_spread

    width = min(max(Console().width - BESIDE, NARROWEST), WIDEST)

    def bar(share: float) -> str:
        full, part = divmod(round(8 * width * share), 8)
        return ("█" * full + EIGHTHS[part]).rstrip()

    rows = [
        ("", one.name, "failed", one.failure)
        if one.failure
        else (f"{place}", one.heading, with_spread(one.score), bar(task.share(one.score.mean)))
        for place, one in enumerate(standings, 1)
    ]
    title = f"{task.about}: {' or '.join(task.measures[name] for name in task.ranked_by)}"
    show_table(("", "method", "mean ± sd", f"from {task.least:g} to 1"), rows, title=title, fold=True)


def show_measures(task: Task, standings: Sequence[Standing]) -> None:
    """Print every measure of every method, and the time and memory of a training."""
    from neural_brane.experiments.compare import short_time, three_digits

    scored = [one for one in standings if not one.failure]
    measured = [name for name in task.measures if any(name in one.measures for one in scored)]
    rows = []
    for one in scored:
        scores = (three_digits(one.measures[name].mean) if name in one.measures else "-" for name in measured)
        rows.append((one.name, *scores, short_time(one.seconds.mean), f"{one.peak_mb:,.0f}"))
    columns = [task.measures[name].removeprefix("AUC by ") for name in measured]
    if rows:
        show_table(("method", *columns, "seconds", "MB"), rows, right=(*columns, "seconds", "MB"))


@bundled
def tune(
    method: Annotated[str, Argument(help="See 'brane methods'.")],
    dataset: Annotated[str, Argument(help="A dataset or graph file with labels.")],
    reading: Reading,
    settings: Annotated[list[str] | None, o.option("name=value", "Fix a parameter; may be repeated.", "--set")] = None,
    grid: Annotated[list[str] | None, o.option("name=v1,v2", "Values to try for a parameter.")] = None,
    seed: o.Seed = 0,
    runs: Annotated[int, o.option("whole", "Trainings per candidate.")] = 3,
    jobs: o.Jobs = None,
    output: Annotated[
        Path | None, o.option("folder", "Folder (default: tune-METHOD-DATASET).", "--output", "-o")
    ] = None,
    log: o.Log = None,
) -> None:
    r"""Search for a method's best parameters on a dataset.

    Trains every combination of the values in a grid. The method has its own
    grid; --grid adds a parameter or replaces its values. The score is the mean
    Macro-F1 over the runs, with its standard deviation after ±. It is computed
    on a fixed fifth of the labelled nodes; 'brane reproduce' tests on the
    others. A stopped search resumes, and a larger grid trains only what is new.

    \b
    brane tune attributes stdlib --grid dim=32,64
    brane tune node2vec reed98 --set epochs=2 --grid p=0.25,1,4
    brane tune deepwalk edges.csv --nodes people.csv --label team
    """
    from neural_brane.experiments.tune import Tuned, candidates, hide_test_labels
    from neural_brane.experiments.tune import tune as search
    from neural_brane.files.storage import check_distinct, check_writable
    from neural_brane.methods import find_method

    check_distinct({"--log": log}, reading.files(dataset))
    log_to(log)
    fixed, points = space(find_method(method), settings or [], grid or [])
    graph = reading.read(dataset)
    folder = output or Path(f"tune-{method}-{graph.name}")
    check_writable(folder, ParameterError, folder=True)
    total, jobs = len(candidates(points)), jobs or os.cpu_count() or 1
    echo(f"{method} on {graph.name}: {total} candidates, {runs} trainings each, saved in {folder}", err=True)
    with counting("search") as bar:
        found = search(method, graph, points, fixed=fixed, seed=seed, runs=runs, jobs=jobs, folder=folder, progress=bar)
    show_candidates(found)
    best = found[0]
    echo("Lines for experiments/tuned.toml:\n")
    seen = hide_test_labels(graph).digest()
    echo(Tuned(fixed | best.parameters, best.score, total, runs, seen).as_toml(method, graph.name))


def space(method: type[Embedder], settings: list[str], grid: list[str]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the fixed parameters, and the values to try for each of the others."""
    from neural_brane.experiments.tune import grid as usual

    fixed, named = parse_settings(method, settings), parse_grid(method, grid)
    if both := sorted(fixed.keys() & named.keys()):
        raise ParameterError(f"{both[0]} is given by --set and by --grid; leave one out")
    points = {name: values for name, values in usual(method).items() if name not in fixed} | named
    if not points:
        raise ParameterError(f"no parameter of '{method.title}' is left; give values to try, as in --grid dim=64,128")
    return fixed, points


def show_candidates(results: list[Candidate]) -> None:
    """Print the candidates, best first; raise an error if none could be trained."""
    names = tuple(results[0].parameters)
    rows = []
    for one in results:
        found = (f"{one.seconds:.1f}", f"{one.score:.4f} ± {one.sd:.4f}") if one.macro else ("", one.failure)
        rows.append((*(f"{one.parameters[name]}" for name in names), *found))
    show_table((*names, "seconds", "validation Macro-F1"), rows, right=(*names, "seconds"))
    if not results[0].macro:
        raise ParameterError(f"no candidate could be trained; the first failed with: {results[0].failure}")


# The tables and figures of the paper; the table of links is an addition.
Table = StrEnum("Table", "classification links")
Figure = StrEnum("Figure", "clustering map dimension convergence pooling")


def reproduce(
    table: Annotated[list[Table] | None, o.option("name", "A table from above; may be repeated.")] = None,
    figure: Annotated[list[Figure] | None, o.option("name", "A figure; may be repeated.")] = None,
    everything: Annotated[bool, o.flag("--all", "All tables and figures (the default).")] = False,
    methods: Annotated[list[str] | None, o.option("name,…", "Only these methods.")] = None,
    datasets: Annotated[list[str] | None, o.option("name,…", "Only these datasets.")] = None,
    runs: Annotated[int | None, o.option("whole", "Trainings per method (default: 10 or 3).")] = None,
    jobs: o.Jobs = None,
    device: Annotated[Literal["cpu", "cuda"], o.option("name", "cpu or cuda.")] = "cpu",
    quick: Annotated[bool, o.flag("--quick", "Try it: tiny trainings on one graph.")] = False,
    output: Annotated[Path, o.option("folder", "Write here.", "--output", "-o")] = Path("reproduction"),
    log: o.Log = None,
) -> None:
    r"""Repeat the experiments of the paper.

    \b
    tables    classification, links (links are an addition to the paper)
    figures   clustering, map, dimension, convergence, pooling

    Writes report.html, which also shows the published results, results.json,
    results.csv and the figures. A stopped run resumes. A method that now
    computes other vectors is trained again.

    \b
    brane reproduce --quick
    brane reproduce --table classification --methods tadw --datasets citeseer
    brane reproduce --all --runs 10 --jobs 8 --device cuda -o results
    """
    from neural_brane.experiments.reproduce.plan import FULL, OUTPUTS, uninstalled_methods
    from neural_brane.experiments.reproduce.plan import quick as quick_scale
    from neural_brane.experiments.reproduce.results import read_json, stale
    from neural_brane.experiments.reproduce.run import prepare
    from neural_brane.experiments.reproduce.run import reproduce as run
    from neural_brane.files.storage import check_writable

    check_writable(output, ParameterError, folder=True)
    log_to(log)
    chosen: list[str] = [*(table or []), *(figure or [])]
    wanted = [name for name in OUTPUTS if everything or not chosen or name in chosen]
    names = split_names(datasets)
    scale = replace(quick_scale(*names) if quick else FULL, device=device)
    work = prepare(output, scale, outputs=wanted, methods=split_names(methods), datasets=names, runs=runs)
    finished = len(work.trainings) - len(work.missing)
    echo(f"trainings: {len(work.trainings)}, of which {finished} are finished, in {work.store.folder}", err=True)
    done = itertools.count(finished + 1)
    if (output / "results.json").exists() and (changed := stale(read_json(output / "results.json"))):
        echo(f"trained again, because the code now computes other vectors: {', '.join(changed)}", err=True)
    if not methods and (absent := uninstalled_methods()):
        echo(f"left out: {', '.join(absent)}; to train them too: pip install 'neural-brane[torch]'", err=True)
    results = run(
        work,
        jobs=jobs or os.cpu_count() or 1,
        watch=lambda ended: echo_and_log(f"{next(done)}/{len(work.trainings)} {in_a_line(ended)}"),
    )
    echo(f"wrote {output / 'report.html'}, results.json, results.csv and figures/")
    for one in results.failures:
        echo(f"failed: {one['method']} on {one['dataset']}, run {one['seed']}: {one['failure']}", err=True)
    if results.failures:
        raise Exit(1)


def in_a_line(ended: FinishedCall[Training]) -> str:
    """Describe a finished training in one line."""
    training, record = ended.task, ended.result
    name = f"{training.method} on {training.dataset}, run {training.seed}"
    if ended.failure:
        return f"{name}: FAILED: {ended.failure}"
    cost = f"{name}: {record['seconds']:.1f} s, {record['peak_mb']:.0f} MB"
    if "macro_f1" not in record:
        return f"{cost}, AUC of links {record['auc_of_cosines']:.4f}"
    share, scores = list(record["macro_f1"].items())[-1]
    return f"{cost}, Macro-F1 {sum(scores) / len(scores):.4f} if trained on {float(share):.0%}"
