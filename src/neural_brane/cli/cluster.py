"""`brane cluster`: groups of nodes, found without labels and named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from neural_brane.cli.asked import AsJson, AttributeFile, GraphSource, read_graph
from neural_brane.cli.console import echo, show_table
from neural_brane.cli.progress import counting
from neural_brane.cli.tables import Tables, takes_tables


@takes_tables
def cluster(
    vectors: Annotated[Path, Argument(help="File of vectors, of any program.")],
    graph: GraphSource = None,
    attributes: AttributeFile = None,
    k: Annotated[int | None, Option("-k", help="How many clusters; chosen where not given.")] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="File for the cluster of every node (.csv: id,cluster).")
    ] = None,
    seed: Annotated[int, Option(help="The same seed gives the same clusters.")] = 0,
    as_json: AsJson = False,
    *,
    tables: Tables,
) -> None:
    """Divide nodes into clusters by k-means on their vectors, and tell what is typical of each.

    Without -k, numbers up to 20 are tried on 2,000 nodes: one more cluster must add a hundredth to the
    modularity of the graph that joins each node to its ten nearest.

    \b
    brane cluster vectors.npz --graph citeseer
    brane cluster vectors.npz --graph graph.txt -k 8 -o clusters.csv
    brane cluster vectors.npz --graph edges.csv --nodes people.csv
    """
    from neural_brane.embedding import Embedding
    from neural_brane.errors import EmbeddingError
    from neural_brane.io.atomic import check_distinct, check_target

    if output is not None:
        check_distinct({"--output": output}, {"VECTORS": vectors})
        check_target(output, (".csv",), ".csv, as clusters are written", EmbeddingError)
    embedding = Embedding.load(vectors)
    known = read_graph(graph, attributes, tables)
    with counting("dividing into clusters", steady=False) as report:
        found = embedding.clusters(k, graph=known, seed=seed, progress=report)
    if output is not None:
        write_assignments(output, found.ids.tolist(), found.assignments.tolist())
    if as_json:
        echo(json.dumps({"file": str(vectors), "seed": seed} | found.as_dict(), indent=2))
        return
    rows = [
        (
            str(at),
            f"{one.size:,}",
            ", ".join(f"{name.attribute} (x{name.lift:.1f})" for name in one.attributes),
            ", ".join(map(str, one.centre)),
        )
        for at, one in enumerate(found)
    ]
    how = "chosen by the rule" if found.chosen else "as asked"
    title = f"{vectors}: {len(embedding):,} nodes in {found.k} clusters, {how}"
    show_table(("cluster", "nodes", "over-represented", "central nodes"), rows, title=title, right=("cluster", "nodes"))
    if output is not None:
        echo(f"wrote the cluster of every node to {output}")


def write_assignments(path: Path, ids: list[object], assignments: list[int]) -> None:
    """Write a table 'id,cluster' that appears whole or not at all."""
    import csv

    from neural_brane.io.atomic import atomic

    with atomic(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("id", "cluster"))
        table.writerows(zip(ids, assignments, strict=True))
