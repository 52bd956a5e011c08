"""`brane info`, `inspect`, `methods`, `formats` and `datasets`: show the contents of files; list the choices."""

from __future__ import annotations

import json
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from neural_brane.cli import options as o
from neural_brane.cli.terminal import echo, show_table
from neural_brane.errors import printable

if TYPE_CHECKING:
    from neural_brane.files.contents import Report
    from neural_brane.methods.base import Embedder

INFO_WIDTH = 100  # most characters of a value in the output of `brane info`
WIDTH = 40  # most characters of a cell in the output of `brane inspect`


def info(
    files: Annotated[list[Path], Argument(help="Files that brane has written.")],
    as_json: Annotated[bool, o.flag("--json", "Print JSON, one line per file.")] = False,
) -> None:
    r"""Show the contents of files and how they were made.

    FILES are models, vectors, graphs, checkpoints, splits or held-out pairs.
    Only their headers are read, so large files take no longer. Checksums are
    not compared.

    \b
    brane info m.brane
    brane info vectors.npz --json
    brane info folder              vectors in several files
    """
    from neural_brane.files.contents import identify_file
    from neural_brane.graph.memory import show_size

    for path in files:
        contents = identify_file(path)
        if as_json:
            echo(json.dumps(contents.as_dict()))
            continue
        facts = dict(contents.facts)
        extent = f", {facts.pop('nodes'):,} x {facts.pop('dim')}" if {"nodes", "dim"} <= facts.keys() else ""
        echo(f"{contents.path}: {contents.kind}{extent} ({show_size(contents.size)})")
        for name, value in facts.items():
            echo(f"  {name:<12} {as_text(name, value)}")


def as_text(name: str, value: Any) -> str:
    """Return a fact as text: numbers with commas, long values cut."""
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
    files: Annotated[list[Path], Argument(help="Graphs, tables or vectors.")],
    nodes: Annotated[Path | None, o.option("file", "Table of nodes that belongs to the edges.")] = None,
) -> None:
    r"""Show how files would be read, and what may be wrong in them.

    FILES are graph files, tables of edges or vectors; - reads standard input.

    \b
    brane inspect edges.csv --nodes people.csv
    brane inspect graph.txt
    brane inspect vectors.npz
    """
    from neural_brane.files.contents import inspect_file, inspect_nodes

    edges = None
    for path in files:
        report = inspect_file(path)
        show_report(report)
        edges = report if edges is None and report.ids is not None else edges
    if nodes is not None:
        show_report(inspect_nodes(nodes, edges))


def show_report(report: Report) -> None:
    """Print how a file would be read: its counts, columns, first lines and problems."""
    echo(plain(f"{report.path}: {report.description}", width=1000))
    counts = "; ".join(f"{name} {as_text(name, count)}" for name, count in report.counts.items())
    echo(plain(f"  {counts}", width=1000))
    if report.columns:
        titles = ("column", "kind", "distinct", "missing", "such as", "why")
        rows = []
        for one in report.columns:
            examples = plain(", ".join(one.examples))
            rows.append((plain(one.name), one.kind, f"{one.distinct:,}", f"{one.missing:,}", examples, one.why))
        show_table(titles, rows, title="columns, if read as a table of nodes", right=("distinct", "missing"))
    if report.rows:
        lines = [[plain(cell) for cell in row] for row in report.rows]
        show_table([plain(one) for one in report.titles], lines, title="first lines")
    for problem in report.problems:
        echo(plain(f"  note: {problem}", width=1000))
    if not report.problems:
        echo("  no problems found")


