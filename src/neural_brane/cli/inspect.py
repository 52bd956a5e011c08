"""`brane info` and `brane inspect`: what is inside a file, and how it would be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from neural_brane.cli.terminal import echo
from neural_brane.errors import printable

if TYPE_CHECKING:
    from neural_brane.files.graphs.inspection import Report


# `brane info`: what is inside a file.

INFO_WIDTH = 100  # characters of a value that are shown


def info(
    files: Annotated[list[Path], Argument(help="A model, vectors, a graph, a checkpoint, splits or held-out pairs.")],
    as_json: Annotated[bool, Option("--json", help="All of it as JSON, one line per file.")] = False,
) -> None:
    """Tell what is inside FILES: what each is, what made it, of which graph, and how large it is.

    Headers are read and arrays are not, so it is quick on large files, and it compares no checksums.

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
    from neural_brane.cli.embed import spell_size

    facts = dict(found.facts)
    extent = ""
    if "nodes" in facts and "dim" in facts:
        extent = f", {facts.pop('nodes'):,} x {facts.pop('dim')}"
    echo(f"{found.path}: {found.kind}{extent} ({spell_size(found.size)})")
    for name, value in facts.items():
        echo(f"  {name:<12} {spelled(name, value)}")


def spelled(name: str, value: Any) -> str:
    """A fact for people: numbers with commas, and not too long."""
    if name == "graph" and isinstance(value, dict):
        counts = ", ".join(f"{value[one]:,} {one}" for one in ("nodes", "edges", "attributes") if one in value)
        return f"'{value.get('name')}': {counts} (digest {value.get('digest')})"
    if isinstance(value, dict):
        return _cut(
            ", ".join(f"{key}={one}" for key, one in value.items() if one is not None) or "none", 10 * INFO_WIDTH
        )
    if isinstance(value, list):
        return _cut(", ".join(map(str, value)), INFO_WIDTH)
    if isinstance(value, bool) or not isinstance(value, int) or name == "seed":
        return _cut(str(value), INFO_WIDTH)
    return f"{value:,}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


# `brane inspect`: how files are read, and what looks odd in them.

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
    from neural_brane.files.graphs.inspection import inspect_file, inspect_nodes

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
