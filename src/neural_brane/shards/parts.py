"""A graph in parts: the rows of ranges of nodes, and how a graph in memory is seen that way."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import ShardError
from neural_brane.graph import AttributedGraph

LARGEST = int(np.iinfo(np.int32).max)  # nodes or attributes that int32 can number


class Rows(NamedTuple):
    """Some rows of a sparse matrix: those of row k are indices[indptr[k] : indptr[k + 1]], sorted.

    indptr (rows + 1,) int64, from 0; indices int32, numbers in the whole graph; data float32, or None where every entry
    is 1.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray | None

    def matrix(self, width: int) -> sparse.csr_array:
        """The rows as a sparse matrix with `width` columns."""
        data = np.ones(len(self.indices), np.float32) if self.data is None else np.asarray(self.data)
        return sparse.csr_array(
            (data, np.asarray(self.indices), np.asarray(self.indptr)), shape=(len(self.indptr) - 1, width)
        )


class Part(NamedTuple):
    """The nodes from `first` on: row k of both matrices is that of node first + k."""

    first: int
    adjacency: Rows
    attributes: Rows

    @property
    def nodes(self) -> int:
        """How many nodes the part has."""
        return len(self.adjacency.indptr) - 1


def even_bounds(nodes: int, parts: int) -> np.ndarray:
    """Where parts of nearly equal numbers of nodes begin, and the number of nodes as the last.

    >>> even_bounds(10, 4).tolist()
    [0, 2, 5, 7, 10]
    """
    if not 1 <= parts <= max(nodes, 1):
        raise ShardError(f"parts is {parts}, and the graph has {nodes:,} nodes; give a number from 1 to {nodes}")
    return np.array([nodes * part // parts for part in range(parts + 1)], np.int64)


class MemoryShards:
    """A graph in memory, seen in parts: it answers as `Shards` does, and copies no entry."""

    def __init__(self, graph: AttributedGraph, count: int = 1) -> None:
        check_numbers(len(graph), len(graph.attribute_names))
        self.graph, self.name = graph, graph.name
        self.nodes, self.attributes = len(graph), len(graph.attribute_names)
        self.edges, self.entries = graph.edges, graph.attributes.nnz
        self.bounds = even_bounds(self.nodes, count)
        self.weighted = bool((graph.adjacency.data != 1).any())
        self.amounts = bool((graph.attributes.data != 1).any())

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __repr__(self) -> str:
        return f"MemoryShards('{self.name}': {self.nodes} nodes, {self.edges} edges, {len(self)} parts)"

    def part(self, number: int) -> Part:
        """The rows of one part's nodes."""
        check_part(number, len(self), self.name)
        first, last = self.bounds[number], self.bounds[number + 1]
        return Part(
            int(first),
            cut_rows(self.graph.adjacency, first, last, keep_data=self.weighted),
            cut_rows(self.graph.attributes, first, last, keep_data=self.amounts),
        )

    def ids(self, number: int) -> np.ndarray:
        """The ids of one part's nodes."""
        check_part(number, len(self), self.name)
        return self.graph.ids[self.bounds[number] : self.bounds[number + 1]]

    def attribute_names(self) -> np.ndarray:
        """The names of all attributes."""
        return self.graph.attribute_names

    def check(self, parts: object = None) -> None:
        """Do nothing: what is in memory was checked when the graph was made."""


def parts_of(graph: AttributedGraph, count: int = 1) -> MemoryShards:
    """A graph in memory, seen in `count` parts of nearly equal numbers of nodes, which keep their numbers.

    >>> graph = AttributedGraph.from_edges([("ann", "bob"), ("bob", "cid")])
    >>> parts_of(graph, 2).part(1).adjacency.indices.tolist()
    [0, 2, 1]
    """
    return MemoryShards(graph, count)


def cut_rows(matrix: sparse.csr_array, first: int, last: int, *, keep_data: bool) -> Rows:
    """Some rows of a matrix, as views where its numbers have the right size already."""
    begin, end = matrix.indptr[first], matrix.indptr[last]
    return Rows(
        matrix.indptr[first : last + 1].astype(np.int64) - int(begin),
        matrix.indices[begin:end].astype(np.int32, copy=False),
        matrix.data[begin:end] if keep_data else None,
    )


def check_part(number: int, parts: int, name: str) -> None:
    """Refuse the number of a part that is not there."""
    if not 0 <= number < parts:
        raise ShardError(f"{name}: there is no part {number}; its {parts} parts are numbered from 0 to {parts - 1}")


def check_numbers(nodes: int, attributes: int) -> None:
    """Refuse more nodes or attributes than the folder's numbers can tell apart."""
    for count, what in ((nodes, "nodes"), (attributes, "attributes")):
        if count > LARGEST:
            raise ShardError(f"there are {count:,} {what}; parts number at most {LARGEST:,}: leave some out")
