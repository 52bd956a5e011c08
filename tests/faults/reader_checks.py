"""Check the invariants of a graph, of labels and of vectors that a reader returned."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import BraneError
from neural_brane.files.graphs.formats import read_graph
from neural_brane.files.nodes import read_labels
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import is_symmetric

NO_LABELS = {"nan", "NaN", "None", "null", "NULL", "<NA>"}


def check_graph(graph: AttributedGraph) -> None:
    """Construct the graph again, which checks its arrays, and check what the constructor does not."""
    parts = (graph.adjacency, graph.attributes, graph.ids, graph.attribute_names, graph.labels, graph.name)
    AttributedGraph(*parts, graph.encoder)
    assert is_symmetric(graph.adjacency)
    assert len(set(graph.ids.tolist())) == len(graph.ids) > 0
    assert np.isfinite(graph.adjacency.data).all()
    assert (graph.adjacency.data > 0).all()
    assert np.isfinite(graph.attributes.data).all()
    if graph.labels is not None:
        check_labels((graph.ids, graph.labels))


def check_labels(found: tuple[np.ndarray, np.ndarray]) -> None:
    ids, labels = found
    assert ids.shape == labels.shape
    assert len(set(ids.tolist())) == len(ids)
    assert labels.dtype.kind == "U"
    assert not NO_LABELS & set(labels.tolist())


def check_vectors(table: Embedding) -> None:
    vectors, ids = table.vectors, table.ids
    assert vectors.ndim == 2
    assert len(vectors) == len(ids) == len(set(ids.tolist()))
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()


def attempt(read: Callable[[Path], Any], check: Callable[[Any], None], path: Path) -> str:
    """Read a file; return "read" for valid data and "refused" for one of our errors; raise any other error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # our warnings say how a file was read
        try:
            found = read(path)
        except BraneError:
            return "refused"
    check(found)
    return "read"


def attempt_graph(path: Path, **options: Any) -> str:
    return attempt(lambda path: read_graph(path, **options), check_graph, path)


def attempt_labels(path: Path) -> str:
    return attempt(read_labels, check_labels, path)


def attempt_vectors(path: Path) -> str:
    return attempt(Embedding.load, check_vectors, path)
