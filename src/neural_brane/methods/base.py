"""The contract of all methods: they take parameters and a graph, and return one vector per node."""

from __future__ import annotations

import hashlib
import math
import secrets
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import InitVar
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from neural_brane import __version__
from neural_brane.embedding import Embedding, find_pairs
from neural_brane.errors import (
    GraphError,
    IgnoredAmountsWarning,
    NotFittedError,
    ParameterError,
    ZeroVectorWarning,
    not_fitted,
)
from neural_brane.files.checkpoints import Checkpoint, Stages, identify, kept_seed
from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Changes, Newcomers, find_changes, find_newcomers
from neural_brane.graph.labels import node_labels
from neural_brane.graph.memory import Sizes
from neural_brane.insight.contributions import Reasons
from neural_brane.insight.explain import Explanation, check_top, explain_node, explain_pairs
from neural_brane.insight.links import LinkScorer, SharedFinder, Suggestion, as_chances
from neural_brane.methods.features import Output, as_given, as_matrix, graph_for, newcomers_for
from neural_brane.methods.identity import identify_code
from neural_brane.methods.parameters import DIM, RUN, Parametrised, shared
from neural_brane.methods.training import Moments, check_room, require_bounded, resolve
from neural_brane.progress import Reporter

MARK = "†"  # shown in lists beside methods that learn from labels
REASONS = 3  # attributes and neighbours per node in the result of `suggest`
NAMED = 3  # nodes or attributes named in a warning
MODERATE = 1e-37, 1e30  # weights and amounts whose sums and inverses float32 can hold, even for 100 million entries


def require_moderate(graph: AttributedGraph, uses: tuple[str, ...]) -> None:
    """Raise an error if a weight or an amount is so large or small that computing with it would overflow."""
    matrices = {"attributes": graph.attributes, "links": graph.adjacency}
    for kind in uses:
        sizes = np.abs(matrices[kind].data)
        if len(sizes) and not MODERATE[0] <= sizes.min() <= sizes.max() <= MODERATE[1]:
            raise GraphError(
                f"the weights of the {kind} of graph '{graph.name}' reach from {sizes.min():g} to {sizes.max():g}; "
                f"scale them into the range from {MODERATE[0]:g} to {MODERATE[1]:g}"
            )


def warn_of_ignored_amounts(graph: AttributedGraph, title: str) -> None:
    """Warn if amounts of an attribute differ; the caller has found that the method ignores amounts."""
    entries = graph.attributes
    if entries.nnz == 0 or entries.data.min() == entries.data.max():
        return
    one = np.zeros(entries.shape[1], np.float32)  # the amount at some node, for every attribute
    one[entries.indices] = entries.data
    differing = np.unique(entries.indices[one[entries.indices] != entries.data])
    if len(differing):
        warnings.warn(
            f"{title} ignores the amounts of attributes with these parameters, but {len(differing):,} of the "
            f"{entries.shape[1]:,} attributes of graph '{graph.name}' differ in amount "
            f"({_first_names(graph.attribute_names[differing])}); cut numbers into bins with "
            "AttributedGraph.from_frames, or choose another method",
            IgnoredAmountsWarning,
            stacklevel=3,
        )


def warn_of_zero_vectors(graph: AttributedGraph, rows: np.ndarray, uses: tuple[str, ...]) -> None:
    """Warn of nodes whose vector is zero: say how many there are, which, and what they lack."""
    if len(rows) == 0:
        return
    matrices = {"attributes": graph.attributes, "links": graph.adjacency}
    lacking = {kind: int(np.count_nonzero(np.diff(matrices[kind].indptr)[rows] == 0)) for kind in uses}
    reasons = [f"{count:,} of them have no {kind}" for kind, count in lacking.items() if count] or [
        f"they have {' and '.join(uses)}, but none that distinguish them from other nodes"
    ]
    warnings.warn(
        f"{len(rows):,} of the {len(graph):,} nodes of graph '{graph.name}' have the vector zero "
        f"({_first_names(graph.ids[rows])}): {' and '.join(reasons)}; leave them out, or choose a method that uses "
        "what they have",
        ZeroVectorWarning,
        stacklevel=3,
    )


def _first_names(names: np.ndarray) -> str:
    """Return the first few names as text for a warning."""
    return ", ".join(map(repr, names[:NAMED].tolist())) + (", …" if len(names) > NAMED else "")


