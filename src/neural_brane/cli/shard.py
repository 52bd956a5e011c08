"""`brane shard`: a graph as a folder of parts, made without holding it in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from neural_brane.cli import options as o
from neural_brane.cli.console import echo
from neural_brane.cli.progress import counting
from neural_brane.cli.tables import Tables, read, takes_tables
from neural_brane.errors import ParameterError

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
    """Write a graph as a folder of parts, for 'brane embed FOLDER --cluster': also one that is larger than memory.

    Edges in CSV and its kin, Parquet, a folder of either, or lines of words are read once and sorted on the disk, which
    needs room for about 40 bytes for each edge. Nodes and attributes get the numbers that 'brane embed' gives them:
    integers in increasing order, names as they appear. Any other SOURCE, and a table of --nodes, is read as a whole.
    Labels are not kept.

    A run that is stopped goes on when the same command is given again; until it is done, the folder does not open.

    \b
    brane shard edges.parquet -o parts --parts 8
    brane shard folder-of-parquet -o parts --parts 8 --memory 4GB
    brane shard edges.csv --source follower --target followed -o parts
    brane shard graph.txt --attributes words.txt -o parts --parts 2
    brane info parts                             what is in it
    """
    from neural_brane import datasets
    from neural_brane.io.atomic import check_distinct
    from neural_brane.memory import parse_size
    from neural_brane.shards import Plan, find_edges, shard_files, write_shards
    from neural_brane.shards.write import check_vacant

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
            found = shard_files(plan, output, report=report, tell=lambda line: echo(line, err=True))
        else:
            check_vacant(output)
            echo(f"{source} is read as a whole, into memory", err=True)
            rules = {"duplicates": duplicates, "self_loops": self_loops}
            found = write_shards(read(source, tables, attributes=attributes, **rules), output, parts, report=report)
    described = f"{found.nodes:,} nodes, {found.edges:,} edges and {found.attributes:,} attributes"
    echo(f"wrote {described} to {output}, in {len(found)} part{'s' if len(found) > 1 else ''}")
