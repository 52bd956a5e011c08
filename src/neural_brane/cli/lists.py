"""`brane methods`, `brane formats` and `brane datasets`: list what there is to choose from."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from neural_brane.cli.terminal import echo, show_table

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder


def methods(
    name: Annotated[str | None, Argument(help="Method to print in full.", show_default=False)] = None,
) -> None:
    """List the methods and what they use, or print one in full.

    An inductive method computes vectors of new nodes ('brane transform'); one
    that updates can continue on a changed graph ('brane update'). Growth is how
    its time grows with the graph. Methods with † can also learn from labels.

    \b
    brane methods
    brane methods neural-brane
    """
    from neural_brane.methods import METHODS, find_method

    if name is not None:
        show(find_method(name))
        return
    rows = [
        (name, _uses(kind), _yes(kind.inductive), _yes(kind.updates), f"{kind.growth}\n{kind.paper}")
        for name, kind in METHODS.items()
    ]
    show_table(("name", "uses", "inductive", "updates", "growth and paper"), rows, fold=True)


def show(method: type[Embedder]) -> None:
    """Print what a method is, its parameters, and the values tuned for each dataset."""
    known = method.parameters()
    summary = (inspect.getdoc(method) or "").partition("\nParameters\n")[0].strip()
    echo(f"{method.title}: {summary}\n")
    echo(f"uses       {_uses(method)}")
    echo(f"new nodes  {_yes(method.inductive)}")
    echo(f"updates    {'yes' if method.updates else f'no: {method.why_not}'}")
    echo(f"growth     {method.growth}")
    echo(f"paper      {method.paper}\n")
    defaults = method().parameters_in_force()
    rows = [
        (name, _text(defaults[name]), one.expects(), one.about) for name, one in known.items() if name != "progress"
    ]
    show_table(("parameter", "default", "value", "meaning"), rows, fold=True)
    _show_tuned(method.title)
    first = next(iter(known.values()))
    setting = f"{first.name}={first.example()}"
    echo(f"Set any of them: brane embed citeseer --method {method.title} --set {setting} -o vectors.npz")


def _show_tuned(method: str) -> None:
    from neural_brane.experiments.tune import tuned

    kept = []
    for dataset, chosen in tuned().items():
        if method in chosen:
            values = " ".join(f"{name}={_text(value)}" for name, value in chosen[method].parameters.items())
            kept.append((dataset, f"{chosen[method].validation:.4f}", values))
    if kept:
        show_table(("tuned for", "validation", "parameters (embed --tuned)"), kept, fold=True)
    else:
        echo(f"No tuned values are kept; 'brane tune {method} DATASET' searches for some.")


def _uses(method: type[Embedder]) -> str:
    """What a method learns from."""
    from neural_brane.methods.base import MARK

    return ", ".join([*method.uses, f"labels {MARK}"] if method.uses_labels else method.uses)


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_text, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def formats() -> None:
    """List the formats of vectors and graphs, by suffix.

    \b
    graph file      one edge per line, 'u v' or 'u v weight'; a first line
                    'nodes edges' is optional
    attribute file  one node per line: its id, then ID or ID:VALUE for each,
                    as in '17 3:1 8:1'
    label file      one node per line, 'node<TAB>label'
                    Ids are integers or names. Spaces, tabs or commas
                    separate; a line that begins with # does not count.
    tables          one of edges and, with --nodes, one of nodes, whose
                    columns become attributes
    """
    vectors, graphs = format_tables()
    show_table(("vectors", "about"), vectors, fold=True)
    show_table(("graphs", "about"), graphs, fold=True)


def format_tables() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the suffix and a sentence for each format of vectors and of graphs."""
    from neural_brane.files.graphs.formats import describe_formats
    from neural_brane.files.vectors import declared_formats

    graphs = [(suffixes.replace("`", ""), about.replace("`", "")) for suffixes, about in describe_formats()]
    return list(declared_formats().items()), graphs


def datasets() -> None:
    """List the graphs known by name, and which are on this machine.

    Files are taken from the folder NEURAL_BRANE_DATA, then from the cache, or are downloaded.
    """
    from neural_brane.files.datasets import list_datasets

    numbers = ("nodes", "edges", "attributes", "classes")
    rows = [
        (one.name, *(_number(getattr(one, name)) for name in numbers), one.state, one.about) for one in list_datasets()
    ]
    show_table(("name", *numbers, "state", "about"), rows, right=numbers)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
