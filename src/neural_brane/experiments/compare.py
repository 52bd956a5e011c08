"""Compare methods on one graph: train them, score them on the same splits, rank them, and write a page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from neural_brane import __version__
from neural_brane.errors import ParameterError
from neural_brane.evaluate.labelled import Repeats
from neural_brane.experiments import compute as computing
from neural_brane.experiments.compute import TASKS, Targets, Task, as_targets, choose_tasks, data_facts, failures_of
from neural_brane.experiments.page import CHOSEN, Head, Section, number, settings, table, text, write_page
from neural_brane.experiments.store import Record, Store, Training, describe_machine, fingerprint, machine_name
from neural_brane.files.storage import atomic
from neural_brane.graph import AttributedGraph
from neural_brane.methods import METHODS, find_method, untrainable
from neural_brane.methods.base import MARK
from neural_brane.methods.parameters import DIM
from neural_brane.methods.training import resolve
from neural_brane.progress import Meter, Reporter

CONFIDENCE = 0.95  # level of the confidence interval of a difference from the best method
ALIKE = 1e-12  # smaller differences count as zero
NONE = Repeats(())
PAGE, JSON = "compare.html", "compare.json"  # the files of a comparison
LEVEL = (
    f"≈ marks methods that may be as good as the best: the {100 * CONFIDENCE:g} % confidence interval of the "
    "difference (Student's t, paired over runs with the same splits) contains zero."
)
LEARNS_LABELS = (
    f"{MARK} marks methods that also learn from labels. To predict classes, they are trained again for every split, "
    "with the labels of its training nodes only. For all other tasks they are trained without labels."
)


@dataclass(frozen=True, slots=True)
class Standing:
    """The result of a method in one task: its scores, time and memory, or why it failed."""

    method: str
    measures: dict[str, Repeats] = field(default_factory=dict)  # measure: one value per run
    ranked_by: str = ""  # the measure that ranks it
    level: bool = False  # True if it does not differ significantly from the best
    seconds: Repeats = NONE  # one value per training
    peak_mb: float = 0.0  # largest peak memory of its training processes
    failure: str = ""
    learns_labels: bool = False  # True if the method learned from the labels of training nodes

    @property
    def score(self) -> Repeats:
        """The scores that rank the method, one per run."""
        return self.measures[self.ranked_by]

    @property
    def name(self) -> str:
        """The method's name, marked if it learns from labels."""
        return f"{self.method} {MARK}" if self.learns_labels else self.method

    @property
    def heading(self) -> str:
        """The name, marked if the method is level with the best."""
        return f"≈ {self.name}" if self.level else self.name

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as plain values, for JSON."""
        if self.failure:
            return {"method": self.method, "failure": self.failure}
        return {
            "method": self.method, "learns_from_labels": self.learns_labels, "ranked_by": self.ranked_by,
            "level_with_the_best": self.level,
            "measures": {name: values.as_dict("runs") for name, values in self.measures.items()},
            "seconds": self.seconds.as_dict("runs"), "peak_mb": self.peak_mb,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing methods on one graph.

    Parameters
    ----------
    graph
        Name, sizes and digest of the graph.
    runs
        Number of runs of each method; run k has seed k.
    standings
        By task, the methods from the best to the worst, then the failed ones.
    parameters
        By method, the parameters that affect its vectors.
    machines
        The machines that trained.
    notes
        The methods and tasks that were left out, with the reason.
    """

    graph: Record
    runs: int
    standings: dict[str, tuple[Standing, ...]]
    parameters: dict[str, Record]
    machines: tuple[Record, ...]
    notes: tuple[str, ...] = ()

    @property
    def remarks(self) -> list[str]:
        """Sentences that explain the signs beside methods, and how the default was made."""
        shown = [one for standings in self.standings.values() for one in standings]
        signs = {LEVEL: any(one.level for one in shown), LEARNS_LABELS: any(one.learns_labels for one in shown)}
        signs[CHOSEN] = self.parameters.get("neural-brane", {}).get("recipe") == "default"
        return [text for text, found in signs.items() if found]

    def best(self, task: str) -> Standing | None:
        """Return the best method of a task, or None if every method failed."""
        if task not in self.standings:
            raise ParameterError(f"task '{task}' was not compared; choose one of {', '.join(self.standings)}")
        first = self.standings[task][0]
        return None if first.failure else first

    @property
    def advice(self) -> str:
        """A sentence that names the best method of each task, and a much faster one that is nearly as good."""
        best = {task: first for task in self.standings if (first := self.best(task)) is not None}
        if not best:
            (first, *_), *_ = self.standings.values()
            return f"No method could be trained. The first error: {first.failure}."
        uses: dict[str, list[str]] = {}
        for task, first in best.items():
            level = [one.name for one in self.standings[task] if one.level]
            others = f", level with {level[0] if len(level) == 1 else f'{len(level)} others'}" if level else ""
            measured = f"{TASKS[task].measures[first.ranked_by]} {with_spread(first.score)}"
            uses.setdefault(first.name, []).append(f"{TASKS[task].about} ({measured}{others})")
        choices = ", ".join(f"{method} for {listed(tasks)}" for method, tasks in uses.items())
        return f"Take {choices}{_quicker(self, next(iter(best)))}."

    def as_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values, for JSON."""
        tasks: dict[str, Any] = {}
        for name, standings in self.standings.items():
            tasks[name] = {"judged": TASKS[name].judged, "measures": TASKS[name].measures}
            tasks[name]["standings"] = [one.as_dict() for one in standings]
        return {
            "graph": self.graph, "runs": self.runs, "advice": self.advice, "tasks": tasks,
            "parameters": self.parameters, "machines": list(self.machines), "notes": list(self.notes),
        }  # fmt: skip

    def save(self, folder: str | Path) -> None:
        """Write `compare.html`, a self-contained page, and `compare.json` into a folder."""
        with atomic(Path(folder) / JSON) as draft:
            draft.write_text(json.dumps(self.as_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        write_comparison(self, Path(folder) / PAGE)


def rank(standings: Sequence[Standing]) -> tuple[Standing, ...]:
    """Return the methods from the best to the worst, then the failed ones; mark those level with the best."""
    scored = sorted((one for one in standings if not one.failure), key=lambda one: -one.score.mean)
    marked = [replace(one, level=one is not scored[0] and level(scored[0].score, one.score)) for one in scored]
    return (*marked, *(one for one in standings if one.failure))


def level(best: Repeats, other: Repeats) -> bool:
    """Return True if the confidence interval of the paired difference contains zero; False for a single run.

    >>> level(Repeats((0.80, 0.82, 0.78)), Repeats((0.79, 0.82, 0.78)))
    True
    >>> level(Repeats((0.80, 0.82, 0.78)), Repeats((0.70, 0.72, 0.68)))
    False
    """
    _, p = paired(best.values, other.values)
    if p is None:
        return len(best.values) > 1 and abs(best.mean - other.mean) < ALIKE
    return p >= 1 - CONFIDENCE


def paired(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float | None, float | None]:
    """Return t and p of Student's two-sided paired t-test; run k of both methods must have the same splits.

    Both are None if there are fewer than two pairs or if all differences are equal.

    >>> paired([0.6, 0.7, 0.8], [0.5, 0.5, 0.5])
    (3.4641, 0.0741799)
    """
    from scipy import stats

    runs = min(len(ours), len(theirs))
    if runs < 2 or np.ptp(np.subtract(ours[:runs], theirs[:runs])) < ALIKE:
        return None, None
    found = stats.ttest_rel(ours[:runs], theirs[:runs])
    return float(f"{found.statistic:.6g}"), float(f"{found.pvalue:.6g}")


def three_digits(value: float) -> str:
    """Return a score with three digits and without the zero before the point.

    >>> three_digits(0.8137), three_digits(1.0)
    ('.814', '1.000')
    """
    return f"{value:.3f}".removeprefix("0")


def with_spread(values: Repeats) -> str:
    """Return the mean and, for several runs, the standard deviation.

    >>> with_spread(Repeats((0.5, 0.7))), with_spread(Repeats((0.5,)))
    ('.600 ± .141', '.500')
    """
    mean = three_digits(values.mean)
    return f"{mean} ± {three_digits(values.sd)}" if len(values.values) > 1 else mean


def short_time(seconds: float) -> str:
    """Return seconds as text: two decimals below 10 s, else one.

    >>> short_time(0.0123), short_time(75.31)
    ('0.01', '75.3')
    """
    return f"{seconds:,.1f}" if seconds >= 10 else f"{seconds:.2f}"


NEAR = 0.01  # a method at most this far below the best score is also recommended, if it is faster
QUICKER = 0.5  # largest share of the best method's time that such a method may take


def _quicker(comparison: Comparison, task: str) -> str:
    """Name the fastest method whose score is near the best of a task, if it is much faster than the best."""
    best, *others = [one for one in comparison.standings[task] if not one.failure]
    near = [one for one in others if one.score.mean >= best.score.mean - NEAR]
    fastest = min(near, key=lambda one: one.seconds.mean, default=None)
    if fastest is None or fastest.seconds.mean > QUICKER * best.seconds.mean:
        return ""
    times = f"{short_time(fastest.seconds.mean)} s instead of {short_time(best.seconds.mean)} s"
    return f"; {fastest.name} is within {NEAR} of the best for {TASKS[task].about} in {times}"


def listed(parts: Sequence[str]) -> str:
    """Join words with commas and 'and'.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


