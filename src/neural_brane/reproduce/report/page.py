"""The report: one page with all tables, figures and sentences."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from neural_brane import __version__
from neural_brane.html.page import Section, write_page
from neural_brane.reproduce.claims import FAILS, HOLDS, NOTE, PARTLY, SLACK, claims
from neural_brane.reproduce.duels import duels
from neural_brane.reproduce.paper import counterpart
from neural_brane.reproduce.plan import DEFAULT, RELEASED
from neural_brane.reproduce.report import tables
from neural_brane.reproduce.report.figures import INK
from neural_brane.reproduce.results import Results

MARKS = {HOLDS: ("holds", "✓"), PARTLY: ("partly", "◐"), FAILS: ("fails", "✗"), NOTE: ("note", "i")}
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


def write_report(results: Results, figures: dict[str, Path], path: Path, *, trainings: int) -> None:
    """Write the report; `figures` are the SVG files by name."""
    quick = (
        "This is a quick run: trainings are tiny, to try all of the code. Its figures say nothing about the methods."
    )
    write_page(
        path,
        title="Neural-Brane: the paper's experiments, run again",
        lead=_lead(results),
        warning=quick if results.scale == "quick" else "",
        tiles=_tiles(results, trainings),
        sections=_sections(results, figures),
    )


def _sections(results: Results, figures: dict[str, Path]) -> list[Section]:
    drawn = [
        Section(name, title, f"<figure>{inline(figures[name])}<figcaption>{escape(caption)}</figcaption></figure>")
        for name, (title, caption) in FIGURES.items()
        if name in figures
    ]
    return [
        Section("claims", "What holds and what does not", _claims(results)),
        Section("classification", "Classification", _classification(results)),
        Section("duels", "Neural-Brane against the runner-up", _duels(results)),
        *drawn,
        Section("costs", "Time and memory", _costs(results)),
        Section("data", "Data", tables.data(results)),
        Section("failures", "Failed", _failures(results)),
        Section("method", "How this was measured", _method(results)),
    ]


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


def _lead(results: Results) -> str:
    runs = max((one.runs for one in results.cells), default=0)
    return (
        f"Every figure here was computed by <code>brane reproduce</code>, version {__version__}: up to {runs} runs of "
        f"each method on {', '.join(results.data)}, a run being one training scored on its own random splits. "
        "Nothing was filled in by hand; the sentences are computed too."
    )


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
    items = []
    for claim in claims(results):
        look, mark = MARKS[claim.verdict]
        items.append(
            f'<li><span class="verdict {look}">{mark} {escape(claim.verdict)}</span>'
            f"<div><strong>{escape(claim.claim)}</strong><p>{escape(claim.evidence)}</p></div></li>"
        )
    return f'<ul class="claims">{"".join(items)}</ul>' if items else ""


def _classification(results: Results) -> str:
    if not results.datasets("classification"):
        return ""
    parts = [
        "<p>Macro-F1 of logistic regression (C = 1, vectors as they are), trained on a share of the nodes drawn at "
        "random: the mean of the runs, ± their standard deviation; in brackets the published figure, and "
        "the difference from it. The best of a row is bold on a tint. A click on a heading sorts.</p>"
    ]
    for dataset in results.datasets("classification"):
        facts = results.data[dataset]
        other = counterpart(dataset)
        note = f"; the published figures are of another version, {other}" if other != dataset else ""
        about = f"{facts['nodes']:,} nodes, {facts['edges']:,} edges, {facts['classes']} classes{note}"
        parts.append(
            f"<h3>{escape(dataset)}<small>{escape(about)}</small></h3>{tables.classification(results, dataset)}"
        )
    return "".join(parts)


def _duels(results: Results) -> str:
    rows = duels(results)
    if not rows:
        return ""
    return (
        "<p>The released recipe beside the best of the paper's competitors, and beside the best attribute baseline. "
        "Student's paired t-test, two-sided: run k of both was scored on the same splits.</p>" + tables.duel_table(rows)
    )


def _costs(results: Results) -> str:
    if not results.find("classification", "macro_f1") and not results.find("clustering", "nmi"):
        return ""
    return (
        f"<p>Seconds of one training on one core{_on_gpus(results)}, the mean over runs; the most memory that the "
        "process of a training had resident until it ended, Python and its libraries included, the most over runs.</p>"
        + tables.costs(results)
    )


def _on_gpus(results: Results) -> str:
    """A remark on the methods that were trained on a GPU and not on one core."""
    names = dict.fromkeys(one.method for one in results.cells if one.on_gpu)
    return f" ({', '.join(names)}: on a GPU that several trainings shared)" if names else ""


def _failures(results: Results) -> str:
    items = (
        f"<li>{escape(one['method'])} on {escape(one['dataset'])}, run {one['seed']}: {escape(one['failure'])}</li>"
        for one in results.failures
    )
    return f"<ul>{''.join(items)}</ul>" if results.failures else ""


def _method(results: Results) -> str:
    machines = dict.fromkeys(
        f"{one.machine} ({', '.join(f'{name} {version}' for name, version in one.versions.items())})"
        for one in results.cells
    )
    return (
        "<p>Run k of every method has seed k and the same random splits. A method runs with the parameters that a grid "
        "search on a validation part of the training labels found for the dataset, where there are some, and with its "
        "defaults elsewhere; Neural-Brane's recipes are not tuned. Labels are never used in training.</p>"
        f"<p>{'<br>'.join(map(escape, machines))}</p>"
        f"<details><summary>Parameters of every method</summary>{tables.parameters(results)}</details>"
        f"<details><summary>All {len(results.cells):,} figures</summary>{tables.everything(results)}</details>"
    )
