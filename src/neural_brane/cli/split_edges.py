"""`brane split-edges`: take edges out of a graph before anything is trained on it, to predict them later."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from neural_brane.cli import options as o
from neural_brane.cli.console import echo
from neural_brane.cli.tables import Tables, read, takes_tables


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
    from neural_brane import datasets
    from neural_brane.evaluate.held_out import check_pairs_target, hold_out_edges
    from neural_brane.io import check_graph_target, write_graph
    from neural_brane.io.atomic import check_distinct

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
