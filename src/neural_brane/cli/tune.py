"""`brane tune`: a method's parameters for a dataset, by grid search."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from neural_brane.cli.options import Log
from neural_brane.cli.tables import Tables, read, takes_tables
from neural_brane.cli.terminal import echo
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.experiments.tune import Candidate
    from neural_brane.methods.base import Embedder


@takes_tables
def tune(
    method: Annotated[str, Argument(help="A method's name; 'brane methods' lists them.")],
    dataset: Annotated[str, Argument(help="A dataset's name or a graph file that has labels.")],
    tables: Tables,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="<name=value>", help="A parameter's value in every training; may be repeated."),
    ] = None,
    grid: Annotated[
        list[str] | None,
        Option(
            metavar="<name=v1,v2>", help="Values to try, besides the paper's grid or in its place; may be repeated."
        ),
    ] = None,
    seed: Annotated[int, Option(help="Of the first run of every setting; the next run has the next.")] = 0,
    runs: Annotated[int, Option(help="Trainings of every setting; their mean decides.")] = 3,
    jobs: Annotated[
        int | None, Option(help="Trainings at a time, one thread each (default the number of cores).")
    ] = None,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Folder that keeps finished trainings (default tune-METHOD-DATASET)."),
    ] = None,
    log: Log = None,
) -> None:
    """Search for a method's best parameters on a dataset, and print the lines to keep.

    Every point of the grid is trained three times. Its vectors are scored by Macro-F1 on a fixed fifth of the labelled
    nodes (80 % of them to fit and 20 % to validate, ten times); the other labels are never looked at, and 'brane
    reproduce' tests on no others. What is printed after ± is the standard deviation over the three.
    Finished trainings are kept, so a search that was stopped goes on, and a wider one trains what is new.

    \b
    brane tune deepwalk citeseer
    brane tune node2vec reed98 --set epochs=2 --grid p=0.25,1,4
    brane tune deepwalk edges.csv --nodes people.csv --label team
    """
    from neural_brane.cli.terminal import counting, log_to
    from neural_brane.experiments.tune import Tuned, candidates, hide_test_labels
    from neural_brane.experiments.tune import tune as search
    from neural_brane.files import datasets
    from neural_brane.files.storage import check_distinct, check_writable
    from neural_brane.methods import find_method

    check_distinct({"--log": log}, {"--nodes": tables.nodes, **datasets.source_files(dataset)})
    log_to(log)
    fixed, points = space(find_method(method), settings or [], grid or [])
    graph = read(dataset, tables)
    folder = output or Path(f"tune-{method}-{graph.name}")
    check_writable(folder / "training.json", ParameterError)
    total, jobs = len(candidates(points)), jobs or os.cpu_count() or 1
    echo(f"{method} on {graph.name}: {total} settings, {runs} runs of each, kept in {folder}", err=True)
    with counting("search") as progress:
        results = search(
            method, graph, points, fixed=fixed, seed=seed, runs=runs, jobs=jobs, folder=folder, progress=progress
        )
    show(results)
    best = results[0]
    if not best.macro:
        raise ParameterError(f"no setting could be trained; the first says: {best.failure}")
    echo("To keep in tune/tuned.toml:\n")
    seen = hide_test_labels(graph).digest()
    echo(Tuned(fixed | best.parameters, best.score, total, runs, seen).as_toml(method, graph.name))


def space(method: type[Embedder], settings: list[str], grid: list[str]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The parameters that have one value in every training, and the values to try of the others."""
    from neural_brane.cli.options import parse_grid, parse_settings
    from neural_brane.experiments.tune import grid as usual

    fixed, named = parse_settings(method, settings), parse_grid(method, grid)
    if both := sorted(fixed.keys() & named.keys()):
        raise ParameterError(f"{both[0]} is given by --set and by --grid; leave one out")
    points = {name: values for name, values in usual(method).items() if name not in fixed} | named
    if not points:
        raise ParameterError(
            f"'{method.title}' has nothing left that the paper tunes; name values, as in --grid dim=64,128"
        )
    return fixed, points


def show(results: list[Candidate]) -> None:
    """Print the candidates, best first."""
    from neural_brane.cli.terminal import show_table

    names = tuple(results[0].parameters)
    rows = [
        (
            *(f"{one.parameters[name]}" for name in names),
            f"{one.seconds:.1f}" if one.macro else "",
            f"{one.score:.4f} ± {one.sd:.4f}" if one.macro else one.failure,
        )
        for one in results
    ]
    show_table((*names, "seconds", "validation Macro-F1"), rows, right=(*names, "seconds"))
