"""Write the tables of results in README.md and docs/reproduce.md from docs/results/results.json.

    python scripts/readme_table.py            put the tables between the markers of the two pages
    python scripts/readme_table.py --print    print the whole table

The markers are the lines '<!-- results -->' and '<!-- /results -->'; the text between them is replaced. The README
shows the rows of `BRIEF`, the page shows all rows.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

from neural_brane.files.storage import atomic

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results" / "results.json"
BRIEF = (
    "DeepWalk",
    "TADW",
    "Neural-Brane (released recipe)",
    "Neural-Brane (paper's text)",
    "Neural-Brane (default)",
    "two-hop mean",
    "joint SVD",
)
PAGES = {ROOT / "README.md": BRIEF, ROOT / "docs" / "reproduce.md": None}  # page: rows, None for all
BEGIN, END = "<!-- results -->", "<!-- /results -->"
SHARE = 0.7
TUNED = "†"


def markdown(results: dict[str, Any], rows: tuple[str, ...] | None = None) -> str:
    """Return a table of Macro-F1 at 70 %, with published scores in brackets and the best of each dataset in bold.

    rows: headings of the methods to show; then only datasets that all of them have are shown. None shows everything.
    """
    cells = [
        one
        for one in results["cells"]
        if (one["output"], one["measure"], one["train"]) == ("classification", "macro_f1", SHARE)
    ]
    headings = dict.fromkeys(one["heading"] for one in cells) if rows is None else rows
    there = {(one["heading"], one["dataset"]) for one in cells}
    datasets = [
        name
        for name in dict.fromkeys(one["dataset"] for one in cells)
        if rows is None or all((heading, name) in there for heading in rows)
    ]
    most = {name: max(one["mean"] for one in cells if one["dataset"] == name) for name in datasets}
    heads = [f"{name} ({results['data'][name]['nodes']:,} nodes)" for name in datasets]
    lines = ["| Macro-F1, 70 % | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(datasets)]
    for heading in headings:
        row = {one["dataset"]: one for one in cells if one["heading"] == heading}
        shown = [_cell(row[name], most[name]) if name in row else "-" for name in datasets]
        lines.append(f"| {heading} | " + " | ".join(shown) + " |")
    legend = ["", f"{TUNED} with parameters found by `brane tune`"] if any(TUNED in line for line in lines) else []
    return "\n".join(lines + legend)


def fill(page: str, table: str) -> str:
    """Return a page's text with the table between its markers."""
    if BEGIN not in page or END not in page:
        raise SystemExit(f"there is no place for the table; put the lines {BEGIN} and {END} where it belongs")
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{table}\n{END}", page, flags=re.DOTALL)


def _cell(one: dict[str, Any], most: float) -> str:
    mean = f"{one['mean']:.3f}".lstrip("0")
    text = (f"**{mean}**" if one["mean"] == most else mean) + (TUNED if one["tuned"] else "")
    published = one["published"] is not None and one["published_on"] == one["dataset"]
    if published and one["heading"] != "Neural-Brane (default)":  # the paper has no score of our default
        text += f" ({one['published']:.3f})".replace("(0", "(")
    return text


def main() -> None:
    """Print the table, or put it into the two pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="print the whole table and change no page")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    if options.print:
        print(markdown(results))
        return
    for page, rows in PAGES.items():
        text = fill(page.read_text(encoding="utf-8"), markdown(results, rows))
        with atomic(page) as draft:
            draft.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