ROW, BAR = 44, 14  # pixels between two methods, and height of a bar in pixels


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write a comparison as an HTML page."""
    tasks = []
    for name, standings in comparison.standings.items():
        task, scored = TASKS[name], [one for one in standings if not one.failure]
        caption = f"Bars begin at {task.least:g}. A whisker is one standard deviation over runs."
        caption += f" {LEVEL}" if any(one.level for one in scored) else ""
        caption += f" {LEARNS_LABELS}" if any(one.learns_labels for one in scored) else ""
        caption += f" {CHOSEN}" if CHOSEN in comparison.remarks else ""
        figure = f"<figure>{bars(task, scored)}<figcaption>{escape(caption)}</figcaption></figure>" if scored else ""
        body = f"<p>{escape(task.judged)}</p>{figure}<h3>All measures</h3>{_table(task, standings)}"
        tasks.append(Section(name, task.about.capitalize(), body))
    write_page(
        path, title=f"{comparison.graph['name']}: which method is best on this graph",
        lead=f"<strong>{escape(comparison.advice)}</strong>", warning=" · ".join(comparison.notes),
        tiles=_tiles(comparison),
        sections=[*tasks, Section("method", "How the scores were measured", _method(comparison))],
    )  # fmt: skip


def _tiles(comparison: Comparison) -> list[tuple[str, str]]:
    tiles = []
    for name in comparison.standings:
        if (best := comparison.best(name)) is not None:
            what = f"{TASKS[name].measures[best.ranked_by]} of {best.name}, best for {TASKS[name].about}"
            tiles.append((three_digits(best.score.mean), escape(what)))
    graph = comparison.graph
    size = f"nodes, {graph['edges']:,} edges, {graph['attributes']:,} attributes, {graph['classes']:,} classes"
    return [*tiles, (f"{graph['nodes']:,}", size)]


def bars(task: Task, standings: Sequence[Standing]) -> str:
    """Return one bar per method as SVG; lengths are in percent, so that only the bars grow with the page."""
    parts = []
    for place, one in enumerate(standings):
        top, look = ROW * place, "best" if place == 0 else ""
        mean, sd = one.score.mean, one.score.sd
        length, low, high = (100 * task.share(value) for value in (mean, mean - sd, mean + sd))
        middle = top + 20 + BAR / 2
        parts.append(
            f'<text x="0" y="{top + 14}" class="{look}">{escape(one.heading)}</text>'
            f'<text x="100%" y="{top + 14}" text-anchor="end" class="{look}">{with_spread(one.score)}</text>'
            f'<rect class="track" y="{top + 20}" width="100%" height="{BAR}" rx="3"/>'
            f'<rect class="bar {look}" y="{top + 20}" width="{length:.2f}%" height="{BAR}" rx="3"/>'
            f'<line x1="{low:.2f}%" x2="{high:.2f}%" y1="{middle:g}" y2="{middle:g}"/>'
        )
    label = f"{task.about.capitalize()}: the score of each method, best first"
    size = f'width="100%" height="{ROW * len(standings)}" style="max-width:720px;margin:0"'
    return f'<svg class="bars" role="img" aria-label="{label}" {size}>{"".join(parts)}</svg>'


def _table(task: Task, standings: Sequence[Standing]) -> str:
    measured = [name for name in task.measures if any(name in one.measures for one in standings)]
    heads = [
        Head("rank"), Head("method", "text"), *(Head(escape(task.measures[name])) for name in measured),
        Head("seconds"), Head("MB"), Head("failed", "text"),
    ]  # fmt: skip
    if not any(one.failure for one in standings):
        heads.pop()
    rows = [_row(place, one, measured, len(heads)) for place, one in enumerate(standings, 1)]
    return table(heads, rows)


def _row(place: int, one: Standing, measured: Sequence[str], width: int) -> list[str]:
    if one.failure:
        blanks = [number(None, "")] * (width - 3)
        return [number(None, ""), text(one.name), *blanks, text(one.failure, "long")]
    cells = [number(place, f"{place}"), text(one.heading)]
    for name in measured:
        values = one.measures.get(name)
        best = "best" if place == 1 and name == one.ranked_by else ""
        shown = f"<b>{three_digits(values.mean)}</b><small>± {three_digits(values.sd)}</small>" if values else "-"
        cells.append(number(values.mean if values else None, shown, best))
    cells += [number(one.seconds.mean, short_time(one.seconds.mean)), number(one.peak_mb, f"{one.peak_mb:,.0f}")]
    return [*cells, *[text("")] * (width - len(cells))]


def _method(comparison: Comparison) -> str:
    graph = comparison.graph
    machines = dict.fromkeys(
        f"{machine_name(one)}; Python {one['python']}, "
        + ", ".join(f"{name} {version}" for name, version in one["packages"].items())
        for one in comparison.machines
    )
    parameters = table(
        [Head("method", "text"), Head("parameters", "text")],
        [[text(name), text(settings(values), "long")] for name, values in comparison.parameters.items()],
    )
    labels = "Labels are never used in training."
    if LEARNS_LABELS in comparison.remarks:
        labels = escape(f"{LEARNS_LABELS} The other methods never use labels.")
    return (
        f"<p>Computed by <code>brane compare</code>, version {__version__}. Each method had {comparison.runs} runs; "
        "run k has seed k, and the same splits and held-out edges for every method. A score is the mean over runs ± "
        f"the standard deviation. {labels} Seconds are the mean time of one training on one core, or on a GPU if the "
        "parameters name one. MB is the peak resident memory of a training process, including Python and its "
        "libraries.</p>"
        f"<p>Graph {escape(graph['name'])}, digest <code>{graph['digest']}</code>.</p>"
        f"<p>{'<br>'.join(map(escape, machines))}</p>"
        f"<h3>Parameters of every method</h3>{parameters}"
    )


USUAL, ALL = "usual", "all"  # methods whose class says `shortlisted`, quick ones and good ones; all methods
Methods = str | Sequence[str] | Mapping[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Series:
    """The runs of one method for some tasks; links need separate runs, trained without the held-out edges."""

    method: str
    tasks: tuple[Task, ...]
    trainings: tuple[Training, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """The checked plan of a comparison, before anything is computed."""

    graph: AttributedGraph
    labels: Targets | None  # several labels per node, or numbers, instead of the graph's classes
    tasks: tuple[Task, ...]
    series: tuple[Series, ...]
    runs: int
    notes: tuple[str, ...]

    @property
    def trainings(self) -> list[Training]:
        """The trainings of all series."""
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

    Each training runs in a separate process on one core; a script must therefore call this function below
    `if __name__ == "__main__":`. A method that fails its first run is not run again. To predict classes, methods that
    learn from labels are trained again for every split, with the labels of its training nodes only; for other tasks
    they are trained without labels.

    Parameters
    ----------
    graph
        The graph to train on and to score.
    methods
        Names of methods; or "usual", a selection of quick and of good ones; or "all", every method whose packages are
        installed; or a dict from a name to parameters that replace the method's defaults.
    tasks
        Names out of "classify", "cluster", "retrieve" and "link"; "multilabel" if nodes have several labels, "regress"
        if labels are numbers. None chooses every task that the data allows.
    labels
        Labels to predict instead of the graph's classes, in the order of its nodes: several per node, as
        `evaluate.classify_several` takes them, or an array of floats with NaN for unlabelled nodes.
    runs
        Runs of each method; run k has seed k, and the same splits and held-out edges in every method.
    dim
        Width of the vectors of every method.
    device
        Device of the methods that can train on a GPU: "cpu", "cuda" or "auto".
    jobs
        Number of trainings at a time.
    time_limit
        Seconds that one training may take, including start and scoring; a longer one counts as failed.
    folder
        Folder that keeps finished trainings, so that a stopped comparison can resume; None keeps nothing.
    progress
        Function that receives the number of finished trainings.

    Returns
    -------
    Comparison
        The ranking of each task, with scores, times and memory.

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
    """Return the plan of a comparison; errors in the arguments are raised before anything is trained."""
    if runs < 1:
        raise ParameterError(f"runs={runs}: must be at least 1")
    targets = as_targets(labels)
    chosen, lacking = choose_tasks(tasks, graph, targets)
    mark = {} if targets is None else {"digest": computing.targets_digest(targets)}
    settings, absent = _choose_methods(methods)
    if not settings:
        raise ParameterError("no method to compare; name at least one, or use 'all'")
    place = resolve(device)
    parameters = {name: _parameters(name, own, dim, place) for name, own in settings.items()}
    link = tuple(one for one in chosen if one.name == "link")  # needs a separate training
    groups = [group for group in (tuple(one for one in chosen if one not in link), link) if group]
    series = []
    for name, own in parameters.items():
        for group in groups:
            # The mark separates these scores in the store from scores on other labels.
            more = {} if group == link else mark
            scoring = {what: options | more for task in group for what, options in task.scoring.items()}
            trainings = [Training(name, own, graph.name, seed, scoring) for seed in range(runs)]
            series.append(Series(name, group, tuple(trainings)))
    return Order(graph, targets, tuple(chosen), tuple(series), runs, (*lacking, *absent))


def _choose_methods(methods: Methods) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the parameters by method, and a note on methods of "all" whose packages are missing."""
    if isinstance(methods, Mapping):
        return dict(methods), []
    names = [methods] if isinstance(methods, str) else list(methods)
    if USUAL in names:
        names = [name for name, method in METHODS.items() if method.shortlisted or name in names]
    if ALL not in names:
        return {name: {} for name in names}, []
    absent = [name for name in untrainable() if name not in names]
    note = f"left out: {', '.join(absent)}; to compare them too, pip install 'neural-brane[torch]'"
    known = [name for name in METHODS if name not in absent]
    return {name: {} for name in [*known, *names] if name != ALL}, [note] if absent else []


