"""`brane info` and `brane inspect`: show what a file contains, and how it would be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from neural_brane.cli.terminal import echo
from neural_brane.errors import printable

if TYPE_CHECKING:
    from neural_brane.files.contents import Report


INFO_WIDTH = 100  # characters of a value that `brane info` shows
WIDTH = 40  # the same of `brane inspect`


def info(
    files: Annotated[list[Path], Argument(help="Models, vectors, graphs, checkpoints, splits or pairs.")],
    as_json: Annotated[bool, Option("--json", help="Print everything as JSON, one line per file.")] = False,
) -> None:
    """Show what files contain, and what made them.

    Only headers are read: this is fast on large files, and checks no checksums.

    \b
    brane info m.brane
    brane info vectors.npz --json
    brane info folder              vectors in parts
    """
    from neural_brane.files.contents import look_into

    for path in files:
        found = look_into(path)
        if as_json:
            echo(json.dumps(found.as_dict()))
        else:
            show_contents(found)


def show_contents(found: Any) -> None:
    """Print what is in a file, one fact per line."""
    from neural_brane.graph.memory import show_size

    facts = dict(found.facts)
    extent = ""
    if "nodes" in facts and "dim" in facts:
        extent = f", {facts.pop('nodes'):,} x {facts.pop('dim')}"
    echo(f"{found.path}: {found.kind}{extent} ({show_size(found.size)})")
    for name, value in facts.items():
        echo(f"  {name:<12} {spelled(name, value)}")


def spelled(name: str, value: Any) -> str:
    """A fact for people: numbers with commas, and not too long."""
    if name == "graph" and isinstance(value, dict):
        counts = ", ".join(f"{value[one]:,} {one}" for one in ("nodes", "edges", "attributes") if one in value)
        return f"'{value.get('name')}': {counts} (digest {value.get('digest')})"
    if isinstance(value, dict):
        pairs = ", ".join(f"{key}={one}" for key, one in value.items() if one is not None)
        return plain(pairs or "none", width=10 * INFO_WIDTH)
    if isinstance(value, list):
        return plain(", ".join(map(str, value)), width=INFO_WIDTH)
    if isinstance(value, bool) or not isinstance(value, int) or name == "seed":
        return plain(str(value), width=INFO_WIDTH)
    return f"{value:,}"


def inspect(
    files: Annotated[list[Path], Argument(help="Graph files, tables of edges, or vectors; - is standard input.")],
    nodes: Annotated[Path | None, Option(metavar="<file>", help="Table of nodes for the edges.")] = None,
) -> None:
    """Show how files would be read, and what looks odd in them.

    \b
    brane inspect edges.csv --nodes people.csv
    brane inspect graph.txt
    brane inspect vectors.npz
    """
    from neural_brane.files.contents import inspect_file, inspect_nodes

    ids = None
    for path in files:
        report = inspect_file(path)
        show_report(report)
        ids = report.ids if ids is None else ids
    if nodes is not None:
        show_report(inspect_nodes(nodes, ids))


def show_report(report: Report) -> None:
    """Print what is in a file."""
    from neural_brane.cli.terminal import show_table

    echo(plain(f"{report.path}: {report.told}", width=1000))
    counts = "; ".join(f"{name} {spelled(name, count)}" for name, count in report.counts.items())
    echo(plain(f"  {counts}", width=1000))
    if report.columns:
        titles = ("column", "kind", "distinct", "missing", "such as", "why")
        rows = []
        for one in report.columns:
            examples = plain(", ".join(one.examples))
            rows.append((plain(one.name), one.kind, f"{one.distinct:,}", f"{one.missing:,}", examples, one.why))
        show_table(titles, rows, title="columns, as a table of nodes would be read", right=("distinct", "missing"))
    if report.rows:
        lines = [[plain(cell) for cell in row] for row in report.rows]
        show_table([plain(one) for one in report.titles], lines, title="first lines")
    for odd in report.odd:
        echo(plain(f"  odd: {odd}", width=1000))
    if not report.odd:
        echo("  nothing looks odd")


def plain(text: str, *, width: int = WIDTH) -> str:
    """Escape what a terminal cannot print, and cut a long text."""
    shown = printable(text)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"