def known_labels(method: Embedder, labels: Any, graph: AttributedGraph) -> np.ndarray | None:
    """Return the labels to learn from, one per node and "" where unknown; None if no label is known.

    labels: a dict from ids to labels or one label per node, as given to `fit`. The graph's own labels are never used.
    """
    if labels is None:
        return None
    if not method.uses_labels:
        raise ParameterError(
            f"labels were given, but {method.title} does not learn from labels; leave them out, or choose a method "
            f"that 'brane methods' marks with {MARK}"
        )
    found = node_labels(labels, graph.ids)
    return None if found is None or not (found != "").any() else found


class Vectors(NamedTuple):
    """The result of a method that keeps nothing but the vectors."""

    vectors: np.ndarray  # (nodes, dim) float32


VECTORS = {"vectors_": "ndarray of shape (nodes, dim), float32: The vectors in the order of the nodes."}


class Fitted:
    """A finished training: the method with its parameters in force, the graph, and what was learned. It never changes.

    method: a copy whose parameters are in force. learned: the named tuple that `_learn` returned. updated: the number
    of updates and the earlier graphs, None without updates. known: the number of labels that were learned from.
    """

    def __init__(
        self, method: Embedder, graph: AttributedGraph, learned: Any, updated: dict[str, Any] | None, known: int
    ):
        self.method, self.graph, self.learned = method, graph, learned
        self.version = __version__  # the version that trained
        self.updated, self.labels_known = updated, known
        self.settings, self.seed = method.get_params(deep=False), method.seed
        self.n_features_in = int(graph.attributes.shape[1])
        self.link_weights: np.ndarray | None = None  # those of `link_scorer`, once it is made
        self._link_scorer: LinkScorer | None = None

    @cached_property
    def embedding(self) -> Embedding:
        """The vectors with the ids of their nodes and their provenance, made once."""
        vectors = stack(self.blocks(), len(self.graph), self.method.dim)
        return Embedding(vectors, self.graph.ids, self.provenance())

    @cached_property
    def reasons(self) -> Reasons | None:
        """The explainer of the vectors, made once; None if the method cannot explain them."""
        return self.method._reasons(self)

    @cached_property
    def shared(self) -> SharedFinder:
        """The finder of reasons for links, made once."""
        return SharedFinder(self.graph)

    def link_scorer(self, progress: Reporter | None = None) -> LinkScorer:
        """Return the scorer of links in this graph, made once; a saved model keeps its weights."""
        if self._link_scorer is None:
            seed = cast(int, self.seed)
            self._link_scorer = LinkScorer(self.graph, seed=seed, weights=self.link_weights, progress=progress)
            self.link_weights = self._link_scorer.weights
        return self._link_scorer

    @cached_property
    def data(self) -> dict[str, Any]:
        """The summary of the graph that is saved with the vectors."""
        return summarise(self.graph)

    @property
    def feature_names_in(self) -> np.ndarray:
        """The names of the attributes that were learned from; an AttributeError if they are only numbered."""
        names = self.graph.attribute_names
        if names.dtype.kind != "U" or len(names) == 0:
            raise AttributeError(f"the attributes of graph '{self.graph.name}' have no names")
        return names.astype(object)

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield the vectors, some rows at a time; at the end, warn of columns and vectors that are zero."""
        empty = np.ones(self.method.dim, bool)
        zero, done = [], 0
        for block in self.method._blocks(self.graph, self.learned):
            empty &= ~block.any(axis=0)
            zero.append(done + np.flatnonzero(~block.any(axis=1)))
            done += len(block)
            yield block
        warn_of_zero_vectors(self.graph, np.concatenate(zero), self.method.uses)
        if count := np.count_nonzero(empty):
            warnings.warn(
                f"{count} of the {self.method.dim} columns of these vectors are zero: "
                + self.method._explain_zeros(self.graph, empty),
                stacklevel=2,
            )

    def provenance(self) -> dict[str, Any]:
        """Return the method, its parameters, the data and the version."""
        parameters = self.method.deciding_parameters() | {"seed": self.seed}
        made: dict[str, Any] = {"method": self.method.title, "parameters": parameters}
        made |= {"data": self.data, "version": self.version}
        if self.graph.encoder is not None:  # encodes new nodes in the same way
            made["encoder"] = self.graph.encoder.as_dict()
        if self.method.uses_labels:  # their number only: they may be confidential
            made["labels"] = self.labels_known
        if self.updated is not None:
            made["updated"] = self.updated
        return made | self.method._facts(self.graph, self.learned)

    def lookup(self, name: str) -> Any:
        """Return the attribute of this name, either of the fit itself or of what the method has learned."""
        for holder in (self, self.learned):
            if hasattr(holder, name):
                return getattr(holder, name)
        raise AttributeError(f"{type(self.method).__name__} has no learned attribute '{name}_'")


def stack(blocks: Iterable[np.ndarray], nodes: int, dim: int) -> np.ndarray:
    """Return blocks of vectors as one array (nodes, dim) float32; a single block with all nodes is not copied."""
    vectors, start = None, 0
    for block in blocks:
        if vectors is None:
            complete = block.shape == (nodes, dim) and block.dtype == np.float32
            vectors = block if complete else np.empty((nodes, dim), np.float32)
        if vectors is not block:
            vectors[start : start + len(block)] = block
        start += len(block)
    return np.empty((nodes, dim), np.float32) if vectors is None else vectors


def summarise(graph: AttributedGraph) -> dict[str, Any]:
    """Return the name, the sizes and the digest of a graph, by which it is recognised."""
    counts = {"nodes": len(graph), "edges": graph.edges, "attributes": graph.attributes.shape[1]}
    return {"name": graph.name, **counts, "digest": graph.digest()}


def count_known(method: Embedder) -> int:
    """Return the number of nodes whose label the method learns from."""
    return 0 if method._known is None else int(np.count_nonzero(method._known != ""))


@contextmanager
def open_stages(method: Embedder, graph: Callable[[], dict[str, Any]]) -> Iterator[Stages]:
    """Yield the stages of a training; if the method has a checkpoint, it saves and resumes them.

    method: a copy whose parameters are in force. graph: returns the graph's sizes and digest; it is called only for a
    checkpoint, because the digest of a large graph takes a while.
    """
    path, given = method.get_params().get("checkpoint"), method.progress
    if path is None:
        yield Stages()
        return
    values = method.deciding_parameters()
    code = identify_code(type(method), values, on_cpu=getattr(method, "device", "cpu") == "cpu")
    if method.uses_labels:
        known = [] if method._known is None else method._known.tolist()
        digest = hashlib.sha256("\0".join(known).encode()).hexdigest()[:16]
        values |= {"labels": f"{count_known(method):,} known (digest {digest})" if known else "none"}
    identity = identify(method.title, values, cast(int, method.seed), graph(), code)
    with Checkpoint(path, identity, free=method.prolongs) as checkpoint:
        if given is not None:
            method.progress = checkpoint.stop.delay_errors(given)
        try:
            yield Stages(checkpoint)
        finally:
            method.progress = given


Source = Any  # a graph, or anything that `neural_brane.graph.convert.as_graph` converts


class Embedder(Output, Parametrised, ABC):
    """The base class of all methods. Parameters are stored as given and checked in `fit`.

    A `fit` that is refused, fails or is interrupted changes nothing, because storing the result is its last step. The
    names of learned attributes end in an underscore, such as `embedding_`.
    """

    learns = {
        "embedding_": "Embedding: The vectors with the ids of their nodes and their provenance.",
        "graph_": "AttributedGraph: The graph that the method was fitted to.",
        "seed_": "int: The seed that was used, drawn if `seed` is None.",
        "settings_": "dict: Every parameter with the value that the training used.",
        "n_features_in_": "int: Number of attributes of the graph.",
    }
    uses: ClassVar[tuple[str, ...]] = ("links", "attributes")
    growth: ClassVar[str]
    paper: ClassVar[str]
    inductive: ClassVar[bool] = False
    updates: ClassVar[bool] = False  # True if it can update what it has learned when the graph changes
    why_not: ClassVar[str] = "it keeps nothing that an update could start from"  # the reason if `updates` is False
    uses_labels: ClassVar[bool] = False  # True if it also learns from the labels given to `fit`
    needs_links: ClassVar[bool] = True  # True if it refuses a graph without edges
    similarity: ClassVar[str] = "cosine"  # how to compare two of its vectors: cosine, dot or distance
    extra: ClassVar[str | None] = None  # the optional dependency it needs, as in neural-brane[torch]
    packages: ClassVar[tuple[str, ...]] = ("torch",)  # needed to train on a GPU
    prolongs: ClassVar[tuple[str, ...]] = ()  # parameters that may grow when a checkpoint is resumed
    leads: ClassVar[bool] = False  # True if it comes first in lists of methods
    shortlisted: ClassVar[bool] = False  # True if `compare` trains it by default
    distributes: ClassVar[bool] = False  # True if several machines can train it together
    work_unit: ClassVar[str] = ""  # the unit of `work`, if `estimate` should show it
    grid: ClassVar[dict[str, list[Any]]] = {}  # values that `tune` tries besides `tune.EVERY`; [] excludes a parameter
    small: ClassVar[dict[str, Any]] = {}  # parameters of a training that takes a moment
    trial: ClassVar[dict[str, Any]] = {}  # parameters of the short training from which `estimate` extrapolates
    holds: ClassVar[dict[str, type]] = {"vectors": Vectors}  # named tuples in a saved model, by their name in files
    _stages = Stages()  # replaced in `fit` by those of the checkpoint
    _known = cast("np.ndarray | None", None)  # one label per node, as given to `fit`

    dim: int = shared("dim", default=DIM)
    seed: int | None = shared("seed", default=None)
    random_state: InitVar[Any] = None
    threads: int | None = shared("threads", default=None)
    progress: Reporter | None = shared("progress", default=None)

    def fit(self, graph: Source, y: None = None, *, labels: Any = None, init: Embedder | None = None) -> Self:
        """Return the method itself after it has learned from a graph.

        Parameters
        ----------
        graph : AttributedGraph, or anything that `neural_brane.graph.convert.as_graph` converts
            A graph of NetworkX or igraph, a Data of PyTorch Geometric, an adjacency matrix of SciPy, NumPy or pandas, a
            pair (adjacency, attributes), a list of edges, or a pair of tables (edges, nodes). A method that uses no
            links also learns from a matrix of features alone.
        y : None
            Not used; scikit-learn passes it. A method that learns from labels refuses it.
        labels : dict or sequence of str, optional
            The labels to learn from: a dict from ids to labels, or one label per node in the graph's order with "" for
            an unknown one. Only methods with `uses_labels` accept them. The graph's own labels are never used.
        init : Embedder, optional
            A fitted method of the same class to continue from, as `update` does.
        """
        if y is not None and self.uses_labels:
            raise ParameterError(
                f"y was given to {self.title}, which takes labels by name only: call fit(graph, labels=known), where "
                "known is a dict from ids to labels, or one label per node with '' for an unknown one"
            )
        before = init.__dict__.get("_fitted") if isinstance(init, Embedder) else None
        checked = graph_for(self, graph, before and before.graph)
        require_moderate(checked, self.uses)
        known = known_labels(self, labels, checked)
        values, start = (None, None) if init is None else find_start(self, init, checked)
        method = self._in_force(checked, values)
        if method.needs_links and checked.adjacency.nnz == 0:
            raise GraphError(
                f"{method.title} learns from links, but graph '{checked.name}' has none; choose attributes or "
                "neural-brane, which need none"
            )
        if method._ignores_amounts():
            warn_of_ignored_amounts(checked, method.title)
        check_room(method, Sizes.from_graph(checked))
        method._known, seed = known, cast(int, method.seed)
        count = count_known(method)
        with open_stages(method, lambda: summarise(checked)) as method._stages:
            if start is None:
                learned, updated = method._learn(checked, seed), None
            else:
                updated = start.updated
                # Each update must draw other random numbers than the training and the updates before it.
                own_seed = np.random.SeedSequence((seed, updated["times"])).generate_state(1, np.uint64)[0]
                learned = method._update(start, checked, int(own_seed >> np.uint64(1)))
        del method._stages, method._known  # frees the states and the labels
        for block in method._blocks(checked, learned):
            require_bounded(block, method)
        self._fitted = Fitted(method, checked, learned, updated, count)
        return self

    def update(self, graph: Source) -> Self:
        """Return the method itself after more training on the changed graph.

        Nodes are matched by id and attributes by name; nodes, attributes and links may have been added or removed. New
        nodes get vectors, the other vectors change little, and it takes a small share of the time of `fit`. The
        parameters stay those of the earlier training. Only methods with `updates` support this.
        """
        self._require_fitted()
        return self.fit(graph, init=self)

    def fit_transform(self, graph: Source, y: None = None, *, labels: Any = None) -> Embedding:
        """Return the vectors of a graph after learning from it; the arguments are those of `fit`.

        For a matrix of features alone they are a plain float32 array (nodes, dim), or the form set by `set_output`.
        """
        graph = as_matrix(self, graph)
        return as_given(self, graph, self.fit(graph, y, labels=labels).embedding_)

    @property
    def embedding_(self) -> Embedding:
        """The learned vectors with the ids of their nodes and their provenance."""
        return self._require_fitted().embedding

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not name.endswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self._require_fitted().lookup(name.removesuffix("_"))

    def blocks(self) -> Iterator[np.ndarray]:
        """Return an iterator over the learned vectors in the order of the nodes, some rows at a time."""
        return self._require_fitted().blocks()

    def provenance(self) -> dict[str, Any]:
        """Return the method, its parameters, the data and the version: the facts needed to make the vectors again."""
        return self._require_fitted().provenance()

    def explain(self, node: Any, other: Any = None, top: int = 10) -> Explanation:
        """Return the attributes and neighbours that shape a node's vector, or that make two nodes alike.

        A vector is a sum of terms. In the spectral part each attribute and each link adds a term, directly or through a
        neighbour; in the learned part each row that pooling has chosen adds one. A term's share is its part of the
        squared length of the vector: all shares sum to 1. For two nodes u and v it is the term's part of their cosine,
        the mean of u's terms seen from v and v's terms seen from u; only attributes and neighbours that both have are
        listed. An attribute that comes through a neighbour counts for both. The first call takes one pass over the
        graph, later calls look only at the surroundings of the nodes.

        Parameters
        ----------
        node, other : id
            A node, and optionally the node to compare it with.
        top : int
            The number of attributes and neighbours to list.
        """
        fitted = self._require_fitted()
        reasons = fitted.reasons
        if reasons is None:
            from neural_brane.methods import METHODS

            able = [name for name, method in METHODS.items() if method._reasons is not Embedder._reasons]
            raise ParameterError(f"{self.title} cannot explain its vectors; choose one of {', '.join(able)}")
        embedding, graph = fitted.embedding, fitted.graph
        row = embedding.row(node)
        if other is None:
            return explain_node(reasons, embedding, graph, row, top)
        return explain_pairs(reasons, embedding, graph, row, [embedding.row(other)], top)[0]

    def score_links(self, pairs: Sequence[tuple[Any, Any]] | np.ndarray) -> np.ndarray:
        """Return a number from 0 to 1 (pairs,) float64 for each pair of ids; higher means a likelier link.

        A small regression has learned to tell a tenth of the graph's edges from random pairs, by cosines of spectral
        vectors, common neighbours, eigenvectors and degrees (`neural_brane.insight.links.LinkScorer`). The number
        estimates the chance that the graph lacks this link, if it lacks as many edges again; above .1 it is two to four
        times too high. The first call learns the regression. The method's own vectors are not used.

        Examples
        --------
        >>> from neural_brane import PropagatedAttributes, load
        >>> model = PropagatedAttributes(dim=16, seed=0).fit(load("stdlib"))
        >>> likely, unlikely = model.score_links([("json.tool", "json.decoder"), ("json", "tkinter")])
        >>> bool(likely > unlikely)
        True
        """
        fitted = self._require_fitted()
        return as_chances(fitted.link_scorer(self.progress).score(find_pairs(fitted.graph.ids, pairs)))

    def suggest(self, node: Any, k: int = 10, *, exclude: Iterable[Any] = ()) -> list[Suggestion]:
        """Return the k most likely new neighbours of a node, best first, each with its `score` and reasons.

        The score is that of `score_links`. The reasons are attributes and neighbours that both nodes share and few
        others have; what more than a tenth of the nodes have is never a reason.

        Parameters
        ----------
        node : id
            The node to link. It and its neighbours are never suggested.
        k : int
            The number of suggestions.
        exclude : iterable of id
            More nodes that must not be suggested.

        Examples
        --------
        >>> from neural_brane import PropagatedAttributes, load
        >>> model = PropagatedAttributes(dim=16, seed=0).fit(load("stdlib"))
        >>> [found.id for found in model.suggest("json.decoder", k=1)]
        ['json.encoder']
        """
        check_top(k, "k")
        fitted = self._require_fitted()
        embedding, graph = fitted.embedding, fitted.graph
        row = embedding.row(node)
        rows, scores = fitted.link_scorer(self.progress).rank(row, k, map(embedding.row, exclude))
        shared = fitted.shared.find(row, rows.tolist(), REASONS)
        found = zip(graph.ids[rows].tolist(), as_chances(scores).tolist(), shared, strict=True)
        return [Suggestion(*one) for one in found]

    def save(self, path: str | Path) -> None:
        """Save the fitted method to a file such as m.brane, which `neural_brane.load_model` opens."""
        from neural_brane.files.models import save_model

        save_model(self, path)

    @abstractmethod
    def _learn(self, graph: AttributedGraph, seed: int) -> Any:
        """Learn, and return everything learned as a named tuple. `self` is a copy whose parameters are in force."""

    def _update(self, start: Start, graph: AttributedGraph, seed: int) -> Any:
        """Continue from `start` on the changed graph; return what `_learn` returns and do not change `start`."""
        raise NotImplementedError  # `find_start` refuses methods without `updates`

    def memory(self, sizes: Sizes) -> Moments:
        """Return the bytes of each group of arrays besides the graph, at every moment that may take the most memory.

        A method counts its own arrays; the default counts the vectors only.
        """
        return {"training": {"vectors": 4 * sizes.nodes * self.dim}}

    def work(self, sizes: Sizes) -> float:
        """Return the amount of work of a training, in any unit that its time is proportional to.

        The default suits a time that is proportional to the graph and to the parameters that `trial` makes smaller.
        """
        repeats = math.prod(getattr(self, name) for name in self.trial)
        return float(repeats * (sizes.nodes + sizes.links + sizes.attribute_entries) * self.dim)

    def seconds(self, sizes: Sizes) -> dict[str, float] | None:
        """Return the seconds of each section of a training on this machine; None if they cannot be timed separately."""
        return None

    def _blocks(self, graph: AttributedGraph, learned: Any) -> Iterator[np.ndarray]:
        """Yield the vectors in the order of the nodes, as (k, dim) float32 arrays."""
        yield learned.vectors

    def _ignores_amounts(self) -> bool:
        """Return whether vectors depend only on which attributes nodes have, not on their amounts."""
        return False

    def _explain_zeros(self, graph: AttributedGraph, empty: np.ndarray) -> str:
        """Return why columns of the vectors, marked in `empty` (dim,), are zero, and what to do."""
        return f"graph '{graph.name}' has fewer directions in which its nodes differ; give a smaller dim"

    def parameters_for(self, graph: AttributedGraph) -> dict[str, Any]:
        """Return the parameters in force for one graph."""
        return self.parameters_in_force()

    def _reasons(self, fitted: Fitted) -> Reasons | None:
        """Return the explainer of the vectors; None if the method cannot explain them."""
        return None

    def _facts(self, graph: AttributedGraph, learned: Any) -> dict[str, Any]:
        """Return further entries of the provenance, about the course of the training."""
        return {}

    def _in_force(self, graph: AttributedGraph, values: dict[str, Any] | None = None) -> Self:
        """Return a copy to train: its parameters are checked, its device is chosen and its seed is set.

        A seed that is not given is taken from the checkpoint, or drawn. values: the parameters, unless the graph
        decides them.
        """
        values = self.parameters_for(graph) if values is None else values
        if values["seed"] is None and values.get("checkpoint") is not None:
            values["seed"] = kept_seed(values["checkpoint"])
        if values["seed"] is None:
            values["seed"] = secrets.randbits(63)
        if not isinstance(values["seed"], int):
            values["seed"] = int(values["seed"].randint(2**31))
        if "device" in values:
            values["device"] = resolve(values["device"], needs=self.packages)
        return type(self)(**values)

    def _require_fitted(self) -> Fitted:
        fitted: Fitted | None = self.__dict__.get("_fitted")
        if fitted is None:
            raise not_fitted(f"this {type(self).__name__} is not fitted yet; call fit(graph) first")
        return fitted


def require(holds: bool, name: str, value: object, expected: str) -> None:
    """Raise a ParameterError that names a parameter and its expected values, unless the condition holds."""
    if not holds:
        raise ParameterError(f"{name}={value!r} makes no sense; give {expected}")


class InductiveEmbedder(Embedder):
    """A method that can also embed new nodes, because it learns how to make a vector.

    The attributes of new nodes are matched by name, and their links by the ids of the known nodes that they lead to.
    """

    inductive = True
    by_attributes: ClassVar[bool] = False  # True if it distinguishes new nodes by their attributes only

    def transform(self, graph: Source) -> Embedding:
        """Return the vectors of the nodes of another graph or table; nothing is learned from it.

        A node with a known id keeps the vector that was learned for it. The vector of a new node is made from its
        attributes and its links to known and other new nodes, as far as it has them.

        Parameters
        ----------
        graph : AttributedGraph, or anything that `fit` takes
            New nodes without links may also be a table of nodes (pandas, polars or Arrow), which is encoded like the
            table that was learned from, a dict from ids to names of attributes, or a matrix of features.

        Returns
        -------
        Embedding
            The vectors (nodes, dim); `made_from` says what each was made from. For a matrix of features they are a
            plain float32 array instead, or the form that `set_output` has chosen.
        """
        fitted = self._require_fitted()
        fitted.method._check_transforms(fitted)
        given = as_matrix(self, graph)
        graph = newcomers_for(self, given, fitted.graph)
        require_moderate(graph, self.uses)
        new = find_newcomers(fitted.graph, graph)
        vectors = fitted.embedding.vectors[new.places]
        made_from = np.full(len(graph), "known", dtype="<U20")
        if len(new):
            vectors[new.rows] = require_bounded(fitted.method._place(fitted, new), fitted.method)
            made_from[new.rows] = new.made_from
        provenance = fitted.provenance() | {"transformed": summarise(graph)}
        return as_given(self, given, Embedding(vectors, graph.ids, provenance, made_from), fitted.graph)

    def _check_transforms(self, fitted: Fitted) -> None:
        """Raise an error if new nodes cannot be embedded with what was learned."""
        if self.by_attributes and fitted.graph.attributes.shape[1] == 0:
            raise ParameterError(
                f"this {type(self).__name__} learned from a graph without attributes, so it cannot embed new nodes; "
                "fit it on a graph with attributes, or embed all nodes with fit_transform(graph)"
            )

    @abstractmethod
    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        """Return the vectors of new nodes, (new nodes, dim) float32."""


class Start(NamedTuple):
    """The start of an update: what was learned before, and how the graph has changed since."""

    learned: Any
    changes: Changes
    updated: dict[str, Any]  # the entry "updated" of the provenance


def find_start(method: Embedder, init: Any, graph: AttributedGraph) -> tuple[dict[str, Any], Start]:
    """Return the parameters and the start of an update, or raise an error that says why there can be none.

    method: has its parameters as given. Those left as None keep the values of the earlier training, even if these
    depended on the size of its graph.
    """
    if not method.updates:
        raise ParameterError(
            f"{method.title} cannot be updated: {method.why_not}; train again with fit(graph), or choose a method that "
            "'brane methods' lists with updates"
        )
    if type(init) is not type(method):
        raise ParameterError(f"init={init!r} makes no sense; give a fitted {type(method).__name__} to continue from")
    before: Fitted | None = init.__dict__.get("_fitted")
    if before is None:
        raise NotFittedError(f"this {type(init).__name__} is not fitted yet; call its fit(graph) first")
    earlier = before.settings
    given = {name: one.check(getattr(method, name)) for name, one in method.parameters().items()}
    for name, value in given.items():
        if name not in RUN and value is not None and value != earlier[name]:
            raise ParameterError(
                f"{name}={value!r} makes no sense when training continues from a model with {name}={earlier[name]!r}; "
                "give that value, or train again with fit(graph)"
            )
    if given.get("checkpoint") is not None:
        raise ParameterError(
            f"checkpoint={str(given['checkpoint'])!r} makes no sense for an update, which is short and saves none; "
            "call set_params(checkpoint=None) first"
        )
    run = {name: given[name] for name in RUN if name in given}
    if run["seed"] is None:
        run["seed"] = earlier["seed"]
    values = earlier | run
    updated = {"times": 1, "first": before.data, "before": before.data}
    if before.updated is not None:
        updated |= {"times": before.updated["times"] + 1, "first": before.updated["first"]}
    return values, Start(before.learned, find_changes(before.graph, graph), updated)
