"""Nodes in scikit-learn's tools: a transformer from node ids to vectors, and a scorer by links."""

from __future__ import annotations

import multiprocessing
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.metrics import roc_auc_score

from neural_brane.embedding import Embedding, find_pairs, inner_products
from neural_brane.errors import GraphError, ParameterError, not_fitted
from neural_brane.graph import AttributedGraph
from neural_brane.graph.convert import as_graph
from neural_brane.graph.ids import as_ids, locate
from neural_brane.methods import METHODS
from neural_brane.methods.base import Embedder

__all__ = ["NodeEmbedder", "link_scorer"]
KEPT = 8  # trainings whose vectors a process keeps
# The checks of scikit-learn's `check_estimator` whose assumptions do not hold, and why: by method, given features.
_LISTS = {
    "check_transformer_data_not_an_array": "a list could be one of edges, so features are a matrix or a DataFrame"
}
METHOD_EXCEPTIONS = {
    "attributes": {},
    "smoothed-attributes": _LISTS,
    "propagated-attributes": _LISTS,
    "neural-brane": _LISTS
    | dict.fromkeys(
        ("check_fit_score_takes_y", "check_n_features_in_after_fitting", "check_pipeline_consistency"),
        "score takes pairs of ids, which links are predicted for, and no features",
    ),
}
# The same for NodeEmbedder.
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
    "it fits a matrix of numbers, and X is ids of nodes",
)  # fmt: skip

_kept: OrderedDict[tuple[Any, ...], Embedder] = OrderedDict()


class NodeEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer that takes node ids as X and gives the nodes' vectors: for pipelines and searches.

    `fit` learns from the whole graph, whichever ids are in X: all nodes' links and attributes are seen, also those of
    the nodes that cross-validation tests on. Labels are never seen. A process keeps the vectors of its last trainings,
    so that folds that differ in their ids alone train once; that needs a method with a seed, because without one every
    fit draws its own. In a worker process of joblib a method without `threads` takes one.

    Parameters
    ----------
    graph
        An `AttributedGraph`, or anything that a method's `fit` takes. Copies of the transformer share it.
    method
        A method with its parameters; None is `NeuralBrane(seed=0)`.

    Examples
    --------
    >>> from neural_brane import Attributes, load
    >>> graph = load("stdlib")
    >>> embedder = NodeEmbedder(graph, Attributes(dim=8, seed=0))
    >>> embedder.fit_transform(["json", "re", "ast"]).shape
    (3, 8)
    """

    def __init__(self, graph: Any, method: Embedder | None = None):
        self.graph = graph
        self.method = method

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Learn from the graph. The ids in X must be nodes of it; neither they nor y change what is learned."""
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
        """The vectors of some nodes, a row each: X is a list, an array, a Series or a column of ids."""
        embedding = self.embedding_
        vectors: np.ndarray = embedding.vectors[_rows(embedding.ids, X)]
        return vectors

    @property
    def embedding_(self) -> Embedding:
        """The vectors of all nodes."""
        if "method_" not in vars(self):
            raise not_fitted("this NodeEmbedder has not learned yet; call fit(ids) first")
        return self.method_.embedding_

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.dim

    def __sklearn_is_fitted__(self) -> bool:
        return "method_" in vars(self)

    def __sklearn_clone__(self) -> NodeEmbedder:
        """An unfitted copy; the graph, which never changes, is shared."""
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


def link_scorer(by: str = "own") -> Callable[..., float]:
    """A `scoring=` of a NodeEmbedder by links: the area under the ROC curve; X is pairs of ids, y is 1 for a link or 0.

    by: "own", the method's own score of a pair, or "cosine". Pairs that the embedder has learned as edges are refused:
    `HeldOutEdges.labelled_pairs` gives pairs to learn without.

    >>> from sklearn.model_selection import cross_val_score
    >>> from neural_brane import Attributes, load
    >>> from neural_brane.evaluate import hold_out_edges
    >>> held_out = hold_out_edges(load("stdlib"))
    >>> embedder = NodeEmbedder(held_out.graph, Attributes(dim=16, seed=0))
    >>> scores = cross_val_score(embedder, *held_out.labelled_pairs(), cv=3, scoring=link_scorer("cosine"))
    >>> bool(scores.mean() > 0.6)
    True
    """
    if by not in ("own", "cosine"):
        raise ParameterError(f"by={by!r} makes no sense; give own or cosine")
    return LinkScorer(by)


class LinkScorer:
    """What `link_scorer` gives: a function that can be sent to another process."""

    def __init__(self, by: str):
        self.by = by

    def __repr__(self) -> str:
        return f"link_scorer({self.by!r})"

    def __call__(self, estimator: NodeEmbedder, X: Any, y: Any) -> float:
        """The area under the ROC curve over pairs X with the truths y."""
        graph, embedding = estimator.method_.graph_, estimator.embedding_
        pairs, truth = find_pairs(embedding.ids, X), np.asarray(y)
        links = pairs[truth == 1]
        if seen := int(np.count_nonzero(graph.adjacency[links[:, 0], links[:, 1]])):
            raise GraphError(
                f"{seen:,} of the {len(links):,} links to predict are edges of the graph that was learned from; give "
                "NodeEmbedder the graph without them, as hold_out_edges(graph).graph"
            )
        if self.by == "own":
            return float(roc_auc_score(truth, embedding.score(X)))
        lengths = np.linalg.norm(embedding.vectors, axis=1, keepdims=True)
        units = np.divide(embedding.vectors, lengths, out=np.zeros_like(embedding.vectors), where=lengths > 0)
        return float(roc_auc_score(truth, inner_products(units, pairs)))


def _train(method: Embedder, graph: AttributedGraph) -> Embedder:
    """The method, fitted; a training that this process has done already is taken as it is."""
    method = clone(method)
    if method.threads is None and multiprocessing.current_process().name != "MainProcess":
        method.set_params(threads=1)  # changes no vector; the other cores have jobs of their own
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
    """The rows of the nodes that X names, a column or a list of them; one that is unknown is refused."""
    if sparse.issparse(X):
        raise GraphError("X is a sparse matrix, and sparse input names no nodes; give their ids as a list")
    array = np.asarray(X)
    if array.dtype.kind == "c":
        raise GraphError(f"X holds {array.dtype}. Complex data not supported: give ids, integers or strings")
    if array.ndim == 2 and array.shape[1] == 0:
        raise GraphError(f"X has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required: a column of ids")
    if array.ndim == 2 and array.shape[1] > widest:
        samples = f"{len(array):,} sample{'s' * (len(array) != 1)}"
        raise GraphError(
            f"X has shape {array.shape}, {samples} of {array.shape[1]} features; give ids of nodes: a list, an array "
            "or one column"
        )
    if array.ndim not in (1, 2):
        raise GraphError(f"X has shape {array.shape}; give ids of nodes: a list, an array or one column")
    wanted = as_ids(array.ravel().tolist() if array.dtype == object else array.ravel(), what="X, ids of nodes,")
    rows = locate(ids, wanted)
    if (rows < 0).any():
        unknown = wanted[rows < 0][0].item()
        raise GraphError(f"X names {unknown!r}, which is no node of the graph; give ids such as {ids[0].item()!r}")
    return rows
