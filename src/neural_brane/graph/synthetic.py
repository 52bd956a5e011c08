"""Generate a graph of any size from an attributed block model, to test speed and memory."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from neural_brane.errors import ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import assemble, compact
from neural_brane.graph.memory import require_memory

ENTRY_BYTES = 29  # peak memory per entry of the two matrices
ROUNDS = 8  # each round replaces duplicate edges; a small dense graph may still lack a few


def synthetic(
    nodes: int,
    *,
    degree: int = 20,
    attributes: int | None = None,
    attributes_per_node: int = 20,
    classes: int = 10,
    mixing: float = 0.2,
    seed: int = 0,
) -> AttributedGraph:
    """Return a generated graph, named ``synthetic:<nodes>``, whose classes differ in both edges and attributes.

    Parameters
    ----------
    nodes : int
        Number of nodes.
    degree : int
        Mean number of neighbours. The graph has nodes * degree / 2 edges, or fewer if it is too small for them.
    attributes : int, optional
        Number of attributes: by default a tenth of the nodes, and at least attributes_per_node * classes.
    attributes_per_node : int
        Number of attributes of every node.
    classes : int
        Number of classes. The label of a node is its class; all classes are equally likely.
    mixing : float
        Share of edges and attributes that do not depend on the class: at 0 every edge stays within a class.
    seed : int
        Seed of the random numbers.

    Examples
    --------
    >>> synthetic(1000)
    AttributedGraph('synthetic:1000': 1000 nodes, 10000 edges, 200 attributes, 10 classes)
    """
    if attributes is None:
        attributes = default_attributes(nodes, attributes_per_node, classes)
    _check(nodes, degree, attributes, attributes_per_node, classes, mixing)
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=nodes, dtype=np.int32)
    ends = np.divmod(_draw_edges(random, labels, nodes * degree // 2, classes, mixing), nodes)
    adjacency = assemble(np.stack(ends, axis=1), None, nodes)
    matrix = _draw_attributes(random, labels, attributes, attributes_per_node, classes, mixing)
    return AttributedGraph(
        adjacency, matrix, np.arange(nodes), np.arange(attributes),
        np.array([str(label) for label in range(classes)])[labels], f"synthetic:{nodes}",
    )  # fmt: skip


def default_attributes(nodes: int, attributes_per_node: int = 20, classes: int = 10) -> int:
    """Return the default number of attributes."""
    return max(nodes // 10, attributes_per_node * classes)


def _check(nodes: int, degree: int, attributes: int, attributes_per_node: int, classes: int, mixing: float) -> None:
    """Raise an error if the sizes are impossible or the graph does not fit in memory."""
    entries = nodes * (degree + attributes_per_node) + attributes
    graph = f"a synthetic graph of {nodes:,} nodes"
    require_memory(ENTRY_BYTES * entries, graph, "give fewer nodes or a smaller degree")
    for allowed, found, wanted in (
        (nodes >= 2, f"nodes is {nodes}", "at least 2"),
        (degree >= 1, f"degree is {degree}", "at least 1"),
        (1 <= classes <= nodes, f"classes is {classes}", f"1 to {nodes}, the number of nodes"),
        (0 <= attributes_per_node <= attributes, f"attributes_per_node is {attributes_per_node}", f"0 to {attributes}"),
        (0 <= mixing <= 1, f"mixing is {mixing}", "a share from 0 to 1"),
    ):
        if not allowed:
            raise ParameterError(f"{found}; give {wanted}")


def _draw_edges(
    random: np.random.Generator, labels: np.ndarray, wanted: int, classes: int, mixing: float
) -> np.ndarray:
    """Return distinct random edges between distinct nodes, each as one number: low * nodes + high."""
    nodes = len(labels)
    members = np.argsort(labels, kind="stable").astype(np.int32)
    sizes = np.bincount(labels, minlength=classes)
    starts = np.cumsum(sizes) - sizes
    edges = np.empty(0, dtype=np.int64)
    for _ in range(ROUNDS):
        missing = wanted - len(edges)
        if missing == 0:
            break
        here = random.integers(nodes, size=missing, dtype=np.int32)
        there = random.integers(nodes, size=missing, dtype=np.int32)
        alike = np.flatnonzero(random.random(missing, dtype=np.float32) >= mixing)
        group = labels[here[alike]]
        there[alike] = members[starts[group] + random.integers(sizes[group])]
        drawn = np.minimum(here, there).astype(np.int64) * nodes + np.maximum(here, there)
        edges = np.sort(np.concatenate([edges, drawn[here != there]]))
        edges = edges[np.diff(edges, prepend=-1) > 0]
    return edges


def _draw_attributes(
    random: np.random.Generator, labels: np.ndarray, attributes: int, each: int, classes: int, mixing: float
) -> sparse.csr_array:
    """Return random attributes: each node gets one from each of `each` ranges, where each class prefers a section."""
    nodes = len(labels)
    columns = np.empty((nodes, each), dtype=np.int32)
    for k in range(each):
        start, stop = k * attributes // each, (k + 1) * attributes // each
        place = random.random(nodes)
        own = random.random(nodes) >= mixing
        place[own] = (labels[own] + place[own]) / classes
        columns[:, k] = np.minimum(start + place * (stop - start), stop - 1)
    values = np.ones(nodes * each, dtype=np.float32)
    starts = np.arange(0, nodes * each + 1, each) if each else np.zeros(nodes + 1, dtype=np.int64)
    return compact(sparse.csr_array((values, columns.ravel(), starts), shape=(nodes, attributes)))
