"""Methods that embed nodes they never saw."""

import warnings
from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
from scipy import sparse

from neural_brane.embedding import Embedding
from neural_brane.errors import GraphError, ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.convert import as_graph
from neural_brane.graph.ids import locate
from neural_brane.methods.base import Embedder, Fitted, Source, stack, summarise
from neural_brane.methods.notices import tell_zero_vectors


class InductiveEmbedder(Embedder):
    """A method that learns how to make a vector, and so makes them for nodes it never saw.

    Attributes are matched by name to those learned from, whatever their order. Unknown ones are left out, with a
    warning that counts them; a graph that shares none of them is refused.
    """

    inductive = True

    def transform(self, graph: Source) -> Embedding:
        """The vectors of the nodes of another graph, by what was learned; nothing is learned from it."""
        fitted, graph = self._require_fitted(), as_graph(graph)
        names = fitted.graph.attribute_names
        if not fitted.method._can_transform(fitted.graph):
            raise ParameterError(
                f"this {type(self).__name__} learned from a graph without attributes, which other nodes could share; "
                "fit it on one that has some, or embed all nodes with fit_transform(graph)"
            )
        blocks = fitted.method._encode(fitted, graph, align(graph, names))
        vectors = stack(blocks, len(graph), fitted.method.dim)
        tell_zero_vectors(graph, np.flatnonzero(~vectors.any(axis=1)), fitted.method.uses)
        return Embedding(vectors, graph.ids, fitted.provenance() | {"transformed": summarise(graph)})

    def _can_transform(self, graph: AttributedGraph) -> bool:
        """Whether a graph that was learned from has something that other nodes can share."""
        return graph.attributes.shape[1] > 0

    @abstractmethod
    def _encode(self, fitted: Fitted, graph: AttributedGraph, attributes: sparse.csr_array) -> Iterator[np.ndarray]:
        """The vectors of a graph's nodes, block by block; attributes have the columns that were learned from."""


def align(graph: AttributedGraph, names: np.ndarray) -> sparse.csr_array:
    """A graph's attributes under the columns of names; one without a column is left out, with a warning."""
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
