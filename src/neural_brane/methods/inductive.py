"""Methods that embed nodes they never saw."""

from abc import abstractmethod

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import ParameterError
from neural_brane.graph.newcomers import Newcomers, find_newcomers
from neural_brane.methods.base import Embedder, Source
from neural_brane.methods.features import as_given, as_matrix, newcomers_for
from neural_brane.methods.fitted import Fitted, summarise


class InductiveEmbedder(Embedder):
    """A method that learns how to make a vector, and so makes them for nodes it never saw.

    Attributes are matched by name to those learned from, links by the ids of the nodes that they lead to.
    """

    inductive = True

    def transform(self, graph: Source) -> Embedding:
        """The vectors of the nodes of another graph or table, by what was learned; nothing is learned from it.

        Anything that `fit` takes will do. New nodes without links also come as a table of nodes (pandas, polars or
        Arrow), which is encoded as the table learned from was, or as a dict from an id to its attributes' names.

        A node whose id is known has the vector that was learned for it. A newcomer's vector is made of its attributes
        and of its links to known nodes and other newcomers, or of what there is of these: `made_from` of the result
        says of which. The rows of a matrix of features alone are newcomers without links, and their vectors come as a
        plain matrix, or as `set_output` has chosen.
        """
        fitted = self._require_fitted()
        fitted.method._check_transforms(fitted)
        given = as_matrix(self, graph)
        graph = newcomers_for(self, given, fitted.graph)
        new = find_newcomers(fitted.graph, graph)
        vectors = fitted.embedding.vectors[new.places]
        made_from = np.full(len(graph), "known", dtype="<U20")
        if len(new):
            vectors[new.rows] = fitted.method._place(fitted, new)
            made_from[new.rows] = new.made_from
        provenance = fitted.provenance() | {"transformed": summarise(graph)}
        return as_given(self, given, Embedding(vectors, graph.ids, provenance, fitted.layer, made_from), fitted.graph)

    def _check_transforms(self, fitted: Fitted) -> None:
        """Refuse where what was learned says nothing of other nodes."""

    @abstractmethod
    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        """The vectors of new nodes, (new nodes, dim) float32."""


def require_attributes(fitted: Fitted) -> None:
    """Refuse new nodes where the nodes learned from had no attributes that others could share."""
    if fitted.graph.attributes.shape[1] == 0:
        raise ParameterError(
            f"this {type(fitted.method).__name__} learned from a graph without attributes, which other nodes could "
            "share; fit it on one that has some, or embed all nodes with fit_transform(graph)"
        )
