"""A comparison as one page: the advice, bars and a table per task, and how all of it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from neural_brane import __version__
from neural_brane.comparison.result import (
    LEARNS_LABELS,
    LEVEL,
    Comparison,
    Standing,
    short_time,
    three_digits,
    with_spread,
)
from neural_brane.comparison.tasks import TASKS, Task
from neural_brane.html.page import Section, write_page
from neural_brane.html.table import Head, number, settings, table, text
from neural_brane.machine import machine_name

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


def _labels(comparison: Comparison) -> str:
    """What labels were used for in training."""
    if LEARNS_LABELS not in comparison.remarks:
        return "Labels are never used in training."
    return escape(f"{LEARNS_LABELS} No other method sees a label.")


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
    return (
        f"<p>Computed by <code>brane compare</code>, version {__version__}. Runs of each method: {comparison.runs}; "
        "run k has seed k, and the same splits and held-out edges in every method. A score is the mean over runs, ± "
        f"their standard deviation. {_labels(comparison)} Seconds are those of one training on one core "
        "(or on a GPU, where the parameters say so), the mean over runs; MB is the most memory that the process of a "
        "training had resident, Python and its libraries included.</p>"
        f"<p>Graph {escape(graph['name'])}, digest <code>{graph['digest']}</code>.</p>"
        f"<p>{'<br>'.join(map(escape, machines))}</p>"
        f"<h3>Parameters in force</h3>{parameters}"
    )
