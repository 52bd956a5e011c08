"""The tables of the report, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby

from neural_brane.html.table import Head, number, settings, table, text
from neural_brane.reproduce.duels import Duel, best
from neural_brane.reproduce.plan import COLUMNS
from neural_brane.reproduce.results import Cell, Results

NONE = "-"
TUNED = "†"  # beside a score whose parameters were found by a search


def f1(value: float) -> str:
    """A score as the paper prints it, without the leading zero."""
    return f"{value:.4f}".removeprefix("0")


def signed(value: float) -> str:
    """A difference with its sign."""
    sign = "" if abs(value) < 5e-5 else "−" if value < 0 else "+"
    return sign + f1(abs(value))


@dataclass(frozen=True, slots=True)
class Place:
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


def clustering(results: Results) -> str:
    """NMI, purity and ARI of every method on every graph."""
    return _by_measure(results, "clustering", {"nmi": "NMI", "purity": "purity", "ari": "ARI"})


def links(results: Results) -> str:
    """The AUC of held-out edges: by cosine, by regression and, where a method has one, by its own score."""
    return _by_measure(results, "links", {"auc_of_cosines": "cosine", "auc": "regression", "auc_own": "own score"})


def _by_measure(results: Results, output: str, headings: dict[str, str]) -> str:
    places = [
        Place(dataset, measure, heading)
        for dataset in results.datasets(output)
        for measure, heading in headings.items()
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
            rows.append([_method(row, usual), *(_score(one, top, k in firsts) for k, (one, top) in enumerate(scores))])
    return table(heads, rows, look="scores", groups=_groups(places)) if rows else ""


def _method(row: Sequence[Cell | None], usual: int) -> str:
    """The first <td> of a row: the method, its group, and the number of its runs where they are few."""
    one = next(cell for cell in row if cell is not None)
    few = f", {one.runs} runs" if one.runs < usual else ""
    return f'<td class="text">{escape(one.heading)}<small>{escape(one.group)}{few}</small></td>'


def _groups(places: Sequence[Place]) -> str:
    parts = [(dataset, len(list(some))) for dataset, some in groupby(places, key=lambda place: place.dataset)]
    heads = "".join(
        f'<th colspan="{count}" scope="colgroup"><span>{escape(dataset)}</span></th>' for dataset, count in parts
    )
    return f'<tr class="groups"><th></th>{heads}</tr>'


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
    heads = [
        Head("dataset", "text"), Head("train"), Head("among", "text"), Head("Neural-Brane"), Head("runner-up", "text"),
        Head("its Macro-F1"), Head("difference"), Head("pairs"), Head("t"), Head("p"), Head("read", "text"),
    ]  # fmt: skip
    return table(heads, [_duel_row(duel) for duel in rows])


def _duel_row(duel: Duel) -> list[str]:
    ahead = duel.difference > 0
    reading = ("ahead" if ahead else "behind") + (", beyond chance" if duel.significant else ", could be chance")
    ours, theirs = f1(duel.ours.mean), f1(duel.rival.mean)
    return [
        text(duel.dataset),
        number(duel.train, f"{100 * (duel.train or 0):g} %"),
        text(duel.rivals),
        number(duel.ours.mean, f"<b>{ours}</b>", "best" if ahead else ""),
        text(duel.rival.heading),
        number(duel.rival.mean, f"<b>{theirs}</b>", "" if ahead else "best"),
        number(duel.difference, signed(duel.difference), "up" if ahead else "down"),
        number(min(duel.ours.runs, duel.rival.runs), str(min(duel.ours.runs, duel.rival.runs))),
        number(duel.t, NONE if duel.t is None else f"{duel.t:.2f}"),
        number(duel.p, NONE if duel.p is None else f"{duel.p:.1e}"),
        text(reading),
    ]


def costs(results: Results) -> str:
    """Seconds of a training, the machine they were measured on, and the most memory, by method and dataset."""
    cells = results.find("classification", "macro_f1", train=0.7) or results.find("clustering", "nmi")
    datasets = list(dict.fromkeys(one.dataset for one in cells))
    letters = _letters(cells)
    heads = [Head("method", "text")]
    for dataset in datasets:
        heads += [Head(f"{escape(dataset)}<small>seconds</small>", look="first"), Head("<br><small>MB</small>")]
    rows = []
    for name in dict.fromkeys(one.heading for one in cells):
        row = [text(name)]
        for dataset in datasets:
            found = [one for one in cells if (one.heading, one.dataset) == (name, dataset)]
            row += _cost(found[0], letters[found[0].machine]) if found else _no_cost()
        rows.append(row)
    legend = "<br>".join(f"<b>{letter}</b> {escape(machine)}" for machine, letter in letters.items())
    return table(heads, rows, look="scores") + f"<p>{legend}</p>"


def _letters(cells: Sequence[Cell]) -> dict[str, str]:
    """A letter for each machine that cells were measured on."""
    return {machine: chr(ord("A") + k) for k, machine in enumerate(dict.fromkeys(one.machine for one in cells))}


def _cost(one: Cell, letter: str) -> list[str]:
    device = "GPU" if one.on_gpu else "one core"
    seconds = f"{one.seconds:,.1f}<small>{letter}, {device}</small>"
    return [number(one.seconds, seconds, "first"), number(one.peak_mb, f"{one.peak_mb:,.0f}")]


def _no_cost() -> list[str]:
    return [number(None, NONE, "first"), number(None, NONE)]


def data(results: Results) -> str:
    """The sizes of each dataset, its components, and its digest."""
    names = ("name", "nodes", "edges", "attributes", "classes", "components", "largest_component", "digest")
    heads = [Head(name.replace("_", " "), "text" if name in ("name", "digest") else "number") for name in names]
    rows = [
        [text(facts["name"]), *(_count(facts.get(name)) for name in names[1:-1]), text(facts["digest"])]
        for facts in results.data.values()
    ]
    return table(heads, rows)


def _count(value: int | None) -> str:
    return number(value, NONE if value is None else f"{value:,}")


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
    heads = [
        Head("shown in", "text"), Head("dataset", "text"), Head("method", "text"), Head("varied", "text"),
        Head("measure", "text"), Head("train"), Head("mean"), Head("sd"), Head("runs"), Head("published"),
        Head("difference"), Head("seconds"), Head("MB"),
    ]  # fmt: skip
    rows = [
        [
            text(one.output), text(one.dataset), text(one.heading), text(settings(one.setting)), text(one.measure),
            number(one.train, "" if one.train is None else f"{100 * one.train:g} %"),
            number(one.mean, f"{one.mean:.4f}"), number(one.sd, f"{one.sd:.4f}"),
            number(one.runs, str(one.runs)),
            number(one.published, "" if one.published is None else f"{one.published:.4f}"),
            number(one.difference, "" if one.difference is None else f"{one.difference:+.4f}"),
            number(one.seconds, f"{one.seconds:,.1f}"), number(one.peak_mb, f"{one.peak_mb:,.0f}"),
        ]
        for one in results.cells
    ]  # fmt: skip
    return table(heads, rows)
