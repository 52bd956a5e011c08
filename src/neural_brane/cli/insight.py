"""`brane explain`, `brane suggest` and `brane cluster`: ask a fitted model or its vectors."""

from __future__ import annotations

import json
from itertools import zip_longest
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from neural_brane.cli import options as o
from neural_brane.cli.options import Reading, as_id, bundled
from neural_brane.cli.terminal import counting, echo, show_table


def explain(
    model: o.ModelFile,
    node: o.Node,
    other: Annotated[str | None, Argument(help="Id of another node to compare with.", show_default=False)] = None,
    top: Annotated[int, Option("--top", metavar="<whole>", help="Attributes and neighbours to list.")] = 10,
    as_json: o.AsJson = False,
) -> None:
    """Show what shapes a node's vector, or makes two nodes alike.

    The shares of one node sum to 1, those of two nodes to their cosine. A
    share that comes through a neighbour is listed twice, with its attribute
    and with the neighbour; 'by part' counts it once.

    \b
    brane embed citeseer -o vectors.npz --save-model m.brane
    brane explain m.brane 17
    brane explain m.brane 17 204 --json
    """
    from neural_brane.files.models import load_model

    fitted = load_model(model)
    asked = [as_id(fitted.embedding_.ids, one) for one in (node, other) if one is not None]
    one, two = asked[0], asked[1] if len(asked) > 1 else None
    found = fitted.explain(one, two, top)
    if as_json:
        echo(json.dumps(found.as_dict(), indent=2))
        return
    rows = [(*_cells(left), *_cells(right)) for left, right in zip_longest(found.attributes, found.neighbours)]
    show_table(("share", "attribute", "share ", "neighbour"), rows, title=found.title, right=("share", "share "))
    echo("by part: " + ", ".join(f"{name} {share:.3f}" for name, share in found.shares.items()))


def _cells(one: tuple[object, float] | None) -> tuple[str, str]:
    return ("", "") if one is None else (f"{one[1]:.3f}", str(one[0]))


def suggest(
    model: o.ModelFile,
    node: o.Node,
    k: Annotated[int, Option("-k", metavar="<whole>", help="Number of links.")] = 10,
    as_json: o.AsJson = False,
) -> None:
    """Suggest links that a node does not have yet, with reasons.

    The score adds the method's own score of a pair (or the similarity of the
    vectors) and a score of common neighbours, each in standard deviations from
    the mean; existing links decide how much each counts.

    \b
    brane embed citeseer -o vectors.npz --save-model m.brane
    brane suggest m.brane 17 -k 5
    """
    from neural_brane.files.models import load_model

    fitted = load_model(model)
    found = fitted.suggest(as_id(fitted.embedding_.ids, node), k)
    if as_json:
        echo(json.dumps([one.as_dict() for one in found], indent=2))
        return
    rows = [(f"{one.score:.2f}", str(one.id), str(one.reasons)) for one in found]
    show_table(("score", "node", "because"), rows, right=("score",), fold=True)


@bundled
def cluster(
    vectors: o.Vectors,
    reading: Reading,
    graph: o.GraphSource = None,
    k: Annotated[int | None, Option("-k", metavar="<whole>", help="Number of clusters (chosen if unset).")] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="<file>", help="Cluster of every node (.csv).")
    ] = None,
    seed: o.Seed = 0,
    as_json: o.AsJson = False,
) -> None:
    """Divide nodes into clusters, and list what is typical of each.

    Clusters are those of k-means. Without -k, numbers up to
    20 are tried on 2,000 nodes: one more cluster must add 0.01 to the
    modularity of the graph of ten nearest nodes.

    \b
    brane cluster vectors.npz --graph citeseer
    brane cluster vectors.npz --graph graph.txt -k 8 -o clusters.csv
    brane cluster vectors.npz --graph edges.csv --nodes people.csv
    """
    from neural_brane.embedding import Embedding
    from neural_brane.errors import EmbeddingError
    from neural_brane.files.storage import check_distinct, check_target

    if output is not None:
        check_distinct({"--output": output}, {"VECTORS": vectors})
        check_target(output, (".csv",), ".csv, as clusters are written", EmbeddingError)
    embedding = Embedding.load(vectors)
    known = reading.read_optional(graph)
    with counting("dividing into clusters", steady=False) as report:
        found = embedding.clusters(k, graph=known, seed=seed, progress=report)
    if output is not None:
        write_assignments(output, found.ids.tolist(), found.assignments.tolist())
    if as_json:
        echo(json.dumps({"file": str(vectors), "seed": seed} | found.as_dict(), indent=2))
        return
    rows = []
    for at, one in enumerate(found):
        names = ", ".join(f"{name.attribute} (x{name.lift:.1f})" for name in one.attributes)
        rows.append((str(at), f"{one.size:,}", names, ", ".join(map(str, one.centre))))
    how = "number chosen by modularity; set it with -k" if found.chosen else "as asked"
    title = f"{vectors}: {len(embedding):,} nodes in {found.k} clusters, {how}"
    show_table(("cluster", "nodes", "over-represented", "central nodes"), rows, title=title, right=("cluster", "nodes"))
    if output is not None:
        echo(f"wrote the cluster of every node to {output}")


def write_assignments(path: Path, ids: list[object], assignments: list[int]) -> None:
    """Write a table 'id,cluster' that appears whole or not at all."""
    import csv

    from neural_brane.files.storage import atomic

    with atomic(path) as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("id", "cluster"))
        table.writerows(zip(ids, assignments, strict=True))
