"""Write the tables of docs/ten-graphs.md: every method on ten graphs, and beside the scores that others published.

python scripts/ten_graphs.py    put the tables between the page's markers
"""

from __future__ import annotations

import json
from statistics import fmean

from methods_table import ROOT, put

from neural_brane import METHODS
from neural_brane.files.storage import atomic
from neural_brane.methods.base import MARK

PAGE = ROOT / "docs" / "ten-graphs.md"
RESULTS = ROOT / "benchmarks" / "results"
SCORES = {"macro_f1": "Macro-F1", "nmi": "NMI", "link": "AUC of links"}
COSTS = {"processor_seconds": "seconds", "peak_mb": "MB"}
MEASURES = {"micro_f1": "Micro-F1", "macro_f1": "Macro-F1"}
DEFAULT = "neural-brane"
AHEAD = 0.01  # a method is ahead if its score exceeds the default's by more

Cells = dict[str, dict[str, dict]]  # graph: {method: values of its runs}


def tables(cells: Cells) -> dict[str, str]:
    """Return a table per score and cost, and the list of methods ahead of the default, by marker."""
    found = {measure: table(cells, measure) for measure in (*SCORES, *COSTS)}
    return found | {"ahead": "\n".join(f"- {line}" for line in ahead(cells))}


def table(cells: Cells, measure: str) -> str:
    """Return one row per method and one column per graph; the best score of each graph is bold."""
    names = [name for name in METHODS if any(name in row for row in cells.values())]
    best = {graph: max(map(rounded, values(row, measure).values())) for graph, row in cells.items()}
    lines = [f"| method | {' | '.join(cells)} |", "| --- |" + " ---: |" * len(cells)]
    for name in names:
        shown = [entry(row.get(name, {}), measure, best[graph]) for graph, row in cells.items()]
        lines.append(f"| `{name}`{f' {MARK}' if METHODS[name].uses_labels else ''} | {' | '.join(shown)} |")
    return "\n".join(lines)


def values(row: dict[str, dict], measure: str) -> dict[str, float]:
    """Return the means of a measure on one graph by method, without trainings that did not finish."""
    return {name: fmean(cell[measure]) for name, cell in row.items() if measure in cell}


def entry(cell: dict, measure: str, best: float) -> str:
    """Return a number of a table: a dash if the training did not finish, empty if there was none."""
    if measure not in cell:
        return "-" if cell else ""
    value = fmean(cell[measure])
    if measure in COSTS:
        return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"
    shown = f"{value:.3f}".removeprefix("0")
    return f"**{shown}**" if rounded(value) == best else shown


def rounded(value: float) -> float:
    """Return a value with the digits that the tables show."""
    return round(value, 3)


def ahead(cells: Cells) -> list[str]:
    """Return one sentence per score that names the methods ahead of the default."""
    lines = []
    for measure, heading in SCORES.items():
        better: dict[str, list[str]] = {}
        for graph, row in cells.items():
            found = values(row, measure)
            for name in sorted(found, key=found.__getitem__, reverse=True):
                gap = found[name] - found.get(DEFAULT, 1.0)
                if gap > AHEAD:
                    better.setdefault(graph, []).append(f"`{name}` (+{gap:.3f})".replace("+0.", "+."))
        listed = "; ".join(f"{graph}: {', '.join(names)}" for graph, names in better.items())
        lines.append(f"**{heading}**: {listed or 'none'}.")
    return lines


def published(figures: list[dict]) -> str:
    """Return the table of published scores beside ours; published scores without one of ours are left out."""
    heads = ["method", "graph", "trained on", "measure", "published", "ours", "difference", "from"]
    lines = [f"| {' | '.join(heads)} |", "| --- | --- | --- | --- | ---: | ---: | ---: | --- |"]
    for one in sorted(figures, key=lambda one: list(METHODS).index(one["method"])):
        if one["ours"] is None:
            continue
        ours, gap = f"{one['ours']:.3f}".removeprefix("0"), f"{one['difference']:+.3f}".replace("0.", ".", 1)
        value = f"{one['value']:.3f}".removeprefix("0")
        case = [f"`{one['method']}`", one["dataset"], one["trained_on"], MEASURES[one["measure"]]]
        source = f"{one['source']}; {one['differs']}" if one["differs"] else one["source"]
        lines.append(f"| {' | '.join([*case, value, ours, gap, source])} |")
    return "\n".join(lines)


def fill(page: str) -> str:
    """Return the page with each table between its markers."""
    cells = json.loads((RESULTS / "shelf.json").read_text(encoding="utf-8"))["cells"]
    figures = json.loads((RESULTS / "published.json").read_text(encoding="utf-8"))["figures"]
    return put(page, tables(cells) | {"published": published(figures)}, PAGE)


def main() -> None:
    """Put the tables into the page."""
    filled = fill(PAGE.read_text(encoding="utf-8"))
    with atomic(PAGE) as draft:
        draft.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
