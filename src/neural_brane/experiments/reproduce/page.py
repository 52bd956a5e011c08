"""The report: its tables, and one page with all tables, figures and sentences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from neural_brane import __version__
from neural_brane.experiments.page import Head, Section, listing, number, settings, table, text, write_page
from neural_brane.experiments.reproduce.figures import INK
from neural_brane.experiments.reproduce.plan import COLUMNS, DEFAULT, RELEASED, counterpart
from neural_brane.experiments.reproduce.results import (
    CHANCE,
    FAILS,
    HOLDS,
    SLACK,
    UNJUDGED,
    Cell,
    Duel,
    Results,
    best,
    claims,
    duels,
    notes,
)
from neural_brane.experiments.tune import RUNS

# The tables of the report, as HTML.

NONE = "-"
TUNED = "†"  # beside a score whose parameters were found by a search


def f1(value: float) -> str:
    """A score as the paper prints it, without the leading zero."""
    return f"{value:.4f}".removeprefix("0")


def signed(value: float) -> str:
    """A difference with its sign."""
    sign = "" if abs(value) < 5e-5 else "−" if value < 0 else "+"
    return sign + f1(abs(value))


class Place(NamedTuple):
    """A column of a table of scores: a measure on a dataset, at a share of training nodes where it has one."""

    dataset: str
    measure: str
    heading: str
    train: float | None = None


def classification(results: Results) -> str:
    """The paper's table turned: a row for each method, a column for each graph and share, the best in bold."""
    cells = results.find("classification", "macro_f1")
    places = dict.fromkeys(
        Place(one.dataset, one.measure, f"{100 * (one.train or 0):g} %", one.train)
        for dataset in results.datasets("classification")
        for one in sorted(cells, key=lambda one: one.train or 0)
        if one.dataset == dataset
    )
    return _scores(results, "classification", list(places))


MEASURES = {  # by output, with their headings
    "clustering": {"nmi": "NMI", "purity": "purity", "ari": "ARI"},
    "links": {"auc_of_cosines": "cosine", "auc": "regression", "auc_own": "own score"},
}


def by_measure(results: Results, output: str) -> str:
    """A table of clustering or of links: every measure of every method on every graph."""
    places = [
        Place(dataset, measure, heading)
        for dataset in results.datasets(output)
        for measure, heading in MEASURES[output].items()
        if results.find(output, measure, dataset=dataset)
    ]
    return _scores(results, output, places)


def _scores(results: Results, output: str, places: Sequence[Place]) -> str:
    """A table of an output's scores, or nothing where it has none."""
    cells = {(one.column, one.dataset, one.measure, one.train): one for one in results.cells if one.output == output}
    there = {name for name, *_ in cells}
    columns = [[cells.get((name, place.dataset, place.measure, place.train)) for name in there] for place in places]
    bests = [best([one for one in column if one is not None]) for column in columns]
    usual = max((one.runs for one in cells.values()), default=0)
    firsts = [k for k, place in enumerate(places) if k == 0 or places[k - 1].dataset != place.dataset]
    heads = [Head("method", "text")]
    heads += [Head(escape(place.heading), look="first" if k in firsts else "") for k, place in enumerate(places)]
    rows = []
    for column in COLUMNS:
        row = [cells.get((column.name, place.dataset, place.measure, place.train)) for place in places]
        if column.name in there:
            scores = zip(row, bests, strict=True)
            first = next(cell for cell in row if cell is not None)
            few = f", {first.runs} runs" if first.runs < usual else ""
            name = f'<td class="text">{escape(first.heading)}<small>{escape(first.group)}{few}</small></td>'
            rows.append([name, *(_score(one, top, k in firsts) for k, (one, top) in enumerate(scores))])
    groups = "".join(
        f'<th colspan="{len(list(some))}" scope="colgroup"><span>{escape(dataset)}</span></th>'
        for dataset, some in groupby(places, key=lambda place: place.dataset)
    )
    top = f'<tr class="groups"><th></th>{groups}</tr>'
    return table(heads, rows, look="scores", groups=top) if rows else ""


