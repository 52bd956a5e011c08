"""`brane explain`, `brane suggest`, `brane cluster` and `brane nearest`: query a saved model or its vectors."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

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
    top: Annotated[int, o.option("whole", "Attributes and neighbours to list.")] = 10,
    as_json: o.AsJson = False,
) -> None:
    r"""Show what shapes a vector, or what makes two nodes alike.

    The shares of one node sum to 1, those of two nodes to their cosine. An
    attribute that comes through a neighbour is listed twice: as an attribute
    and as the neighbour. 'by part' counts it once.

    \b
    brane embed stdlib --save-model m.brane
    brane explain m.brane json
    brane explain m.brane json pickle --json
    """
    from neural_brane.files.models import load_model

    fitted = load_model(model)
    first, second = (None if one is None else as_id(fitted.embedding_.ids, one) for one in (node, other))
    explained = fitted.explain(first, second, top)
    if as_json:
        echo(json.dumps(explained.as_dict(), indent=2))
        return
    rows = [(*_cells(left), *_cells(right)) for left, right in zip_longest(explained.attributes, explained.neighbours)]
    show_table(("share", "attribute", "share ", "neighbour"), rows, title=explained.title, right=("share", "share "))
    echo("by part: " + ", ".join(f"{name} {share:.3f}" for name, share in explained.shares.items()))


def _cells(one: tuple[object, float] | None) -> tuple[str, str]:
    return ("", "") if one is None else (f"{one[1]:.3f}", str(one[0]))


def suggest(
    model: o.ModelFile,
    node: o.Node,
    k: Annotated[int, o.option("whole", "Number of links.", "-k")] = 10,
    as_json: o.AsJson = False,
) -> None:
    r"""Suggest links that a node does not have yet, with reasons.

    The score, from 0 to 1, is learned from the graph's own edges: by spectral
    vectors, common neighbours, eigenvectors and degrees. The reasons are what
    both nodes share and few others have.

    \b
    brane embed stdlib --save-model m.brane
    brane suggest m.brane json -k 5
    """
    from neural_brane.files.models import load_model

    fitted = load_model(model)
    with counting("scores of links") as report:
        suggestions = fitted.set_params(progress=report).suggest(as_id(fitted.embedding_.ids, node), k)
    if as_json:
        echo(json.dumps([one.as_dict() for one in suggestions], indent=2))
        return
    rows = [(f"{one.score:.2g}", str(one.id), str(one.reasons)) for one in suggestions]
    show_table(("score", "node", "because"), rows, right=("score",), fold=True)


@bundled
def cluster(
    vectors: o.Vectors,
    reading: Reading,
    graph: o.GraphSource = None,
    k: Annotated[int | None, o.option("whole", "Number of clusters (default: automatic).", "-k")] = None,
    output: Annotated[Path | None, o.option("file", "Write each node's cluster to a .csv.", "--output", "-o")] = None,
    seed: o.Seed = 0,
    as_json: o.AsJson = False,
) -> None:
    r"""Divide nodes into clusters, and describe each cluster.

    The clusters are those of k-means; --graph adds their typical attributes.
    Without -k, tries up to 20 clusters on 2,000 nodes: each further cluster
    must raise the modularity of the graph of ten nearest nodes by 0.01. A
    cluster of more than a quarter of the nodes is split if its parts are stable.

    \b
    brane cluster vectors.npz --graph stdlib
    brane cluster vectors.npz --graph graph.txt -k 8 -o clusters.csv
    brane cluster vectors.npz --graph edges.csv --nodes people.csv
    """
    from neural_brane.embedding import Embedding
    from neural_brane.errors import EmbeddingError
    from neural_brane.files.storage import atomic, check_distinct, check_target

    if output is not None:
        check_distinct({"--output": output}, {"VECTORS": vectors})
        check_target(output, (".csv",), ".csv, the format of clusters", EmbeddingError)
    embedding = Embedding.load(vectors)
    known = reading.read_optional(graph)
    with counting("clusters", steady=False) as report:
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
    title = f"{vectors}: {len(embedding):,} nodes in {found.k} clusters"
    show_table(
        ("cluster", "nodes", "typical attributes", "central nodes"), rows, title=title, right=("cluster", "nodes")
    )
    if found.rule:
        echo(f"{found.rule}; set the number with -k")
    if output is not None:
        echo(f"wrote the cluster of every node to {output}")


SHOWN = 6  # most attributes of a node in a list


@bundled
def nearest(
    vectors: o.Vectors,
    typed_ids: Annotated[list[str], Argument(metavar="ID…", help="Ids of nodes.")],
    reading: Reading,
    graph: o.GraphSource = None,
    k: Annotated[int, o.option("whole", "Number of nearest nodes.", "-k")] = 10,
    index: Annotated[Path | None, o.option("file", "Index file, .faiss (built if missing).")] = None,
    center: Annotated[bool, o.flag("--center", "Subtract the mean of all vectors first.")] = False,
    ids: o.Ids = None,
    as_json: o.AsJson = False,
) -> None:
    r"""List the nodes with the most similar vectors, by cosine.

    Compares all vectors. --index compares only a few of them and still finds
    nearly all of the same nodes (pip install 'neural-brane\[search]').
    --labels without --graph may also name a dataset, a graph or a table.

    \b
    brane nearest vectors.npz json pickle -k 5
    brane nearest vectors.npz json --graph stdlib
    brane nearest vectors.npz ann --graph edges.csv --nodes people.csv
    brane nearest gensim.txt ann --labels classes.txt --json
    brane nearest vectors.npz ann --index vectors.faiss
    """
    if index is not None and center:
        raise ParameterError("--center cannot be combined with --index; leave one of them out")
    labels = reading.labels if graph is None else None
    described = (replace(reading, labels=None) if graph is None else reading).read_optional(graph)
    if index is None:
        embedding = open_vectors(vectors, ids)
        queries = [as_id(embedding.ids, one) for one in typed_ids]
        answers = embedding.nearest(queries, k, center=center)
    else:
        opened = open_index(index, vectors, ids)
        queries = [as_id(opened.ids, one) for one in typed_ids]
        answers = opened.nearest(queries, k)
    about = describer(described, labels)
    if as_json:
        records = [
            {
                "id": node,
                **about(node),
                "nearest": [{"id": near, "cosine": round(cosine, 6), **about(near)} for near, cosine in found],
            }
            for node, found in zip(queries, answers, strict=True)
        ]
        echo(json.dumps(records, indent=2))
        return
    for node, found in zip(queries, answers, strict=True):
        rows = [(str(near), f"{cosine:.4f}", *as_texts(about(near))) for near, cosine in found]
        words = "; ".join(filter(None, as_texts(about(node))))
        title = f"{node} ({words})" if words else f"{node}"
        show_table(("id", "cosine", *about(node)), rows, title=title, right=("cosine",))


def open_vectors(path: Path, ids: Path | None, *, check: bool = True) -> Any:
    """Return the vectors of a file; those of a folder stay on disk, and `check` reads them once to find damage."""
    from neural_brane.embedding import Embedding
    from neural_brane.files.vectors.parts import is_parts
    from neural_brane.search.index import EmbeddingParts

    return EmbeddingParts(path, check=check) if is_parts(path) and ids is None else Embedding.load(path, ids)


def open_index(path: Path, vectors: Path, ids: Path | None) -> Any:
    """Return the index in a file; if the file does not exist, build the index and write it first."""
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
    echo(f"wrote the index to {path}; it finds {built.recall:.1%} of the ten nearest nodes", err=True)
    return built


def describer(graph: AttributedGraph | None, labels: Path | None) -> Callable[[Any], dict[str, Any]]:
    """Return a function from a node to its label and its attributes, largest first and rarer first among equals."""
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


def as_texts(about: dict[str, Any]) -> list[str]:
    """Return the facts of a node as texts."""
    return [", ".join(value) if isinstance(value, list) else value or "" for value in about.values()]
