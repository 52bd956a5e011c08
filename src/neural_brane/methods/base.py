"""What all methods share: parameters in, one vector per node out."""

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from neural_brane import __version__
from neural_brane.embedding import Embedding
from neural_brane.errors import GraphError, ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import locate
from neural_brane.methods.estimator import Estimator

OF_THE_RUN = {"progress", "threads", "checkpoint"}  # parameters of a run, not of its result
Source = AttributedGraph | tuple[sparse.sparray, sparse.sparray]


class Embedder(Estimator):
    """A method: parameters are stored as given and checked in `fit`; what `fit` finds ends in an underscore."""

    title: ClassVar[str]
    uses: ClassVar[tuple[str, ...]]
    inductive: ClassVar[bool]
    growth: ClassVar[str]
    paper: ClassVar[str]
    similarity: ClassVar[str] = "cosine"  # of two vectors, as the method means it: cosine, dot or distance
    extra: ClassVar[str | None] = None  # the optional part of the installation it needs, as in neural-brane[torch]

    dim: int
    seed_: int

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
        return Embedding(stack(self._blocks(), len(graph), self.dim), graph.ids, self.provenance())

    def provenance(self) -> dict[str, Any]:
        """The method, its parameters, the data and the version: what it takes to make the vectors again."""
        data = describe(self._fitted_graph())
        return {"method": self.title, "parameters": self._resolved(), "data": data, "version": __version__}

    def parameters_in_force(self) -> dict[str, Any]:
        """Every parameter's value; where one given stands for others, those too."""
        return self.get_params()

    def deciding_parameters(self) -> dict[str, Any]:
        """The parameters in force that decide the vectors, fit for JSON: all but the seed and those of the run."""
        return {name: value for name, value in self.parameters_in_force().items() if name not in {*OF_THE_RUN, "seed"}}

    def blocks(self) -> Iterator[np.ndarray]:
        """The learned vectors in the order of the nodes, some rows at a time: they need not all be in memory."""
        self._fitted_graph()
        return self._blocks()

    @abstractmethod
    def _fit(self, graph: AttributedGraph) -> None:
        """Learn; may rely on the graph being checked."""

    @abstractmethod
    def _blocks(self) -> Iterator[np.ndarray]:
        """The vectors in the order of the nodes, as (k, dim) float32 arrays."""

    def _resolved(self) -> dict[str, Any]:
        """The parameters that were in force, fit for JSON; without those that change no vector."""
        kept = {name: value for name, value in self.get_params().items() if name not in OF_THE_RUN}
        return kept | {"seed": self.seed_}

    def _fitted_graph(self) -> AttributedGraph:
        if not hasattr(self, "graph_"):
            raise ParameterError(f"this {type(self).__name__} has not learned yet; call fit(graph) first")
        return self.graph_


class InductiveEmbedder(Embedder):
    """A method that learns how to make a vector, and so makes them for nodes it never saw.

    Attributes are matched by name to those learned from, whatever their order. Those it does not know are left
    out, with a warning that counts them; a graph that shares none of them is refused.
    """

    inductive = True

    def transform(self, graph: Source) -> Embedding:
        """The vectors of the nodes of another graph, by what was learned; nothing is learned from it."""
        names, graph = self._fitted_graph().attribute_names, as_graph(graph)
        if len(names) == 0:
            raise ParameterError(
                f"this {type(self).__name__} learned from a graph without attributes, which other nodes could share; "
                "fit it on one that has some, or embed all nodes with fit_transform(graph)"
            )
        attributes = align(graph, names)
        vectors = stack(self._encode(graph, attributes), len(graph), self.dim)
        return Embedding(vectors, graph.ids, self.provenance() | {"transformed": describe(graph)})

    @abstractmethod
    def _encode(self, graph: AttributedGraph, attributes: sparse.csr_array) -> Iterator[np.ndarray]:
        """The vectors of a graph's nodes, as `_blocks`; attributes (nodes, attributes learned from) in their order."""


def align(graph: AttributedGraph, names: np.ndarray) -> sparse.csr_array:
    """A graph's attributes under the columns of names: an attribute without a column is left out, with a warning."""
    places = locate(names, graph.attribute_names)
    if np.array_equal(places, np.arange(len(names))):
        return graph.attributes
    unknown = np.count_nonzero(places < 0)
    if unknown == len(places):
        raise GraphError(
            f"none of the {unknown:,} attributes of graph '{graph.name}' is among the {len(names):,} learned from; "
            "give a graph whose attributes bear the same names"
        )
    if unknown:
        warnings.warn(
            f"{unknown:,} of the {len(places):,} attributes of graph '{graph.name}' were not learned from and are "
            "left out",
            stacklevel=3,
        )
    entries = graph.attributes.tocoo()
    columns = places[entries.col]
    kept = columns >= 0
    shape = (len(graph), len(names))
    return sparse.coo_array((entries.data[kept], (entries.row[kept], columns[kept])), shape).tocsr()


def stack(blocks: Iterable[np.ndarray], nodes: int, dim: int) -> np.ndarray:
    """Blocks of vectors, one under the other, as (nodes, dim) float32."""
    vectors = np.empty((nodes, dim), np.float32)
    start = 0
    for block in blocks:
        vectors[start : start + len(block)] = block
        start += len(block)
    return vectors


def describe(graph: AttributedGraph) -> dict[str, Any]:
    """What a file of vectors says of the graph they belong to."""
    return {
        "name": graph.name,
        "nodes": len(graph),
        "edges": graph.edges,
        "attributes": graph.attributes.shape[1],
        "digest": graph.digest(),
    }


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
