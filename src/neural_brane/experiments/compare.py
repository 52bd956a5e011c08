"""Train every method on one graph, score all of them on the same splits, and rank them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from neural_brane.errors import ParameterError
from neural_brane.evaluate.labelled import Repeats
from neural_brane.experiments.comparison import Comparison, Standing, rank
from neural_brane.experiments.compute import data_facts, failures_of
from neural_brane.experiments.store import Record, Store, Training, describe_machine, fingerprint
from neural_brane.experiments.tasks import Targets, Task, as_targets, choose_tasks, targets_digest
from neural_brane.graph import AttributedGraph
from neural_brane.methods import METHODS, find_method, untrainable
from neural_brane.methods.parameters import DIM
from neural_brane.methods.training import resolve
from neural_brane.progress import Meter, Reporter

USUAL, ALL = "usual", "all"  # the quick ones and the good ones, which say so on their class; every one
Methods = str | Sequence[str] | Mapping[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Series:
    """The runs of a method that serve some tasks: links need runs of their own, without the held-out edges."""

    method: str
    tasks: tuple[Task, ...]
    trainings: tuple[Training, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """What a comparison comes to; nothing is computed yet."""

    graph: AttributedGraph
    labels: Targets | None  # several a node or numbers, instead of the graph's classes
    tasks: tuple[Task, ...]
    series: tuple[Series, ...]
    runs: int
    notes: tuple[str, ...]

    @property
    def trainings(self) -> list[Training]:
        """All trainings."""
        return [training for one in self.series for training in one.trainings]


def compare(
    graph: AttributedGraph,
    methods: Methods = USUAL,
    tasks: str | Sequence[str] | None = None,
    *,
    labels: Any = None,
    runs: int = 3,
    dim: int = DIM,
    device: str = "cpu",
    jobs: int = 1,
    time_limit: float | None = None,
    folder: str | Path | None = None,
    progress: Reporter | None = None,
) -> Comparison:
    """Train methods on a graph, score them on the same splits, and rank them per task.

    Every training has a process and a core of its own, so that its memory is measured and its failure harms no other;
    a script must therefore call this below `if __name__ == "__main__":`. The first runs of all methods come first: a
    method that fails its first run is not tried again. A method that learns from labels is trained once more for every
    split, with the labels of its training part alone, and scored on that split; other tasks see vectors without labels.

    Parameters
    ----------
    methods
        Names; or "usual", quick ones and good ones; or "all", every method whose packages are installed; or a dict from
        a name to the parameters that shall differ from the method's defaults.
    tasks
        Some of "classify", "cluster", "retrieve" and "link"; with `labels` that are several a node "multilabel" instead
        of the first two, with numbers "regress". None takes all that there are labels and edges for.
    labels
        What to predict instead of the graph's classes, in the order of its nodes: several labels, as
        `evaluate.classify_several` takes them, or an array of floats, NaN for none.
    runs
        Trainings of each method; run k has seed k, and the same splits and held-out edges in every method.
    dim
        Width of a vector, in every method.
    device
        Where methods train that can train on a GPU: "cpu", "cuda" or "auto".
    jobs
        Trainings at a time.
    time_limit
        Seconds that one training may take, its start and its scores included; longer is a failure.
    folder
        Keeps finished trainings, so that a stopped comparison goes on; with None nothing is kept.
    progress
        Told how many trainings are done.

    Examples
    --------
    >>> from neural_brane import compare, load
    >>> found = compare(load("stdlib"), ["attributes", "propagated-attributes"], "classify", runs=1, dim=32)
    >>> found.best("classify").method
    'propagated-attributes'
    """
    order = prepare(graph, methods, tasks, labels=labels, runs=runs, dim=dim, device=device)
    with open_store(graph, folder) as store:
        return run(order, store, jobs=jobs, time_limit=time_limit, progress=progress)


def prepare(
    graph: AttributedGraph,
    methods: Methods,
    tasks: str | Sequence[str] | None,
    *,
    labels: Any = None,
    runs: int,
    dim: int,
    device: str = "cpu",
) -> Order:
    """What a comparison comes to: mistakes in it are told here, before anything is trained."""
    if runs < 1:
        raise ParameterError(f"runs={runs}: at least one is needed")
    targets = as_targets(labels)
    chosen, lacking = choose_tasks(tasks, graph, targets)
    mark = {} if targets is None else {"digest": targets_digest(targets)}
    settings, absent = _choose_methods(methods)
    if not settings:
        raise ParameterError("no method to compare; name some, or take 'all'")
    place = resolve(device)
    parameters = {name: _parameters(name, own, dim, place) for name, own in settings.items()}
    series = tuple(
        Series(name, some, tuple(_training(name, own, graph, seed, some, mark) for seed in range(runs)))
        for name, own in parameters.items()
        for some in _by_training(chosen)
    )
    return Order(graph, targets, tuple(chosen), series, runs, (*lacking, *absent))


def _choose_methods(methods: Methods) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The parameters by method, and a note on those that "all" cannot mean here."""
    if isinstance(methods, Mapping):
        return dict(methods), []
    names = [methods] if isinstance(methods, str) else list(methods)
    if USUAL in names:
        names = [name for name, method in METHODS.items() if method.shortlisted or name in names]
    if ALL not in names:
        return {name: {} for name in names}, []
    absent = [name for name in untrainable() if name not in names]
    note = f"left out: {', '.join(absent)}: pip install 'neural-brane[torch]' to compare them too"
    known = [name for name in METHODS if name not in absent]
    return {name: {} for name in [*known, *names] if name != ALL}, [note] if absent else []


