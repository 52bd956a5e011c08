"""The report: one page with all tables, figures and sentences."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from neural_brane import __version__
from neural_brane.html.page import Section, write_page
from neural_brane.reproduce.claims import FAILS, HOLDS, SLACK, UNJUDGED, claims
from neural_brane.reproduce.duels import CHANCE, duels
from neural_brane.reproduce.notes import notes
from neural_brane.reproduce.paper import counterpart
from neural_brane.reproduce.plan import DEFAULT, RELEASED
from neural_brane.reproduce.report import tables
from neural_brane.reproduce.report.figures import INK
from neural_brane.reproduce.results import Results
from neural_brane.tune.search import RUNS

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
        Section(
            name,
            title,
            f"<figure>{inline(figures[name])}<figcaption>{escape(caption)}</figcaption></figure>"
            + (tables.clustering(results) if name == "clustering" else ""),
        )
        for name, (title, caption) in FIGURES.items()
        if name in figures
    ]
    return [
        Section("claims", "What holds and what does not", _claims(results)),
        Section("classification", "Classification", _classification(results)),
        Section("duels", "Neural-Brane against the runner-up", _duels(results)),
        *drawn,
        Section("links", "Links", _links(results)),
        Section("costs", "Time and memory", _costs(results)),
        Section("data", "Data", tables.data(results)),
        Section("failures", "Failed", _failures(results)),
        Section("defaults", "How the default's values were chosen", DEFAULTS),
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
    items = [_item(*MARKS[claim.verdict], claim.headline, claim.claim, claim.evidence) for claim in claims(results)] + [
        _item("note", "i", "note", note.note, note.evidence) for note in notes(results)
    ]
    lead = (
        "<p>A claim of a difference holds where every row shows it beyond chance (paired t-test over the runs, "
        f"p &lt; {CHANCE}), and does not where one row shows the contrary beyond chance; where chance explains what is "
        "between, it cannot be judged here. In brackets: in how many rows it is shown.</p>"
    )
    return f'{lead}<ul class="claims">{"".join(items)}</ul>' if items else ""


def _item(look: str, mark: str, headline: str, statement: str, evidence: str) -> str:
    return (
        f'<li><span class="verdict {look}">{mark} {escape(headline)}</span>'
        f"<div><strong>{escape(statement)}</strong><p>{escape(evidence)}</p></div></li>"
    )


def _classification(results: Results) -> str:
    datasets = results.datasets("classification")
    if not datasets:
        return ""
    other = [f"{name} ({counterpart(name)})" for name in datasets if counterpart(name) != name]
    note = f" Published figures of another version of the graph have no colour: {', '.join(other)}." if other else ""
    return (
        "<p>Macro-F1 of logistic regression (C = 1, vectors as they are), trained on a share of the nodes: the mean of "
        "the runs, ± their standard deviation; in brackets the published figure, and the difference from it. The best "
        f"of a column is bold on a tint. {tables.TUNED}: with parameters found by a search for this graph; the others "
        f"have their defaults or a recipe.{escape(note)} A click on a heading sorts.</p>"
    ) + tables.classification(results)


def _links(results: Results) -> str:
    if not results.datasets("links"):
        return ""
    return (
        "<p>A tenth of the edges is taken out before training and told from as many pairs without one: the area under "
        "the ROC curve by the cosine of two vectors, by logistic regression on their products, and by the score that "
        "the method itself ranks by, where it has one. The paper has no such table.</p>"
    ) + tables.links(results)


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
    gpu = (
        " On a GPU they are of a fresh process that shares it with others, and include the start of CUDA and the "
        "compilation of kernels; docs/gpu.md has the seconds of the paper's schedule alone on a GPU of its own, once "
        "all that is done."
    )
    return (
        "<p>Seconds of one training, the mean over runs, with the machine and the device that they were measured on"
        "; the most memory that the process of a training had resident until it ended, Python and its libraries "
        f"included, the most over runs.{gpu if any(one.on_gpu for one in results.cells) else ''}</p>"
        + tables.costs(results)
    )


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
        "<p>Run k of every method has seed k and the same random splits. Labels are never used in training.</p>"
        f"<p>{_how_tuned(results)} What was found is marked {tables.TUNED}; a method without the mark has its "
        "defaults, and Neural-Brane's recipes are not tuned to a graph.</p>"
        f"<p>{'<br>'.join(map(escape, machines))}</p>"
        f"<details><summary>Parameters of every method</summary>{tables.parameters(results)}</details>"
        f"<details><summary>All {len(results.cells):,} figures</summary>{tables.everything(results)}</details>"
    )


def _how_tuned(results: Results) -> str:
    """What a search has seen of the labels that are predicted here."""
    if not results.tuning:
        return "How tuned: by a search on labels that are in part those that are predicted here."
    return (
        f"How tuned: a fixed {results.tuning:.0%} of the labelled nodes of each graph is the tuning part. A grid "
        f"search trains each candidate {RUNS} times and scores it within that part; the mean decides. In every split "
        "the tuning part belongs to the training nodes, of all methods alike, so no label that a search has seen is "
        "predicted."
    )