def _score(one: Cell | None, top: Cell, starts_group: bool) -> str:
    look = "first " if starts_group else ""
    if one is None:
        return number(None, NONE, look)
    shown = f"<b>{f1(one.mean)}{TUNED if one.tuned else ''}</b><small>± {f1(one.sd)}</small>"
    if one.published is not None and one.difference is not None:
        kind = ("up" if one.difference >= 0 else "down") if one.comparable else ""
        shown += f'<small>({f1(one.published)})</small><small class="{kind}">{signed(one.difference)}</small>'
    return number(one.mean, shown, look + ("best" if one is top else ""))


def duel_table(rows: Sequence[Duel]) -> str:
    """Neural-Brane against the runner-up in every row of the table."""

    def score(cell: Cell, first: bool) -> str:
        return number(cell.mean, f"<b>{f1(cell.mean)}</b>", "best" if first else "")

    def side(one: Duel, up: str, down: str) -> str:
        return up if one.difference > 0 else down

    def chance(one: Duel) -> str:
        return "beyond chance" if one.significant else "could be chance"

    columns: list[tuple[Head, Callable[[Duel], str]]] = [
        (Head("dataset", "text"), lambda one: text(one.dataset)),
        (Head("train"), lambda one: number(one.train, f"{100 * (one.train or 0):g} %")),
        (Head("among", "text"), lambda one: text(one.rivals)),
        (Head("Neural-Brane"), lambda one: score(one.ours, one.difference > 0)),
        (Head("runner-up", "text"), lambda one: text(one.rival.heading)),
        (Head("its Macro-F1"), lambda one: score(one.rival, one.difference <= 0)),
        (Head("difference"), lambda one: number(one.difference, signed(one.difference), side(one, "up", "down"))),
        (Head("pairs"), lambda one: number(one.runs, str(one.runs))),
        (Head("t"), lambda one: number(one.t, NONE if one.t is None else f"{one.t:.2f}")),
        (Head("p"), lambda one: number(one.p, NONE if one.p is None else f"{one.p:.1e}")),
        (Head("read", "text"), lambda one: text(f"{side(one, 'ahead', 'behind')}, {chance(one)}")),
    ]
    return listing(rows, columns)


def costs(results: Results) -> str:
    """Seconds of a training, the machine they were measured on, and the most memory, by method and dataset."""
    cells = results.find("classification", "macro_f1", train=0.7) or results.find("clustering", "nmi")
    datasets = list(dict.fromkeys(one.dataset for one in cells))
    if not cells:
        return ""
    letters = {machine: chr(ord("A") + k) for k, machine in enumerate(dict.fromkeys(one.machine for one in cells))}
    heads = [Head("method", "text")]
    for dataset in datasets:
        heads += [Head(f"{escape(dataset)}<small>seconds</small>", look="first"), Head("<br><small>MB</small>")]
    rows = []
    for name in dict.fromkeys(one.heading for one in cells):
        row = [text(name)]
        for dataset in datasets:
            one = next((one for one in cells if (one.heading, one.dataset) == (name, dataset)), None)
            if one is None:
                row += [number(None, NONE, "first"), number(None, NONE)]
            else:
                where = f"{letters[one.machine]}, {'GPU' if one.on_gpu else 'one core'}"
                row.append(number(one.seconds, f"{one.seconds:,.1f}<small>{where}</small>", "first"))
                row.append(number(one.peak_mb, f"{one.peak_mb:,.0f}"))
        rows.append(row)
    legend = "<br>".join(f"<b>{letter}</b> {escape(machine)}" for machine, letter in letters.items())
    return table(heads, rows, look="scores") + f"<p>{legend}</p>"


