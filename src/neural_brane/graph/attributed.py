"""The graph every later stage works on, checked once when it is made and trusted after."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph.adjacency import Duplicates, SelfLoops, assemble, check_rules, is_symmetric
from neural_brane.graph.build import (
    attribute_matrix,
    by,
    canonical,
    check_matrix,
    check_names,
    edge_weights,
    flat_pairs,
    node_ids,
    node_labels,
)
from neural_brane.graph.ids import encode, locate


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttributedGraph:
    """An undirected graph whose nodes carry attributes.

    Make one with `from_edges`, `from_sparse`, `from_networkx` or `neural_brane.io.read_graph`: they bring
    any input into the form below. The constructor itself expects that form. It checks all of it but the
    symmetry of the adjacency.

    adjacency: (nodes, nodes) symmetric CSR, sorted, without repeats, float32 weights above zero.
    attributes: (nodes, attributes) CSR, sorted, without repeats or zeros, float32; may have no columns.
    ids, attribute_names: distinct integers (int64) or strings.
    labels: a string per node, "" where a node has none; or None.

    >>> graph = AttributedGraph.from_edges([("ann", "bob"), ("bob", "cid")], attributes={"ann": ["chess"]})
    >>> graph
    AttributedGraph('graph': 3 nodes, 2 edges, 1 attributes)
    """

    adjacency: sparse.csr_array
    attributes: sparse.csr_array
    ids: np.ndarray
    attribute_names: np.ndarray
    labels: np.ndarray | None = None
    name: str = "graph"

    def __post_init__(self) -> None:
        nodes, attributes = len(self.ids), len(self.attribute_names)
        check_matrix(self.adjacency, (nodes, nodes), "adjacency")
        check_matrix(self.attributes, (nodes, attributes), "attributes")
        check_names(self.ids, "ids")
        check_names(self.attribute_names, "attribute_names")
        if self.adjacency.nnz == 0:
            raise GraphError(f"graph '{self.name}' has {nodes} nodes and no edges; give at least one edge")
        if not self.adjacency.data.min() > 0:
            raise GraphError(f"edge weights reach down to {self.adjacency.data.min()}; all must be above 0")
        if self.labels is not None and (self.labels.shape != (nodes,) or self.labels.dtype.kind != "U"):
            raise GraphError(
                f"labels are {self.labels.dtype} of shape {self.labels.shape}; give one string per node "
                f"({nodes}), '' where there is none"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        classes = "" if self.labels is None else f", {len(self.classes)} classes"
        return (
            f"AttributedGraph('{self.name}': {len(self)} nodes, {self.edges} edges, "
            f"{len(self.attribute_names)} attributes{classes})"
        )

    @property
    def edges(self) -> int:
        """The number of distinct undirected edges, self-loops included."""
        return int(self.adjacency.nnz + np.count_nonzero(self.adjacency.diagonal())) // 2

    @property
    def classes(self) -> np.ndarray:
        """The distinct labels, sorted; nodes without a label do not count."""
        labels = np.unique(self.labels) if self.labels is not None else np.empty(0, dtype=str)
        return labels[labels != ""]

    def digest(self) -> str:
        """Return 16 hexadecimal digits that change when anything but the graph's name does."""
        digest = hashlib.sha256()
        for matrix in (self.adjacency, self.attributes):
            digest.update(repr(matrix.shape).encode())
            for part in (matrix.indptr, matrix.indices, matrix.data):
                digest.update(np.ascontiguousarray(part).data)
        for names in (self.ids, self.attribute_names, self.labels):
            digest.update(repr(None if names is None else names.dtype).encode())
            digest.update(b"" if names is None else np.ascontiguousarray(names).view(np.uint8).data)
        return digest.hexdigest()[:16]

    @classmethod
    def from_edges(
        cls,
        edges: Any,
        weights: Any = None,
        *,
        attributes: Any = None,
        labels: Any = None,
        ids: Any = None,
        attribute_names: Any = None,
        nodes: int | None = None,
        duplicates: Duplicates = "max",
        self_loops: SelfLoops = "keep",
        name: str = "graph",
    ) -> AttributedGraph:
        """Make a graph from pairs of ids, in any direction, with repeats.

        edges: (edges, 2) integers or strings; weights: one number above zero per edge, 1 if not given.
        ids: the nodes in the order wanted, or `nodes` for 0, 1, ..., nodes - 1. Without either, the nodes are
        those that occur: integers in increasing order, strings by first appearance.
        attributes: a matrix with a row per node, or a dict from an id to its attributes' names (or from an id
        to a dict from name to value).
        labels: one per node, or a dict from an id to its label.
        duplicates: an edge stated twice, in whichever direction, keeps its largest weight ("max") or their
        sum ("sum"). self_loops: "keep" or "drop".
        """
        ends = flat_pairs(edges)
        if ids is None and nodes is not None:
            ids = np.arange(nodes)
        if ids is None:
            positions, names = encode(ends)
        else:
            names = node_ids(ids)
            positions = locate(names, ends)
        unknown = np.flatnonzero(positions < 0)
        if len(unknown):
            at = int(unknown[0])
            raise GraphError(
                f"edge {at // 2} names node {ends[at].item()!r}, which is not among the {len(names)} ids; "
                "add it there, or leave ids out to take the nodes from the edges"
            )
        adjacency = assemble(
            positions[0::2],
            positions[1::2],
            edge_weights(weights, len(ends) // 2),
            len(names),
            duplicates=duplicates,
            self_loops=self_loops,
        )
        bags, attribute_names = attribute_matrix(attributes, attribute_names, names)
        return cls(adjacency, bags, names, attribute_names, node_labels(labels, names), name)

    @classmethod
    def from_sparse(
        cls,
        adjacency: Any,
        attributes: Any = None,
        *,
        labels: Any = None,
        ids: Any = None,
        attribute_names: Any = None,
        duplicates: Duplicates = "max",
        self_loops: SelfLoops = "keep",
        name: str = "graph",
    ) -> AttributedGraph:
        """Make a graph from a square matrix of weights and, if there are any, a matrix of attributes.

        A symmetric matrix is taken as it is, and its arrays are shared, not copied. In any other, the two
        directions of an edge are merged: the larger weight ("max") or the sum of both ("sum"). Stored zeros
        are no edges; repeated entries add up, as they do everywhere in scipy.
        """
        check_rules(duplicates, self_loops)
        matrix = canonical(adjacency, "adjacency")
        if matrix.shape[0] != matrix.shape[1]:
            raise GraphError(f"adjacency is {by(matrix.shape)}; give a square matrix, one row per node")
        if matrix.nnz and not matrix.data.min() > 0:
            row, column = (int(where[np.argmin(matrix.data)]) for where in matrix.tocoo().coords)
            raise GraphError(
                f"adjacency[{row}, {column}] is {matrix.data.min()}; weights must be above 0: "
                "shift or drop the negative ones"
            )
        symmetric = is_symmetric(matrix)
        if not symmetric or (self_loops == "drop" and matrix.diagonal().any()):
            entries = matrix.tocoo()
            # A symmetric matrix states each edge twice: only one of the two counts.
            rule: Duplicates = "max" if symmetric else duplicates
            matrix = assemble(
                entries.row,
                entries.col,
                entries.data,
                matrix.shape[0],
                duplicates=rule,
                self_loops=self_loops,
            )
        names = np.arange(matrix.shape[0]) if ids is None else node_ids(ids)
        bags, attribute_names = attribute_matrix(attributes, attribute_names, names)
        return cls(matrix, bags, names, attribute_names, node_labels(labels, names), name)

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        weight: str = "weight",
        attributes: str = "attributes",
        label: str = "label",
        duplicates: Duplicates = "max",
        self_loops: SelfLoops = "keep",
        name: str | None = None,
    ) -> AttributedGraph:
        """Make a graph from a NetworkX graph of any kind, directed and multigraphs included.

        weight, attributes, label: the keys under which an edge keeps its weight, and a node the names of its
        attributes (a list, or a dict from name to value) and its label. All three may be absent.
        """
        place = {node: at for at, node in enumerate(graph)}
        stated = [(place[u], place[v], value) for u, v, value in graph.edges(data=weight, default=1.0)]
        ids = node_ids(list(graph) if all(isinstance(node, int) for node in graph) else list(map(str, graph)))
        bags = {ids[place[node]].item(): bag for node, bag in graph.nodes(data=attributes) if bag is not None}
        labels = [value for _, value in graph.nodes(data=label)]
        ends = np.array([(u, v) for u, v, _ in stated], dtype=np.int64).reshape(-1, 2)
        adjacency = assemble(
            ends[:, 0],
            ends[:, 1],
            edge_weights([value for _, _, value in stated], len(stated)),
            len(ids),
            duplicates=duplicates,
            self_loops=self_loops,
        )
        matrix, names = attribute_matrix(bags or None, None, ids)
        given = node_labels(labels, ids) if any(value is not None for value in labels) else None
        return cls(adjacency, matrix, ids, names, given, name or str(graph.name or "graph"))
