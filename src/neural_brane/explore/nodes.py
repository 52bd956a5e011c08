"""The nodes of the map: their names, labels, attributes and links, and how they are searched."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse

from neural_brane.errors import EmbeddingError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import encode, locate

MOST_FOUND = 12  # of each kind, while one types


class Nodes:
    """The nodes in the order of the vectors, with what a graph knows of them; the graph may be missing.

    Parameters
    ----------
    ids
        (nodes,) ids in the order of the vectors.
    graph
        A graph that has all of them; those that it has besides are left out.
    """

    def __init__(self, ids: np.ndarray, graph: AttributedGraph | None = None):
        self.ids = ids
        self.names = pl.Series(ids).cast(pl.String)
        self.adjacency = sparse.csr_array((len(ids), len(ids)), dtype=np.float32)
        self.attributes = sparse.csr_array((len(ids), 0), dtype=np.float32)
        self.attribute_names = pl.Series([], dtype=pl.String)
        self.labels: np.ndarray | None = None
        self.graph = graph
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

    @cached_property
    def rows(self) -> dict[Any, int]:
        """The row of each node by its id."""
        return {node: row for row, node in enumerate(self.ids.tolist())}

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def degrees(self) -> np.ndarray:
        """(nodes,) the number of neighbours of each node."""
        return np.diff(self.adjacency.indptr)

    @cached_property
    def by_attribute(self) -> sparse.csc_array:
        """The attributes by columns, to find who has one."""
        return sparse.csc_array(self.attributes)

    @cached_property
    def attribute_counts(self) -> np.ndarray:
        """(attributes,) the number of nodes that have each."""
        return np.bincount(self.attributes.indices, minlength=len(self.attribute_names))

    @cached_property
    def classes(self) -> tuple[np.ndarray, np.ndarray]:
        """The distinct labels, the commonest first, and the place of each node's: beyond the last where it has none."""
        codes, names = encode(self.labels if self.labels is not None else np.full(len(self), ""))
        counts = np.where(names == "", -1, np.bincount(codes, minlength=len(names)))
        order = np.lexsort((names, -counts))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return names[order][counts[order] >= 0], rank[codes]

    def name(self, row: int) -> str:
        """The id of a node, as text."""
        return str(self.names[int(row)])

    def label(self, row: int) -> str:
        """The label of a node, or nothing."""
        return "" if self.labels is None else str(self.labels[row])

    def neighbours(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of a node's neighbours and the weights of the edges, the heaviest first."""
        span = slice(*self.adjacency.indptr[row : row + 2])
        rows, weights = self.adjacency.indices[span], self.adjacency.data[span]
        order = np.argsort(-weights, kind="stable")
        return rows[order], weights[order]

    def attributes_of(self, row: int) -> list[tuple[str, float]]:
        """The attributes of a node with their amounts, the rarest first: they say most about it."""
        span = slice(*self.attributes.indptr[row : row + 2])
        columns, amounts = self.attributes.indices[span], self.attributes.data[span]
        order = np.argsort(self.attribute_counts[columns], kind="stable")
        return [(str(self.attribute_names[int(columns[at])]), float(amounts[at])) for at in order]

    def find_attribute(self, name: str) -> int:
        """The column of an attribute by its name."""
        found = self.attribute_names.eq(name).arg_true()
        if not len(found):
            raise EmbeddingError(f"no node has an attribute {name!r}; search for one by a part of its name")
        return int(found[0])

    def with_attribute(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the nodes that have an attribute, and how much of it each has."""
        span = slice(*self.by_attribute.indptr[column : column + 2])
        return self.by_attribute.indices[span], self.by_attribute.data[span]

    def search(self, text: str) -> dict[str, Any]:
        """Nodes by id, attributes and labels whose name holds a text, whatever the case; the best match first."""
        wanted = text.strip().lower()
        if not wanted:
            return {"nodes": [], "node_total": 0, "attributes": [], "labels": []}
        nodes = best_matches(self._lower_names, wanted)
        attributes = best_matches(self._lower_attributes, wanted)[:MOST_FOUND]
        classes, codes = self.classes
        labels = best_matches(pl.Series(classes, dtype=pl.String).str.to_lowercase(), wanted)[:MOST_FOUND]
        sizes = np.bincount(codes, minlength=len(classes) + 1)
        return {
            "nodes": [self.brief(row) for row in nodes[:MOST_FOUND].tolist()],
            "node_total": len(nodes),
            "attributes": [[self.attribute_names[at], int(self.attribute_counts[at])] for at in attributes.tolist()],
            "labels": [[str(classes[at]), int(sizes[at])] for at in labels.tolist()],
        }

    def matching(self, text: str) -> np.ndarray:
        """The rows of all nodes whose id holds a text."""
        return np.sort(best_matches(self._lower_names, text.strip().lower()))

    def brief(self, row: int) -> dict[str, Any]:
        """A node in a list: its row, id and label."""
        return {"row": int(row), "id": self.name(row), "label": self.label(row)}

    @cached_property
    def _lower_names(self) -> pl.Series:
        return self.names.str.to_lowercase()

    @cached_property
    def _lower_attributes(self) -> pl.Series:
        return self.attribute_names.str.to_lowercase()


def best_matches(names: pl.Series, wanted: str) -> np.ndarray:
    """The places of names that hold a text: first those that are it, then those that begin with it, then the shortest.

    >>> best_matches(pl.Series(["ajson", "json.tool", "json", "ast"]), "json").tolist()
    [2, 1, 0]
    """
    found = names.str.contains(wanted, literal=True).arg_true().to_numpy()
    some = names.gather(found)
    later = (~some.str.starts_with(wanted)).to_numpy()
    return found[np.lexsort((found, some.str.len_chars().to_numpy(), later, (some != wanted).to_numpy()))]


def check_found(ids: np.ndarray, rows: np.ndarray) -> None:
    """Refuse a graph that lacks nodes of the vectors."""
    missing = ids[rows < 0]
    if len(missing):
        some = ", ".join(map(repr, missing[:3].tolist()))
        raise EmbeddingError(
            f"{len(missing):,} of {len(ids):,} nodes with a vector are not in the graph, such as {some}; "
            "give the graph that the vectors were made from"
        )
