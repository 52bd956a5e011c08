"""Write the report of `brane reproduce`: one HTML page with its tables, figures and sentences."""

import re
from collections.abc import Callable, Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from neural_brane import __version__
from neural_brane.experiments.page import CHOSEN, Head, Section, listing, number, settings, table, text, write_page
from neural_brane.experiments.reproduce import results as judged
from neural_brane.experiments.reproduce.figures import INK
from neural_brane.experiments.reproduce.plan import COLUMNS, DEFAULT, RELEASED, counterpart
from neural_brane.experiments.reproduce.results import FAILS, HOLDS, INCONCLUSIVE, SLACK, Cell, Duel, Results, duels
from neural_brane.experiments.tune import RUNS

NONE = "-"
TUNED = "†"  # marks scores with tuned parameters


def f1(value: float) -> str:
    """Return a score as the paper prints it, without the leading zero."""
    return f"{value:.4f}".removeprefix("0")


def signed(value: float) -> str:
    """Return a difference with its sign."""
    sign = "" if abs(value) < 5e-5 else "−" if value < 0 else "+"
    return sign + f1(abs(value))


MEASURES = {  # output: {measure: heading}; "" stands for the share of training nodes
    "classification": {"macro_f1": ""},
    "clustering": {"nmi": "NMI", "purity": "purity", "ari": "ARI"},
    "links": {"auc_of_cosines": "cosine", "scorer_auc": "link scorer", "auc": "regression"},
}


def score_table(results: Results, output: str) -> str:
    """Return an output's table, or "": a row per method, a column per graph and share of training nodes or measure."""
    cells = {(one.column, one.dataset, one.measure, one.train): one for one in results.cells if one.output == output}
    there = {name for name, *_ in cells}
    found = [results.find(output, name, dataset=one) for one in results.datasets(output) for name in MEASURES[output]]
    places = list(dict.fromkeys((one.dataset, one.measure, one.train) for some in found for one in some))
    bests = [judged.best([cells[name, *place] for name in there if (name, *place) in cells]) for place in places]
    usual = max((one.runs for one in cells.values()), default=0)
    firsts = [k for k, place in enumerate(places) if k == 0 or places[k - 1][0] != place[0]]
    heads = [Head("method", "text")]
    for k, (_, measure, train) in enumerate(places):
        heading = MEASURES[output][measure] or f"{100 * (train or 0):g} %"
        heads.append(Head(heading, look="first" if k in firsts else ""))
    rows = []
    for column in COLUMNS:
        row = [cells.get((column.name, *place)) for place in places]
        if column.name in there:
            scores = zip(row, bests, strict=True)
            first = next(cell for cell in row if cell is not None)
            few = f", {first.runs} runs" if first.runs < usual else ""
            name = f'<td class="text">{escape(first.heading)}<small>{escape(first.group)}{few}</small></td>'
            rows.append([name, *(_score(one, top, k in firsts) for k, (one, top) in enumerate(scores))])
    groups = "".join(
        f'<th colspan="{len(list(some))}" scope="colgroup"><span>{escape(dataset)}</span></th>'
        for dataset, some in groupby(place[0] for place in places)
    )
    top = f'<tr class="groups"><th></th>{groups}</tr>'
    note = f"<p>{escape(CHOSEN)}</p>" if DEFAULT in there else ""
    return table(heads, rows, look="scores", groups=top) + note if rows else ""


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
    """Return the table that compares Neural-Brane with the runner-up, one row per dataset and share."""

    def score(cell: Cell, first: bool) -> str:
        return number(cell.mean, f"<b>{f1(cell.mean)}</b>", "best" if first else "")

    def side(one: Duel, up: str, down: str) -> str:
        return up if one.difference > 0 else down

    def chance(one: Duel) -> str:
        return "significant" if one.significant else "not significant"

    columns: list[tuple[Head, Callable[[Duel], str]]] = [
        (Head("dataset", "text"), lambda one: text(one.dataset)),
        (Head("train"), lambda one: number(one.train, f"{100 * (one.train or 0):g} %")),
        (Head("rivals", "text"), lambda one: text(one.rivals)),
        (Head("Neural-Brane"), lambda one: score(one.ours, one.difference > 0)),
        (Head("runner-up", "text"), lambda one: text(one.rival.heading)),
        (Head("runner-up's score"), lambda one: score(one.rival, one.difference <= 0)),
        (Head("difference"), lambda one: number(one.difference, signed(one.difference), side(one, "up", "down"))),
        (Head("pairs"), lambda one: number(one.runs, str(one.runs))),
        (Head("t"), lambda one: number(one.t, NONE if one.t is None else f"{one.t:.2f}")),
        (Head("p"), lambda one: number(one.p, NONE if one.p is None else f"{one.p:.1e}")),
        (Head("result", "text"), lambda one: text(f"{side(one, 'ahead', 'behind')}, {chance(one)}")),
    ]
    return listing(rows, columns)


