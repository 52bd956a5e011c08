"""The graph that methods and evaluations work on: checked once, when it is made, and trusted after."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph.adjacency import Duplicates, Rules, SelfLoops, assemble, check_rules, compact, symmetrise
from neural_brane.graph.build import (
    Links,
    attribute_matrix,
    check_adjacency,
    check_content,
    check_matrix,
    check_names,
    edge_weights,
    node_ids,
    place_edges,
    weight_matrix,
)
from neural_brane.graph.encoder import Encoder
from neural_brane.graph.frames import Place, adjacency_frame, as_frame, edge_columns, is_frame
from neural_brane.graph.ids import as_array, as_ids, is_missing, locate
from neural_brane.graph.labels import node_labels
from neural_brane.graph.nodes import NodeData, NodeOptions, attributes_of, join_nodes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttributedGraph:
    """An undirected graph whose nodes carry attributes.

    Make one with `from_edges`, `from_sparse`, `from_frames`, `from_networkx`, `from_igraph`, `from_geometric` or
    `neural_brane.files.graphs.formats.read_graph`: they bring any input into the form below. The constructor is for
    parts that are in this form already. It checks all of it but the symmetry of the adjacency, which
    `neural_brane.graph.adjacency.assemble` guarantees.

    `renamed`, `relabelled` and `relinked` make a graph that differs in one part. They check that part and
    share the arrays of all others.

    Parameters
    ----------
    adjacency
        (nodes, nodes) symmetric CSR, sorted, without repeats, float32 weights above zero.
    attributes
        (nodes, attributes) CSR, sorted, without repeats or zeros, float32; may have no columns.
    ids, attribute_names
        Distinct integers (int64) or strings.
    labels
        A string per node, "" where a node has none; or None.
    name
        What messages and files call it.
    encoder
        How the columns of a table of nodes became the attributes, where they come from one; else None.

    Examples
    --------
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
    encoder: Encoder | None = None

    def __post_init__(self) -> None:
        nodes = len(self.ids)
        check_adjacency(self.adjacency, nodes)
        check_matrix(self.attributes, (nodes, len(self.attribute_names)), "attributes")
        check_content(self.adjacency, self.attributes, self.name)
        check_names(self.ids, "ids")
        check_names(self.attribute_names, "attribute_names")
        if self.labels is not None and (self.labels.shape != (nodes,) or self.labels.dtype.kind != "U"):
            raise GraphError(
                f"labels are {self.labels.dtype} of shape {self.labels.shape}; give one string per node ({nodes}), "
                "'' where there is none"
            )
        if self.encoder is not None:
            self.encoder.check_gives(self.attribute_names)

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

    def renamed(self, name: str) -> Self:
        """The same graph under another name."""
        return self._changed(name=name)

    def relabelled(self, labels: Any) -> Self:
        """The same graph with other labels: one per node, a dict from an id to its label, or None."""
        return self._changed(labels=node_labels(labels, self.ids))

    def relinked(self, adjacency: sparse.csr_array) -> Self:
        """The same nodes with other edges: an adjacency in the form that the constructor takes."""
        check_adjacency(adjacency, len(self))
        check_content(adjacency, self.attributes, self.name)
        return self._changed(adjacency=adjacency)

    def encoded(self, encoder: Encoder | None) -> Self:
        """The same graph with the encoder that made its attributes."""
        if encoder is not None:
            encoder.check_gives(self.attribute_names)
        return self._changed(encoder=encoder)

    def joined(self, nodes: Any, *, place: Place | None = None, **options: Unpack[NodeOptions]) -> AttributedGraph:
        """The same links with the labels and attributes of a table of nodes, joined by id.

        The table is a DataFrame of pandas or polars, or an Arrow table. Its nodes without edges are added; nodes of
        the edges that it lacks have no attributes, with a warning. `place` is where it comes from, for messages;
        `neural_brane.graph.nodes.NodeOptions` describes the other options.
        """
        return join_nodes(self, nodes, place or Place("nodes"), options)

    def subgraph(self, nodes: Any) -> Self:
        """The graph of some nodes and the edges between them: ids in the order wanted, or a truth for every node.

        All attributes keep their columns, so that a method that has learned from the one can embed the other.
        """
        array = as_array(nodes, "nodes")
        truths = array.dtype == bool or (array.dtype == object and set(map(type, array.flat)) <= {bool, np.bool_})
        if truths and (array.shape != self.ids.shape or len(self) == 0):
            raise GraphError(f"the mask has shape {array.shape} for {len(self)} nodes; give one truth per node")
        wanted = self.ids[array.astype(bool)] if truths else as_ids(array, what="nodes")
        rows = locate(self.ids, wanted)
        if (rows < 0).any():
            unknown, known = wanted[rows < 0][0].item(), self.ids[0].item()
            raise GraphError(f"node {unknown!r} is not in the graph; give ids of its nodes, such as {known!r}")
        return type(self)(
            compact(self.adjacency[rows][:, rows].tocsr().sorted_indices()),
            self.attributes[rows],
            as_ids(self.ids[rows].tolist()),
            self.attribute_names,
            None if self.labels is None else np.array(self.labels[rows].tolist()),
            self.name,
            self.encoder,
        )

    def save(self, path: str | Path, **options: Any) -> None:
        """Write the graph to a file in the format that its name says, as `neural_brane.files.graphs.formats` does."""
        from neural_brane.files.graphs.formats import write_graph

        write_graph(self, path, **options)

    def _changed(self, **parts: Any) -> Self:
        """A copy that shares all arrays but these, which the caller has checked."""
        graph = copy(self)  # does not run __post_init__: nothing is checked again
        for part, value in parts.items():
            object.__setattr__(graph, part, value)
        return graph

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

        Parameters
        ----------
        edges
            (edges, 2) integers or strings.
        weights
            One number above zero per edge, 1 if not given.
        attributes
            A matrix with a row per node, or a dict from an id to its attributes' names (or from an id to a dict
            from name to value).
        labels
            One per node, or a dict from an id to its label.
        ids, nodes
            All nodes, in the order that rows shall have; or their number, for the ids 0 to nodes - 1. Without
            either, the nodes are those that edges name: integers in increasing order, strings by first appearance.
        duplicates
            An edge stated twice, in whichever direction, keeps its largest weight ("max") or their sum ("sum").
        self_loops
            "keep" or "drop".
        """
        if ids is None and nodes is not None:
            ids = np.arange(nodes)
        ends, names = place_edges(edges, None if ids is None else node_ids(ids))
        adjacency = assemble(ends, edge_weights(weights, len(ends)), len(names), Rules(duplicates, self_loops))
        bags, attribute_names = attribute_matrix(attributes, attribute_names, names)
        return cls(adjacency, bags, names, attribute_names, node_labels(labels, names), name)

    @classmethod
    def from_frames(
        cls,
        edges: Any,
        nodes: Any = None,
        *,
        source: str | int | None = None,
        target: str | int | None = None,
        weight: str | int | None = None,
        duplicates: Duplicates = "max",
        self_loops: SelfLoops = "keep",
        name: str = "graph",
        **options: Unpack[NodeOptions],
    ) -> AttributedGraph:
        """Make a graph from a table of edges and, if given, one of nodes: of pandas, polars or Arrow.

        `source`, `target` and `weight` are columns of the edges, by name or position; without them, columns with
        well-known titles, else the first two. `nodes` and its options are those of `joined`.

        Examples
        --------
        >>> import polars as pl
        >>> edges = pl.DataFrame({"from": ["ann", "bob"], "to": ["bob", "cid"]})
        >>> people = pl.DataFrame({"name": ["ann", "bob", "cid"], "age": [31, 22, 31]})
        >>> AttributedGraph.from_frames(edges, people).attribute_names.tolist()
        ['age=22', 'age=31']
        """
        table, place = as_frame(edges, "edges").table, Place("edges")
        found = edge_columns(table, place, source=source, target=target, weight=weight)
        ends, ids = found.number()
        adjacency = assemble(ends, found.weights, len(ids), Rules(duplicates, self_loops))
        none, names = attribute_matrix(None, None, ids)
        graph = cls(adjacency, none, ids, names, name=name)
        return graph if nodes is None else graph.joined(nodes, **options)

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

        Either may be a pandas DataFrame: the index and the columns of an adjacency name its nodes, and attributes are
        joined to the nodes by their index.

        A symmetric matrix is used without a copy: its arrays are shared. In any other, the two directions of
        an edge are merged: the larger weight ("max") or the sum of both ("sum"). A stored zero is no edge;
        repeated entries add up, as they do everywhere in SciPy.
        """
        check_rules(duplicates, self_loops)
        if is_frame(adjacency):
            adjacency, index = adjacency_frame(adjacency)
            ids = index if ids is None else ids
        matrix = symmetrise(weight_matrix(adjacency), Rules(duplicates, self_loops))
        names = np.arange(matrix.shape[0]) if ids is None else node_ids(ids)
        bags, attribute_names = attribute_matrix(attributes, attribute_names, names)
        return cls(matrix, bags, names, attribute_names, node_labels(labels, names), name)

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        *,
        weight: str = "weight",
        attributes: str | Sequence[str] = "attributes",
        label: str = "label",
        duplicates: Duplicates = "max",
        self_loops: SelfLoops = "keep",
        name: str | None = None,
    ) -> AttributedGraph:
        """Make a graph from a NetworkX graph of any kind, directed and multigraphs included.

        An edge has its weight under the key `weight`, or weighs 1. A node has its label under `label`, and the names
        of its attributes (a list, or a dict from name to value) under the key `attributes`; it may have neither. A
        list of keys, as in `attributes=["age", "country"]`, names data of any type instead, which becomes attributes
        as columns of a table do.
        """
        name = name or str(graph.name or "graph")
        data = NodeData(list(map(dict, graph.nodes.values())), f"graph '{name}'")
        links = Links.between(graph, graph.edges(data=weight, default=1.0))
        adjacency = links.assemble(len(data.nodes), Rules(duplicates, self_loops))
        return _made(adjacency, _names(list(graph)), data, attributes, label).renamed(name)

    @classmethod
    def from_igraph(
        cls,
        graph: Any,
        *,
        weight: str = "weight",
        attributes: str | Sequence[str] = "attributes",
        label: str = "label",
        duplicates: Duplicates = "max",
        self_loops: SelfLoops = "keep",
        name: str = "graph",
    ) -> AttributedGraph:
        """Make a graph from an igraph Graph. Nodes are called by their `name`, or numbered where they have none.

        The other options are those of `from_networkx`.
        """
        keys = graph.vs.attributes()
        ids = _names(graph.vs["name"]) if "name" in keys else np.arange(graph.vcount())
        data = NodeData([{key: node[key] for key in keys if key != "name"} for node in graph.vs], f"graph '{name}'")
        weights = graph.es[weight] if weight in graph.es.attributes() else None
        links = Links(np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2), weights)
        adjacency = links.assemble(len(ids), Rules(duplicates, self_loops))
        return _made(adjacency, ids, data, attributes, label).renamed(name)

    @classmethod
    def from_geometric(
        cls,
        data: Any,
        *,
        duplicates: Duplicates = "max",
        self_loops: SelfLoops = "keep",
        name: str = "graph",
    ) -> AttributedGraph:
        """Make a graph from a PyTorch Geometric Data: `edge_index`, `edge_weight`, `x` (attributes) and `y` (labels).

        Nodes are numbered from 0. Other tensors, such as features of edges and masks, are not used.
        """
        if getattr(data, "edge_index", None) is None or not hasattr(data, "num_nodes"):
            raise GraphError(
                f"a {type(data).__name__} without edge_index is no graph of one kind of nodes; give a Data with "
                "edge_index, as HeteroData.to_homogeneous() makes one"
            )
        nodes, edges = int(data.num_nodes), np.asarray(_array(data.edge_index))
        weights, attributes, labels = (_array(getattr(data, key, None)) for key in ("edge_weight", "x", "y"))
        if edges.ndim != 2 or edges.shape[0] != 2:
            raise GraphError(f"edge_index has shape {edges.shape}; give (2, edges)")
        if labels is not None and labels.size != nodes:
            warnings.warn(
                f"y has shape {labels.shape} for {nodes} nodes, which is not one label per node: it is left out",
                stacklevel=2,
            )
            labels = None
        return cls.from_edges(
            edges.T,
            None if weights is None else weights.reshape(-1),
            attributes=attributes,
            labels=None if labels is None else labels.reshape(-1),
            nodes=nodes,
            duplicates=duplicates,
            self_loops=self_loops,
            name=name,
        )

    def to_networkx(self) -> Any:
        """The same graph as a NetworkX Graph, which `from_networkx` reads: data of nodes and edges under its keys."""
        import networkx

        graph = networkx.Graph(name=self.name)
        ids, names = self.ids.tolist(), self.attribute_names.tolist()
        starts, columns, values = (part.tolist() for part in (
            self.attributes.indptr, self.attributes.indices, self.attributes.data,
        ))  # fmt: skip
        for row, node in enumerate(ids):
            entries = range(starts[row], starts[row + 1])
            bag = {names[columns[at]]: values[at] for at in entries}
            graph.add_node(node, **({"attributes": bag} if bag else {}))
            if self.labels is not None and self.labels[row]:
                graph.nodes[node]["label"] = str(self.labels[row])
        entries = self.adjacency.tocoo()
        upper = entries.row <= entries.col
        edges = zip(*(part[upper].tolist() for part in (entries.row, entries.col, entries.data)), strict=True)
        graph.add_weighted_edges_from((ids[row], ids[column], weight) for row, column, weight in edges)
        return graph