def data(results: Results) -> str:
    """The sizes of each dataset, its components, and its digest."""
    names = ("name", "nodes", "edges", "attributes", "classes", "components", "largest_component", "digest")
    heads = [Head(name.replace("_", " "), "text" if name in ("name", "digest") else "number") for name in names]
    rows = [
        [
            text(facts["name"]),
            *(number(facts.get(name), f"{facts[name]:,}" if name in facts else NONE) for name in names[1:-1]),
            text(facts["digest"]),
        ]
        for facts in results.data.values()
    ]
    return table(heads, rows)


def parameters(results: Results) -> str:
    """The parameters that were in force, by method and dataset."""
    heads = [Head("method", "text"), Head("dataset", "text"), Head("parameters", "text")]
    seen: dict[tuple[str, str], Cell] = {}
    for one in results.find("classification", "macro_f1") + results.find("clustering", "nmi"):
        seen.setdefault((one.heading, one.dataset), one)
    rows = [
        [text(heading), text(dataset), text(settings(one.parameters), "long")]
        for (heading, dataset), one in seen.items()
    ]
    return table(heads, rows)


def everything(results: Results) -> str:
    """Every number of the results, one line each."""

    def digits(value: float | None, form: str) -> str:
        return number(value, "" if value is None else format(value, form))

    columns: list[tuple[Head, Callable[[Cell], str]]] = [
        (Head("shown in", "text"), lambda one: text(one.output)),
        (Head("dataset", "text"), lambda one: text(one.dataset)),
        (Head("method", "text"), lambda one: text(one.heading)),
        (Head("varied", "text"), lambda one: text(settings(one.setting))),
        (Head("measure", "text"), lambda one: text(one.measure)),
        (Head("train"), lambda one: number(one.train, "" if one.train is None else f"{100 * one.train:g} %")),
        (Head("mean"), lambda one: digits(one.mean, ".4f")),
        (Head("sd"), lambda one: digits(one.sd, ".4f")),
        (Head("runs"), lambda one: digits(one.runs, "")),
        (Head("published"), lambda one: digits(one.published, ".4f")),
        (Head("difference"), lambda one: digits(one.difference, "+.4f")),
        (Head("seconds"), lambda one: digits(one.seconds, ",.1f")),
        (Head("MB"), lambda one: digits(one.peak_mb, ",.0f")),
    ]
    return listing(results.cells, columns)


# The report: one page with all tables, figures and sentences.

MARKS = {HOLDS: ("holds", "✓"), FAILS: ("fails", "✗"), UNJUDGED: ("unjudged", "?")}
FIGURES = {
    "clustering": (
        "Clustering",
        "k-means with the true number of classes, vectors as they are; the mean over starts and runs, and the standard "
        "deviation over runs. A vertical line is the published figure, where the text gives one.",
    ),
    "map": (
        "Maps",
        "The vectors of the first run laid out in the plane by t-SNE on their directions, coloured by class.",
    ),
    "dimension": (
        "Dimension",
        "Neural-Brane (released recipe) at 70 % training nodes; the band is one standard deviation over runs.",
    ),
    "convergence": (
        "Convergence",
        "The mean loss of each epoch of Neural-Brane (released recipe); the band is one standard deviation over runs.",
    ),
    "pooling": (
        "Pooling",
        "Neural-Brane (released recipe) with the largest entry of a node's rows kept, or their sum; at 70 % training "
        "nodes. The whisker is one standard deviation over runs.",
    ),
}

DEFAULTS = (
    "<p>The values of the default recipe were chosen by <code>benchmarks/defaults.py --choose</code>, on the nine "
    "graphs of the datasets folder and the one that comes with the package, with seeds that nothing here is reported "
    "on. The paper's graphs are among them, with all their labels: so the default is one setting for all graphs, but "
    "not one that has never seen these.</p>"
)


