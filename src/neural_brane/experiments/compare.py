"""Train every method on one graph, score all on the same splits, rank them, and write the page."""

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
from neural_brane.experiments.compute import (
    TASKS,
    Targets,
    Task,
    as_targets,
    choose_tasks,
    data_facts,
    failures_of,
    targets_digest,
)
from neural_brane.experiments.page import Head, Section, number, settings, table, text, write_page
from neural_brane.experiments.store import Record, Store, Training, describe_machine, fingerprint, machine_name
from neural_brane.files.storage import atomic
from neural_brane.graph import AttributedGraph
from neural_brane.methods import METHODS, find_method, untrainable
from neural_brane.methods.base import MARK
from neural_brane.methods.parameters import DIM
from neural_brane.methods.training import resolve
from neural_brane.progress import Meter, Reporter

CONFIDENCE = 0.95  # that a difference to the best beyond its interval is none of chance
ALIKE = 1e-12  # differences nearer than this are equal
NONE = Repeats(())
PAGE, JSON = "compare.html", "compare.json"  # the files of a comparison
LEVEL = (
    f"≈ stands before a method that these runs do not tell from the best: the {100 * CONFIDENCE:g} % interval of their "
    "difference (Student's t, paired over runs with the same splits) holds zero."
)


LEARNS_LABELS = (
    f"{MARK} stands behind a method that learns from labels too: classes are predicted from vectors that were learned "
    "anew for every split, with the labels of its training part alone, all else from vectors learned without labels."
)


