"""Reproduce the paper's experiments: plan, compute missing trainings, summarise, draw and write the results."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from neural_brane.errors import BraneError, GraphError, ParameterError
from neural_brane.experiments.compute import FinishedCall, compute_missing
from neural_brane.experiments.reproduce.plan import FULL, OUTPUTS, Scale, Series, choose_columns, choose_datasets, plan
from neural_brane.experiments.reproduce.results import Results, claims, duels, notes, summarise, write_csv, write_json
from neural_brane.experiments.store import Store, Training
from neural_brane.files import datasets as known_datasets
from neural_brane.methods.training import resolve


@dataclass(frozen=True, slots=True)
class Work:
    """The checked plan of a reproduction: all its trainings, and those that are not finished."""

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
    """Return the plan of a reproduction; nothing is computed yet.

    scale: how much to compute, FULL or `quick()`, and on which device. outputs: names from OUTPUTS. methods, datasets:
    names; none means all of the scale. runs: trainings of each method, with seeds 0, 1, ….
    """
    if runs is not None and runs < 1:
        raise ParameterError(f"runs={runs}: must be at least 1")
    chosen = choose_datasets(datasets, scale)
    series = plan(outputs, choose_columns(methods), chosen, scale, runs=runs or scale.runs)
    store = Store(Path(folder) / "trainings", digest=_labelled_digest)
    trainings = store.distinct(training for one in series for training in one.trainings)
    if not trainings:
        raise ParameterError("nothing to compute: these tables and figures do not use these methods and datasets")
    return Work(series, trainings, store.missing(trainings), store, scale)


def reproduce(
    work: Work, *, jobs: int = 1, watch: Callable[[FinishedCall[Training]], None] = lambda ended: None
) -> Results:
    """Compute the missing trainings, `jobs` at a time, and write all results, which name failed trainings."""
    if any(training.parameters.get("device") == "cuda" for training in work.missing):
        resolve("cuda")  # if there is no GPU, raise one error instead of one per training
    failed: dict[int, dict[str, Any]] = {}
    for ended in compute_missing(work.missing, work.store, jobs=jobs):
        watch(ended)
        if ended.failure:
            one = ended.task
            facts = {"method": one.method, "dataset": one.dataset, "seed": one.seed, "parameters": one.parameters}
            failed[work.missing.index(one)] = facts | {"failure": ended.failure}
    failures = [failed[place] for place in sorted(failed)]
    results = summarise(work.series, work.store, scale=work.scale.name, failures=failures)
    if not results.cells:
        raise BraneError(f"no training succeeded; the first error: {failures[0]['failure']}")
    from neural_brane.experiments.reproduce.figures import draw_all  # only here, because planning needs no Matplotlib

    folder = work.store.folder.parent
    write_csv(results, folder / "results.csv")
    figures = draw_all(results, folder / "figures")
    write_words(results, figures, folder, trainings=len(work.trainings) - len(failures))
    return results


def write_words(results: Results, figures: dict[str, Path], folder: Path, *, trainings: int) -> None:
    """Write results.json and the report with their sentences; `figures` are the SVG files by name."""
    from neural_brane.experiments.reproduce.page import write_report

    words = {"claims": [asdict(one) for one in claims(results)], "notes": [asdict(one) for one in notes(results)]}
    tests = [duel.as_dict() for duel in duels(results)]
    write_json(results, folder / "results.json", trainings=trainings, **words, tests=tests)
    write_report(results, figures, folder / "report.html", trainings=trainings)


@cache
def _labelled_digest(dataset: str) -> str:
    """Return the digest of a dataset; raise an error if it has no labels."""
    graph = known_datasets.load(dataset)
    if graph.labels is None:
        raise GraphError(f"dataset '{dataset}' has no labels; choose a labelled dataset")
    return graph.digest()
