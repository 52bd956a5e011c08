"""`brane nearest`: the most similar nodes, with what is known of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from neural_brane.cli import options as o
from neural_brane.cli.options import Reading, as_id, bundled
from neural_brane.cli.terminal import counting, echo, show_table
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.graph import AttributedGraph

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
        found = open_index(index, vectors, ids)
        asked = [as_id(found.ids, node) for node in wanted]
        answers = found.nearest(asked, k)
    known = Known(described, labels)
    show = show_json if as_json else show_tables
    show(asked, answers, known)


def open_vectors(path: Path, ids: Path | None, *, check: bool = True) -> Any:
    """Read the vectors of a file, or open those of a folder of parts, which stay on disk.

    check: compare a folder with its checksums, which reads all of it; a file is always checked.
    """
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


class Known:
    """Labels and attributes of nodes, as far as a graph or a file of labels has them."""

    def __init__(self, graph: AttributedGraph | None, labels: Path | None):
        import numpy as np

        from neural_brane.files.datasets import read_labels

        self.graph = graph
        self.labels: dict[str, str] = {}
        if labels is not None:
            self.labels = dict(zip(*(map(str, part.tolist()) for part in read_labels(labels)), strict=True))
        elif graph is not None and graph.labels is not None:
            self.labels = dict(zip(map(str, graph.ids.tolist()), map(str, graph.labels.tolist()), strict=True))
        self._rows: dict[str, int] = {}
        if graph is not None:
            self._rows = {str(node): row for row, node in enumerate(graph.ids.tolist())}
            self._holders = np.bincount(graph.attributes.indices, minlength=len(graph.attribute_names))

    def attributes(self, node: Any) -> list[str]:
        """The largest attributes of a node; of equal ones, the rarer come first."""
        row = self._rows.get(str(node))
        if self.graph is None or row is None:
            return []
        import numpy as np

        table = self.graph.attributes
        entries = slice(table.indptr[row], table.indptr[row + 1])
        columns, amounts = table.indices[entries], table.data[entries]
        order = np.lexsort((columns, self._holders[columns], -amounts))
        return [str(name) for name in self.graph.attribute_names[columns[order[:SHOWN]]]]

    def about(self, node: Any) -> dict[str, Any]:
        """What is known of a node."""
        label = {"label": self.labels.get(str(node))} if self.labels else {}
        return label | ({"attributes": self.attributes(node)} if self.graph is not None else {})


def show_json(asked: list[Any], answers: list[list[tuple[Any, float]]], known: Known) -> None:
    """Print one JSON object per node that was asked for."""
    records = [
        {
            "id": node,
            **known.about(node),
            "nearest": [{"id": near, "cosine": round(cosine, 6), **known.about(near)} for near, cosine in found],
        }
        for node, found in zip(asked, answers, strict=True)
    ]
    echo(json.dumps(records, indent=2))


def show_tables(asked: list[Any], answers: list[list[tuple[Any, float]]], known: Known) -> None:
    """Print a table per node that was asked for."""
    for node, found in zip(asked, answers, strict=True):
        rows = [(str(near), f"{cosine:.4f}", *shown(known.about(near))) for near, cosine in found]
        about = "; ".join(filter(None, shown(known.about(node))))
        title = f"{node} ({about})" if about else f"{node}"
        show_table(("id", "cosine", *known.about(node)), rows, title=title, right=("cosine",))


def shown(about: dict[str, Any]) -> list[str]:
    """What is known of a node, as texts."""
    return [", ".join(value) if isinstance(value, list) else value or "" for value in about.values()]
