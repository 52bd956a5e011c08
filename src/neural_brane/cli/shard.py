"""`brane shard` and `brane split-edges`: prepare a graph before anything is trained on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from neural_brane.cli import options as o
from neural_brane.cli.tables import Tables, read, takes_tables
from neural_brane.cli.terminal import counting, echo
from neural_brane.errors import ParameterError

# `brane shard`: a graph as a folder of parts, made without holding it in memory.

ATTRIBUTES = "Attribute file, as in '17 3:1 8:1', or Parquet with columns node, attribute and perhaps amount."


@takes_tables
def shard(
    source: Annotated[
        str, Argument(help="A table of edges, a folder of such tables, a graph file or a dataset's name.")
    ],
    output: Annotated[Path, Option("--output", "-o", metavar="<folder>", help="Folder to make, with the parts in it.")],
    tables: Tables,
    parts: Annotated[int, Option(help="How many parts, of nearly equal numbers of nodes.")] = 1,
    memory: Annotated[
        str, Option(metavar="<size>", help="About how much memory the work may take, beside the program.")
    ] = "1GB",
    attributes: Annotated[Path | None, Option(help=ATTRIBUTES, rich_help_panel=o.READING)] = None,
    duplicates: o.Duplicates = "max",
    self_loops: o.SelfLoops = "keep",
) -> None:
    """Write a graph as a folder of parts, for 'brane distributed embed FOLDER': also one that is larger than memory.

    Edges in CSV and its kin, Parquet, a folder of either, or lines of words are read once and sorted on the disk by
    DuckDB (pip install 'neural-brane[shards]'), which needs room for about 40 bytes for each edge. Nodes and attributes
    get the numbers that 'brane embed' gives them: integers in increasing order, names as they appear. Any other SOURCE,
    and a table of --nodes, is read as a whole. Labels are not kept.

    A run that is stopped leaves no parts behind; give the same command to begin again.

    \b
    brane shard edges.parquet -o parts --parts 8
    brane shard folder-of-parquet -o parts --parts 8 --memory 4GB
    brane shard edges.csv --source follower --target followed -o parts
    brane shard graph.txt --attributes words.txt -o parts --parts 2
    brane info parts                             what is in it
    """
    from neural_brane.files import datasets
    from neural_brane.files.graphs.parts import check_vacant, write_shards
    from neural_brane.files.graphs.sharding import Plan, shard_files
    from neural_brane.files.graphs.sharding_reading import find_edges
    from neural_brane.files.storage import check_distinct
    from neural_brane.graph.memory import parse_size

    check_distinct({"--output": output}, {"--attributes": attributes, "--nodes": tables.nodes, "SOURCE": source})
    if (size := parse_size(memory)) is None:
        raise ParameterError(f"--memory {memory} is no size; write one as in 500MB or 4GB")
    given = tables.keywords()
    options = {name: given.get(name) for name in ("source", "target", "weight", "header")}
    known = source in {one.name for one in datasets.list_datasets()}
    edges = None if known or given.keys() - options.keys() else find_edges(source, options)
    with counting("parts") as report:
        if edges is not None:
            plan = Plan(edges, attributes, parts, duplicates, self_loops, size)
            found = shard_files(plan, output, report=report)
        else:
            check_vacant(output)
            echo(f"{source} is read as a whole, into memory", err=True)
            rules = {"duplicates": duplicates, "self_loops": self_loops}
            found = write_shards(read(source, tables, attributes=attributes, **rules), output, parts, report=report)
    described = f"{found.nodes:,} nodes, {found.edges:,} edges and {found.attributes:,} attributes"
    echo(f"wrote {described} to {output}, in {len(found)} part{'s' if len(found) > 1 else ''}")


# `brane split-edges`: take edges out of a graph before anything is trained on it, to predict them later.


@takes_tables
def split_edges(
    source: o.Source,
    output: Annotated[
        Path, Option("--output", "-o", help="File for the graph to train on (.npz, .graphml, .gexf, .gml or .mtx).")
    ],
    held_out: Annotated[Path, Option(help="File for the pairs to predict (.npz).")],
    tables: Tables,
    share: Annotated[float, Option(help="Share of the edges to take out.")] = 0.1,
    seed: Annotated[int, Option(help="The same seed takes out the same edges.")] = 0,
    attributes: o.Attributes = None,
    labels: o.Labels = None,
    duplicates: o.Duplicates = "max",
    self_loops: o.SelfLoops = "keep",
) -> None:
    """Take edges out of a graph, to be predicted by vectors that never saw them.

    The pairs are those edges and as many pairs of nodes without an edge. Train on the graph that is written
    here: 'brane evaluate' refuses vectors whose file says that they were trained on another.

    \b
    brane split-edges citeseer -o train.npz --held-out pairs.npz
    brane embed train.npz -o vectors.npz
    brane evaluate vectors.npz --held-out pairs.npz
    """
    from neural_brane.evaluate.link import check_pairs_target, hold_out_edges
    from neural_brane.files import datasets
    from neural_brane.files.graphs.formats import check_graph_target, write_graph
    from neural_brane.files.storage import check_distinct

    check_distinct(
        {"--output": output, "--held-out": held_out},
        {"--attributes": attributes, "--labels": labels, "--nodes": tables.nodes, **datasets.source_files(source)},
    )
    check_graph_target(output)
    check_pairs_target(held_out)
    rules = {"duplicates": duplicates, "self_loops": self_loops}
    graph = read(source, tables, attributes=attributes, labels=labels, **rules)
    found = hold_out_edges(graph, share=share, seed=seed)
    write_graph(found.graph, output)
    found.save(held_out)
    taken = len(found.positives)
    echo(f"wrote {found.graph.edges:,} edges of {len(graph):,} nodes to {output}; train on it")
    echo(f"wrote {taken:,} other edges and {taken:,} pairs without an edge to {held_out}; evaluate on it")
