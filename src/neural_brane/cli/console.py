"""Tables on the terminal, all in one style."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence


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

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", no_wrap=column != columns[-1])
    for *texts, last in rows:
        table.add_row(*texts, Text(last, no_wrap=not fold, overflow="fold" if fold else "ellipsis"))
    console = Console(markup=False, highlight=False, stderr=stderr)
    if not console.is_terminal:
        console = Console(markup=False, highlight=False, width=1000, stderr=stderr)
    console.print(table)
