"""Vectors beside the labels of the same nodes, matched by id and never by position."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError
from neural_brane.ids import locate


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """The vectors of the labelled nodes, in the order of the labels, and what was left out."""

    vectors: np.ndarray  # (labelled, dim)
    labels: np.ndarray  # (labelled,) str
    unlabelled: int  # nodes with a vector and no label
    missing: int  # nodes with a label and no vector


def match(embedding: Embedding, ids: np.ndarray, labels: np.ndarray, *, allow_missing: bool = False) -> Labelled:
    """Find the vector of each labelled node by its id.

    Rows come out in the order of `ids`, so the order of the vectors' file changes no score. Integer ids
    match strings that spell them. A label whose node has no vector is an error unless `allow_missing`.

    >>> e = Embedding([[1.0], [2.0]], ["b", "a"])
    >>> match(e, np.array(["a", "b"]), np.array(["x", "y"])).vectors.ravel().tolist()
    [2.0, 1.0]
    """
    has_label = labels != ""
    ids, labels = ids[has_label], labels[has_label]
    if not len(ids):
        raise EmbeddingError("no node has a label; give labels as lines of 'node<TAB>label'")
    rows = locate(embedding.ids, ids)
    found = rows >= 0
    missing = len(ids) - int(found.sum())
    if missing == len(ids):
        raise EmbeddingError(
            f"no id in common: vectors have {_some(embedding.ids)}, labels have {_some(ids)}; "
            "give the labels of the same graph"
        )
    if missing and not allow_missing:
        raise EmbeddingError(
            f"{missing:,} of {len(ids):,} labelled nodes have no vector, such as {_some(ids[~found])}; "
            "give the labels of the same graph, or allow missing nodes (--allow-missing)"
        )
    used = rows[found]
    if len(np.unique(used)) != len(used):
        raise EmbeddingError("a node has several labels; give one label per node")
    return Labelled(embedding.vectors[used], labels[found], len(embedding) - len(used), missing)


def read_truth(source: str) -> tuple[np.ndarray, np.ndarray]:
    """The ids and labels of a dataset (by name), of a graph file or of a label file.

    A graph file is .npz or .content, which needs its .cites beside it; any other file is a label file.
    """
    from neural_brane import datasets, io

    path = Path(source)
    if path.is_file() and path.suffix not in (".npz", ".cites", ".content"):
        return io.read_labels(path)
    graph = datasets.read(str(path.with_suffix(".cites")) if path.suffix == ".content" else source)
    if graph.labels is None:
        raise EmbeddingError(f"{source}: this graph has no labels; give a label file with lines of 'node<TAB>label'")
    return graph.ids, graph.labels


def _some(ids: np.ndarray) -> str:
    return ", ".join(map(repr, ids[:3].tolist()))
