"""`brane estimate`: what a training takes, before it begins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from neural_brane.cli import options as o
from neural_brane.cli.console import echo
from neural_brane.cli.parameters import parse_settings
from neural_brane.cli.tables import Tables, read, takes_tables
from neural_brane.methods import find_method

if TYPE_CHECKING:
    from neural_brane.estimation import Estimate, Source
    from neural_brane.methods.base import Embedder


@takes_tables
def estimate(
    source: o.Source,
    tables: Tables,
    method: o.Method = "neural-brane",
    settings: o.Settings = None,
    attributes: o.Attributes = None,
    labels: o.Labels = None,
    duplicates: o.Duplicates = "max",
    self_loops: o.SelfLoops = "keep",
    dim: o.Dim = None,
    epochs: o.Epochs = None,
    threads: o.Threads = None,
    device: o.Device = None,
    time: Annotated[
        bool, Option("--time/--no-time", help="Measure for a few seconds how fast this machine is.")
    ] = True,
    as_json: Annotated[bool, Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Tell how much memory and time 'brane embed' would take for SOURCE, without training.

    The sizes of synthetic:NODES and of .npz files are known without loading them; other files are read. Exit code 1
    says that the training would not fit into memory.

    \b
    brane estimate citeseer
    brane estimate synthetic:1000000 --dim 64
    brane estimate edges.csv --nodes people.csv
    brane estimate graph.npz --method deepwalk --json
    """
    from neural_brane.estimation import look_at

    short = {"dim": dim, "epochs": epochs, "threads": threads, "device": device}
    typed = [f"{name}={value}" for name, value in short.items() if value is not None]
    kind = find_method(method)
    model = kind(**parse_settings(kind, [*typed, *(settings or ())]))
    rules = {"duplicates": duplicates, "self_loops": self_loops}
    found = look_at(source, lambda: read(source, tables, attributes=attributes, labels=labels, **rules))
    answer(model, found, time=time, as_json=as_json)


def answer(model: Embedder, source: Source, *, time: bool = True, as_json: bool = False) -> None:
    """Print what a training takes; the exit code says whether it fits."""
    from neural_brane.estimation import estimate as estimate_training

    found = estimate_training(
        source.graph or source.sizes,
        model,
        time=time,
        reading_bytes=source.reading_bytes,
        reading_seconds=source.reading_seconds,
    )
    if as_json:
        echo(json.dumps(found.as_dict(), indent=2))
    else:
        show(found)
    if not found.fits:
        raise Exit(1)


def show(found: Estimate) -> None:
    """Print memory and time by part, and whether it fits."""
    from neural_brane.cli.console import show_table
    from neural_brane.memory import show_size

    sizes = found.sizes
    title = f"{found.method}, dim {found.parameters['dim']}: {sizes.nodes:,} nodes, {sizes.edges:,} edges"
    rows = [(part, show_size(count)) for part, count in found.memory.items()]
    rows.append((f"at most, in '{found.moment}'", show_size(found.peak)))
    rows.append(("file of vectors, about", show_size(found.output_bytes)))
    show_table(("memory", "bytes"), rows, title=title, right=("bytes",))
    if found.seconds is not None:
        times = [*found.seconds.items(), ("at most", found.total_seconds or 0.0)]
        show_table(("time", "here"), [(part, show_time(count)) for part, count in times], right=("here",))
    if found.triplets_per_node is not None:
        echo(f"triplets: {found.triplets_per_node:,.0f} for each node, fewer if the loss is flat before")
    echo(found.verdict)


def show_time(seconds: float) -> str:
    """A time for people.

    >>> show_time(0.4), show_time(75), show_time(9000)
    ('0.4 s', '1 min 15 s', '2 h 30 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"