LINKS = (
    "A tenth of the edges is taken out before training and told from as many pairs without one: the area under "
    "the ROC curve by the cosine of two vectors, by logistic regression on their products, and by the score that "
    "the method itself ranks by, where it has one. The paper has no such table."
)
DUELS = (
    "The released recipe beside the best of the paper's competitors, and beside the best attribute baseline. "
    "Student's paired t-test, two-sided: run k of both was scored on the same splits."
)


def write_report(results: Results, figures: dict[str, Path], path: Path, *, trainings: int) -> None:
    """Write the report; `figures` are the SVG files by name."""
    quick = (
        "This is a quick run: trainings are tiny, to try all of the code. Its figures say nothing about the methods."
    )
    runs = max((one.runs for one in results.cells), default=0)
    write_page(
        path,
        title="Neural-Brane: the paper's experiments, run again",
        lead=f"Every figure here was computed by <code>brane reproduce</code>, version {__version__}: up to {runs} "
        f"runs of each method on {', '.join(results.data)}, a run being one training scored on its own random splits. "
        "Nothing was filled in by hand; the sentences are computed too.",
        warning=quick if results.scale == "quick" else "",
        tiles=_tiles(results, trainings),
        sections=_sections(results, figures),
    )


def _sections(results: Results, figures: dict[str, Path]) -> list[Section]:
    drawn = [
        Section(
            name,
            title,
            f"<figure>{inline(figures[name])}<figcaption>{escape(caption)}</figcaption></figure>"
            + (by_measure(results, name) if name in MEASURES else ""),
        )
        for name, (title, caption) in FIGURES.items()
        if name in figures
    ]
    failed = "".join(
        f"<li>{escape(one['method'])} on {escape(one['dataset'])}, run {one['seed']}: {escape(one['failure'])}</li>"
        for one in results.failures
    )
    rivals = duels(results)
    return [
        Section("claims", "What holds and what does not", _claims(results)),
        Section("classification", "Classification", _after(_on_classes(results), classification(results))),
        Section("duels", "Neural-Brane against the runner-up", _after(DUELS, duel_table(rivals) if rivals else "")),
        *drawn,
        Section("links", "Links", _after(LINKS, by_measure(results, "links"))),
        Section("costs", "Time and memory", _after(_on_costs(results), costs(results))),
        Section("data", "Data", data(results)),
        Section("failures", "Failed", f"<ul>{failed}</ul>" if failed else ""),
        Section("defaults", "How the default's values were chosen", DEFAULTS),
        Section("method", "How this was measured", _method_line(results)),
    ]


def _after(words: str, body: str) -> str:
    """A part of the page after the words about it; nothing where it is empty."""
    return f"<p>{words}</p>{body}" if body else ""


def inline(path: Path) -> str:
    """An SVG file as an element of the page, with the page's width and colour of text."""
    svg = path.read_text(encoding="utf-8")
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(
        r' id="(?:figure|axes|patch|text|line2d|xtick|ytick|matplotlib\.axis|legend|\w*[cC]ollection)_\d+"', "", svg
    )
    width = re.search(r'<svg[^>]* width="([\d.]+)pt"', svg)
    style = f"max-width:{float(width.group(1)) * 1.25:.0f}px" if width else ""
    svg = re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)
    return svg.replace("<svg", f'<svg role="img" aria-label="{path.stem}" style="{style}"', 1)


def _tiles(results: Results, trainings: int) -> list[tuple[str, str]]:
    found = []
    ours = [one for one in results.find("classification", "macro_f1", column=RELEASED) if one.comparable]
    if ours:
        near = sum((one.difference or 0.0) >= -SLACK for one in ours)
        found.append(
            (f"{near} of {len(ours)}", f"published cells of Neural-Brane reached (no lower than {SLACK} below)")
        )
    for rivals in ("methods of the paper", "attribute baselines"):
        rows = [duel for duel in duels(results) if duel.rivals == rivals]
        if rows:
            won = sum(duel.difference > 0 for duel in rows)
            found.append((f"{won} of {len(rows)}", f"rows where Neural-Brane leads all {rivals}"))
    found += [
        (f"{one.mean:.3f}", f"NMI of {escape(one.heading)} on {escape(one.dataset)}; published {one.published:.3f}")
        for column in (RELEASED, DEFAULT)
        for one in results.find("clustering", "nmi", column=column)
        if one.comparable and one.published is not None
    ]
    spans = {(one.dataset, one.heading, str(one.setting)): one.seconds * one.runs for one in results.cells}
    seconds = sum(spans.values())
    spent = f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds / 60:,.1f} min"
    return [*found, (f"{trainings:,}", f"trainings, {spent} in all")]


