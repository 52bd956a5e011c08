"""`brane convert`, `brane shard` and `brane split-edges`: write vectors in another format, prepare a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from neural_brane.cli import options as o
from neural_brane.cli.options import Reading, bundled
from neural_brane.cli.terminal import counting, echo
from neural_brane.errors import ParameterError
from neural_brane.progress import Meter


def convert(
    vectors: o.Vectors,
    output: o.Output,
    ids: o.Ids = None,
    parts: Annotated[int | None, Option(metavar="<whole>", help="Write a folder of N parts.")] = None,
    part_format: Annotated[
        Literal["npy", "parquet"], Option(metavar="<npy|parquet>", help="Format of the parts.")
    ] = "npy",
) -> None:
    """Write vectors in another format, or as a folder of parts.

    Vectors and ids stay the same, to the last bit; ids that the new format
    cannot hold are refused, and what else it cannot hold is listed. A folder of
    parts is merged block by block, without loading all vectors.

    \b
    brane convert vectors.npz -o vectors.parquet       for DuckDB or pandas
    brane convert vectors.npz -o vectors.bin           for gensim
    brane convert vectors.npz -o vectors.pgvector      for PostgreSQL
    brane convert folder -o vectors.parquet            merge a folder of parts
    brane convert vectors.npz -o folder --parts 4      split into parts
    """
    from neural_brane.embedding import Embedding
    from neural_brane.files.storage import check_space
    from neural_brane.files.vectors.formats import VectorFile, write_blocks
    from neural_brane.files.vectors.parts import is_parts, open_parts, write_parts

    check_output(vectors, ids, output, parts)
    if is_parts(vectors) and ids is None:
        found: Any = open_parts(vectors)
        with counting("comparing checksums") as report:
            found.check(Meter(report, sum(about["bytes"] for about in found.files.values()), "bytes").advance)
    else:
        found = Embedding.load(vectors, ids)
    if parts is None:
        file = VectorFile(output)
        with counting("writing") as report:
            write_blocks(file, vectors, found, tell=Meter(report, len(found), "vectors").advance)
        echo(f"wrote {len(found):,} x {found.dim} vectors to {output}")
        if lost := file.lost(found.provenance, found.layer, found.made_from):
            echo(f"this format has no place for {', '.join(lost)}; .npz keeps everything", err=True)
        if usage := file.usage(found.ids, found.dim):
            echo(usage)
        return
    check_space(output / "part", len(found) * (4 * found.dim + found.ids.dtype.itemsize), ParameterError)
    with counting("writing parts") as report:
        meter = Meter(report, len(found), "vectors")
        known: dict[str, Any] = {"provenance": found.provenance, "layer": found.layer, "made_from": found.made_from}
        write_parts(output, found.ids, found.vectors, parts=parts, kind=part_format, tell=meter.advance, **known)
    echo(f"wrote {len(found):,} x {found.dim} vectors to {output}, in {parts} {'part' if parts == 1 else 'parts'}")


def check_output(vectors: Path, ids: Path | None, output: Path, parts: int | None) -> None:
    """Refuse an output that is also read, or whose name does not say its format."""
    from neural_brane.files.storage import MANIFEST, check_distinct
    from neural_brane.files.vectors.formats import NAMES, VectorFile, find_format
    from neural_brane.files.vectors.parts import check_folder, is_parts, open_parts

    if parts is None and find_format(output) is None:
        raise ParameterError(
            f"{output}: cannot tell its format; name a file ending in {NAMES}, or give --parts N to write a folder"
        )
    files = VectorFile(output).files if parts is None else [check_folder(output, parts)]
    read = [vectors]
    if is_parts(vectors):
        read += [vectors / name for name in (MANIFEST, *open_parts(vectors).files)]
    for one in files:
        check_distinct({"--output": one}, {"--ids": ids})
        for path in read:
            check_distinct({"--output": one}, {"VECTORS": path})


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
