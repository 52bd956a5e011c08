"""`brane convert`, `brane shard` and `brane split-edges`: write vectors in another format; divide a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument

from neural_brane.cli import options as o
from neural_brane.cli.options import Reading, bundled
from neural_brane.cli.terminal import counting, echo
from neural_brane.errors import ParameterError
from neural_brane.progress import Meter


def convert(
    vectors: o.Vectors,
    output: o.Output,
    ids: o.Ids = None,
    parts: Annotated[int | None, o.option("whole", "Write a folder of N files.")] = None,
    part_format: Annotated[Literal["npy", "parquet"], o.option("name", "npy or parquet.")] = "npy",
) -> None:
    r"""Write vectors in another format, or into several files.

    Vectors and ids do not change, to the last bit. If the new format cannot
    store the ids, nothing is written. Everything else that it cannot store is
    listed. A folder is merged block by block, without loading all vectors.

    \b
    brane convert vectors.npz -o vectors.parquet       for DuckDB or pandas
    brane convert vectors.npz -o vectors.bin           for gensim
    brane convert vectors.npz -o vectors.pgvector      for PostgreSQL
    brane convert vectors.npz -o folder --parts 4      split into a folder
    brane convert folder -o vectors.parquet            merge a folder
    """
    from neural_brane.embedding import Embedding
    from neural_brane.files.storage import check_space
    from neural_brane.files.vectors.formats import VectorFile, write_blocks
    from neural_brane.files.vectors.parts import is_parts, open_parts, write_parts

    check_output(vectors, ids, output, parts)
    if is_parts(vectors) and ids is None:
        loaded: Any = open_parts(vectors)
        with counting("comparing checksums") as report:
            loaded.check(Meter(report, sum(about["bytes"] for about in loaded.files.values()), "bytes").advance)
    else:
        loaded = Embedding.load(vectors, ids)
    if parts is None:
        file = VectorFile(output)
        with counting("writing") as report:
            write_blocks(file, vectors, loaded, report=Meter(report, len(loaded), "vectors").advance)
        echo(f"wrote {len(loaded):,} x {loaded.dim} vectors to {output}")
        if lost := file.lost(loaded.provenance, loaded.made_from):
            echo(f"this format cannot store {', '.join(lost)}; .npz stores everything", err=True)
        if usage := file.usage(loaded.ids, loaded.dim):
            echo(usage)
        return
    check_space(output / "part", len(loaded) * (4 * loaded.dim + loaded.ids.dtype.itemsize), ParameterError)
    with counting("writing parts") as report:
        meter = Meter(report, len(loaded), "vectors")
        known: dict[str, Any] = {"provenance": loaded.provenance, "made_from": loaded.made_from}
        write_parts(output, loaded.ids, loaded.vectors, parts=parts, kind=part_format, report=meter.advance, **known)
    echo(f"wrote {len(loaded):,} x {loaded.dim} vectors to {output}, in {parts} {'part' if parts == 1 else 'parts'}")


def check_output(vectors: Path, ids: Path | None, output: Path, parts: int | None) -> None:
    """Refuse an output that is also an input, or whose suffix is of no known format."""
    from neural_brane.files.storage import MANIFEST, check_distinct
    from neural_brane.files.vectors.formats import NAMES, VectorFile, find_format
    from neural_brane.files.vectors.parts import check_folder, is_parts, open_parts

    if parts is None and find_format(output) is None:
        raise ParameterError(
            f"{output}: no format has this suffix; name a file ending in {NAMES}, or give --parts N to write a folder"
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
    source: Annotated[str, Argument(help="Table of edges, or any graph.")],
    output: Annotated[Path, o.option("folder", "Write the shards here.", "--output", "-o")],
    reading: Reading,
    parts: Annotated[int, o.option("whole", "Number of shards.")] = 1,
    memory: Annotated[str, o.option("size", "Memory to use, roughly.")] = "1GB",
) -> None:
    r"""Write a graph as a folder of shards, for distributed training.

    A table of edges may be larger than memory: DuckDB sorts it on disk, with
    about 40 bytes per edge (pip install 'neural-brane\[shards]'). It is CSV,
    Parquet, a folder of either, or text. Other graphs and tables of nodes are
    read into memory. Attributes may be Parquet: node, attribute, amount. Labels
    are left out. A stopped run leaves no shards; start it again.

    \b
    brane shard edges.parquet -o shards --parts 8
    brane shard folder-of-parquet -o shards --parts 8 --memory 4GB
    brane shard edges.csv --source follower --target followed -o shards
    """
    from neural_brane.files import datasets
    from neural_brane.files.graphs.sharding import Plan, shard_files
    from neural_brane.files.graphs.sharding_reading import find_edges
    from neural_brane.files.graphs.shards import check_vacant, write_shards
    from neural_brane.files.storage import check_distinct
    from neural_brane.graph.memory import parse_size

    check_distinct({"--output": output}, {**reading.files(), "SOURCE": source})
    if (size := parse_size(memory)) is None:
        raise ParameterError(f"--memory {memory} is not a size; write one such as 500MB or 4GB")
    given = reading.keywords()
    options = {name: given.get(name) for name in ("source", "target", "weight", "header")}
    known = source in {one.name for one in datasets.list_datasets()}
    whole = known or given.keys() - options.keys() - {"attributes", "duplicates", "self_loops"}
    edges = None if whole else find_edges(source, options)
    with counting("shards") as report:
        if edges is not None:
            plan = Plan(edges, reading.attributes, parts, reading.duplicates, reading.self_loops, size)
            shards = shard_files(plan, output, report=report)
        else:
            check_vacant(output)
            echo(f"reading all of {source} into memory", err=True)
            shards = write_shards(reading.read(source), output, parts, report=report)
    described = f"{shards.nodes:,} nodes, {shards.edges:,} edges and {shards.attributes:,} attributes"
    echo(f"wrote {described} to {output}, in {len(shards)} shard{'s' if len(shards) > 1 else ''}")


@bundled
def split_edges(
    source: o.Source,
    output: Annotated[Path, o.option("file", "Graph for training.", "--output", "-o")],
    held_out: Annotated[Path, o.option("file", "Pairs to predict (.npz).")],
    reading: Reading,
    share: Annotated[float, o.option("number", "Share of edges to hold out.")] = 0.1,
    seed: o.Seed = 0,
) -> None:
    r"""Hold out some edges of a graph, to test vectors on them.

    Writes the graph without these edges, for training, and a file of pairs to
    predict: these edges, and as many pairs of nodes without an edge. 'brane
    evaluate' refuses vectors that were trained on another graph.

    \b
    brane split-edges stdlib -o train.npz --held-out pairs.npz
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
    split = hold_out_edges(graph, share=share, seed=seed)
    write_graph(split.graph, output)
    split.save(held_out)
    count = len(split.positives)
    echo(f"wrote {split.graph.edges:,} edges of {len(graph):,} nodes to {output}; train on it")
    echo(f"wrote {count:,} other edges and {count:,} pairs without an edge to {held_out}; evaluate on it")