def costs(results: Results) -> str:
    """Return the table of seconds per training, with its machine, and of peak memory, by method and dataset."""
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
    """Return the table of the datasets: sizes, connected components and digest."""
    names = ("name", "nodes", "edges", "attributes", "classes", "components", "largest_component", "digest")
    heads = [Head(name.replace("_", " "), "text" if name in ("name", "digest") else "number") for name in names]
    rows = []
    for facts in results.data.values():
        counts = (number(facts.get(name), f"{facts[name]:,}" if name in facts else NONE) for name in names[1:-1])
        rows.append([text(facts["name"]), *counts, text(facts["digest"])])
    return table(heads, rows)


def parameters(results: Results) -> str:
    """Return the table of the parameters used, by method and dataset."""
    heads = [Head("method", "text"), Head("dataset", "text"), Head("parameters", "text")]
    seen: dict[tuple[str, str], Cell] = {}
    for one in results.find("classification", "macro_f1") + results.find("clustering", "nmi"):
        seen.setdefault((one.heading, one.dataset), one)
    rows = [[text(name), text(dataset), text(settings(it.parameters), "long")] for (name, dataset), it in seen.items()]
    return table(heads, rows)


def everything(results: Results) -> str:
    """Return the table of all results, one row per number."""

    def digits(value: float | None, form: str) -> str:
        return number(value, "" if value is None else format(value, form))

    columns: list[tuple[Head, Callable[[Cell], str]]] = [
        (Head("section", "text"), lambda one: text(one.output)),
        (Head("dataset", "text"), lambda one: text(one.dataset)),
        (Head("method", "text"), lambda one: text(one.heading)),
        (Head("varied parameters", "text"), lambda one: text(settings(one.setting))),
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


MARKS = {HOLDS: ("holds", "✓"), FAILS: ("fails", "✗"), INCONCLUSIVE: ("inconclusive", "?")}
FIGURES = {
    "clustering": (
        "Clustering",
        "k-means on the unscaled vectors, with the true number of classes. Scores are means over runs; ± is the "
        "standard deviation. A vertical line marks the published score, if the paper prints one.",
    ),
    "map": (
        "Maps",
        "The vectors of the first run in two dimensions, by t-SNE on the normalised vectors. Colours are classes.",
    ),
    "dimension": (
        "Dimension",
        "Macro-F1 of Neural-Brane (released recipe) by dimension, at 70 % training nodes. The band is one standard "
        "deviation over runs.",
    ),
    "convergence": (
        "Convergence",
        "The mean loss of Neural-Brane (released recipe) by epoch. The band is one standard deviation over runs.",
    ),
    "pooling": (
        "Pooling",
        "Macro-F1 of Neural-Brane (released recipe) with max pooling and with sum pooling, at 70 % training nodes. "
        "The whisker is one standard deviation over runs.",
    ),
}

DEFAULTS = (
    "<p><code>benchmarks/defaults.py --choose</code> chose the values of the default recipe, on the nine published "
    "graphs and the one in the package. It used other seeds than this report. The paper's graphs are among these "
    "graphs, and the choice used all their labels. So the default is one setting for all graphs, but the graphs of "
    "this report influenced it.</p>"
)

LINKS = (
    "A tenth of the edges is removed before training. The test is to tell these edges from as many pairs of nodes "
    "without an edge; the table shows the area under the ROC curve for each score that ranks the pairs. The paper has "
    "no such table."
)
DUELS = (
    "The released recipe against the best of the paper's competitors, and against the best attribute baseline. "
    "The test is Student's paired t-test, two-sided; run k of both methods was scored on the same splits."
)


def write_report(results: Results, figures: dict[str, Path], path: Path, *, trainings: int) -> None:
    """Write the report; `figures` are the SVG files by name."""
    quick = "This is a quick run: its trainings are tiny and only test the code; its scores mean nothing."
    runs = max((one.runs for one in results.cells), default=0)
    write_page(
        path,
        title="Neural-Brane: the paper's experiments, repeated",
        lead=f"<code>brane reproduce</code>, version {__version__}, computed every number and sentence of this page, "
        f"from up to {runs} runs of each method on {', '.join(results.data)}. A run is one training, scored on its "
        "own random splits.",
        warning=quick if results.scale == "quick" else "",
        tiles=_tiles(results, trainings),
        sections=_sections(results, figures),
    )


def _sections(results: Results, figures: dict[str, Path]) -> list[Section]:
    drawn = []
    for name, (title, caption) in ((name, words) for name, words in FIGURES.items() if name in figures):
        figure = f"<figure>{inline(figures[name])}<figcaption>{escape(caption)}</figcaption></figure>"
        drawn.append(Section(name, title, figure + (score_table(results, name) if name in MEASURES else "")))
    failed = "".join(
        f"<li>{escape(one['method'])} on {escape(one['dataset'])}, run {one['seed']}: {escape(one['failure'])}</li>"
        for one in results.failures
    )
    rivals, classes = duels(results), score_table(results, "classification")
    return [
        Section("claims", "Which claims of the paper hold", _claims(results)),
        Section("classification", "Classification", _after(_on_classes(results), classes)),
        Section("duels", "Neural-Brane against the runner-up", _after(DUELS, duel_table(rivals) if rivals else "")),
        *drawn,
        Section("links", "Links", _after(LINKS, score_table(results, "links"))),
        Section("costs", "Time and memory", _after(_on_costs(results), costs(results))),
        Section("data", "Data", data(results)),
        Section("failures", "Failed trainings", f"<ul>{failed}</ul>" if failed else ""),
        Section("defaults", "How the default values were chosen", DEFAULTS),
        Section("method", "How the scores were measured", _method_line(results)),
    ]


def _after(words: str, body: str) -> str:
    """Return a body with an introduction before it, or an empty text if the body is empty."""
    return f"<p>{words}</p>{body}" if body else ""


def inline(path: Path) -> str:
    """Return an SVG file as an element of the page, with the page's width and text colour."""
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
        found.append((f"{near} of {len(ours)}", f"published scores of Neural-Brane reached (at most {SLACK} below)"))
    for rivals in ("methods of the paper", "attribute baselines"):
        rows = [duel for duel in duels(results) if duel.rivals == rivals]
        if rows:
            won = sum(duel.difference > 0 for duel in rows)
            found.append((f"{won} of {len(rows)}", f"rows in which Neural-Brane is ahead of all {rivals}"))
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
    parts = [(*MARKS[one.verdict], one.headline, one.claim, one.evidence) for one in judged.claims(results)]
    parts += [("note", "i", "note", one.note, one.evidence) for one in judged.notes(results)]
    items = [
        f'<li><span class="verdict {look}">{mark} {escape(headline)}</span>'
        f"<div><strong>{escape(statement)}</strong><p>{escape(evidence)}</p></div></li>"
        for look, mark, headline, statement, evidence in parts
    ]
    lead = (
        "<p>A claimed difference holds if it is significant in every row (paired t-test over the runs, "
        f"p &lt; {judged.SIGNIFICANCE}). It does not hold if the opposite is significant in at least one row. "
        "Otherwise the results are inconclusive. The brackets count the rows that show the claim significantly.</p>"
    )
    return f'{lead}<ul class="claims">{"".join(items)}</ul>' if items else ""


def _on_classes(results: Results) -> str:
    other = [f"{one} ({counterpart(one)})" for one in results.datasets("classification") if counterpart(one) != one]
    note = f" The difference has no colour if the paper used another version of the graph: {', '.join(other)}."
    return (
        "Macro-F1 of logistic regression (C = 1, vectors as they are, as in the paper), trained on a share of the "
        "nodes: the mean over runs ± the standard deviation. In brackets is the published score, and below it the "
        "difference from it. The best score of each column is highlighted. "
        f"{TUNED} marks parameters that a search found for this graph; "
        f"other methods use their defaults or a recipe.{escape(note) if other else ''} Click a heading to sort."
    )


def _on_costs(results: Results) -> str:
    gpu = (
        " Each training on a GPU ran in a new process that shared the GPU with others, so its seconds include "
        "starting CUDA and compiling kernels; docs/gpu.md has times without both, on a GPU that nothing else used."
    )
    return (
        "Mean seconds of one training over the runs, with the machine and the device; and the peak resident memory of "
        "its process, including Python and its libraries, as the largest value over the runs."
        f"{gpu if any(one.on_gpu for one in results.cells) else ''}"
    )


def _method_line(results: Results) -> str:
    machines = dict.fromkeys(
        f"{one.machine} ({', '.join(f'{name} {version}' for name, version in one.versions.items())})"
        for one in results.cells
    )
    tuned = "Parameters were tuned by a search that used some of the labels that are predicted here."
    if results.tuning:
        tuned = (
            f"Parameters were tuned on a fixed {results.tuning:.0%} of the labelled nodes of each graph, the tuning "
            f"part. A grid search trained each candidate {RUNS} times, scored it within that part and kept the best "
            "mean. In every split and for every method the tuning part belongs to the training nodes, so no predicted "
            "label was used in a search."
        )
    return (
        "<p>Run k of every method has seed k and the same random splits. Labels are never used in training.</p>"
        f"<p>{tuned} Tuned methods are marked {TUNED}; the others have their defaults. Neural-Brane's recipes "
        f"are the same for every graph. {CHOSEN}</p>"
        f"<p>{'<br>'.join(map(escape, machines))}</p>"
        f"<details><summary>Parameters of every method</summary>{parameters(results)}</details>"
        f"<details><summary>All {len(results.cells):,} numbers</summary>{everything(results)}</details>"
    )