def _names(nodes: list[Any]) -> np.ndarray:
    """The ids of nodes that may be anything hashable: integers if all are, else what `str` makes of them."""
    plain = all(isinstance(node, int) for node in nodes) or any(is_missing(node) for node in nodes)
    return node_ids(nodes if plain else list(map(str, nodes)))


def _made(
    adjacency: sparse.csr_array, ids: np.ndarray, data: NodeData, attributes: str | Sequence[str], label: str
) -> AttributedGraph:
    """Make a graph of an adjacency and of what nodes have under the keys of attributes and of the label."""
    labels = data.column(label)
    given = node_labels(labels, ids) if any(value is not None for value in labels) else None
    if isinstance(attributes, str):
        bags = {node: bag for node, bag in zip(ids.tolist(), data.column(attributes), strict=True) if bag is not None}
        if not bags:
            data.warn_unused({attributes, label})
        matrix, names = attribute_matrix(bags or None, None, ids)
        return AttributedGraph(adjacency, matrix, ids, names, given)
    matrix, names, encoder = attributes_of(data, attributes)
    return AttributedGraph(adjacency, matrix, ids, names, given, encoder=encoder)


def _array(tensor: Any) -> np.ndarray | None:
    """A tensor of PyTorch, wherever it lies, as an array."""
    if tensor is None:
        return None
    return np.asarray(tensor.detach().cpu() if hasattr(tensor, "detach") else tensor)
