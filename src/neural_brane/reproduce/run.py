"""From what is asked for to the folder of results: plan, compute what is missing, sum up, draw, write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neural_brane.errors import BraneError, ParameterError
from neural_brane.methods.devices import resolve
from neural_brane.reproduce.cells import Store
from neural_brane.reproduce.claims import claims
from neural_brane.reproduce.compare import duels
from neural_brane.reproduce.plan import FULL, OUTPUTS, Cell, Scale, Series, choose_columns, choose_datasets, plan, quick
from neural_brane.reproduce.pool import Finished, compute_all
from neural_brane.reproduce.results import Results, summarise, write_csv, write_json


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done: all cells, and those of them that are not finished."""

    series: list[Series]
    cells: list[Cell]
    missing: list[Cell]
    store: Store
    scale: Scale


def prepare(
    folder: str | Path,
    *,
    outputs: Sequence[str] = OUTPUTS,
    methods: Sequence[str] = (),
    datasets: Sequence[str] = (),
    runs: int | None = None,
    small: bool = False,
    device: str = "cpu",
) -> Work:
    """Find out what an order comes to; nothing is computed yet.

    outputs: some of OUTPUTS. methods, datasets: all of the scale's when none is named. runs: trainings of each
    method, with seeds 0, 1, …. small: little of everything, on caltech36 where it is at hand, or else on stdlib.
    device: "cpu" or "cuda", for the methods that have one; cells of the one are not those of the other.
    """
    if runs is not None and runs < 1:
        raise ParameterError(f"runs={runs}: at least one is needed")
    scale = quick(_at_hand()) if small else FULL
    chosen = choose_datasets(datasets, scale)
    if small and datasets:
        scale = quick(*chosen)
    scale = replace(scale, device=device)
    series = plan(outputs, choose_columns(methods), chosen, scale, runs=runs or scale.runs)
    store = Store(Path(folder) / "cells")
    cells = store.distinct(cell for one in series for cell in one.cells)
    if not cells:
        raise ParameterError("nothing to compute: the methods and datasets chosen have no part in what is asked for")
    return Work(series, cells, [cell for cell in cells if store.get(cell) is None], store, scale)


def reproduce(work: Work, *, jobs: int = 1, watch: Callable[[Finished], None] = lambda finished: None) -> Results:
    """Compute the missing cells, `jobs` at a time, and write everything beside the folder of cells.

    `watch` is called with each cell as it ends. A cell that fails is left out and told in the results.
    """
    if any(cell.parameters.get("device") == "cuda" for cell in work.missing):
        resolve("cuda")  # says what is missing once, not cell by cell
    failures = []
    for finished in compute_all(work.missing, work.store, jobs=jobs):
        watch(finished)
        if finished.failure:
            failures.append(finished)
    order = {id(cell): place for place, cell in enumerate(work.cells)}
    failures.sort(key=lambda one: order[id(one.cell)])
    results = summarise(work.series, work.store, scale=work.scale.name, failures=[_told(one) for one in failures])
    if not results.entries:
        raise BraneError(f"no cell could be computed; the first says: {failures[0].failure}")
    _write(results, work.store.folder.parent, trainings=len(work.cells) - len(failures))
    return results


def _write(results: Results, folder: Path, *, trainings: int) -> None:
    from neural_brane.reproduce.report.figures import draw_all
    from neural_brane.reproduce.report.page import write_report

    said = [{"claim": one.claim, "verdict": one.verdict, "evidence": one.evidence} for one in claims(results)]
    write_json(results, folder / "results.json", claims=said, tests=[duel.as_dict() for duel in duels(results)])
    write_csv(results, folder / "results.csv")
    drawn = draw_all(results, folder / "figures")
    write_report(results, drawn, folder / "report.html", trainings=trainings)


def _told(finished: Finished) -> dict[str, Any]:
    cell = finished.cell
    return {
        "method": cell.method, "dataset": cell.dataset, "seed": cell.seed, "parameters": cell.parameters,
        "failure": finished.failure,
    }  # fmt: skip


def _at_hand() -> str:
    """A graph of the paper if its files are here, or else the one that is part of the package."""
    from neural_brane import datasets

    here = {record.name for record in datasets.list_datasets() if record.state in ("here", "cached")}
    return "caltech36" if "caltech36" in here else "stdlib"
