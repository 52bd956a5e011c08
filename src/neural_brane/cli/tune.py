"""`brane tune`: a method's parameters for a dataset, by grid search."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from neural_brane.cli import options as o
from neural_brane.cli.options import Reading, bundled, parse_grid, parse_settings
from neural_brane.cli.terminal import counting, echo, log_to, show_table
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.experiments.tune import Candidate
    from neural_brane.methods.base import Embedder


@bundled
def tune(
    method: Annotated[str, Argument(help="See 'brane methods'.")],
    dataset: Annotated[str, Argument(help="A dataset or graph file with labels.")],
    reading: Reading,
    settings: Annotated[
        list[str] | None, Option("--set", metavar="<name=value>", help="A fixed parameter; may be repeated.")
    ] = None,
    grid: Annotated[
        list[str] | None, Option(metavar="<name=v1,v2>", help="Values to try; adds to or replaces a grid.")
    ] = None,
    seed: o.Seed = 0,
    runs: Annotated[int, Option(metavar="<whole>", help="Trainings per setting; the mean decides.")] = 3,
    jobs: o.Jobs = None,
    output: Annotated[
        Path | None,
        Option("--output", "-o", metavar="<folder>", help="Keeps trainings (tune-METHOD-DATASET)."),
    ] = None,
    log: o.Log = None,
) -> None:
    """Search for a method's best parameters on a dataset.

    Vectors are scored by Macro-F1 on a fixed fifth of the labelled nodes, of
    which 80 % fit and 20 % validate, ten times; the other labels are never
    used, and 'brane reproduce' tests on them only. ± is the standard
    deviation over the runs. Finished trainings are kept, so a stopped search
    resumes and a wider grid trains only what is new.

    \b
    brane tune deepwalk citeseer
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
    check_writable(folder / "training.json", ParameterError)
    total, jobs = len(candidates(points)), jobs or os.cpu_count() or 1
    echo(f"{method} on {graph.name}: {total} settings, {runs} runs of each, kept in {folder}", err=True)
    with counting("search") as progress:
        results = search(
            method, graph, points, fixed=fixed, seed=seed, runs=runs, jobs=jobs, folder=folder, progress=progress
        )
    show(results)
    best = results[0]
    echo("To keep in tune/tuned.toml:\n")
    seen = hide_test_labels(graph).digest()
    echo(Tuned(fixed | best.parameters, best.score, total, runs, seen).as_toml(method, graph.name))


def space(method: type[Embedder], settings: list[str], grid: list[str]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return the fixed parameters, and the values to try of the others."""
    from neural_brane.experiments.tune import grid as usual

    fixed, named = parse_settings(method, settings), parse_grid(method, grid)
    if both := sorted(fixed.keys() & named.keys()):
        raise ParameterError(f"{both[0]} is given by --set and by --grid; leave one out")
    points = {name: values for name, values in usual(method).items() if name not in fixed} | named
    if not points:
        raise ParameterError(
            f"'{method.title}' has no grid of its own left to search; name values, as in --grid dim=64,128"
        )
    return fixed, points


def show(results: list[Candidate]) -> None:
    """Print the candidates, best first; fail if none could be trained."""
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
    if not results[0].macro:
        raise ParameterError(f"no setting could be trained; the first says: {results[0].failure}")
