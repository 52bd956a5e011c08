"""What is printed: lines and tables, in one style, with nothing in them that steers the terminal."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

from neural_brane.errors import printable

LINES = "\n\t"  # what may stand in a text of several lines


def echo(text: str = "", *, err: bool = False) -> None:
    """Print a text on stdout, or on stderr; ids and names of files in it cannot steer the terminal."""
    print(printable(text, keep=LINES), file=sys.stderr if err else sys.stdout, flush=True)


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    right: Collection[str] = (),
    fold: bool = False,
    stderr: bool = False,
) -> None:
    """Print a table on stdout, or on stderr; `right` names the columns to align right, those of numbers.

    Where a terminal is too narrow, the last column is cut off, or folded if `fold`. Nothing is cut in a pipe.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = None if title is None else printable(title)
    table = Table(title=shown, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        heading = printable(column)
        table.add_column(heading, justify="right" if column in right else "left", no_wrap=column != columns[-1])
    for *texts, last in ([printable(cell, keep=LINES) for cell in row] for row in rows):
        table.add_row(*texts, Text(last, no_wrap=not fold, overflow="fold" if fold else "ellipsis"))
    console = Console(markup=False, highlight=False, stderr=stderr)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=1000, stderr=stderr)
    console.print(table)