def _parameters(name: str, own: dict[str, Any], dim: int, device: str) -> dict[str, Any]:
    """Return the checked parameters of a method."""
    method = find_method(name)
    given = {"dim": dim} | ({"device": device} if "device" in method.parameters() else {}) | own
    if "seed" in given:
        raise ParameterError(f"{name}: run k has seed k; leave out seed={given['seed']!r}")
    for parameter, value in given.items():
        method.parameter(parameter).check(value)
    return given


@contextmanager
def open_store(graph: AttributedGraph, folder: str | Path | None) -> Iterator[Store]:
    """Open the store of a comparison, in the folder or a temporary one; the digest includes the labels."""
    with nullcontext(Path(folder) / "trainings") if folder else TemporaryDirectory() as place:
        code = fingerprint if folder else lambda method, parameters: ""  # a temporary store is never reused
        yield Store(place, graph=graph, fingerprint=code)


def run(
    order: Order, store: Store, *, jobs: int = 1, time_limit: float | None = None, progress: Reporter | None = None
) -> Comparison:
    """Compute the trainings that the store does not contain, and rank the methods."""
    if time_limit is not None and not time_limit > 0:
        raise ParameterError(f"time_limit={time_limit}: give seconds above 0, or None")
    meter = Meter(progress, len(store.missing(order.trainings)), "trainings")
    train = partial(failures_of, store=store, advance=meter.advance, labels=order.labels, jobs=jobs, timeout=time_limit)
    failures = train([one.trainings[0] for one in order.series])
    failed = [one for one in order.series if store.path(one.trainings[0]) in failures]
    meter.advance(len(store.missing(training for one in failed for training in one.trainings[1:])))
    others = [one for one in order.series if one not in failed]
    failures |= train([one.trainings[number] for number in range(1, order.runs) for one in others])
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
    """Return the standing of a method in a task; it fails if one run failed, because all methods need equal runs."""
    records, learns_labels = [], METHODS[series.method].uses_labels
    for at, training in enumerate(series.trainings):
        record = store.get(training)
        if record is None:
            which = f"run {at}: " if at else ""
            return Standing(series.method, failure=which + failures[store.path(training)], learns_labels=learns_labels)
        records.append(record)
    measures = {}
    for name in task.measures:
        values = [value for record in records if (value := task.value(record, name)) is not None]
        if values:
            measures[name] = Repeats(tuple(values))
    return Standing(
        method=series.method, measures=measures,
        ranked_by=max((name for name in task.ranked_by if name in measures), key=lambda name: measures[name].mean),
        seconds=Repeats(tuple(record["seconds"] for record in records)),
        peak_mb=max(record["peak_mb"] for record in records), learns_labels=learns_labels,
    )  # fmt: skip
