"""`brane estimate`: what a training takes, before it begins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from neural_brane.cli import options as o
from neural_brane.cli.options import parse_settings
from neural_brane.cli.tables import Tables, read, takes_tables
from neural_brane.cli.terminal import echo
from neural_brane.methods import find_method

if TYPE_CHECKING:
    from neural_brane.experiments.estimate import Estimate, Several, Source
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
    ranks: Annotated[
        int | None, Option("--ranks", min=1, help="Of one of so many processes that train together.", metavar="N")
    ] = None,
    time: Annotated[
        bool, Option("--time/--no-time", help="Measure for a few seconds how fast this machine is.")
    ] = True,
    as_json: Annotated[bool, Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Tell how much memory and time 'brane embed' would take for SOURCE, without training.

    The sizes of synthetic:NODES, of .npz files and of folders made by 'brane shard' are known without loading them;
    other files are read. Exit code 1 says that the training would not fit into memory.

    With --ranks the memory is that of one process of a training past one machine, and instead of a time the bytes are
    told that it sends in a step.

    \b
    brane estimate citeseer
    brane estimate synthetic:1000000 --dim 64
    brane estimate edges.csv --nodes people.csv
    brane estimate graph.npz --method deepwalk --json
    brane estimate synthetic:1000000000 --ranks 64
    """
    from neural_brane.experiments.estimate import look_at

    short = {"dim": dim, "epochs": epochs, "threads": threads, "device": device}
    typed = [f"{name}={value}" for name, value in short.items() if value is not None]
    kind = find_method(method)
    model = kind(**parse_settings(kind, [*typed, *(settings or ())]))
    rules = {"duplicates": duplicates, "self_loops": self_loops}
    found = look_at(source, lambda: read(source, tables, attributes=attributes, labels=labels, **rules))
    answer(model, found, time=time, as_json=as_json, ranks=ranks)


def answer(
    model: Embedder, source: Source, *, time: bool = True, as_json: bool = False, ranks: int | None = None
) -> None:
    """Print what a training takes; the exit code says whether it fits."""
    from neural_brane.experiments.estimate import estimate as estimate_training

    found = estimate_training(
        source.graph or source.sizes,
        model,
        time=time,
        reading_bytes=source.reading_bytes,
        reading_seconds=source.reading_seconds,
        ranks=ranks,
    )
    if as_json:
        echo(json.dumps(found.as_dict(), indent=2))
    else:
        show(found)
    if not found.fits:
        raise Exit(1)


def show(found: Estimate) -> None:
    """Print memory and time by part, and whether it fits."""
    from neural_brane.cli.terminal import show_table
    from neural_brane.graph.memory import show_size

    sizes = found.sizes
    title = f"{found.method}, dim {found.parameters['dim']}: {sizes.nodes:,} nodes, {sizes.edges:,} edges"
    if found.several is not None:
        title += f"; one of {found.several.ranks:,} ranks"
    rows = [(part, show_size(count)) for part, count in found.memory.items()]
    rows.append((f"at most, in '{found.moment}'", show_size(found.peak)))
    rows.append(("file of vectors, about", show_size(found.output_bytes)))
    show_table(("memory", "bytes"), rows, title=title, right=("bytes",))
    if found.seconds is not None:
        times = [*found.seconds.items(), ("at most", found.total_seconds or 0.0)]
        show_table(("time", "here"), [(part, show_time(count)) for part, count in times], right=("here",))
    if found.triplets_per_node is not None:
        echo(f"triplets: {found.triplets_per_node:,.0f} for each node, fewer if the loss is flat before")
    if found.several is not None:
        show_several(found.several)
    echo(found.verdict)


def show_several(several: Several) -> None:
    """Print what a host's ranks share and what a rank sends; of their time nothing is known here."""
    from neural_brane.cli.terminal import show_table
    from neural_brane.graph.memory import show_size

    moments = [
        (moment, part, show_size(count)) for moment, parts in several.moments.items() for part, count in parts.items()
    ]
    show_table(("moment", "of a rank", "bytes"), moments, right=("bytes",))
    shared = [(part, show_size(count)) for part, count in several.host.items()]
    show_table(("on a host, for all its ranks", "bytes"), shared, right=("bytes",))
    names = {
        "ids": "numbers of rows asked for",
        "lengths": "lengths of bags, to all ranks",
        "rows": "rows that others ask for",
        "gradients": "gradients of rows",
        "layer": "the ReLU layer",
        "graph": "bags, only where each rank keeps a range of the graph",
    }
    sent = [(name, show_size(several.traffic[part])) for part, name in names.items()]
    show_table(("a rank sends in a step", "bytes"), sent, right=("bytes",))
    batch = several.batch
    how = "counted on a batch" if several.counted else "if all nodes have equally many neighbours; hubs make it more"
    echo(
        f"a rank's share of a batch: {batch['triplets']:,} triplets, {batch['attribute_rows']:,.0f} rows of attributes "
        f"and {batch['neighbour_rows']:,.0f} of neighbours, {how}"
    )
    echo(f"time: not measured for several ranks; {several.steps:,} steps at most")


def show_time(seconds: float) -> str:
    """A time for people.

    >>> show_time(0.4), show_time(75), show_time(9000)
    ('0.4 s', '1 min 15 s', '2 h 30 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"
