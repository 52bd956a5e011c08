"""Graphs of other libraries to ours and back: NetworkX, igraph, PyTorch Geometric. None is imported but to make one."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph.adjacency import Duplicates, Rules, SelfLoops, assemble
from neural_brane.graph.build import attribute_matrix, edge_weights, node_ids
from neural_brane.graph.ids import is_missing
from neural_brane.graph.labels import node_labels
from neural_brane.graph.nodes import NodeData, attributes_of

if TYPE_CHECKING:
    from neural_brane.graph.attributed import AttributedGraph


class Links(NamedTuple):
    """Edges between positions, with their weights as another library has them; None where all weigh 1."""

    ends: np.ndarray  # (edges, 2)
    weights: Any

    @classmethod
    def between(cls, nodes: Iterable[Any], edges: Iterable[tuple[Any, Any, Any]]) -> Links:
        """Turn edges (node, node, weight) into edges between the positions of the nodes."""
        place = {node: at for at, node in enumerate(nodes)}
        stated = [(place[u], place[v], weight) for u, v, weight in edges]
        ends = np.array([edge[:2] for edge in stated], dtype=np.int64).reshape(-1, 2)
        return cls(ends, [weight for _, _, weight in stated])

    def assemble(self, nodes: int, rules: Rules) -> sparse.csr_array:
        """Make the (nodes, nodes) adjacency."""
        return assemble(self.ends, edge_weights(self.weights, len(self.ends)), nodes, rules)


class _Keys(NamedTuple):
    """Where nodes have their attributes (one key, or several for typed data) and their label."""

    attributes: str | Sequence[str]
    label: str


class Exchange:
    """What AttributedGraph has to do with graphs of other libraries."""

    __slots__ = ()

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
        return _made(cls, adjacency, _names(list(graph)), data, _Keys(attributes, label)).renamed(name)

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
        return _made(cls, adjacency, ids, data, _Keys(attributes, label)).renamed(name)

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
        graph_class: Any = cls
        graph: AttributedGraph = graph_class.from_edges(
            edges.T,
            None if weights is None else weights.reshape(-1),
            attributes=attributes,
            labels=None if labels is None else _one_each(labels, nodes),
            nodes=nodes,
            duplicates=duplicates,
            self_loops=self_loops,
            name=name,
        )
        return graph

    def to_networkx(self: AttributedGraph) -> Any:  # type: ignore[misc]
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


def _made(cls: Any, adjacency: sparse.csr_array, ids: np.ndarray, data: NodeData, keys: _Keys) -> AttributedGraph:
    """Make a graph of an adjacency and of what nodes have under the keys of attributes and of the label."""
    attributes, label = keys
    labels = data.column(label)
    given = node_labels(labels, ids) if any(value is not None for value in labels) else None
    if isinstance(attributes, str):
        bags = {node: bag for node, bag in zip(ids.tolist(), data.column(attributes), strict=True) if bag is not None}
        if not bags:
            data.tell_unused({attributes, label})
        matrix, names = attribute_matrix(bags or None, None, ids)
        return cls(adjacency, matrix, ids, names, given)
    matrix, names, encoder = attributes_of(data, attributes)
    return cls(adjacency, matrix, ids, names, given, encoder=encoder)


def _array(tensor: Any) -> np.ndarray | None:
    """A tensor of PyTorch, wherever it lies, as an array."""
    if tensor is None:
        return None
    return np.asarray(tensor.detach().cpu() if hasattr(tensor, "detach") else tensor)


def _one_each(labels: np.ndarray, nodes: int) -> np.ndarray | None:
    """The labels if there is one per node; else none, with a warning."""
    if labels.size == nodes:
        return labels.reshape(-1)
    warnings.warn(
        f"y has shape {labels.shape} for {nodes} nodes, which is not one label per node: it is left out", stacklevel=3
    )
    return None
