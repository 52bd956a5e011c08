"""The graph that methods and evaluations use. It is checked once, when it is made; later stages trust it."""

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

from neural_brane.errors import GraphError, ReadingWarning
from neural_brane.graph import build
from neural_brane.graph.adjacency import Duplicates, Rules, SelfLoops, assemble, check_rules, compact, symmetrise
from neural_brane.graph.build import attribute_matrix, check_adjacency, check_content, check_matrix, check_names
from neural_brane.graph.encoder import Encoder
from neural_brane.graph.frames import Place, adjacency_frame, as_frame, edge_columns, is_frame
from neural_brane.graph.ids import as_array, as_ids, is_missing, locate
from neural_brane.graph.labels import node_labels
from neural_brane.graph.nodes import NodeData, NodeOptions, attributes_of, join_nodes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttributedGraph:
    """An undirected graph whose nodes carry attributes.

    Make a graph with `from_edges`, `from_sparse`, `from_frames`, `from_networkx`, `from_igraph`, `from_geometric` or
    `neural_brane.files.graphs.formats.read_graph`. They convert their input to the arrays below. The constructor
    takes arrays that already have this form. It checks everything except the symmetry of the adjacency, which
    `neural_brane.graph.adjacency.assemble` guarantees. A graph is never changed: `renamed`, `relabelled` and
    `relinked` return a new graph that shares all other arrays.

    Parameters
    ----------
    adjacency : scipy.sparse.csr_array
        Weights of the edges: (nodes, nodes), symmetric, sorted, without repeats, float32 above 0.
    attributes : scipy.sparse.csr_array
        Amounts of the attributes: (nodes, attributes), sorted, without repeats or zeros, float32; may have no columns.
    ids, attribute_names : numpy.ndarray
        Names of the rows and columns of `attributes`: distinct int64 integers or strings.
    labels : numpy.ndarray, optional
        One string per node, "" for a node without a label. None if no labels are given.
    name : str
        Name of the graph in messages and files.
    encoder : Encoder, optional
        Rule that turned the columns of a table of nodes into attributes. None if they do not come from a table.
    edge_titles : tuple of str
        Titles of the two columns of ids in the table of edges; () if the edges do not come from a table with titles.

    Examples
    --------
    >>> edges, skills = [("ann", "bob"), ("bob", "cid")], {"ann": ["chess"], "cid": ["chess", "tea"]}
    >>> graph = AttributedGraph.from_edges(edges, attributes=skills)
    >>> graph
    AttributedGraph('graph': 3 nodes, 2 edges, 2 attributes)
    >>> graph.attributes.toarray().tolist()
    [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    """

    adjacency: sparse.csr_array
    attributes: sparse.csr_array
    ids: np.ndarray
    attribute_names: np.ndarray
    labels: np.ndarray | None = None
    name: str = "graph"
    encoder: Encoder | None = None
    edge_titles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        nodes = len(self.ids)
        check_adjacency(self.adjacency, nodes)
        check_matrix(self.attributes, (nodes, len(self.attribute_names)), "attributes")
        check_content(self.adjacency, self.attributes, self.name)
        check_names(self.ids, "ids")
        check_names(self.attribute_names, "attribute_names")
        if self.labels is not None and (self.labels.shape != (nodes,) or self.labels.dtype.kind != "U"):
            advice = f"give one string for each of the {nodes} nodes, '' for a node without a label"
            raise GraphError(f"labels are {self.labels.dtype} of shape {self.labels.shape}; {advice}")
        if self.encoder is not None:
            self.encoder.check_gives(self.attribute_names)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        classes = "" if self.labels is None else f", {len(self.classes)} classes"
        attributes = f"{len(self.attribute_names)} attributes{classes}"
        return f"AttributedGraph('{self.name}': {len(self)} nodes, {self.edges} edges, {attributes})"

    @property
    def edges(self) -> int:
        """The number of distinct undirected edges, including self-loops."""
        return int(self.adjacency.nnz + np.count_nonzero(self.adjacency.diagonal())) // 2

    @property
    def classes(self) -> np.ndarray:
        """The distinct labels, sorted; "" does not count."""
        labels = np.unique(self.labels) if self.labels is not None else np.empty(0, dtype=str)
        return labels[labels != ""]

    def renamed(self, name: str) -> Self:
        """Return the same graph with another name."""
        return self._changed(name=name)

    def relabelled(self, labels: Any) -> Self:
        """Return the same graph with other labels: a list with one per node, a dict from id to label, or None."""
        return self._changed(labels=node_labels(labels, self.ids))

    def relinked(self, adjacency: sparse.csr_array) -> Self:
        """Return the same nodes with other edges: an adjacency in the form that the constructor expects."""
        check_adjacency(adjacency, len(self))
        check_content(adjacency, self.attributes, self.name)
        return self._changed(adjacency=adjacency)

    def encoded(self, encoder: Encoder | None) -> Self:
        """Return the same graph with the encoder that made its attributes."""
        if encoder is not None:
            encoder.check_gives(self.attribute_names)
        return self._changed(encoder=encoder)

    def joined(self, nodes: Any, *, place: Place | None = None, **options: Unpack[NodeOptions]) -> AttributedGraph:
        """Return the graph with the labels and attributes of a table of nodes, which is joined by id.

        Nodes of the table that have no edges are added. Nodes of the graph that have no row get no attributes, and a
        warning counts them.

        Parameters
        ----------
        nodes : DataFrame of pandas or polars, or Arrow table
            One row per node: a column of ids, and columns that become attributes.
        **options
            `id`, `label`, `columns`, `ignore`, `missing`, `encoder`, as in `neural_brane.graph.nodes.NodeOptions`.
        """
        return join_nodes(self, nodes, place or Place("nodes"), options)

    def subgraph(self, nodes: Any) -> Self:
        """Return the graph of some nodes and the edges between them.

        `nodes` are ids, in the order of the new graph's rows, or one boolean per node of this graph. All attributes
        keep their columns, so a method that was fitted to one of the graphs can embed the other.

        >>> AttributedGraph.from_edges([("ann", "bob"), ("bob", "cid")]).subgraph(["bob", "ann"])
        AttributedGraph('graph': 2 nodes, 1 edges, 0 attributes)
        """
        array = as_array(nodes, "nodes")
        mask = array.dtype == bool or (array.dtype == object and set(map(type, array.flat)) <= {bool, np.bool_})
        if mask and (array.shape != self.ids.shape or len(self) == 0):
            raise GraphError(f"the mask has shape {array.shape} for {len(self)} nodes; give one boolean per node")
        chosen = self.ids[array.astype(bool)] if mask else as_ids(array, what="nodes")
        rows = locate(self.ids, chosen)
        if (rows < 0).any():
            unknown, known = chosen[rows < 0][0].item(), self.ids[0].item()
            raise GraphError(f"node {unknown!r} is not in the graph; give ids of its nodes, such as {known!r}")
        return type(self)(
            compact(self.adjacency[rows][:, rows].tocsr().sorted_indices()), self.attributes[rows],
            as_ids(self.ids[rows].tolist()), self.attribute_names,
            None if self.labels is None else np.array(self.labels[rows].tolist()), self.name, self.encoder,
        )  # fmt: skip

    def save(self, path: str | Path, **options: Any) -> None:
        """Write the graph to a file, with the options of `neural_brane.files.graphs.formats.write_graph`."""
        from neural_brane.files.graphs.formats import write_graph

        write_graph(self, path, **options)

    def _changed(self, **values: Any) -> Self:
        """Return a copy with other values of some fields, which the caller has checked; all other arrays are shared."""
        graph = copy(self)  # does not run __post_init__, so nothing is checked again
        for name, value in values.items():
            object.__setattr__(graph, name, value)
        return graph

    def digest(self) -> str:
        """Return 16 hexadecimal digits that change if an edge, an attribute, an id or a label changes."""
        digest = hashlib.sha256()
        for matrix in (self.adjacency, self.attributes):
            digest.update(repr(matrix.shape).encode())
            for array in (matrix.indptr, matrix.indices, matrix.data):
                digest.update(np.ascontiguousarray(array).data)
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
        """Return a graph made from edges, which are pairs of ids.

        Parameters
        ----------
        edges : array_like
            The edges (edges, 2) as integers or strings. The two directions of an edge are the same edge.
        weights : array_like, optional
            One number above 0 per edge; 1 by default.
        attributes : array_like, sparse matrix, DataFrame or dict, optional
            A matrix (nodes, attributes); or a dict from id to a list of names, or to a dict from name to amount.
        labels : array_like or dict, optional
            One label per node, or a dict from id to label.
        ids : array_like, optional
            All nodes, in the order of the rows. By default the nodes of the edges: integers in increasing order,
            strings in the order they appear.
        attribute_names : array_like, optional
            Names of the columns of a matrix of attributes; by default their numbers from 0.
        nodes : int, optional
            Number of nodes; gives the nodes the ids 0 to nodes - 1 if `ids` is not given.
        duplicates : {"max", "sum"}
            Weight of an edge that is given several times: its largest weight, or the sum.
        self_loops : {"keep", "drop"}
            Keep or drop edges from a node to itself.

        Examples
        --------
        >>> graph = AttributedGraph.from_edges([(5, 3), (3, 5), (3, 9)], [1, 2, 1], labels={5: "net"})
        >>> graph.ids.tolist(), graph.adjacency.toarray().tolist()
        ([3, 5, 9], [[0.0, 2.0, 1.0], [2.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
        """
        if ids is None and nodes is not None:
            ids = np.arange(nodes)
        ends, names = build.place_edges(edges, None if ids is None else build.node_ids(ids))
        adjacency = assemble(ends, build.edge_weights(weights, len(ends)), len(names), Rules(duplicates, self_loops))
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
        same_ids: bool = False,
        duplicates: Duplicates = "max",
        self_loops: SelfLoops = "keep",
        name: str = "graph",
        **options: Unpack[NodeOptions],
    ) -> AttributedGraph:
        """Return a graph made from a table of edges and an optional table of nodes, of pandas, polars or Arrow.

        Parameters
        ----------
        edges, nodes : DataFrame of pandas or polars, or Arrow table
            One row per edge, and one row per node. The columns of nodes become attributes.
        source, target, weight : str or int, optional
            Columns of the edges, by name or by position from 0. By default columns with usual names such as "from"
            and "to", else the first two columns.
        same_ids : bool
            Whether both columns name nodes of one kind. By default, ids that stand in both columns of a table such as
            `user_id, item_id` raise an error.
        duplicates, self_loops
            As in `from_edges`.
        **options
            How to read the table of nodes, as in `joined`.

        Examples
        --------
        >>> import polars as pl
        >>> edges = pl.DataFrame({"from": ["ann", "bob"], "to": ["bob", "cid"]})
        >>> people = pl.DataFrame({"name": ["ann", "bob", "cid"], "age": [31, 22, 31]})
        >>> AttributedGraph.from_frames(edges, people).attribute_names.tolist()
        ['age=22', 'age=31']
        """
        table, place = as_frame(edges, "edges").table, Place("edges")
        found = edge_columns(table, place, source=source, target=target, weight=weight, same_ids=same_ids)
        if found.unused:
            warnings.warn(f"edges: {found.unused}", ReadingWarning, stacklevel=2)
        ends, ids = found.number()
        adjacency = assemble(ends, found.weights, len(ids), Rules(duplicates, self_loops))
        none, names = attribute_matrix(None, None, ids)
        graph = cls(adjacency, none, ids, names, name=name, edge_titles=found.names[:2])
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
        """Return a graph made from a square matrix of weights and an optional matrix of attributes.

        Parameters
        ----------
        adjacency : sparse matrix, array_like or pandas DataFrame
            Weights of the edges (nodes, nodes). The index and the columns of a DataFrame name the nodes. A symmetric
            float32 CSR matrix is not copied. Stored zeros are not edges; repeated entries are added, as in SciPy.
        attributes : sparse matrix, array_like or pandas DataFrame, optional
            Amounts (nodes, attributes). A DataFrame is joined to the nodes by its index.
        duplicates : {"max", "sum"}
            Weight of an edge whose two directions differ: the larger weight, or the sum of both.
        labels, ids, attribute_names, self_loops
            As in `from_edges`.

        Examples
        --------
        >>> AttributedGraph.from_sparse([[0, 2], [0, 0]], [[1, 0, 1], [0, 1, 0]])
        AttributedGraph('graph': 2 nodes, 1 edges, 3 attributes)
        """
        check_rules(duplicates, self_loops)
        if is_frame(adjacency):
            adjacency, index = adjacency_frame(adjacency)
            ids = index if ids is None else ids
        matrix = symmetrise(build.weight_matrix(adjacency), Rules(duplicates, self_loops))
        names = np.arange(matrix.shape[0]) if ids is None else build.node_ids(ids)
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
        """Return a graph made from a NetworkX graph of any kind, including directed graphs and multigraphs.

        Ids are integers if all nodes are integers, else the strings of the nodes.

        Parameters
        ----------
        weight, label : str
            Keys of the weight of an edge, which is 1 without this key, and of the label of a node.
        attributes : str or list of str
            Key of a node's attributes: a list of names, or a dict from name to amount. Or a list of keys, as in
            ``["age", "country"]``, whose values become attributes in the same way as columns of a table of nodes.
        duplicates, self_loops, name
            As in `from_edges`; by default the name is that of the NetworkX graph.
        """
        name = name or str(graph.name or "graph")
        data = NodeData(list(map(dict, graph.nodes.values())), f"graph '{name}'")
        links = build.EdgeArrays.between(graph, graph.edges(data=weight, default=1.0))
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
        """Return a graph made from an igraph Graph. The `name` of a node is its id; without names, nodes are numbered.

        All other parameters are those of `from_networkx`.
        """
        keys = graph.vs.attributes()
        ids = _names(graph.vs["name"]) if "name" in keys else np.arange(graph.vcount())
        data = NodeData([{key: node[key] for key in keys if key != "name"} for node in graph.vs], f"graph '{name}'")
        weights = graph.es[weight] if weight in graph.es.attributes() else None
        links = build.EdgeArrays(np.array(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2), weights)
        adjacency = links.assemble(len(ids), Rules(duplicates, self_loops))
        return _made(adjacency, ids, data, attributes, label).renamed(name)

    @classmethod
    def from_geometric(
        cls, data: Any, *, duplicates: Duplicates = "max", self_loops: SelfLoops = "keep", name: str = "graph"
    ) -> AttributedGraph:
        """Return a graph made from a Data of PyTorch Geometric, whose nodes are numbered from 0.

        It uses `edge_index`, `edge_weight`, `x` (the attributes) and `y` (the labels), and ignores other tensors, such
        as features of edges and masks. All other parameters are those of `from_edges`.
        """
        if getattr(data, "edge_index", None) is None or not hasattr(data, "num_nodes"):
            advice = "give a Data with edge_index, such as HeteroData.to_homogeneous() returns"
            raise GraphError(f"a {type(data).__name__} without edge_index cannot be read; {advice}")
        nodes, edges = int(data.num_nodes), np.asarray(_array(data.edge_index))
        weights, attributes, labels = (_array(getattr(data, key, None)) for key in ("edge_weight", "x", "y"))
        if edges.ndim != 2 or edges.shape[0] != 2:
            raise GraphError(f"edge_index has shape {edges.shape}; give (2, edges)")
        if labels is not None and labels.size != nodes:
            mend = "it is ignored, because it is not one label per node"
            warnings.warn(f"y has shape {labels.shape} for {nodes} nodes; {mend}", stacklevel=2)
            labels = None
        return cls.from_edges(
            edges.T, None if weights is None else weights.reshape(-1), attributes=attributes,
            labels=None if labels is None else labels.reshape(-1), nodes=nodes, duplicates=duplicates,
            self_loops=self_loops, name=name,
        )  # fmt: skip

    def to_networkx(self) -> Any:
        """Return the graph as a networkx.Graph with the keys that `from_networkx` reads by default."""
        import networkx

        graph = networkx.Graph(name=self.name)
        ids, names = self.ids.tolist(), self.attribute_names.tolist()
        starts, columns, values = (part.tolist() for part in (
            self.attributes.indptr, self.attributes.indices, self.attributes.data,
        ))  # fmt: skip
        for row, node in enumerate(ids):
            bag = {names[columns[at]]: values[at] for at in range(starts[row], starts[row + 1])}
            graph.add_node(node, **({"attributes": bag} if bag else {}))
            if self.labels is not None and self.labels[row]:
                graph.nodes[node]["label"] = str(self.labels[row])
        entries = self.adjacency.tocoo()
        upper = entries.row <= entries.col
        edges = zip(*(part[upper].tolist() for part in (entries.row, entries.col, entries.data)), strict=True)
        graph.add_weighted_edges_from((ids[row], ids[column], weight) for row, column, weight in edges)
        return graph


def _names(nodes: list[Any]) -> np.ndarray:
    """Return the ids of nodes that may be any objects: integers if all nodes are integers, else their strings."""
    plain = all(isinstance(node, int) for node in nodes) or any(is_missing(node) for node in nodes)
    return build.node_ids(nodes if plain else list(map(str, nodes)))


def _made(
    adjacency: sparse.csr_array, ids: np.ndarray, data: NodeData, attributes: str | Sequence[str], label: str
) -> AttributedGraph:
    """Return a graph with an adjacency, and with the data that nodes have under the keys of attributes and label."""
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
    """Return a PyTorch tensor on any device as an array."""
    if tensor is None:
        return None
    return np.asarray(tensor.detach().cpu() if hasattr(tensor, "detach") else tensor)
