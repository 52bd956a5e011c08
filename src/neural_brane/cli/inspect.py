"""`brane inspect`: how files are read, and what looks odd in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from neural_brane.cli.console import echo
from neural_brane.errors import printable

if TYPE_CHECKING:
    from neural_brane.io.inspection import Report

WIDTH = 40  # letters of a value that are shown


def inspect(
    files: Annotated[list[Path], Argument(help="Graph files, tables of edges, or vectors; - is standard input.")],
    nodes: Annotated[Path | None, Option(metavar="<file>", help="Table of nodes that goes with the edges.")] = None,
) -> None:
    """Show how files are read, without learning from them: format, columns, counts, five lines, and what looks odd.

    \b
    brane inspect edges.csv --nodes people.csv
    brane inspect graph.txt
    brane inspect vectors.npz
    """
    from neural_brane.io.inspection import inspect_file, inspect_nodes

    ids = None
    for path in files:
        report = inspect_file(path)
        show(report)
        ids = report.ids if ids is None else ids
    if nodes is not None:
        show(inspect_nodes(nodes, ids))


def show(report: Report) -> None:
    """Print what is in a file."""
    from neural_brane.cli.console import show_table

    echo(plain(f"{report.path}: {report.told}", width=1000))
    counts = [
        f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}" for name, value in report.counts.items()
    ]
    echo(plain("  " + "; ".join(counts), width=1000))
    if report.columns:
        titles = ("column", "kind", "distinct", "missing", "such as", "why")
        rows = [
            (
                plain(one.name),
                one.kind,
                f"{one.distinct:,}",
                f"{one.missing:,}",
                plain(", ".join(one.examples)),
                one.why,
            )
            for one in report.columns
        ]
        show_table(titles, rows, title="columns, as a table of nodes would be read", right=("distinct", "missing"))
    if report.rows:
        show_table(
            [plain(one) for one in report.titles],
            [[plain(one) for one in row] for row in report.rows],
            title="first lines",
        )
    for one in report.odd:
        echo(plain(f"  odd: {one}", width=1000))
    if not report.odd:
        echo("  nothing looks odd")


def plain(text: str, *, width: int = WIDTH) -> str:
    """A text for the terminal: what does not print is escaped, and what is long is cut."""
    shown = printable(text)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"
