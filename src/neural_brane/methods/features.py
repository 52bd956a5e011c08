"""A matrix of features in place of a graph: its rows are nodes without links, its columns their attributes."""

from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.embedding import Embedding
from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.alike import as_graph_like
from neural_brane.graph.convert import as_graph
from neural_brane.graph.pandas_index import is_adjacency, is_frame


def graph_for(method: Any, source: Any) -> AttributedGraph:
    """What a method learns from: of features alone a graph without links, of all else what `as_graph` makes of it."""
    return _without_links(source, None) if is_features(method, source) else as_graph(source)


def newcomers_for(method: Any, source: Any, known: AttributedGraph) -> AttributedGraph:
    """What a method makes vectors for: rows of features are new nodes, whichever rows it has learned from."""
    if not is_features(method, source, known):
        return as_graph_like(source, known)
    expected = known.attributes.shape[1]
    if source.shape[1] != expected:
        raise GraphError(
            f"X has {source.shape[1]} features, but {type(method).__name__} is expecting {expected} features as input; "
            "give the columns that were learned from"
        )
    names = None if is_frame(source) else known.attribute_names
    return _without_links(source, names, ids=[f"row {row}" for row in range(source.shape[0])])


def as_given(method: Any, source: Any, embedding: Embedding, known: AttributedGraph | None = None) -> Any:
    """The vectors in the form that what was given asks for: a plain matrix for features, an embedding for a graph."""
    return embedding.vectors if is_features(method, source, known) else embedding


def is_features(method: Any, source: Any, known: AttributedGraph | None = None) -> bool:
    """Tell whether a matrix holds features and no links.

    For a method that reads attributes alone every matrix does. For one that reads links as well, a square matrix is an
    adjacency, as is a DataFrame whose index and columns name the same nodes. Methods that need links take no features.
    Where the known graph comes from a table of nodes, a DataFrame is another such table.
    """
    if method.needs_links or "attributes" not in method.uses:
        return False
    if known is not None and known.encoder is not None and is_frame(source):
        return False
    if is_frame(source):
        return "links" not in method.uses or not is_adjacency(source)
    if not (sparse.issparse(source) or isinstance(source, np.ndarray)) or source.ndim != 2:
        return False
    return "links" not in method.uses or source.shape[0] != source.shape[1]


def _without_links(source: Any, names: Any, ids: Any = None) -> AttributedGraph:
    if is_frame(source):
        source, names = source.to_numpy(), list(source.columns)
    if source.dtype.kind == "c":
        raise GraphError(f"X holds {source.dtype}. Complex data not supported: give real numbers")
    if source.shape[1] == 0:
        raise GraphError(f"X has 0 feature(s) (shape={source.shape}) while a minimum of 1 is required.")
    none = sparse.csr_array((source.shape[0],) * 2, dtype=np.float32)
    return AttributedGraph.from_sparse(none, source, ids=ids, attribute_names=names, name="features")