@dataclass(frozen=True, slots=True)
class Standing:
    """A method in one task: its scores and what they cost, or why there are none."""

    method: str
    measures: dict[str, Repeats] = field(default_factory=dict)  # by measure, one value per run
    ranked_by: str = ""  # the measure that ranks it
    level: bool = False  # whether these runs cannot tell it from the best
    seconds: Repeats = NONE  # of each training
    peak_mb: float = 0.0  # the most memory of a process that trained it
    failure: str = ""
    learns_labels: bool = False  # whether classes were predicted from vectors that training labels had a part in

    @property
    def score(self) -> Repeats:
        """The scores that rank it, one per run."""
        return self.measures[self.ranked_by]

    @property
    def name(self) -> str:
        """The method's name, marked where it learns from labels."""
        return f"{self.method} {MARK}" if self.learns_labels else self.method

    @property
    def heading(self) -> str:
        """The same, marked where it is level with the best."""
        return f"≈ {self.name}" if self.level else self.name

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        if self.failure:
            return {"method": self.method, "failure": self.failure}
        return {
            "method": self.method,
            "learns_from_labels": self.learns_labels,
            "ranked_by": self.ranked_by,
            "level_with_the_best": self.level,
            "measures": {name: values.as_dict("runs") for name, values in self.measures.items()},
            "seconds": self.seconds.as_dict("runs"),
            "peak_mb": self.peak_mb,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Methods compared on one graph.

    Parameters
    ----------
    graph
        Name, sizes and digest of the graph.
    runs
        Trainings of each method for classes and clusters, and again for links; run k has seed k.
    standings
        By task, the methods from the best to the worst, and then those that failed.
    parameters
        Those in force that decide the vectors, by method.
    machines
        What the trainings ran on.
    notes
        What was left out, and why.
    """

    graph: Record
    runs: int
    standings: dict[str, tuple[Standing, ...]]
    parameters: dict[str, Record]
    machines: tuple[Record, ...]
    notes: tuple[str, ...] = ()

    @property
    def remarks(self) -> list[str]:
        """Explain the signs that stand beside methods."""
        shown = [one for standings in self.standings.values() for one in standings]
        signs = {LEVEL: any(one.level for one in shown), LEARNS_LABELS: any(one.learns_labels for one in shown)}
        return [text for text, found in signs.items() if found]

    def best(self, task: str) -> Standing | None:
        """The first of a task; None where every method failed."""
        if task not in self.standings:
            raise ParameterError(f"task '{task}' was not compared; there are {', '.join(self.standings)}")
        first = self.standings[task][0]
        return None if first.failure else first

    @property
    def advice(self) -> str:
        """Which method to take, in a sentence."""
        return advise(self)

    def as_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "graph": self.graph,
            "runs": self.runs,
            "advice": self.advice,
            "tasks": {
                name: {
                    "judged": TASKS[name].judged,
                    "measures": TASKS[name].measures,
                    "standings": [one.as_dict() for one in standings],
                }
                for name, standings in self.standings.items()
            },
            "parameters": self.parameters,
            "machines": list(self.machines),
            "notes": list(self.notes),
        }

    def save(self, folder: str | Path) -> None:
        """Write compare.html, one page that needs nothing else, and compare.json."""
        with atomic(Path(folder) / JSON) as draft:
            draft.write_text(json.dumps(self.as_dict(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        write_comparison(self, Path(folder) / PAGE)


def rank(standings: Sequence[Standing]) -> tuple[Standing, ...]:
    """From the best to the worst, then those that failed; those level with the best are marked."""
    scored = sorted((one for one in standings if not one.failure), key=lambda one: -one.score.mean)
    marked = [replace(one, level=one is not scored[0] and level(scored[0].score, one.score)) for one in scored]
    return (*marked, *(one for one in standings if one.failure))


def level(best: Repeats, other: Repeats) -> bool:
    """Whether the interval of the mean paired difference holds zero; False where one run says nothing of chance.

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
    """Student's paired t-test, two-sided: t and p, over the runs that both have; run k of both has the same splits.

    Both are None where there are fewer than two pairs, or where all differences are equal.

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
    """A score without the zero before the point.

    >>> three_digits(0.8137), three_digits(1.0)
    ('.814', '1.000')
    """
    return f"{value:.3f}".removeprefix("0")


def with_spread(values: Repeats) -> str:
    """The mean and, where there are several runs, their standard deviation.

    >>> with_spread(Repeats((0.5, 0.7))), with_spread(Repeats((0.5,)))
    ('.600 ± .141', '.500')
    """
    mean = three_digits(values.mean)
    return f"{mean} ± {three_digits(values.sd)}" if len(values.values) > 1 else mean


def short_time(seconds: float) -> str:
    """Seconds with as many digits as matter.

    >>> short_time(0.0123), short_time(75.31)
    ('0.01', '75.3')
    """
    return f"{seconds:,.1f}" if seconds >= 10 else f"{seconds:.2f}"


# The advice at the end of a comparison: one sentence, computed.

NEAR = 0.01  # a score so little below the best is as good for most uses
QUICKER = 0.5  # of the best one's time: what is worth a word


def advise(comparison: Comparison) -> str:
    """Which method to take for what, and which one is nearly as good in much less time."""
    best = {task: first for task in comparison.standings if (first := comparison.best(task)) is not None}
    if not best:
        (first, *_), *_ = comparison.standings.values()
        return f"No method could be trained; the first says: {first.failure}."
    uses: dict[str, list[str]] = {}
    for task, first in best.items():
        level = [one.name for one in comparison.standings[task] if one.level]
        others = f", level with {level[0] if len(level) == 1 else f'{len(level)} others'}" if level else ""
        measured = f"{TASKS[task].measures[first.ranked_by]} {with_spread(first.score)}"
        uses.setdefault(first.name, []).append(f"{TASKS[task].about} ({measured}{others})")
    choices = ", ".join(f"{method} for {listed(some)}" for method, some in uses.items())
    return f"Take {choices}{_quicker(comparison, next(iter(best)))}."


def _quicker(comparison: Comparison, task: str) -> str:
    """The fastest method near the best one of a task, if it takes much less time."""
    best, *others = [one for one in comparison.standings[task] if not one.failure]
    near = [one for one in others if one.score.mean >= best.score.mean - NEAR]
    fastest = min(near, key=lambda one: one.seconds.mean, default=None)
    if fastest is None or fastest.seconds.mean > QUICKER * best.seconds.mean:
        return ""
    times = f"{short_time(fastest.seconds.mean)} s instead of {short_time(best.seconds.mean)} s"
    return f"; {fastest.name} is within {NEAR} of the best for {TASKS[task].about} in {times}"


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence in a row.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


# A comparison as one page: the advice, bars and a table per task, and how all of it was measured.

ROW, BAR = 44, 14  # pixels from one method to the next, and of a bar's height


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write the page."""
    tasks = []
    for name, standings in comparison.standings.items():
        task, scored = TASKS[name], [one for one in standings if not one.failure]
        caption = f"A bar begins at {task.least:g}. The whisker is one standard deviation over runs."
        caption += f" {LEVEL}" if any(one.level for one in scored) else ""
        caption += f" {LEARNS_LABELS}" if any(one.learns_labels for one in scored) else ""
        figure = f"<figure>{bars(task, scored)}<figcaption>{escape(caption)}</figcaption></figure>" if scored else ""
        body = f"<p>{escape(task.judged)}</p>{figure}<h3>All measures</h3>{_table(task, standings)}"
        tasks.append(Section(name, task.about.capitalize(), body))
    write_page(
        path,
        title=f"{comparison.graph['name']}: which method is best here",
        lead=f"<strong>{escape(comparison.advice)}</strong>",
        warning=" · ".join(comparison.notes),
        tiles=_tiles(comparison),
        sections=[*tasks, Section("method", "How this was measured", _method(comparison))],
    )


def _tiles(comparison: Comparison) -> list[tuple[str, str]]:
    """The best of every task, and the graph's size."""
    tiles = []
    for name in comparison.standings:
        if (best := comparison.best(name)) is not None:
            what = f"{TASKS[name].measures[best.ranked_by]} of {best.name}, best for {TASKS[name].about}"
            tiles.append((three_digits(best.score.mean), escape(what)))
    graph = comparison.graph
    size = f"nodes, {graph['edges']:,} edges, {graph['attributes']:,} attributes, {graph['classes']:,} classes"
    return [*tiles, (f"{graph['nodes']:,}", size)]


def bars(task: Task, standings: Sequence[Standing]) -> str:
    """A bar per method as SVG, as wide as the page allows: lengths are in percent, so text keeps its size."""
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
        labels = escape(f"{LEARNS_LABELS} No other method sees a label.")
    return (
        f"<p>Computed by <code>brane compare</code>, version {__version__}. Runs of each method: {comparison.runs}; "
        "run k has seed k, and the same splits and held-out edges in every method. A score is the mean over runs, ± "
        f"their standard deviation. {labels} Seconds are those of one training on one core "
        "(or on a GPU, where the parameters say so), the mean over runs; MB is the most memory that the process of a "
        "training had resident, Python and its libraries included.</p>"
        f"<p>Graph {escape(graph['name'])}, digest <code>{graph['digest']}</code>.</p>"
        f"<p>{'<br>'.join(map(escape, machines))}</p>"
        f"<h3>Parameters in force</h3>{parameters}"
    )


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
    link = tuple(one for one in chosen if one.name == "link")  # a training of its own serves it
    groups = [group for group in (tuple(one for one in chosen if one not in link), link) if group]
    series = []
    for name, own in parameters.items():
        for group in groups:
            # The mark keeps scores by other labels apart in the store.
            more = {} if group == link else mark
            scoring = {what: options | more for task in group for what, options in task.scoring.items()}
            trainings = [Training(name, own, graph.name, seed, scoring) for seed in range(runs)]
            series.append(Series(name, group, tuple(trainings)))
    return Order(graph, targets, tuple(chosen), tuple(series), runs, (*lacking, *absent))


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
        method=series.method,
        measures=measures,
        ranked_by=max((name for name in task.ranked_by if name in measures), key=lambda name: measures[name].mean),
        seconds=Repeats(tuple(record["seconds"] for record in records)),
        peak_mb=max(record["peak_mb"] for record in records),
        learns_labels=learns_labels,
    )
