"""Write the tables of docs/methods.md and docs/choose.md: the methods, their growth and their scores.

python scripts/methods_table.py            put the tables between the pages' markers
python scripts/methods_table.py --print    print them
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from statistics import mean

from neural_brane import METHODS
from neural_brane.files.storage import atomic
from neural_brane.methods.base import MARK, Embedder

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "methods.md"
CHOICE = ROOT / "docs" / "choose.md"
RESULTS = ROOT / "benchmarks" / "results"
MEASURED = RESULTS / "defaults.json"
GROWN = {"grown": "growth.md", "grown synthetic": "growth_synthetic.md"}  # marker: file


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
    cells = json.loads(MEASURED.read_text(encoding="utf-8"))["cells"]
    means = {
        name: [mean(mean(graph[score]) for graph in graphs.values()) for score in ("macro_f1", "nmi", "link")]
        for name, graphs in cells.items()
    }
    lines = [
        "| method | uses | new nodes | Macro-F1 | NMI | AUC of links |",
        "| --- | --- | --- | ---: | ---: | ---: |",
    ]
    for name in sorted(means, key=lambda one: -means[one][0]):
        method = METHODS[name]
        scores = " | ".join(f"{score:.3f}".removeprefix("0") for score in means[name])
        lines.append(f"| `{name}` | {uses(method)} | {'yes' if method.inductive else 'no'} | {scores} |")
    return "\n".join(lines)


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
        print(f"{about()}\n\n{growth()}\n\n{measured()}")
        return
    for path, filled in (
        (PAGE, fill(PAGE.read_text(encoding="utf-8"))),
        (CHOICE, put(CHOICE.read_text(encoding="utf-8"), {"measured": measured()}, CHOICE)),
    ):
        with atomic(path) as draft:
            draft.write_text(filled, encoding="utf-8")


if __name__ == "__main__":
    main()