def plain(text: str, *, width: int = WIDTH) -> str:
    """Return a text without control characters, cut to `width` characters."""
    shown = printable(text)
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def methods(
    name: Annotated[str | None, Argument(help="Method to describe in full.", show_default=False)] = None,
) -> None:
    r"""List the methods, or describe one with all its parameters.

    'brane transform' computes vectors of new nodes by an inductive method.
    'brane update' continues a method that updates, on a changed graph. Growth
    is how the time grows with the graph. † marks learning from labels.

    \b
    brane methods
    brane methods neural-brane
    """
    from neural_brane.methods import METHODS, find_method

    if name is not None:
        show_method(find_method(name))
        return
    rows = [
        (name, _uses(kind), _yes(kind.inductive), _yes(kind.updates), f"{kind.growth}\n{kind.paper}")
        for name, kind in METHODS.items()
    ]
    show_table(("name", "uses", "inductive", "updates", "growth and paper"), rows, fold=True)


def show_method(method: type[Embedder]) -> None:
    """Print the description of a method, its parameters, and the values tuned for each dataset."""
    from neural_brane.experiments.tune import tuned

    known = method.parameters()
    summary = (getdoc(method) or "").partition("\nParameters\n")[0].strip()
    echo(f"{method.title}: {summary}\n")
    echo(f"uses       {_uses(method)}")
    echo(f"new nodes  {_yes(method.inductive)}")
    echo(f"updates    {'yes' if method.updates else f'no: {method.why_not}'}")
    echo(f"growth     {method.growth}")
    echo(f"paper      {method.paper}\n")
    defaults = method().parameters_in_force()
    shown = {name: one for name, one in known.items() if name != "progress"}
    rows = [(name, _text(defaults[name]), one.expects(), one.about) for name, one in shown.items()]
    show_table(("parameter", "default", "value", "meaning"), rows, fold=True)
    kept = []
    for dataset, chosen in tuned().items():
        if method.title in chosen:
            best = chosen[method.title]
            values = " ".join(f"{name}={_text(value)}" for name, value in best.parameters.items())
            kept.append((dataset, f"{best.validation:.4f}", values))
    if kept:
        show_table(("tuned for", "validation", "parameters (embed --tuned)"), kept, fold=True)
    else:
        echo(f"No values are tuned yet; search for some with 'brane tune {method.title} DATASET'.")
    first = next(iter(known.values()))
    setting = f"{first.name}={first.example()}"
    echo(f"Set a parameter: brane embed citeseer --method {method.title} --set {setting} -o vectors.npz")


def _uses(method: type[Embedder]) -> str:
    """Return the inputs of a method as text: links, attributes, labels."""
    from neural_brane.methods.base import MARK

    return ", ".join([*method.uses, f"labels {MARK}"] if method.uses_labels else method.uses)


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_text, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def formats() -> None:
    r"""List the formats of vectors and of graphs, by suffix.

    Text files and tables of a graph may have any other suffix:

    \b
    graph file      one edge per line, 'u v' or 'u v weight'; a first line
                    'nodes edges' is optional
    attribute file  one node per line: its id, then ID or ID:VALUE for each,
                    as in '17 3:1 8:1'
    label file      one node per line, 'node<TAB>label'
    tables          a table of edges and, with --nodes, a table of nodes
                    whose columns become attributes

    Ids are integers or names. Spaces, tabs or commas separate them. Lines that
    begin with # are ignored.

    \b
    brane formats
    """
    from neural_brane.files.graphs.formats import describe_formats
    from neural_brane.files.vectors import declared_formats

    show_table(("vectors", "about"), list(declared_formats().items()), fold=True)
    graphs = [(suffixes.replace("`", ""), about.replace("`", "")) for suffixes, about in describe_formats()]
    show_table(("graphs", "about"), graphs, fold=True)


def datasets() -> None:
    r"""List the datasets, and which of them are on this machine.

    A dataset is read from the folder that NEURAL_BRANE_DATA names, or from the
    cache; if it is in neither, it is downloaded.

    \b
    brane datasets
    """
    from neural_brane.files.datasets import list_datasets

    numbers = ("nodes", "edges", "attributes", "classes")
    rows = []
    for one in list_datasets():
        counts = [getattr(one, name) for name in numbers]
        rows.append((one.name, *("" if count is None else f"{count:,}" for count in counts), one.state, one.about))
    show_table(("name", *numbers, "state", "about"), rows, right=numbers)
