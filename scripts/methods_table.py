"""Write the two tables of docs/methods.md from the methods themselves: what they are, and how they grow.

python scripts/methods_table.py            put the tables between the page's markers
python scripts/methods_table.py --print    print them
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from neural_brane import METHODS
from neural_brane.io.atomic import atomic

PAGE = Path(__file__).parent.parent / "docs" / "methods.md"


def about() -> str:
    """One row for each method: what it uses, whether it embeds new nodes, the extra it needs, and its paper."""
    lines = ["| name | uses | new nodes | needs | paper |", "| --- | --- | --- | --- | --- |"]
    for name, method in METHODS.items():
        uses, new = " and ".join(method.uses), "yes" if method.inductive else "no"
        lines.append(f"| `{name}` | {uses} | {new} | {method.extra or ''} | {method.paper} |")
    return "\n".join(lines)


def growth() -> str:
    """One row for each method: what its time and its memory grow with."""
    lines = ["| name | time grows with | memory grows with |", "| --- | --- | --- |"]
    for name, method in METHODS.items():
        time, memory = method.growth.removeprefix("time: ").split("; memory: ")
        lines.append(f"| `{name}` | {time} | {memory} |")
    return "\n".join(lines)


def fill(page: str) -> str:
    """The page's text with each table between its markers."""
    for name, table in (("methods", about()), ("growth", growth())):
        begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        if begin not in page or end not in page:
            raise SystemExit(f"{PAGE} has no place for a table; put the lines {begin} and {end} where it belongs")
        page = re.sub(f"{begin}.*?{end}", f"{begin}\n\n{table}\n\n{end}", page, flags=re.DOTALL)
    return page


def main() -> None:
    """Print the tables or put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="print the tables and leave the page alone")
    if parser.parse_args().print:
        print(f"{about()}\n\n{growth()}")
    else:
        text = fill(PAGE.read_text(encoding="utf-8"))
        with atomic(PAGE) as draft:
            draft.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
