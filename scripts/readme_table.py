"""Write the README's table of results from docs/results/results.json.

    python scripts/readme_table.py            put the table between the README's two markers
    python scripts/readme_table.py --print    print it

The markers are the lines '<!-- results -->' and '<!-- /results -->'; what stands between them is replaced.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS, README = ROOT / "docs" / "results" / "results.json", ROOT / "README.md"
BEGIN, END = "<!-- results -->", "<!-- /results -->"
SHARE = 0.7


def markdown(results: dict[str, Any]) -> str:
    """Macro-F1 at 70 % of every method on every dataset, the published figure in brackets, the best in bold."""
    cells = [
        one
        for one in results["cells"]
        if (one["output"], one["measure"], one["train"]) == ("classification", "macro_f1", SHARE)
    ]
    datasets = list(dict.fromkeys(one["dataset"] for one in cells))
    most = {name: max(one["mean"] for one in cells if one["dataset"] == name) for name in datasets}
    heads = [f"{name} ({results['data'][name]['nodes']:,} nodes)" for name in datasets]
    lines = ["| Macro-F1, 70 % | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(datasets)]
    for heading in dict.fromkeys(one["heading"] for one in cells):
        row = {one["dataset"]: one for one in cells if one["heading"] == heading}
        shown = [_cell(row[name], most[name]) if name in row else "-" for name in datasets]
        lines.append(f"| {heading} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def fill(readme: str, table: str) -> str:
    """The README's text with the table between its markers."""
    if BEGIN not in readme or END not in readme:
        raise SystemExit(f"README.md has no place for the table; put the lines {BEGIN} and {END} where it belongs")
    return re.sub(f"{BEGIN}.*?{END}", lambda _: f"{BEGIN}\n{table}\n{END}", readme, flags=re.DOTALL)


def _cell(one: dict[str, Any], most: float) -> str:
    mean = f"{one['mean']:.3f}".lstrip("0")
    text = f"**{mean}**" if one["mean"] == most else mean
    if one["published"] is not None and one["published_on"] == one["dataset"]:
        text += f" ({one['published']:.3f})".replace("(0", "(")
    return text


def main() -> None:
    """Print the table or put it into the README."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="print the table and leave the README alone")
    options = parser.parse_args()
    table = markdown(json.loads(RESULTS.read_text(encoding="utf-8")))
    if options.print:
        print(table)
    else:
        README.write_text(fill(README.read_text(encoding="utf-8"), table), encoding="utf-8")


if __name__ == "__main__":
    main()
