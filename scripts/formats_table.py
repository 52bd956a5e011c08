"""Write the table of vector formats in docs/formats.md: what each format keeps and which ids it refuses.

python scripts/formats_table.py            put the table between the page's markers
python scripts/formats_table.py --print    print it
"""

from __future__ import annotations

import sys
from pathlib import Path

from methods_table import put

from neural_brane.files.storage import atomic
from neural_brane.files.vectors.formats import FORMATS

PAGE = Path(__file__).parent.parent / "docs" / "formats.md"


def table() -> str:
    """Return the table with one row per format; formats that keep most come first."""
    lines = [
        "| suffix | what is in it | keeps besides vectors and ids | checksums | ids it refuses |",
        "| --- | --- | --- | --- | --- |",
    ]
    for form in sorted(dict.fromkeys(FORMATS.values()), key=lambda one: -len(one.keeps)):
        suffixes = ", ".join(f"`{suffix}`" for suffix in form.suffixes.split())
        checksums = "yes" if form.checksums else "no"
        kept, refused = ", ".join(form.keeps), form.refuses or "none"
        lines.append(f"| {suffixes} | {form.about} | {kept} | {checksums} | {refused} |")
    return "\n".join(lines)


def fill(page: str) -> str:
    """Return the page with the table between its markers."""
    return put(page, {"vector formats": table()}, PAGE)


def main() -> None:
    """Print the table or put it into the page."""
    if "--print" in sys.argv[1:]:
        print(table())
        return
    page = fill(PAGE.read_text(encoding="utf-8"))
    with atomic(PAGE) as draft:
        draft.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
