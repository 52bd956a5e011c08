"""`brane reproduce`: the paper's table and figures, computed again beside the published numbers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Exit, Option, echo

if TYPE_CHECKING:
    from rich.table import Table

    from neural_brane.reproduce.plan import Cell
    from neural_brane.reproduce.pool import Finished
    from neural_brane.reproduce.run import Work


class Figure(StrEnum):
    """The paper's figures."""

    CLUSTERING = "clustering"
    MAP = "map"
    DIMENSION = "dimension"
    CONVERGENCE = "convergence"
    POOLING = "pooling"


def reproduce(
    table: Annotated[Literal["classification"] | None, Option(help="Compute this table.")] = None,
    figure: Annotated[list[Figure] | None, Option(help="Compute this figure; may be repeated.")] = None,
    everything: Annotated[
        bool, Option("--all", help="Compute the table and all figures, as when none is named.")
    ] = False,
    methods: Annotated[
        list[str] | None, Option(metavar="<name,name>", help="Only these methods; 'brane methods' lists them.")
    ] = None,
    datasets: Annotated[
        list[str] | None, Option(metavar="<name,name>", help="Only these datasets (default the paper's four).")
    ] = None,
    runs: Annotated[
        int | None, Option(help="Trainings of each method (default 10; GraphSAGE and Graph2Gauss have 3 at most).")
    ] = None,
    jobs: Annotated[
        int | None, Option(help="Trainings side by side, one core each (default the number of cores).")
    ] = None,
    device: Annotated[
        Literal["cpu", "cuda"],
        Option(help="Where Neural-Brane, GraphSAGE and Graph2Gauss train; their cells are kept apart."),
    ] = "cpu",
    quick: Annotated[bool, Option("--quick", help="Tiny trainings on one graph, to try everything offline.")] = False,
    output: Annotated[Path, Option("--output", "-o", help="Folder of the results, and of finished cells.")] = Path(
        "reproduction"
    ),
) -> None:
    """Run the paper's experiments again and set them beside its figures.

    Every training is kept in OUTPUT as it ends; a run that was stopped, even killed, goes on where it was.
    OUTPUT gets report.html, results.json, results.csv and the figures as PNG and SVG.

    \b
    brane reproduce --quick
    brane reproduce --table classification --methods tadw,neural-brane --datasets citeseer --runs 3
    brane reproduce --all --runs 10 --jobs 8 --device cuda -o results
    """
    from neural_brane.reproduce.plan import OUTPUTS
    from neural_brane.reproduce.run import prepare
    from neural_brane.reproduce.run import reproduce as run

    chosen: list[str] = [*([table] if table else []), *(figure or [])]
    wanted = [name for name in OUTPUTS if everything or not chosen or name in chosen]
    names = {"methods": _split(methods), "datasets": _split(datasets)}
    work = prepare(output, outputs=wanted, runs=runs, small=quick, device=device, **names)
    kept = len(work.cells) - len(work.missing)
    echo(f"trainings: {len(work.cells)}, of which {kept} are kept in {work.store.folder}", err=True)
    with _watching(work) as watch:
        results = run(work, jobs=jobs or os.cpu_count() or 1, watch=watch)
    echo(f"wrote {output / 'report.html'}, results.json, results.csv and figures/")
    for one in results.failures:
        echo(f"failed: {one['method']} on {one['dataset']}, run {one['seed']}: {one['failure']}", err=True)
    if results.failures:
        raise Exit(1)


def _split(names: list[str] | None) -> list[str]:
    return [part.strip() for name in names or () for part in name.split(",") if part.strip()]


@contextmanager
def _watching(work: Work) -> Iterator[Callable[[Finished], None]]:
    """A function that shows each cell as it ends: in a table on a terminal, as lines elsewhere."""
    missing = {id(cell) for cell in work.missing}
    done: list[tuple[Cell, str]] = [(cell, "") for cell in work.cells if id(cell) not in missing]
    if not sys.stderr.isatty():

        def line(finished: Finished) -> None:
            done.append((finished.cell, finished.failure))
            echo(f"{len(done)}/{len(work.cells)} {describe(work, finished)}", err=True)

        yield line
        return
    from rich.console import Console
    from rich.live import Live

    with Live(progress_table(work, done), console=Console(stderr=True), refresh_per_second=4) as live:

        def fill(finished: Finished) -> None:
            done.append((finished.cell, finished.failure))
            live.update(progress_table(work, done))

        yield fill


def describe(work: Work, finished: Finished) -> str:
    """A finished cell in a line."""
    cell = finished.cell
    name = f"{cell.method} on {cell.dataset}, run {cell.seed}"
    record = None if finished.failure else work.store.get(cell)
    if record is None:
        return f"{name}: FAILED: {finished.failure}"
    share, scores = list(record["macro_f1"].items())[-1]
    mean = sum(scores) / len(scores)
    return f"{name}: {record['seconds']:.1f} s, {record['peak_mb']:.0f} MB, Macro-F1 {mean:.4f} at {float(share):.0%}"


def progress_table(work: Work, done: list[tuple[Cell, str]]) -> Table:
    """Methods down, datasets across: how many of their trainings are done, and how many failed."""
    from rich import box
    from rich.table import Table

    datasets = list(dict.fromkeys(cell.dataset for cell in work.cells))
    shown = Table(box=box.SIMPLE_HEAD, title=f"{len(done)} of {len(work.cells)} trainings", title_justify="left")
    shown.add_column("method")
    for dataset in datasets:
        shown.add_column(dataset, justify="right")
    for method in dict.fromkeys(cell.method for cell in work.cells):
        shown.add_row(method, *(_count(work, done, method, dataset) for dataset in datasets))
    return shown


def _count(work: Work, done: list[tuple[Cell, str]], method: str, dataset: str) -> str:
    here = [failure for cell, failure in done if (cell.method, cell.dataset) == (method, dataset)]
    total = sum((cell.method, cell.dataset) == (method, dataset) for cell in work.cells)
    if not total:
        return ""
    failed = sum(map(bool, here))
    look = "green" if len(here) == total else "yellow" if here else "dim"
    return f"[{look}]{len(here)}/{total}[/{look}]" + (f" [red]{failed} failed[/red]" if failed else "")