def _claims(results: Results) -> str:
    parts = [(*MARKS[one.verdict], one.headline, one.claim, one.evidence) for one in claims(results)]
    parts += [("note", "i", "note", one.note, one.evidence) for one in notes(results)]
    items = [
        f'<li><span class="verdict {look}">{mark} {escape(headline)}</span>'
        f"<div><strong>{escape(statement)}</strong><p>{escape(evidence)}</p></div></li>"
        for look, mark, headline, statement, evidence in parts
    ]
    lead = (
        "<p>A claim of a difference holds where every row shows it beyond chance (paired t-test over the runs, "
        f"p &lt; {CHANCE}), and does not where one row shows the contrary beyond chance; where chance explains what is "
        "between, it cannot be judged here. In brackets: in how many rows it is shown.</p>"
    )
    return f'{lead}<ul class="claims">{"".join(items)}</ul>' if items else ""


def _on_classes(results: Results) -> str:
    other = [
        f"{name} ({counterpart(name)})" for name in results.datasets("classification") if counterpart(name) != name
    ]
    note = f" Published figures of another version of the graph have no colour: {', '.join(other)}." if other else ""
    return (
        "Macro-F1 of logistic regression (C = 1, vectors as they are), trained on a share of the nodes: the mean of "
        "the runs, ± their standard deviation; in brackets the published figure, and the difference from it. The best "
        f"of a column is bold on a tint. {TUNED}: with parameters found by a search for this graph; the others "
        f"have their defaults or a recipe.{escape(note)} A click on a heading sorts."
    )


def _on_costs(results: Results) -> str:
    gpu = (
        " On a GPU they are of a fresh process that shares it with others, and include the start of CUDA and the "
        "compilation of kernels; docs/gpu.md has the seconds of the paper's schedule alone on a GPU of its own, once "
        "all that is done."
    )
    return (
        "Seconds of one training, the mean over runs, with the machine and the device that they were measured on"
        "; the most memory that the process of a training had resident until it ended, Python and its libraries "
        f"included, the most over runs.{gpu if any(one.on_gpu for one in results.cells) else ''}"
    )


def _method_line(results: Results) -> str:
    machines = dict.fromkeys(
        f"{one.machine} ({', '.join(f'{name} {version}' for name, version in one.versions.items())})"
        for one in results.cells
    )
    tuned = "How tuned: by a search on labels that are in part those that are predicted here."
    if results.tuning:
        tuned = (
            f"How tuned: a fixed {results.tuning:.0%} of the labelled nodes of each graph is the tuning part. A grid "
            f"search trains each candidate {RUNS} times and scores it within that part; the mean decides. In every "
            "split the tuning part belongs to the training nodes, of all methods alike, so no label that a search has "
            "seen is predicted."
        )
    return (
        "<p>Run k of every method has seed k and the same random splits. Labels are never used in training.</p>"
        f"<p>{tuned} What was found is marked {TUNED}; a method without the mark has its "
        "defaults, and Neural-Brane's recipes are not tuned to a graph.</p>"
        f"<p>{'<br>'.join(map(escape, machines))}</p>"
        f"<details><summary>Parameters of every method</summary>{parameters(results)}</details>"
        f"<details><summary>All {len(results.cells):,} figures</summary>{everything(results)}</details>"
    )
