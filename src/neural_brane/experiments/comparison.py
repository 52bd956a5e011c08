"""The result of a comparison: standings in every task, one sentence of advice, and a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane import __version__
from neural_brane.errors import ParameterError
from neural_brane.evaluate.labelled import Repeats
from neural_brane.experiments.page import Head, Section, number, settings, table, text, write_page
from neural_brane.experiments.store import Record, machine_name
from neural_brane.experiments.tasks import TASKS, Task
from neural_brane.files.storage import atomic
from neural_brane.methods.base import MARK

# What a comparison found: the standings of all methods in every task.

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
        """What the signs beside methods mean, where there are any."""
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
        uses.setdefault(first.name, []).append(_use(task, first, comparison.standings[task]))
    choices = ", ".join(f"{method} for {listed(some)}" for method, some in uses.items())
    return f"Take {choices}{_quicker(comparison, next(iter(best)))}."


def _use(task: str, best: Standing, standings: Sequence[Standing]) -> str:
    """What a method is best for, how good it is, and which others are level with it."""
    level = [one.name for one in standings if one.level]
    others = f", level with {level[0] if len(level) == 1 else f'{len(level)} others'}" if level else ""
    return f"{TASKS[task].about} ({TASKS[task].measures[best.ranked_by]} {with_spread(best.score)}{others})"


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
    tasks = [
        Section(name, TASKS[name].about.capitalize(), _task(TASKS[name], standings))
        for name, standings in comparison.standings.items()
    ]
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


def _task(task: Task, standings: Sequence[Standing]) -> str:
    scored = [one for one in standings if not one.failure]
    caption = f"A bar begins at {task.least:g}. The whisker is one standard deviation over runs."
    caption += f" {LEVEL}" if any(one.level for one in scored) else ""
    caption += f" {LEARNS_LABELS}" if any(one.learns_labels for one in scored) else ""
    figure = f"<figure>{bars(task, scored)}<figcaption>{escape(caption)}</figcaption></figure>" if scored else ""
    return f"<p>{escape(task.judged)}</p>{figure}<h3>All measures</h3>{_table(task, standings)}"


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
