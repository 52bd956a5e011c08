"""`brane shard` and `brane split-edges`: prepare a graph before anything is trained on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from neural_brane.cli import options as o
from neural_brane.cli.options import Reading, bundled
from neural_brane.cli.terminal import counting, echo
from neural_brane.errors import ParameterError

# `brane shard`: a graph as a folder of parts, made without holding it in memory.


@bundled
def shard(
    source: Annotated[str, Argument(help="A table of edges, a folder of them, a graph file or dataset.")],
    output: Annotated[Path, Option("--output", "-o", metavar="<folder>", help="Folder for the parts.")],
    reading: Reading,
    parts: Annotated[int, Option(metavar="<whole>", help="Number of parts.")] = 1,
    memory: Annotated[str, Option(metavar="<size>", help="Memory to use, about.")] = "1GB",
) -> None:
    """Write a graph as a folder of parts, for distributed training.

    The graph may be larger than memory. DuckDB (pip install 'neural-brane[shards]')
    sorts edges in CSV, Parquet, a folder of either, or lines of words on disk,
    which needs about 40 bytes per edge. Any other SOURCE, and a table of nodes,
    is read into memory. An attribute file may be Parquet with the columns node,
    attribute and amount. Labels are not kept. A run that is stopped leaves no
    parts behind; the same command begins again.

    \b
    brane shard edges.parquet -o parts --parts 8
    brane shard folder-of-parquet -o parts --parts 8 --memory 4GB
    brane shard edges.csv --source follower --target followed -o parts
    """
    from neural_brane.files import datasets
    from neural_brane.files.graphs.parts import check_vacant, write_shards
    from neural_brane.files.graphs.sharding import Plan, shard_files
    from neural_brane.files.graphs.sharding_reading import find_edges
    from neural_brane.files.storage import check_distinct
    from neural_brane.graph.memory import parse_size

    check_distinct({"--output": output}, {**reading.files(), "SOURCE": source})
    if (size := parse_size(memory)) is None:
        raise ParameterError(f"--memory {memory} is no size; write one as in 500MB or 4GB")
    given = reading.keywords()
    options = {name: given.get(name) for name in ("source", "target", "weight", "header")}
    known = source in {one.name for one in datasets.list_datasets()}
    whole = known or given.keys() - options.keys() - {"attributes", "duplicates", "self_loops"}
    edges = None if whole else find_edges(source, options)
    with counting("parts") as report:
        if edges is not None:
            plan = Plan(edges, reading.attributes, parts, reading.duplicates, reading.self_loops, size)
            found = shard_files(plan, output, report=report)
        else:
            check_vacant(output)
            echo(f"{source} is read as a whole, into memory", err=True)
            found = write_shards(reading.read(source), output, parts, report=report)
    described = f"{found.nodes:,} nodes, {found.edges:,} edges and {found.attributes:,} attributes"
    echo(f"wrote {described} to {output}, in {len(found)} part{'s' if len(found) > 1 else ''}")


# `brane split-edges`: take edges out of a graph before anything is trained on it, to predict them later.


@bundled
def split_edges(
    source: o.Source,
    output: Annotated[Path, Option("--output", "-o", metavar="<file>", help="Graph to train on; see 'brane formats'.")],
    held_out: Annotated[Path, Option(metavar="<file>", help="Pairs to predict (.npz).")],
    reading: Reading,
    share: Annotated[float, Option(metavar="<number>", help="Share of the edges to take out.")] = 0.1,
    seed: o.Seed = 0,
) -> None:
    """Take edges out of a graph, to test vectors on them.

    The pairs to predict are those edges and as many pairs of nodes without an
    edge. Train on the graph written here: 'brane evaluate' refuses vectors
    whose file says that they were trained on another one.

    \b
    brane split-edges citeseer -o train.npz --held-out pairs.npz
    brane embed train.npz -o vectors.npz
    brane evaluate vectors.npz --held-out pairs.npz
    """
    from neural_brane.evaluate.link import check_pairs_target, hold_out_edges
    from neural_brane.files.graphs.formats import check_graph_target, write_graph
    from neural_brane.files.storage import check_distinct

    check_distinct({"--output": output, "--held-out": held_out}, reading.files(source))
    check_graph_target(output)
    check_pairs_target(held_out)
    graph = reading.read(source)
    found = hold_out_edges(graph, share=share, seed=seed)
    write_graph(found.graph, output)
    found.save(held_out)
    taken = len(found.positives)
    echo(f"wrote {found.graph.edges:,} edges of {len(graph):,} nodes to {output}; train on it")
    echo(f"wrote {taken:,} other edges and {taken:,} pairs without an edge to {held_out}; evaluate on it")
