"""Use methods in scikit-learn: a transformer from node ids to vectors, and a scorer for predicted links."""

from __future__ import annotations

import multiprocessing
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.metrics import roc_auc_score

from neural_brane.embedding import Embedding, find_pairs
from neural_brane.errors import GraphError, ParameterError, not_fitted
from neural_brane.graph import AttributedGraph
from neural_brane.graph.convert import as_graph
from neural_brane.graph.ids import as_ids, locate
from neural_brane.methods import METHODS
from neural_brane.methods.base import Embedder
from neural_brane.search.exact import cosines_of_pairs

__all__ = ["NodeEmbedder", "link_scorer"]
KEPT = 8  # fitted methods that a process keeps
# Checks of scikit-learn's `check_estimator` that do not apply, with the reason.
NODE_EMBEDDER_EXCEPTIONS = dict.fromkeys(
    (
        "check_dict_unchanged", "check_dont_overwrite_parameters", "check_dtype_object", "check_estimators_dtypes",
        "check_estimators_fit_returns_self", "check_estimators_nan_inf", "check_estimators_overwrite_params",
        "check_estimators_pickle", "check_f_contiguous_array_estimator", "check_fit2d_1feature",
        "check_fit2d_predict1d", "check_fit_check_is_fitted", "check_fit_idempotent", "check_fit_score_takes_y",
        "check_methods_sample_order_invariance", "check_methods_subset_invariance", "check_n_features_in",
        "check_n_features_in_after_fitting", "check_pipeline_consistency", "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input", "check_transformer_data_not_an_array", "check_transformer_general",
        "check_transformer_preserve_dtypes",
    ),
    "the check gives a matrix of numbers, but X must be ids of nodes",
)  # fmt: skip

_kept: OrderedDict[tuple[Any, ...], Embedder] = OrderedDict()


class NodeEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer from node ids to vectors, for pipelines and searches of scikit-learn.

    `fit` learns from the links and attributes of the whole graph, whichever ids X contains; so it also sees the nodes
    on which cross-validation tests. It never sees labels. A process keeps its last few fitted methods, so that folds
    with different ids train only once. This needs a method with a seed, because each fit without one draws its own. In
    a worker process of joblib, a method without `threads` uses one thread.

    Parameters
    ----------
    graph : AttributedGraph, or anything that a method's `fit` takes
        The graph to learn from. Copies of the transformer share it.
    method : Embedder, optional
        A method with its parameters. None stands for `NeuralBrane(seed=0)`.

    Attributes
    ----------
    method_ : Embedder
        The fitted method.
    embedding_ : Embedding
        The vectors of all nodes.

    Examples
    --------
    >>> from neural_brane import Attributes, load
    >>> graph = load("stdlib")
    >>> embedder = NodeEmbedder(graph, Attributes(dim=8, seed=0))
    >>> embedder.fit_transform(["json", "re", "ast"]).shape
    (3, 8)
    """

    def __init__(self, graph: Any, method: Embedder | None = None):
        self.graph, self.method = graph, method

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Return the transformer after learning from the graph; X may be ids of nodes, but X and y have no effect."""
        graph = as_graph(self.graph)
        method = METHODS["neural-brane"](seed=0) if self.method is None else self.method
        if not isinstance(method, Embedder):
            raise ParameterError(f"method={method!r} makes no sense; give a method, as in NeuralBrane(seed=0)")
        if X is not None:
            _rows(graph.ids, X, widest=2)
        self.method_ = _train(method, graph)
        self.n_features_in_ = 1
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the vectors (ids, dim) float32 of nodes; X is a list, an array, a Series or a column of ids."""
        embedding = self.embedding_
        vectors: np.ndarray = embedding.vectors[_rows(embedding.ids, X)]
        return vectors

    @property
    def embedding_(self) -> Embedding:
        """The vectors of all nodes."""
        if "method_" not in vars(self):
            raise not_fitted("this NodeEmbedder is not fitted yet; call fit(ids) first")
        return self.method_.embedding_

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.dim

    def __sklearn_is_fitted__(self) -> bool:
        return "method_" in vars(self)

    def __sklearn_clone__(self) -> NodeEmbedder:
        """Return an unfitted copy, which shares the graph because a graph never changes."""
        copied = type(self)(self.graph, None if self.method is None else clone(self.method))
        if hasattr(self, "_sklearn_output_config"):
            copied._sklearn_output_config = dict(self._sklearn_output_config)
        return copied

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.non_deterministic = self.method is not None and self.method.seed is None
        return tags


def link_scorer() -> Callable[..., float]:
    """Return a function for `scoring=`: the area under the ROC curve of the cosines of a NodeEmbedder's vectors.

    In cross-validation, X is pairs of ids and y is 1 for a link, 0 for none. A link that is an edge of the embedder's
    graph raises an error; `HeldOutEdges.labelled_pairs` gives pairs that are not in its graph.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from neural_brane import Attributes, load
    >>> from neural_brane.evaluate import hold_out_edges
    >>> held_out = hold_out_edges(load("stdlib"))
    >>> embedder = NodeEmbedder(held_out.graph, Attributes(dim=16, seed=0))
    >>> scores = cross_val_score(embedder, *held_out.labelled_pairs(), cv=3, scoring=link_scorer())
    >>> bool(scores.mean() > 0.6)
    True
    """
    return _score_links


def _score_links(estimator: NodeEmbedder, X: Any, y: Any) -> float:
    """Return the area under the ROC curve over pairs X with the truth y."""
    graph, embedding = estimator.method_.graph_, estimator.embedding_
    pairs, truth = find_pairs(embedding.ids, X), np.asarray(y)
    links = pairs[truth == 1]
    if seen := int(np.count_nonzero(graph.adjacency[links[:, 0], links[:, 1]])):
        advice = "give NodeEmbedder a graph without them, such as hold_out_edges(graph).graph"
        raise GraphError(f"{seen:,} of the {len(links):,} links to predict are edges of the embedder's graph; {advice}")
    return float(roc_auc_score(truth, cosines_of_pairs(*embedding.vectors[pairs.T])))


def _train(method: Embedder, graph: AttributedGraph) -> Embedder:
    """Return a fitted copy of the method, or the one that this process has already trained in the same way."""
    method = clone(method)
    if method.threads is None and multiprocessing.current_process().name != "MainProcess":
        method.set_params(threads=1)  # Vectors do not depend on it, and other workers use the other cores.
    if not isinstance(method.seed, int | np.integer):
        return method.fit(graph)
    known = (method.title, repr(sorted(method.deciding_parameters().items())), int(method.seed), graph.digest())
    if known not in _kept:
        _kept[known] = method.fit(graph)
    _kept.move_to_end(known)
    while len(_kept) > KEPT:
        _kept.popitem(last=False)
    return _kept[known]


def _rows(ids: np.ndarray, X: Any, *, widest: int = 1) -> np.ndarray:
    """Return the rows of the nodes that X names; X is a list of ids or a table of at most `widest` columns of ids."""
    # Some errors contain words that scikit-learn's checks look for, such as "0 feature(s)".
    if sparse.issparse(X):
        raise GraphError("X is sparse input, which cannot name nodes; give their ids as a list")
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise GraphError(f"X is {array.dtype}. Complex data not supported: give ids, integers or strings")
    if array.ndim == 2 and array.shape[1] == 0:
        raise GraphError(f"X has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required: a column of ids")
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] > widest):
        samples = f" ({len(array):,} sample{'s' * (len(array) != 1)})" if array.ndim else ""
        raise GraphError(f"X has shape {array.shape}{samples}; give ids of nodes: a list, an array or one column")
    given = as_ids(array.ravel().tolist() if array.dtype == object else array.ravel(), what="X, ids of nodes,")
    rows = locate(ids, given)
    if (rows < 0).any():
        unknown = given[rows < 0][0].item()
        raise GraphError(f"X contains {unknown!r}, which is not a node of the graph; ids look like {ids[0].item()!r}")
    return rows
