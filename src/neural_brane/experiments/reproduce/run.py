"""From an order to the folder of results: plan, compute what is missing, summarise, draw, write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from neural_brane.errors import BraneError, GraphError, ParameterError
from neural_brane.experiments.compute import Ended, compute_missing
from neural_brane.experiments.reproduce.plan import FULL, OUTPUTS, Scale, Series, choose_columns, choose_datasets, plan
from neural_brane.experiments.reproduce.results import Results, claims, duels, notes, summarise, write_csv, write_json
from neural_brane.experiments.store import Store, Training
from neural_brane.files import datasets as known_datasets
from neural_brane.methods.training import resolve


@dataclass(frozen=True, slots=True)
class Work:
    """What an order comes to: all trainings, and those of them that are not finished."""

    series: list[Series]
    trainings: list[Training]
    missing: list[Training]
    store: Store
    scale: Scale


def prepare(
    folder: str | Path,
    scale: Scale = FULL,
    *,
    outputs: Sequence[str] = OUTPUTS,
    methods: Sequence[str] = (),
    datasets: Sequence[str] = (),
    runs: int | None = None,
) -> Work:
    """Find out what an order comes to; nothing is computed yet.

    scale: how much is computed, FULL or `quick()`, and on which device. outputs: some of OUTPUTS. methods, datasets:
    all of the scale's when none is named. runs: trainings of each method, with seeds 0, 1, ….
    """
    if runs is not None and runs < 1:
        raise ParameterError(f"runs={runs}: at least one is needed")
    chosen = choose_datasets(datasets, scale)
    series = plan(outputs, choose_columns(methods), chosen, scale, runs=runs or scale.runs)
    store = Store(Path(folder) / "trainings", digest=_labelled_digest)
    trainings = store.distinct(training for one in series for training in one.trainings)
    if not trainings:
        raise ParameterError("nothing to compute: the methods and datasets chosen have no part in what is asked for")
    return Work(series, trainings, store.missing(trainings), store, scale)


def reproduce(work: Work, *, jobs: int = 1, watch: Callable[[Ended[Training]], None] = lambda ended: None) -> Results:
    """Compute the missing trainings, `jobs` at a time, and write everything beside the folder of trainings.

    `watch` is called with each training as it ends. One that fails is left out of the means, and the results name it.
    """
    if any(training.parameters.get("device") == "cuda" for training in work.missing):
        resolve("cuda")  # where there is no GPU, say so once and not for each training
    failed: dict[int, dict[str, Any]] = {}
    for ended in compute_missing(work.missing, work.store, jobs=jobs):
        watch(ended)
        if ended.failure:
            one = ended.task
            told = {"method": one.method, "dataset": one.dataset, "seed": one.seed, "parameters": one.parameters}
            failed[work.missing.index(one)] = told | {"failure": ended.failure}
    failures = [failed[place] for place in sorted(failed)]
    results = summarise(work.series, work.store, scale=work.scale.name, failures=failures)
    if not results.cells:
        raise BraneError(f"no training succeeded; the first says: {failures[0]['failure']}")
    from neural_brane.experiments.reproduce.figures import draw_all  # Matplotlib is not needed to plan

    folder = work.store.folder.parent
    write_csv(results, folder / "results.csv")
    figures = draw_all(results, folder / "figures")
    write_words(results, figures, folder, trainings=len(work.trainings) - len(failures))
    return results


def write_words(results: Results, figures: dict[str, Path], folder: Path, *, trainings: int) -> None:
    """Write results.json and the report, with what the numbers say in words; `figures` are the SVG files by name."""
    from neural_brane.experiments.reproduce.page import write_report

    said = {"claims": [asdict(one) for one in claims(results)], "notes": [asdict(one) for one in notes(results)]}
    tests = [duel.as_dict() for duel in duels(results)]
    write_json(results, folder / "results.json", trainings=trainings, **said, tests=tests)
    write_report(results, figures, folder / "report.html", trainings=trainings)


@cache
def _labelled_digest(dataset: str) -> str:
    """The digest of a dataset, which must have labels."""
    graph = known_datasets.load(dataset)
    if graph.labels is None:
        raise GraphError(f"dataset '{dataset}' has no labels to score by; choose one that has")
    return graph.digest()
