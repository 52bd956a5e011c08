"""`brane methods` and `brane datasets`: what there is to choose from."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from neural_brane.cli.terminal import echo

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder


# `brane methods`: the ways to learn vectors.


def methods(
    name: Annotated[str | None, Argument(help="One of them, to print in full.", show_default=False)] = None,
) -> None:
    """List the methods of 'brane embed --method' and what each of them uses, or print one in full.

    An inductive method gives a vector to a node it has not seen. One that updates goes on from what it has learned
    when the graph has changed. Growth is how its time grows with the graph. One marked with † also learns from labels
    that it is given ('brane embed --learn-labels'), and does without.

    \b
    brane methods
    brane methods neural-brane
    """
    from neural_brane.cli.terminal import show_table
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
    from neural_brane.cli.terminal import show_table

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
    show_table(("parameter", "default", "give", "what it is"), rows, fold=True)
    _show_tuned(method.title)
    first = next(iter(known.values()))
    setting = f"{first.name}={first.example()}"
    echo(f"Set any of them: brane embed citeseer --method {method.title} --set {setting} -o vectors.npz")


def _show_tuned(method: str) -> None:
    from neural_brane.cli.terminal import show_table
    from neural_brane.experiments.tune import tuned

    kept = [
        (dataset, f"{chosen[method].validation:.4f}", _line(chosen[method].parameters))
        for dataset, chosen in tuned().items()
        if method in chosen
    ]
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


def _line(values: dict[str, object]) -> str:
    return " ".join(f"{name}={_text(value)}" for name, value in values.items())


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_text, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


# `brane datasets`: the graphs known by name, and whether they are here.


def datasets() -> None:
    """List the graphs known by name and whether their files are here.

    Files are looked for in the folder NEURAL_BRANE_DATA, then in the cache, then downloaded.
    """
    from neural_brane.cli.terminal import show_table
    from neural_brane.files.datasets import list_datasets

    numbers = ("nodes", "edges", "attributes", "classes")
    rows = [
        (one.name, *(_number(getattr(one, name)) for name in numbers), one.state, one.about) for one in list_datasets()
    ]
    show_table(("name", *numbers, "state", "about"), rows, right=numbers)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"
