"""Labels that are not one class a node: several, or numbers, in the order of a graph's nodes."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import locate
from neural_brane.graph.multilabels import MultiLabels

Targets = np.ndarray | MultiLabels


def as_targets(labels: Any) -> Targets | None:
    """An array of numbers as floats, anything else as several labels a node."""
    if labels is None or isinstance(labels, MultiLabels):
        return labels
    if isinstance(labels, np.ndarray) and labels.ndim == 1 and labels.dtype.kind in "fiu":
        return labels.astype(np.float64)
    return MultiLabels.of(labels)


def in_order_of(graph: AttributedGraph, ids: np.ndarray, targets: Targets) -> Targets:
    """Labels by id as labels of all nodes of the graph; those that `ids` lack have none."""
    rows = locate(graph.ids, ids)
    if (rows < 0).any():
        stranger = ids[np.argmax(rows < 0)].item()
        raise GraphError(f"labels name node {stranger!r}, which the graph lacks; drop it, or give labels of this graph")
    if isinstance(targets, MultiLabels):
        pairs = targets.members.tocoo()
        return MultiLabels.of_pairs(rows[pairs.row], np.array(targets.names)[pairs.col], len(graph))
    numbers = np.full(len(graph), np.nan)
    numbers[rows] = targets
    return numbers


def targets_digest(targets: Targets) -> str:
    """A short hash."""
    if isinstance(targets, MultiLabels):
        return targets.digest()
    return hashlib.sha256(np.ascontiguousarray(targets).tobytes()).hexdigest()[:16]
