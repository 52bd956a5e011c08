"""Labels that a method may learn from: only those that are given to `fit`, never those of the graph."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.errors import ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.labels import node_labels

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder

MARK = "†"  # stands beside such a method wherever methods are listed


def known_labels(method: Embedder, labels: Any, graph: AttributedGraph) -> np.ndarray | None:
    """One label per node, "" where it is not known; None where no label is.

    labels: as they were given to `fit`, a dict from an id to its label or one label per node.
    """
    if labels is None:
        return None
    if not method.uses_labels:
        raise ParameterError(
            f"labels were given, and {method.title} learns from none; leave them out, or choose a method that "
            f"'brane methods' marks with {MARK}"
        )
    found = node_labels(labels, graph.ids)
    return None if found is None or not (found != "").any() else found


def refuse_targets(method: Embedder, y: Any) -> None:
    """Refuse what scikit-learn calls y where it would silently go unused though the method learns from labels."""
    if y is not None and method.uses_labels:
        raise ParameterError(
            f"y was given to {method.title}, which takes labels by name alone: fit(graph, labels=known), where known "
            "is a dict from an id to its label, or one label per node with '' where it is not known"
        )


def count_labels(labels: np.ndarray | None) -> int:
    """How many nodes have a known label."""
    return 0 if labels is None else int(np.count_nonzero(labels != ""))


def identify_labels(labels: np.ndarray | None) -> str:
    """What tells a training with these labels from one with others: their number, and a digest of which they are."""
    if labels is None:
        return "none"
    digest = hashlib.sha256("\0".join(labels.tolist()).encode()).hexdigest()[:16]
    return f"{count_labels(labels):,} known (digest {digest})"