def _parameters(name: str, own: dict[str, Any], dim: int, device: str) -> dict[str, Any]:
    """The parameters of a method, checked."""
    method = find_method(name)
    given = {"dim": dim} | ({"device": device} if "device" in method.parameters() else {}) | own
    if "seed" in given:
        raise ParameterError(f"{name}: run k has seed k; leave out seed={given['seed']!r}")
    for parameter, value in given.items():
        method.parameter(parameter).check(value)
    return given


def _by_training(tasks: Sequence[Task]) -> list[tuple[Task, ...]]:
    """The tasks in groups that a training serves."""
    nodes, links = [one for one in tasks if one.name != "link"], [one for one in tasks if one.name == "link"]
    return [tuple(group) for group in (nodes, links) if group]


def _training(
    name: str, own: dict[str, Any], graph: AttributedGraph, seed: int, tasks: tuple[Task, ...], mark: Record
) -> Training:
    """A training with its scores; the mark keeps scores by other labels apart in the store."""
    scoring: Record = {}
    for task in tasks:
        own_mark = {} if task.name == "link" else mark
        scoring |= {what: options | own_mark for what, options in task.scoring.items()}
    return Training(name, own, graph.name, seed, scoring)


@contextmanager
def open_store(graph: AttributedGraph, folder: str | Path | None) -> Iterator[Store]:
    """The store of a comparison: beneath the folder, or one that goes away.

    The graph's digest covers its labels, so that scores by other labels are not taken for these.
    """
    with nullcontext(Path(folder) / "trainings") if folder else TemporaryDirectory() as place:
        code = fingerprint if folder else lambda method, parameters: ""  # matters to those who come back
        yield Store(place, graph=graph, fingerprint=code)


def run(
    order: Order, store: Store, *, jobs: int = 1, time_limit: float | None = None, progress: Reporter | None = None
) -> Comparison:
    """Compute the trainings that the store lacks, and rank the methods."""
    if time_limit is not None and not time_limit > 0:
        raise ParameterError(f"time_limit={time_limit} makes no sense; give seconds above 0, or None")
    meter = Meter(progress, len(store.missing(order.trainings)), "trainings")
    compute = partial(
        failures_of, store=store, advance=meter.advance, labels=order.labels, jobs=jobs, timeout=time_limit
    )
    failures = compute([one.trainings[0] for one in order.series])
    failed = [one for one in order.series if store.path(one.trainings[0]) in failures]
    meter.advance(len(store.missing(training for one in failed for training in one.trainings[1:])))
    others = [one for one in order.series if one not in failed]
    failures |= compute([one.trainings[number] for number in range(1, order.runs) for one in others])
    return _summarise(order, store, failures)


def _summarise(order: Order, store: Store, failures: dict[Path, str]) -> Comparison:
    records = [record for training in order.trainings if (record := store.get(training)) is not None]
    machines = {str(record["machine"]): record["machine"] for record in records}
    return Comparison(
        graph=data_facts(order.graph),
        runs=order.runs,
        standings={
            task.name: rank([_standing(one, task, store, failures) for one in order.series if task in one.tasks])
            for task in order.tasks
        },
        parameters={one.method: one.trainings[0].deciding_parameters() for one in order.series},
        machines=tuple(machines.values()) or (describe_machine(),),
        notes=order.notes,
    )


def _standing(series: Series, task: Task, store: Store, failures: dict[Path, str]) -> Standing:
    """A method in a task; one run that failed makes it fail, as methods are compared over the same runs."""
    records, learns_labels = [], METHODS[series.method].uses_labels
    for number, training in enumerate(series.trainings):
        record = store.get(training)
        if record is None:
            which = f"run {number}: " if number else ""
            return Standing(series.method, failure=which + failures[store.path(training)], learns_labels=learns_labels)
        records.append(record)
    measures = {}
    for name in task.measures:
        values = [value for record in records if (value := task.value(record, name)) is not None]
        if values:
            measures[name] = Repeats(tuple(values))
    return Standing(
        method=series.method,
        measures=measures,
        ranked_by=max((name for name in task.ranked_by if name in measures), key=lambda name: measures[name].mean),
        seconds=Repeats(tuple(record["seconds"] for record in records)),
        peak_mb=max(record["peak_mb"] for record in records),
        learns_labels=learns_labels,
    )
