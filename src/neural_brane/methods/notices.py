"""What a method tells of its vectors where they say less than a reader would think."""

from __future__ import annotations

import warnings

import numpy as np

from neural_brane.errors import IgnoredAmountsWarning, ZeroVectorWarning
from neural_brane.graph import AttributedGraph

NAMED = 3  # nodes that a warning names


def tell_ignored_amounts(graph: AttributedGraph, title: str) -> None:
    """Warn of a method that reads which attributes a node has and not how much, where that differs."""
    entries = graph.attributes
    if entries.nnz == 0 or entries.data.min() == entries.data.max():
        return
    one = np.zeros(entries.shape[1], np.float32)  # for every attribute, the amount of some node that has it
    one[entries.indices] = entries.data
    differing = np.unique(entries.indices[one[entries.indices] != entries.data])
    if len(differing):
        names = ", ".join(repr(name) for name in graph.attribute_names[differing[:NAMED]].tolist())
        more = ", …" if len(differing) > NAMED else ""
        warnings.warn(
            f"{title} with these parameters reads which attributes a node has, not how much of each, and "
            f"{len(differing):,} of the {entries.shape[1]:,} attributes of graph '{graph.name}' differ in amount "
            f"({names}{more}); cut numbers into bins, as AttributedGraph.from_frames does, or choose a method that "
            "uses amounts",
            IgnoredAmountsWarning,
            stacklevel=3,
        )


def tell_zero_vectors(graph: AttributedGraph, rows: np.ndarray, uses: tuple[str, ...]) -> None:
    """Warn of nodes whose vector is zero: how many, which, and what they lack."""
    if len(rows) == 0:
        return
    has = {
        "attributes": np.diff(graph.attributes.indptr)[rows] > 0,
        "links": np.diff(graph.adjacency.indptr)[rows] > 0,
    }
    reasons = [
        f"{count:,} of them have no {part}" for part in uses if (count := int(np.count_nonzero(~has[part]))) > 0
    ] or ["they have what the method reads, but nothing of it tells them from others"]
    nodes = ", ".join(repr(node) for node in graph.ids[rows[:NAMED]].tolist())
    more = ", …" if len(rows) > NAMED else ""
    warnings.warn(
        f"{len(rows):,} of the {len(graph):,} nodes of graph '{graph.name}' have the vector zero ({nodes}{more}): "
        f"{' and '.join(reasons)}; leave them out, or choose a method that uses what they have",
        ZeroVectorWarning,
        stacklevel=3,
    )
