"""Convert the input of a method, a graph or a matrix of features, and give its output the form scikit-learn expects."""

import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from neural_brane.embedding import Embedding
from neural_brane.errors import GraphError, ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.convert import TABLES, as_graph, as_graph_of_new_nodes
from neural_brane.graph.frames import is_adjacency, is_frame, package_of
from neural_brane.linalg.weights import without_self_loops

if TYPE_CHECKING:
    from neural_brane.methods.base import Fitted


BLOCK_NODES = 8192  # nodes that are embedded at a time


def own_attributes(graph: AttributedGraph) -> sparse.csr_array:
    """Return a graph's attributes (nodes, attributes); if it has none, each node is its own attribute."""
    if graph.attributes.shape[1]:
        return graph.attributes
    return sparse.eye_array(len(graph), dtype=np.float32, format="csr")


def proper_links(graph: AttributedGraph, consequence: str) -> sparse.csr_array:
    """Return the links without self-loops, or raise an error with its consequence for the method if there are none."""
    links = without_self_loops(graph.adjacency)
    if links.nnz == 0:
        advice = "give a graph with at least one link between two nodes"
        raise GraphError(f"graph '{graph.name}' links nodes to themselves only, so {consequence}; {advice}")
    return links


def row_blocks(rows: int) -> Iterator[slice]:
    """Return slices of at most BLOCK_NODES rows that cover all rows."""
    return (slice(start, start + BLOCK_NODES) for start in range(0, rows, BLOCK_NODES))


FORMS = ("default", "pandas", "polars")


class Output:
    """The part of scikit-learn's interface that lets users choose a DataFrame as the output of a transformer."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose the form in which `transform` and `fit_transform` return the vectors of a matrix of features.

        For a graph they always return an `Embedding`, which has `to_pandas` and `to_polars`. Returns the method itself.

        Parameters
        ----------
        transform : str, optional
            "default" for a NumPy array, "pandas" or "polars" for a DataFrame. None changes nothing.

        Examples
        --------
        >>> import numpy as np
        >>> from neural_brane import Attributes
        >>> Attributes(dim=2, seed=0).set_output(transform="pandas").fit_transform(np.eye(3)).columns.tolist()
        ['attributes0', 'attributes1']
        """
        if transform is not None and transform not in FORMS:
            raise ParameterError(f"transform={transform!r} makes no sense; give {', '.join(FORMS)} or None")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # the name that `clone` looks for
        return self

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the dimensions, an array of str: the class name in small letters and a number from 0.

        input_features: names of the attributes. They are only compared with those that were learned from.
        """
        fitted: Fitted = self._require_fitted()  # type: ignore[attr-defined]
        if input_features is not None:
            names, learned = np.asarray(input_features, dtype=object), getattr(fitted, "feature_names_in", None)
            if learned is not None and not np.array_equal(learned, names):
                raise ParameterError("input_features is not equal to feature_names_in_; give those, or None")
            if len(names) != fitted.n_features_in:
                found = f"input_features should have length equal to number of features ({fitted.n_features_in}),"
                raise ParameterError(f"{found} got {len(names)}")
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{number}" for number in range(fitted.method.dim)], dtype=object)


def as_matrix(method: Any, source: Any) -> Any:
    """Return a tensor or list of rows as an array if the method takes features; anything else stays as it is."""
    if not _takes_features(method):
        return source
    rows = isinstance(source, list) and "links" not in method.uses and bool(source)
    rows = rows and all(isinstance(row, list) or (isinstance(row, np.ndarray) and row.ndim == 1) for row in source)
    if rows or (hasattr(source, "__array__") and package_of(source) not in (*TABLES, "numpy")):
        try:
            source = np.asarray(source)
        except (TypeError, ValueError, RuntimeError) as error:
            raise GraphError(f"X cannot be read as a matrix ({error}); give rows of one length") from error
    if isinstance(source, np.ndarray) and source.ndim != 2:
        found = f"X has shape {source.shape}, expected a matrix with a row per node. Reshape your data:"
        raise GraphError(f"{found} X.reshape(1, -1) if it is one node, X.reshape(-1, 1) if it is one attribute")
    return source


def graph_for(method: Any, source: Any, before: AttributedGraph | None = None) -> AttributedGraph:
    """Return the graph that a method learns from; features have no links, tables are encoded as `before`'s."""
    source = as_matrix(method, source)
    if not is_features(method, source):
        return as_graph(source, encoder=None if before is None else before.encoder)
    if source.shape[0] == 1:
        raise GraphError("X has 1 sample, but a method needs at least two nodes; give two rows or more")
    return _without_links(source, list(source.columns) if _is_table(source) else None)


