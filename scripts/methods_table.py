"""Write the tables of docs/methods.md, docs/choose.md and docs/recipes.md: the methods, their growth, their scores.

python scripts/methods_table.py            put the tables between the pages' markers
python scripts/methods_table.py --print    print them
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable
from pathlib import Path
from statistics import mean

from neural_brane import METHODS
from neural_brane.files.storage import atomic
from neural_brane.methods.base import MARK, Embedder

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "methods.md"
CHOICE = ROOT / "docs" / "choose.md"
RECIPES = ROOT / "docs" / "recipes.md"
RESULTS = ROOT / "benchmarks" / "results"
GROWN = {"grown": "growth.md", "grown synthetic": "growth_synthetic.md"}  # marker: file
PARTS = {
    "neural-brane": "both, the default",
    "spectral part alone": "spectral part alone, 150 columns",
    "learned part alone": "learned part alone, 150 columns",
    "learned part not trained": "both, the learned part not trained",
    "before": "the default of October 2026",
}
PART_SCORES = {
    "macro_f1_5": "Macro-F1, 5 %", "macro_f1": "Macro-F1, 50 %", "nmi": "NMI", "cosine": "AUC by cosine",
    "link": "AUC by all evidence",
}  # fmt: skip


def about() -> str:
    """Return one row per method: the data it uses, whether it embeds new nodes, the extra it needs, its paper."""
    lines = ["| name | uses | new nodes | needs | paper |", "| --- | --- | --- | --- | --- |"]
    for name, method in METHODS.items():
        new = "yes" if method.inductive else "no"
        lines.append(f"| `{name}` | {uses(method)} | {new} | {method.extra or ''} | {method.paper} |")
    return "\n".join(lines)


def uses(method: type[Embedder]) -> str:
    """Return the data that a method uses; methods that also learn from labels are marked."""
    return " and ".join(method.uses) + (f", labels {MARK}" if method.uses_labels else "")


def growth() -> str:
    """Return one row per method: the sizes that its time and its memory grow with."""
    lines = ["| name | time grows with | memory grows with |", "| --- | --- | --- |"]
    for name, method in METHODS.items():
        time, memory = method.growth.removeprefix("time: ").split("; memory: ")
        lines.append(f"| `{name}` | {time} | {memory} |")
    return "\n".join(lines)


def grown(name: str) -> str:
    """Return the table of a measurement of growth, without its title."""
    return (RESULTS / name).read_text(encoding="utf-8").split("\n\n", 1)[1].rstrip()


def measured() -> str:
    """Return one row per method of benchmarks/defaults.py: its means over the graphs, best Macro-F1 first."""
    means = means_of("defaults.json", ("macro_f1", "nmi", "link"))
    lines = [
        "| method | uses | new nodes | Macro-F1 | NMI | AUC of links |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    for name in sorted(means, key=lambda one: -means[one][0]):
        method = METHODS[name]
        lines.append(f"| `{name}` | {uses(method)} | {'yes' if method.inductive else 'no'} | {shown(means[name])} |")
    return "\n".join(lines)


def parts() -> str:
    """Return one row per part of the default: its means over ten graphs (benchmarks/defaults.py --parts)."""
    means = means_of("parts.json", (*PART_SCORES, "seconds"), runs=3)  # Parts alone have no more; seeds are the same.
    lines = [f"| vectors | {' | '.join(PART_SCORES.values())} | seconds |", "| --- |" + " ---: |" * 6]
    for name, row in PARTS.items():
        *scores, seconds = means[name]
        lines.append(f"| {row} | {shown(scores)} | {seconds:.1f} |")
    return "\n".join(lines)


def means_of(name: str, measures: Iterable[str], runs: int | None = None) -> dict[str, list[float]]:
    """Return the mean of every measure over the graphs of a file of results, by row, of all or of the first runs."""
    cells = json.loads((RESULTS / name).read_text(encoding="utf-8"))["cells"]
    return {
        row: [mean(mean(graph[measure][:runs]) for graph in graphs.values()) for measure in measures]
        for row, graphs in cells.items()
    }


def shown(scores: Iterable[float]) -> str:
    """Return scores as cells of a table."""
    return " | ".join(f"{score:.3f}".removeprefix("0") for score in scores)


def fill(page: str) -> str:
    """Return the page of methods with each table between its markers."""
    tables = {"methods": about(), "growth": growth()} | {marker: grown(name) for marker, name in GROWN.items()}
    return put(page, tables, PAGE)


def put(page: str, tables: dict[str, str], path: Path) -> str:
    """Return a page's text with each table between its markers."""
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if begin not in page or end not in page:
            raise SystemExit(f"{path} has no place for a table; put the lines {begin} and {end} where it belongs")
        page = re.sub(f"{begin}.*?{end}", f"{begin}\n\n{table}\n\n{end}", page, flags=re.DOTALL)
    return page


def main() -> None:
    """Print the tables or put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="print the tables; change no page")
    if parser.parse_args().print:
        print(f"{about()}\n\n{growth()}\n\n{measured()}\n\n{parts()}")
        return
    for path, filled in (
        (PAGE, fill(PAGE.read_text(encoding="utf-8"))),
        (CHOICE, put(CHOICE.read_text(encoding="utf-8"), {"measured": measured()}, CHOICE)),
        (RECIPES, put(RECIPES.read_text(encoding="utf-8"), {"parts": parts()}, RECIPES)),
    ):
        with atomic(path) as draft:
            draft.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
