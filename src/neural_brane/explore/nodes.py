"""The nodes of the map: their names, labels, attributes and links, in the order of the vectors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import encode, locate


class Nodes:
    """The nodes in the order of the vectors, with what a graph knows of them; the graph may be missing.

    Parameters
    ----------
    ids
        (nodes,) ids in the order of the vectors.
    graph
        A graph that has all of these nodes; its other nodes are left out.
    """

    def __init__(self, ids: np.ndarray, graph: AttributedGraph | None = None):
        self.ids, self.graph = ids, graph
        self.names = pl.Series(ids).cast(pl.String)
        self.adjacency = sparse.csr_array((len(ids), len(ids)), dtype=np.float32)
        self.attributes = sparse.csr_array((len(ids), 0), dtype=np.float32)
        self.attribute_names = pl.Series([], dtype=pl.String)
        self.labels: np.ndarray | None = None
        if graph is not None:
            rows = locate(graph.ids, ids)
            check_found(ids, rows)
            self._take(graph, rows)

    def _take(self, graph: AttributedGraph, rows: np.ndarray) -> None:
        """Bring what the graph knows into the order of the vectors."""
        self.adjacency, self.attributes, self.labels = graph.adjacency, graph.attributes, graph.labels
        self.attribute_names = pl.Series(graph.attribute_names).cast(pl.String)
        if not np.array_equal(rows, np.arange(len(graph))):
            self.adjacency = sparse.csr_array(graph.adjacency[rows][:, rows])
            self.attributes = sparse.csr_array(graph.attributes[rows])
            self.labels = None if graph.labels is None else graph.labels[rows]
        self.adjacency.sort_indices()

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def rows(self) -> dict[Any, int]:
        """The row of each node by its id."""
        return {node: row for row, node in enumerate(self.ids.tolist())}

    @cached_property
    def degrees(self) -> np.ndarray:
        """(nodes,) the number of neighbours of each node."""
        return np.diff(self.adjacency.indptr)

    @cached_property
    def holders(self) -> np.ndarray:
        """(attributes,) the number of nodes that have each attribute."""
        return np.bincount(self.attributes.indices, minlength=len(self.attribute_names))

    @cached_property
    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct labels, the commonest first, and each node's place among them: past the last if it has none."""
        codes, names = encode(self.labels if self.labels is not None else np.full(len(self), ""))
        counts = np.where(names == "", -1, np.bincount(codes, minlength=len(names)))
        order = np.lexsort((names, -counts))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return names[order][counts[order] >= 0], rank[codes]

    def links_of(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The neighbours of some nodes and the weights of the edges, the heaviest first."""
        start, neighbours, weights = _lists(self.adjacency[rows], lambda part: -part.data)
        return {"start": start, "rows": neighbours, "weights": weights}

    def attributes_of(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """The attributes of some nodes and how much of each they have, the rarest first: they say most about a node."""
        start, columns, amounts = _lists(self.attributes[rows], lambda part: self.holders[part.indices])
        return {"start": start, "columns": columns, "amounts": amounts}

    def holders_of(self, column: int) -> dict[str, np.ndarray]:
        """The nodes that have an attribute, and how much of it each has."""
        if not 0 <= column < len(self.attribute_names):
            raise ParameterError(f"there is no attribute {column}; there are {len(self.attribute_names)}, from 0")
        span = slice(*self._by_attribute.indptr[column : column + 2])
        return {
            "rows": self._by_attribute.indices[span].astype(np.uint32),
            "amounts": self._by_attribute.data[span].astype(np.float32),
        }

    @cached_property
    def _by_attribute(self) -> sparse.csc_array:
        return sparse.csc_array(self.attributes)

    def count(self, rows: np.ndarray) -> dict[str, Any]:
        """Count how many of some nodes have each attribute (if any has it), and the edges among them."""
        rows = np.unique(rows)
        found = np.bincount(self.attributes[rows].indices, minlength=len(self.attribute_names))
        columns = np.flatnonzero(found)
        return {
            "columns": columns.astype(np.uint32),
            "found": found[columns].astype(np.uint32),
            "edges": count_edges(self.adjacency[rows][:, rows]),
        }


def count_edges(adjacency: sparse.csr_array) -> int:
    """The edges of a symmetric matrix; a self-loop is one."""
    return int(adjacency.nnz + np.count_nonzero(adjacency.diagonal())) // 2


def _lists(part: sparse.csr_array, rank: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entries of each row in the order of their rank: where rows begin, columns and values."""
    rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
    order = np.lexsort((part.indices, rank(part), rows))
    return part.indptr.astype(np.uint32), part.indices[order].astype(np.uint32), part.data[order].astype(np.float32)


def check_found(ids: np.ndarray, rows: np.ndarray) -> None:
    """Refuse a graph that lacks nodes of the vectors."""
    missing = ids[rows < 0]
    if len(missing):
        some = ", ".join(map(repr, missing[:3].tolist()))
        raise EmbeddingError(
            f"{len(missing):,} of {len(ids):,} nodes with a vector are not in the graph, such as {some}; "
            "give the graph that the vectors were made from"
        )
