"""`brane estimate`: the memory and time of a training before it starts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

from typer import Exit, Option

from neural_brane.cli import options as o
from neural_brane.cli.options import Reading, Training, bundled
from neural_brane.cli.terminal import echo, show_table
from neural_brane.methods import find_method

if TYPE_CHECKING:
    from neural_brane.experiments.estimate import Estimate, Several


@bundled
def estimate(
    source: o.Source,
    reading: Reading,
    training: Training,
    method: o.Method = "neural-brane",
    ranks: Annotated[
        int | None,
        Option("--ranks", min=1, help="Estimate one of N processes that train together.", metavar="<whole>"),
    ] = None,
    no_time: Annotated[bool, Option("--no-time", help="Do not measure this machine's speed.")] = False,
    as_json: o.AsJson = False,
) -> None:
    """Estimate the memory and time of a training.

    Exit code 1 means that the training would not fit into memory. Files in
    .npz and folders made by 'brane shard' are not loaded; others are read.
    --ranks prints bytes sent per step instead of time.

    \b
    brane estimate citeseer
    brane estimate synthetic:1000000 --dim 64
    brane estimate edges.csv --nodes people.csv --method deepwalk --json
    brane estimate synthetic:1000000000 --ranks 64
    """
    from neural_brane.experiments.estimate import estimate as estimate_training
    from neural_brane.experiments.estimate import look_at

    kind = find_method(method)
    model = kind(**training.parameters(kind))
    look = look_at(source, lambda: reading.read(source))
    found = estimate_training(
        look.graph or look.sizes,
        model,
        time=not no_time,
        reading_bytes=look.reading_bytes,
        reading_seconds=look.reading_seconds,
        ranks=ranks,
    )
    if as_json:
        echo(json.dumps(found.as_dict(), indent=2))
    else:
        show(found)
    if not found.fits:
        raise Exit(1)


def show(found: Estimate) -> None:
    """Print memory and time by part, and whether the training fits."""
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
    """Print the memory that the ranks of a host share and the bytes that a rank sends per step."""
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
    echo(f"time: not estimated for several ranks; at most {several.steps:,} steps")


def show_time(seconds: float) -> str:
    """Spell a time for people.

    >>> show_time(0.4), show_time(75), show_time(9000)
    ('0.4 s', '1 min 15 s', '2 h 30 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"
