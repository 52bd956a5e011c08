"""`brane reproduce`: compute the paper's table and figures again, beside the published numbers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Exit, Option

from neural_brane.cli import options as o
from neural_brane.cli.options import split_names
from neural_brane.cli.terminal import LOG, echo, log_to, tell
from neural_brane.errors import ParameterError, printable

if TYPE_CHECKING:
    import rich.table

    from neural_brane.experiments.compute import Ended
    from neural_brane.experiments.reproduce.run import Work
    from neural_brane.experiments.store import Training

    Watch = Callable[[Ended[Training]], None]


class Table(StrEnum):
    """The paper's table, and one that it does not have."""

    CLASSIFICATION = "classification"
    LINKS = "links"


class Figure(StrEnum):
    """The paper's figures."""

    CLUSTERING = "clustering"
    MAP = "map"
    DIMENSION = "dimension"
    CONVERGENCE = "convergence"
    POOLING = "pooling"


def reproduce(
    table: Annotated[list[Table] | None, Option(metavar="<name>", help="classification or links; may repeat.")] = None,
    figure: Annotated[list[Figure] | None, Option(help="Compute this figure; may be repeated.")] = None,
    everything: Annotated[bool, Option("--all", help="All tables and figures (also if none is named).")] = False,
    methods: Annotated[list[str] | None, Option(metavar="<name,…>", help="Only these methods.")] = None,
    datasets: Annotated[list[str] | None, Option(metavar="<name,…>", help="Only these datasets.")] = None,
    runs: Annotated[int | None, Option(metavar="<whole>", help="Trainings per method (10; some have 3).")] = None,
    jobs: o.Jobs = None,
    device: Annotated[Literal["cpu", "cuda"], Option(help="Where neural methods train.")] = "cpu",
    quick: Annotated[bool, Option("--quick", help="Tiny trainings on one graph, to try it.")] = False,
    output: Annotated[
        Path, Option("--output", "-o", metavar="<folder>", help="Results and finished trainings.")
    ] = Path("reproduction"),
    log: o.Log = None,
) -> None:
    """Run the paper's experiments again.

    Results stand beside the published numbers. OUTPUT keeps every finished training, so that a stopped run resumes;
    trainings of a method that now gives other vectors are repeated. It gets
    report.html, results.json, results.csv and the figures as PNG and SVG.

    \b
    brane reproduce --quick
    brane reproduce --table classification --methods tadw --datasets citeseer
    brane reproduce --all --runs 10 --jobs 8 --device cuda -o results
    """
    from neural_brane.experiments.reproduce.plan import FULL, OUTPUTS, left_out
    from neural_brane.experiments.reproduce.plan import quick as quick_scale
    from neural_brane.experiments.reproduce.results import read_json, stale
    from neural_brane.experiments.reproduce.run import prepare
    from neural_brane.experiments.reproduce.run import reproduce as run
    from neural_brane.files.storage import check_writable

    check_writable(output / "results.json", ParameterError)
    log_to(log)
    chosen: list[str] = [*(table or []), *(figure or [])]
    wanted = [name for name in OUTPUTS if everything or not chosen or name in chosen]
    names = split_names(datasets)
    scale = replace(quick_scale(*names) if quick else FULL, device=device)
    work = prepare(output, scale, outputs=wanted, methods=split_names(methods), datasets=names, runs=runs)
    kept = len(work.trainings) - len(work.missing)
    echo(f"trainings: {len(work.trainings)}, of which {kept} are kept in {work.store.folder}", err=True)
    if (output / "results.json").exists() and (changed := stale(read_json(output / "results.json"))):
        echo(f"repeated, because the method now gives other vectors: {', '.join(changed)}", err=True)
    if not methods and (absent := left_out()):
        echo(f"left out: {', '.join(absent)}: pip install 'neural-brane[torch]' to train them too", err=True)
    with _watching(work) as watch:
        results = run(work, jobs=jobs or os.cpu_count() or 1, watch=watch)
    echo(f"wrote {output / 'report.html'}, results.json, results.csv and figures/")
    for one in results.failures:
        echo(f"failed: {one['method']} on {one['dataset']}, run {one['seed']}: {one['failure']}", err=True)
    if results.failures:
        raise Exit(1)


@contextmanager
def _watching(work: Work) -> Iterator[Watch]:
    """Give a function that shows each training that ends: in a table on a terminal, as a line elsewhere."""
    ended: list[Ended[Training]] = []
    if not sys.stderr.isatty():

        def line(one: Ended[Training]) -> None:
            ended.append(one)
            done = len(work.trainings) - len(work.missing) + len(ended)
            tell(f"{done}/{len(work.trainings)} {in_a_line(one)}")

        yield line
        return
    from rich.console import Console
    from rich.live import Live

    with Live(progress_table(work, ended), console=Console(stderr=True), refresh_per_second=4) as live:

        def fill(one: Ended[Training]) -> None:
            ended.append(one)
            LOG.info(printable(in_a_line(one)))
            live.update(progress_table(work, ended))

        yield fill


def in_a_line(ended: Ended[Training]) -> str:
    """A training that has ended, in a line."""
    training, record = ended.task, ended.result
    name = f"{training.method} on {training.dataset}, run {training.seed}"
    if ended.failure:
        return f"{name}: FAILED: {ended.failure}"
    cost = f"{name}: {record['seconds']:.1f} s, {record['peak_mb']:.0f} MB"
    if "macro_f1" not in record:
        return f"{cost}, AUC of links {record['auc']:.4f}"
    share, scores = list(record["macro_f1"].items())[-1]
    return f"{cost}, Macro-F1 {sum(scores) / len(scores):.4f} at {float(share):.0%}"


def progress_table(work: Work, ended: list[Ended[Training]]) -> rich.table.Table:
    """Methods down, datasets across: how many of their trainings are done, and how many failed."""
    import rich.table
    from rich import box

    datasets = list(dict.fromkeys(training.dataset for training in work.trainings))
    done = len(work.trainings) - len(work.missing) + len(ended)
    shown = rich.table.Table(
        box=box.SIMPLE_HEAD, title=f"{done} of {len(work.trainings)} trainings", title_justify="left"
    )
    shown.add_column("method")
    for dataset in datasets:
        shown.add_column(dataset, justify="right")
    for method in dict.fromkeys(training.method for training in work.trainings):
        shown.add_row(method, *(_count(work, ended, method, dataset) for dataset in datasets))
    return shown


def _count(work: Work, ended: list[Ended[Training]], method: str, dataset: str) -> str:
    """How many trainings of a method on a dataset are done, of how many, and how many failed."""

    def here(trainings: Iterable[Training]) -> int:
        return sum((one.method, one.dataset) == (method, dataset) for one in trainings)

    total, failed = here(work.trainings), here(one.task for one in ended if one.failure)
    done = total - here(work.missing) + here(one.task for one in ended)
    if not total:
        return ""
    look = "green" if done == total else "yellow" if done else "dim"
    return f"[{look}]{done}/{total}[/{look}]" + (f" [red]{failed} failed[/red]" if failed else "")
