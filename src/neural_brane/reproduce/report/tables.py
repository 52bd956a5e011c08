"""The tables of the report, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

from neural_brane.html.table import Head, number, settings, table, text
from neural_brane.reproduce.duels import Duel, best
from neural_brane.reproduce.plan import COLUMNS, Column
from neural_brane.reproduce.results import Cell, Results

NONE = "-"


def f1(value: float) -> str:
    """A score as the paper prints it, without the leading zero."""
    return f"{value:.4f}".removeprefix("0")


def signed(value: float) -> str:
    """A difference with its sign."""
    sign = "" if abs(value) < 5e-5 else "−" if value < 0 else "+"
    return sign + f1(abs(value))


def classification(results: Results, dataset: str) -> str:
    """The paper's table for one dataset: a row for each share, a column for each method, the best in bold."""
    cells = results.find("classification", "macro_f1", dataset=dataset)
    there = {one.column for one in cells}
    columns = [column for column in COLUMNS if column.name in there]
    firsts = {next(group).name for _, group in groupby(columns, key=lambda column: column.group)}
    runs = {one.column: one.runs for one in cells}
    usual = max(runs.values())
    heads = [Head("train", look="first")]
    for column in columns:
        few = f"<small>{runs[column.name]} runs</small>" if runs[column.name] < usual else ""
        heads.append(Head(escape(column.heading) + few, look="first" if column.name in firsts else ""))
    rows = []
    for share in sorted({one.train for one in cells if one.train is not None}):
        row = {one.column: one for one in cells if one.train == share}
        first = best(list(row.values()))
        shown = [_score(row.get(column.name), first, column.name in firsts) for column in columns]
        rows.append([number(share, f"{100 * share:g} %"), *shown])
    return table(heads, rows, look="scores", groups=_groups(columns))


def _groups(columns: Sequence[Column]) -> str:
    parts = [(group, len(list(some))) for group, some in groupby(columns, key=lambda column: column.group)]
    heads = "".join(
        f'<th colspan="{count}" scope="colgroup"><span>{escape(group)}</span></th>' for group, count in parts
    )
    return f'<tr class="groups"><th></th>{heads}</tr>'


def _score(one: Cell | None, first: Cell, starts_group: bool) -> str:
    look = "first " if starts_group else ""
    if one is None:
        return number(None, "failed", look)
    shown = f"<b>{f1(one.mean)}</b><small>± {f1(one.sd)}</small>"
    if one.published is not None and one.difference is not None:
        kind = ("up" if one.difference >= 0 else "down") if one.comparable else ""
        shown += f'<small>({f1(one.published)})</small><small class="{kind}">{signed(one.difference)}</small>'
    return number(one.mean, shown, look + ("best" if one is first else ""))


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
        number(duel.train, f"{100 * duel.train:g} %"),
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
    """Seconds of a training and the most memory of its process, by method and dataset."""
    cells = results.find("classification", "macro_f1", train=0.7) or results.find("clustering", "nmi")
    datasets = list(dict.fromkeys(one.dataset for one in cells))
    heads = [Head("method", "text")]
    for dataset in datasets:
        heads += [Head(f"{escape(dataset)}<small>seconds</small>", look="first"), Head("<br><small>MB</small>")]
    rows = []
    for name in dict.fromkeys(one.heading for one in cells):
        row = [text(name)]
        for dataset in datasets:
            found = [one for one in cells if (one.heading, one.dataset) == (name, dataset)]
            row.append(
                number(found[0].seconds, f"{found[0].seconds:,.1f}", "first") if found else number(None, NONE, "first")
            )
            row.append(number(found[0].peak_mb, f"{found[0].peak_mb:,.0f}") if found else number(None, NONE))
        rows.append(row)
    return table(heads, rows, look="scores")


def data(results: Results) -> str:
    """The sizes of each dataset, and its digest."""
    names = ("name", "nodes", "edges", "attributes", "classes", "digest")
    heads = [Head(name, "text" if name in ("name", "digest") else "number") for name in names]
    rows = [
        [text(facts["name"]), *(number(facts[name], f"{facts[name]:,}") for name in names[1:-1]), text(facts["digest"])]
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
