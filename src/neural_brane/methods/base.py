"""What all methods share: parameters in, one vector per node out."""

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from neural_brane import __version__
from neural_brane.embedding import Embedding
from neural_brane.errors import GraphError, ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.io.vectors import write_vectors
from neural_brane.methods.parameters import Parameters

Source = AttributedGraph | tuple[sparse.sparray, sparse.sparray]


class Embedder(Parameters):
    """A method: parameters are stored as given and checked in `fit`; what `fit` finds ends in an underscore."""

    title: ClassVar[str]
    uses: ClassVar[tuple[str, ...]]
    inductive: ClassVar[bool]
    growth: ClassVar[str]
    paper: ClassVar[str]

    dim: int

    def fit(self, graph: Source, y: None = None) -> Self:
        """Learn from a graph, or from a pair of sparse matrices (adjacency, attributes). Returns self."""
        self.graph_ = as_graph(graph)
        require(isinstance(self.dim, int) and self.dim >= 1, "dim", self.dim, "a whole number from 1")
        self._fit(self.graph_)
        return self

    def fit_transform(self, graph: Source, y: None = None) -> Embedding:
        """Learn from a graph and return its vectors."""
        return self.fit(graph).embedding_

    @property
    def embedding_(self) -> Embedding:
        """The learned vectors, with the nodes' ids and where they came from."""
        graph = self._fitted_graph()
        vectors = np.empty((len(graph), self.dim), np.float32)
        start = 0
        for block in self._blocks():
            vectors[start : start + len(block)] = block
            start += len(block)
        return Embedding(vectors, graph.ids, self.provenance())

    def save(self, path: str | Path) -> None:
        """Write the vectors to a file, some at a time: they are never all in memory."""
        graph = self._fitted_graph()
        write_vectors(path, graph.ids, self._blocks(), dim=self.dim, provenance=self.provenance())

    def provenance(self) -> dict[str, Any]:
        """The method, its parameters, the data and the version: what it takes to make the vectors again."""
        graph = self._fitted_graph()
        return {
            "method": self.title,
            "parameters": self._resolved(),
            "data": {
                "name": graph.name,
                "nodes": len(graph),
                "edges": graph.edges,
                "attributes": graph.attributes.shape[1],
                "digest": graph.digest(),
            },
            "version": __version__,
        }

    @abstractmethod
    def _fit(self, graph: AttributedGraph) -> None:
        """Learn; may rely on the graph being checked."""

    @abstractmethod
    def _blocks(self) -> Iterator[np.ndarray]:
        """The vectors in the order of the nodes, as (k, dim) float32 arrays."""

    def _resolved(self) -> dict[str, Any]:
        """The parameters that were in force, fit for JSON."""
        return {name: value for name, value in self.get_params().items() if not callable(value)}

    def _fitted_graph(self) -> AttributedGraph:
        if not hasattr(self, "graph_"):
            raise ParameterError(f"this {type(self).__name__} has not learned yet; call fit(graph) first")
        return self.graph_


def as_graph(source: Source) -> AttributedGraph:
    """A graph as it is, or one made of (adjacency, attributes)."""
    if isinstance(source, AttributedGraph):
        return source
    if isinstance(source, tuple | list) and len(source) == 2 and all(sparse.issparse(part) for part in source):
        return AttributedGraph.from_sparse(*source)
    raise GraphError(
        f"cannot learn from {type(source).__name__}; give an AttributedGraph, or a pair of SciPy sparse matrices "
        "(adjacency, attributes)"
    )


def require(holds: bool, name: str, value: object, expected: str) -> None:
    """Raise a ParameterError that names the parameter unless its value is as expected."""
    if not holds:
        raise ParameterError(f"{name}={value!r} makes no sense; give {expected}")
