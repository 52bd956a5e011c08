"""`brane explain`, `brane suggest`, `brane cluster` and `brane nearest`: ask a fitted model or its vectors."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from neural_brane.cli import options as o
from neural_brane.cli.options import Reading, as_id, bundled
from neural_brane.cli.terminal import counting, echo, show_table
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.graph import AttributedGraph


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
    from neural_brane.files.storage import atomic, check_distinct, check_target

    if output is not None:
        check_distinct({"--output": output}, {"VECTORS": vectors})
        check_target(output, (".csv",), ".csv, as clusters are written", EmbeddingError)
    embedding = Embedding.load(vectors)
    known = reading.read_optional(graph)
    with counting("dividing into clusters", steady=False) as report:
        found = embedding.clusters(k, graph=known, seed=seed, progress=report)
    if output is not None:
        with atomic(output) as draft, draft.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(("id", "cluster"))
            table.writerows(zip(found.ids.tolist(), found.assignments.tolist(), strict=True))
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


SHOWN = 6  # attributes of a node


@bundled
def nearest(
    vectors: o.Vectors,
    wanted: Annotated[list[str], Argument(metavar="ID…", help="Ids of nodes.")],
    reading: Reading,
    graph: o.GraphSource = None,
    k: Annotated[int, Option("-k", metavar="<whole>", help="Number of nearest nodes.")] = 10,
    index: Annotated[Path | None, Option(metavar="<file>", help="Search by this .faiss file (made if absent).")] = None,
    center: Annotated[bool, Option("--center", help="Subtract the mean of all vectors first.")] = False,
    ids: o.Ids = None,
    as_json: o.AsJson = False,
) -> None:
    """List the nodes with the most similar vectors, by cosine.

    All vectors are compared, unless an index by faiss is given: it finds
    nearly all of the same nodes and looks at few (needs the extra 'search').
    --labels without --graph may also name a dataset, a graph or a table.

    \b
    brane nearest vectors.npz 100157 102879 -k 5
    brane nearest vectors.npz 100157 --graph citeseer
    brane nearest vectors.npz ann --graph edges.csv --nodes people.csv
    brane nearest gensim.txt ann --labels classes.txt --json
    brane nearest vectors.npz ann --index vectors.faiss
    """
    if index is not None and center:
        raise ParameterError("--index holds vectors as they are; leave out --center, or search without --index")
    labels = reading.labels if graph is None else None
    described = (replace(reading, labels=None) if graph is None else reading).read_optional(graph)
    if index is None:
        embedding = open_vectors(vectors, ids)
        asked = [as_id(embedding.ids, node) for node in wanted]
        answers = embedding.nearest(asked, k, center=center)
    else:
        opened = open_index(index, vectors, ids)
        asked = [as_id(opened.ids, node) for node in wanted]
        answers = opened.nearest(asked, k)
    about = describer(described, labels)
    if as_json:
        records = [
            {
                "id": node,
                **about(node),
                "nearest": [{"id": near, "cosine": round(cosine, 6), **about(near)} for near, cosine in found],
            }
            for node, found in zip(asked, answers, strict=True)
        ]
        echo(json.dumps(records, indent=2))
        return
    for node, found in zip(asked, answers, strict=True):
        rows = [(str(near), f"{cosine:.4f}", *shown(about(near))) for near, cosine in found]
        words = "; ".join(filter(None, shown(about(node))))
        title = f"{node} ({words})" if words else f"{node}"
        show_table(("id", "cosine", *about(node)), rows, title=title, right=("cosine",))


def open_vectors(path: Path, ids: Path | None, *, check: bool = True) -> Any:
    """Read the vectors of a file, or open a folder of parts, which stay on disk; `check` reads all of a folder."""
    from neural_brane.embedding import Embedding
    from neural_brane.files.vectors.parts import is_parts
    from neural_brane.search.index import EmbeddingParts

    return EmbeddingParts(path, check=check) if is_parts(path) and ids is None else Embedding.load(path, ids)


def open_index(path: Path, vectors: Path, ids: Path | None) -> Any:
    """Load an index, or build and write it first if the file does not exist."""
    from neural_brane.search.index import check_belongs, check_index_target, load_index

    if path.exists():
        found = load_index(path)
        embedding = open_vectors(vectors, ids, check=False)
        check_belongs(path, found, embedding.vectors, embedding.ids)
        return found
    check_index_target(path)
    embedding = open_vectors(vectors, ids)
    echo(f"building an index over {len(embedding):,} nodes", err=True)
    with counting("building the index") as report:
        built = embedding.index(progress=report)
    built.save(path)
    echo(f"wrote {path}: it finds {built.recall:.1%} of the ten nearest", err=True)
    return built


def describer(graph: AttributedGraph | None, labels: Path | None) -> Callable[[Any], dict[str, Any]]:
    """Return a function that gives a node's label and its largest attributes; of equal ones, the rarer come first."""
    import numpy as np

    from neural_brane.files.datasets import read_labels

    named: dict[str, str] = {}
    if labels is not None:
        named = dict(zip(*(map(str, part.tolist()) for part in read_labels(labels)), strict=True))
    elif graph is not None and graph.labels is not None:
        named = dict(zip(map(str, graph.ids.tolist()), map(str, graph.labels.tolist()), strict=True))
    rows, holders = {}, np.empty(0, int)
    if graph is not None:
        rows = {str(node): row for row, node in enumerate(graph.ids.tolist())}
        holders = np.bincount(graph.attributes.indices, minlength=len(graph.attribute_names))

    def about(node: Any) -> dict[str, Any]:
        known: dict[str, Any] = {"label": named.get(str(node))} if named else {}
        if graph is None:
            return known
        row = rows.get(str(node))
        if row is None:
            return known | {"attributes": []}
        table = graph.attributes
        entries = slice(table.indptr[row], table.indptr[row + 1])
        columns, amounts = table.indices[entries], table.data[entries]
        order = np.lexsort((columns, holders[columns], -amounts))
        return known | {"attributes": list(map(str, graph.attribute_names[columns[order[:SHOWN]]]))}

    return about


def shown(about: dict[str, Any]) -> list[str]:
    """Write the facts of a node as texts."""
    return [", ".join(value) if isinstance(value, list) else value or "" for value in about.values()]
