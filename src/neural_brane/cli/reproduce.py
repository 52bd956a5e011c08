"""`brane reproduce`: compute the paper's table and figures again, beside the published numbers."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Exit, Option

from neural_brane.cli import options as o
from neural_brane.cli.options import split_names
from neural_brane.cli.terminal import echo, log_to, tell
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.experiments.compute import Ended
    from neural_brane.experiments.store import Training


class Table(StrEnum):
    """The paper's table, and one of links that the paper does not have."""

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
    done = itertools.count(kept + 1)
    if (output / "results.json").exists() and (changed := stale(read_json(output / "results.json"))):
        echo(f"repeated, because the method now gives other vectors: {', '.join(changed)}", err=True)
    if not methods and (absent := left_out()):
        echo(f"left out: {', '.join(absent)}: pip install 'neural-brane[torch]' to train them too", err=True)
    results = run(
        work,
        jobs=jobs or os.cpu_count() or 1,
        watch=lambda ended: tell(f"{next(done)}/{len(work.trainings)} {in_a_line(ended)}"),
    )
    echo(f"wrote {output / 'report.html'}, results.json, results.csv and figures/")
    for one in results.failures:
        echo(f"failed: {one['method']} on {one['dataset']}, run {one['seed']}: {one['failure']}", err=True)
    if results.failures:
        raise Exit(1)


def in_a_line(ended: Ended[Training]) -> str:
    """Describe a finished training in one line."""
    training, record = ended.task, ended.result
    name = f"{training.method} on {training.dataset}, run {training.seed}"
    if ended.failure:
        return f"{name}: FAILED: {ended.failure}"
    cost = f"{name}: {record['seconds']:.1f} s, {record['peak_mb']:.0f} MB"
    if "macro_f1" not in record:
        return f"{cost}, AUC of links {record['auc']:.4f}"
    share, scores = list(record["macro_f1"].items())[-1]
    return f"{cost}, Macro-F1 {sum(scores) / len(scores):.4f} at {float(share):.0%}"