def newcomers_for(method: Any, source: Any, known: AttributedGraph) -> AttributedGraph:
    """Return the graph of the nodes to embed; rows of features are always new nodes."""
    source = as_matrix(method, source)
    if not is_features(method, source, known):
        return as_graph_of_new_nodes(source, known)
    expected = known.attributes.shape[1]
    if source.shape[1] != expected:
        rest = f"but {type(method).__name__} is expecting {expected} features as input; give the columns given to fit"
        raise GraphError(f"X has {source.shape[1]} features, {rest}")
    names = _names_like(method, list(source.columns) if _is_table(source) else None, known.attribute_names)
    return _without_links(source, names, ids=[f"row {row}" for row in range(source.shape[0])])


def as_given(method: Any, source: Any, embedding: Embedding, known: AttributedGraph | None = None) -> Any:
    """Return an embedding in the form that suits the input: itself for a graph, an array or DataFrame for features."""
    source = as_matrix(method, source)
    if not is_features(method, source, known):
        return embedding
    chosen = vars(method).get("_sklearn_output_config", {}).get("transform")
    if chosen == "default" or (chosen is None and "sklearn" not in sys.modules):
        return embedding.vectors
    from sklearn.base import TransformerMixin  # imported here because it is slow

    class Converter(TransformerMixin):  # type: ignore[misc, unused-ignore]
        def transform(self, source: Any) -> np.ndarray:
            return embedding.vectors

        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
            names: np.ndarray = method.get_feature_names_out()
            return names

    return Converter().set_output(transform=chosen).transform(source)  # scikit-learn makes the DataFrame


def is_features(method: Any, source: Any, known: AttributedGraph | None = None) -> bool:
    """Return whether the source is a matrix of features and not of links.

    A method that reads only attributes learns from any matrix as features. A method that also reads links does not, but
    it embeds new nodes from features: any matrix that is not square, or a DataFrame whose index and columns do not name
    the same nodes. Methods that need links accept no features. If the `known` graph, which a method was fitted to,
    comes from a table of nodes, a DataFrame is another such table.
    """
    if not _takes_features(method) or (known is None and "links" in method.uses):
        return False
    if _is_table(source):
        encoded = known is not None and known.encoder is not None
        return not encoded and ("links" not in method.uses or not (is_frame(source) and is_adjacency(source)))
    if not (sparse.issparse(source) or isinstance(source, np.ndarray)) or source.ndim != 2:
        return False
    return "links" not in method.uses or source.shape[0] != source.shape[1]


def _takes_features(method: Any) -> bool:
    return not method.needs_links and "attributes" in method.uses


def _is_table(source: Any) -> bool:
    """Return whether a value is a DataFrame of pandas or polars."""
    of_polars = package_of(source) == "polars" and hasattr(source, "columns") and hasattr(source, "to_numpy")
    return of_polars or is_frame(source)


def _names_like(method: Any, names: list[Any] | None, learned: np.ndarray) -> Any:
    """Return the names that identify the columns; columns without names are identified by their order."""
    title, named = type(method).__name__, learned.dtype.kind == "U"
    if names is None and named:
        found = f"X does not have valid feature names, but {title} was fitted with feature names;"
        warnings.warn(f"{found} give the columns in the same order", stacklevel=4)
    if names is None:
        return learned
    if not named and all(isinstance(name, str) for name in names):
        warnings.warn(f"X has feature names, but {title} was fitted without feature names", stacklevel=4)
        return learned
    known = learned.tolist()
    unseen, lacking = ([name for name in a if name not in set(b)] for a, b in ((names, known), (known, names)))
    if unseen or lacking:
        found = f"The feature names should match those that were passed during fit: unseen then {unseen[:3]},"
        raise GraphError(f"{found} missing now {lacking[:3]}; give the columns given to fit, in any order")
    return names


def _without_links(source: Any, names: Any, ids: Any = None) -> AttributedGraph:
    if _is_table(source):
        source = source.sparse.to_coo() if hasattr(source, "sparse") else source.to_numpy()
    if source.dtype.kind == "c":
        raise GraphError(f"X has dtype {source.dtype}. Complex data not supported: give real numbers")
    if source.shape[1] == 0:
        raise GraphError(f"X has 0 feature(s) (shape={source.shape}) while a minimum of 1 is required.")
    none = sparse.csr_array((source.shape[0],) * 2, dtype=np.float32)
    return AttributedGraph.from_sparse(none, source, ids=ids, attribute_names=names, name="features")
