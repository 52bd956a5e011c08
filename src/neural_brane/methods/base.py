"""The contract of all methods: parameters in, one vector per node out."""

from __future__ import annotations

import hashlib
import secrets
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import InitVar
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from neural_brane import __version__
from neural_brane.embedding import Embedding, Layer
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
from neural_brane.insight.links import LinkScorer, LinkWeights, Shared, Suggestion, shared_in_graph
from neural_brane.linalg.weights import inverse_frequency
from neural_brane.methods.features import Output, as_given, as_matrix, graph_for, newcomers_for
from neural_brane.methods.identity import identify_code
from neural_brane.methods.parameters import DIM, RUN, Parametrised, shared
from neural_brane.methods.training import Moments, check_room, resolve
from neural_brane.progress import Reporter

MARK = "†"  # stands beside a method that learns from labels, wherever methods are listed
REASONS = 3  # attributes and neighbours that `suggest` names of each node
NAMED = 3  # nodes or attributes that a warning names


def tell_ignored_amounts(graph: AttributedGraph, title: str) -> None:
    """Warn where amounts of an attribute differ and the method reads only which attributes a node has."""
    entries = graph.attributes
    if entries.nnz == 0 or entries.data.min() == entries.data.max():
        return
    one = np.zeros(entries.shape[1], np.float32)  # for every attribute, the amount of some node that has it
    one[entries.indices] = entries.data
    differing = np.unique(entries.indices[one[entries.indices] != entries.data])
    if len(differing):
        warnings.warn(
            f"{title} with these parameters reads which attributes a node has, not how much of each, and "
            f"{len(differing):,} of the {entries.shape[1]:,} attributes of graph '{graph.name}' differ in amount "
            f"({_some(graph.attribute_names[differing])}); cut numbers into bins, as AttributedGraph.from_frames does, "
            "or choose a method that uses amounts",
            IgnoredAmountsWarning,
            stacklevel=3,
        )


def tell_zero_vectors(graph: AttributedGraph, rows: np.ndarray, uses: tuple[str, ...]) -> None:
    """Warn of nodes whose vector is zero: how many, which, and what they lack."""
    if len(rows) == 0:
        return
    matrices = {"attributes": graph.attributes, "links": graph.adjacency}
    lacking = {part: int(np.count_nonzero(np.diff(matrices[part].indptr)[rows] == 0)) for part in uses}
    reasons = [f"{count:,} of them have no {part}" for part, count in lacking.items() if count] or [
        "they have what the method reads, but nothing of it tells them from others"
    ]
    warnings.warn(
        f"{len(rows):,} of the {len(graph):,} nodes of graph '{graph.name}' have the vector zero "
        f"({_some(graph.ids[rows])}): {' and '.join(reasons)}; leave them out, or choose a method that uses what they "
        "have",
        ZeroVectorWarning,
        stacklevel=3,
    )


def _some(names: np.ndarray) -> str:
    """The first few names, for a warning."""
    return ", ".join(map(repr, names[:NAMED].tolist())) + (", …" if len(names) > NAMED else "")


def known_labels(method: Embedder, labels: Any, graph: AttributedGraph) -> np.ndarray | None:
    """One label per node to learn from, "" where it is not known; None where no label is known.

    labels: as they were given to `fit`, a dict from an id to its label or one label per node. The graph's own labels
    are never learned from.
    """
    if labels is None:
        return None
    if not method.uses_labels:
        raise ParameterError(
            f"labels were given, and {method.title} learns from none; leave them out, or choose a method that "
            f"'brane methods' marks with {MARK}"
        )
    found = node_labels(labels, graph.ids)
    return None if found is None or not (found != "").any() else found


class Vectors(NamedTuple):
    """What a method has learned that keeps nothing but the vectors."""

    vectors: np.ndarray  # (nodes, dim) float32


class Fitted:
    """A method that has learned: its parameters in force, the graph, and what it learned. It never changes.

    updated: how often it was updated, and the graphs before; None where it never was. known: labels it learned from.
    """

    def __init__(
        self, method: Embedder, graph: AttributedGraph, learned: Any, updated: dict[str, Any] | None, known: int
    ):
        self.method, self.graph, self.learned = method, graph, learned
        self.version = __version__  # the one that learned
        self.updated, self.labels_known = updated, known
        self.settings, self.seed = method.get_params(deep=False), method.seed  # as they were in force
        self.n_features_in = int(graph.attributes.shape[1])
        self.layer: Layer | None = getattr(learned, "layer", None)  # what scores pairs, where it was learned

    @cached_property
    def embedding(self) -> Embedding:
        """The vectors with the nodes' ids and where they came from, made once."""
        vectors = stack(self.blocks(), len(self.graph), self.method.dim)
        return Embedding(vectors, self.graph.ids, self.provenance(), self.layer)

    @cached_property
    def reasons(self) -> Reasons | None:
        """What the vectors are made of, prepared once; None where the method cannot say."""
        return self.method._reasons(self)

    @cached_property
    def link_weights(self) -> LinkWeights:
        """What ranks links in this graph, found once."""
        return LinkScorer(self.embedding, self.graph, self.method.similarity).weigh()

    @cached_property
    def data(self) -> dict[str, Any]:
        """What a file of vectors says of the graph they belong to."""
        return summarise(self.graph)

    @property
    def feature_names_in(self) -> np.ndarray:
        """The names of the attributes learned from, where these have names and are not numbered."""
        names = self.graph.attribute_names
        if names.dtype.kind != "U" or len(names) == 0:
            raise AttributeError(f"the attributes of graph '{self.graph.name}' have no names")
        return names.astype(object)

    def blocks(self) -> Iterator[np.ndarray]:
        """The vectors, some rows at a time; columns and vectors of zeros are told at the end."""
        empty = np.ones(self.method.dim, bool)
        zero, done = [], 0
        for block in self.method._blocks(self.graph, self.learned):
            empty &= ~block.any(axis=0)
            zero.append(done + np.flatnonzero(~block.any(axis=1)))
            done += len(block)
            yield block
        tell_zero_vectors(self.graph, np.concatenate(zero), self.method.uses)
        if count := np.count_nonzero(empty):
            warnings.warn(
                f"{count} of the {self.method.dim} columns of these vectors are zero: graph '{self.graph.name}' has "
                "fewer directions to tell its nodes apart; give a smaller dim",
                stacklevel=2,
            )

    def provenance(self) -> dict[str, Any]:
        """The method, its parameters, the data and the version."""
        parameters = self.method.deciding_parameters() | {"seed": self.seed}
        made: dict[str, Any] = {"method": self.method.title, "parameters": parameters}
        made |= {"data": self.data, "version": self.version}
        if self.graph.encoder is not None:  # new nodes can be encoded alike
            made["encoder"] = self.graph.encoder.as_dict()
        if self.method.uses_labels:  # how many, never which
            made["labels"] = self.labels_known
        if self.updated is not None:
            made["updated"] = self.updated
        return made | self.method._facts(self.graph, self.learned)

    def found(self, name: str) -> Any:
        """What is called so: of the fit itself, or of what the method has learned."""
        for holder in (self, self.learned):
            if hasattr(holder, name):
                return getattr(holder, name)
        raise AttributeError(f"{type(self.method).__name__} learns nothing called '{name}_'")


def stack(blocks: Iterable[np.ndarray], nodes: int, dim: int) -> np.ndarray:
    """Put blocks of vectors under each other, as (nodes, dim) float32; a block that has all nodes is not copied."""
    vectors, start = None, 0
    for block in blocks:
        if vectors is None:
            vectors = (
                block if block.shape == (nodes, dim) and block.dtype == np.float32 else np.empty((nodes, dim), "f4")
            )
        if vectors is not block:
            vectors[start : start + len(block)] = block
        start += len(block)
    return np.empty((nodes, dim), np.float32) if vectors is None else vectors


def summarise(graph: AttributedGraph) -> dict[str, Any]:
    """A graph in a few numbers and its digest, to know it again."""
    counts = {"nodes": len(graph), "edges": graph.edges, "attributes": graph.attributes.shape[1]}
    return {"name": graph.name, **counts, "digest": graph.digest()}


def count_known(method: Embedder) -> int:
    """How many nodes have a label that the method learns from."""
    return 0 if method._known is None else int(np.count_nonzero(method._known != ""))


@contextmanager
def keeping(method: Embedder, graph: Callable[[], dict[str, Any]]) -> Iterator[Stages]:
    """Yield the stages that a method trains in; a checkpoint, where it has one, keeps them and resumes them.

    method: a copy whose parameters are in force. graph: gives the graph's size and digest, which takes a while on a
    large one.
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
            method.progress = checkpoint.patience.patient(given)
        try:
            yield Stages(checkpoint)
        finally:
            method.progress = given


Source = Any  # whatever `neural_brane.graph.convert.as_graph` takes


class Embedder(Output, Parametrised, ABC):
    """A method. Its parameters are stored as given and checked in `fit`.

    `fit` puts what it has learned in place as its last act: one that is refused, fails or is interrupted changes
    nothing. What was learned is read under names that end in an underscore: `embedding_`, `graph_`, `seed_`,
    `settings_` (the parameters in force) and what the method itself learns, as in `loss_history_`.
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
    updates: ClassVar[bool] = False  # whether it goes on from what it has learned, on a changed graph
    why_not: ClassVar[str] = "it keeps nothing that training could go on from"  # where it does not
    uses_labels: ClassVar[bool] = False  # whether it also learns from the labels that `fit` is given
    needs_links: ClassVar[bool] = True  # whether it refuses a graph without edges
    similarity: ClassVar[str] = "cosine"  # how the method means two vectors to be compared: cosine, dot or distance
    extra: ClassVar[str | None] = None  # the optional part of the installation it needs, as in neural-brane[torch]
    packages: ClassVar[tuple[str, ...]] = ("torch",)  # that training on a GPU needs
    prolongs: ClassVar[tuple[str, ...]] = ()  # parameters that may grow where a run goes on from its checkpoint
    leads: ClassVar[bool] = False  # whether lists of methods begin with it
    shortlisted: ClassVar[bool] = False  # whether `compare` trains it unless told which methods to compare
    distributes: ClassVar[bool] = False  # whether several machines can train it together
    work_unit: ClassVar[str] = ""  # what `work` counts, where that is worth telling
    grid: ClassVar[dict[str, list[Any]]] = {}  # what `tune` tries besides `tune.EVERY`, or, as [], leaves alone
    small: ClassVar[dict[str, Any]] = {}  # parameters of a training that takes a moment
    trial: ClassVar[dict[str, Any]] = {}  # parameters of a shorter training, from which `estimate` scales up the time
    holds: ClassVar[dict[str, type]] = {"vectors": Vectors}  # named tuples a saved model may hold, by name in files
    _stages = Stages()  # that it trains in; `fit` gives a training those of its checkpoint
    _known = cast("np.ndarray | None", None)  # labels to learn from, one per node: those that `fit` was given

    dim: int = shared("dim", default=DIM)
    seed: int | None = shared("seed", default=None)
    random_state: InitVar[Any] = None
    threads: int | None = shared("threads", default=None)
    progress: Reporter | None = shared("progress", default=None)

    def fit(self, graph: Source, y: None = None, *, labels: Any = None, init: Embedder | None = None) -> Self:
        """Learn from a graph, or from anything that `neural_brane.graph.convert.as_graph` makes one of. Returns self.

        That is a graph of NetworkX or igraph, a Data of PyTorch Geometric, an adjacency of SciPy, NumPy or pandas, a
        pair (adjacency, attributes), or a pair of tables (edges, nodes). A method that does without links also learns
        from a matrix of features alone; `neural_brane.methods.features.is_features` tells it from an adjacency.

        labels: those to learn from, for methods that have `uses_labels`: a dict from an id to its label, or one label
        per node in the graph's order, "" where it is not known. The graph's own labels are never learned from.
        init: a fitted model of the same class to go on from, as `update` does.
        """
        if y is not None and self.uses_labels:
            raise ParameterError(
                f"y was given to {self.title}, which takes labels by name alone: fit(graph, labels=known), where known "
                "is a dict from an id to its label, or one label per node with '' where it is not known"
            )
        checked = graph_for(self, graph)
        known = known_labels(self, labels, checked)
        values, start = (None, None) if init is None else find_start(self, init, checked)
        method = self._in_force(checked, values)
        if method.needs_links and checked.adjacency.nnz == 0:
            raise GraphError(
                f"{method.title} learns from links, and graph '{checked.name}' has none; choose attributes or "
                "neural-brane, which do without"
            )
        if method._ignores_amounts():
            tell_ignored_amounts(checked, method.title)
        check_room(method, Sizes.of(checked))
        method._known, seed = known, cast(int, method.seed)
        count = count_known(method)
        with keeping(method, lambda: summarise(checked)) as method._stages:
            if start is None:
                learned, updated = method._learn(checked, seed), None
            else:
                updated = start.updated  # an update draws other numbers than the training and the updates before
                own_seed = np.random.SeedSequence((seed, updated["times"])).generate_state(1, np.uint64)[0]
                learned = method._update(start, checked, int(own_seed >> np.uint64(1)))
        del method._stages, method._known  # the states and the labels they hold
        self._fitted = Fitted(method, checked, learned, updated, count)
        return self

    def update(self, graph: Source) -> Self:
        """Go on from what was learned, on the graph as it is now. Returns self.

        Nodes and links and attributes may have come and gone: nodes are matched by id, attributes by name. What is
        new is learned, the rest moves little, and it takes a small part of the time of `fit`. The parameters are
        those of the training before. Methods for which this cannot be done, by `updates`, refuse it.
        """
        self._require_fitted()
        return self.fit(graph, init=self)

    def fit_transform(self, graph: Source, y: None = None, *, labels: Any = None) -> Embedding:
        """Learn from a graph, and from labels as `fit` takes them, and return its vectors; from features alone, a plain
        matrix (nodes, dim) or what `set_output` has chosen.
        """
        graph = as_matrix(self, graph)
        return as_given(self, graph, self.fit(graph, y, labels=labels).embedding_)

    @property
    def embedding_(self) -> Embedding:
        """The learned vectors, with the nodes' ids and where they came from."""
        return self._require_fitted().embedding

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not name.endswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self._require_fitted().found(name.removesuffix("_"))

    def blocks(self) -> Iterator[np.ndarray]:
        """The learned vectors in the order of the nodes, some rows at a time."""
        return self._require_fitted().blocks()

    def provenance(self) -> dict[str, Any]:
        """The method, its parameters, the data and the version: what it takes to make the vectors again."""
        return self._require_fitted().provenance()

    def explain(self, node: Any, other: Any = None, top: int = 10) -> Explanation:
        """Which attributes and neighbours shape a node's vector or, given another node, what makes the two alike.

        The vector of `node` is a sum of terms: in the spectral part what each attribute and each link adds, of the
        node itself or by a neighbour; in the learned part what each row adds that pooling has chosen. A term's share is
        what it adds to the squared length of the vector, divided by that length squared: all shares sum to 1. For two
        nodes it is what a term adds to their cosine, the mean of u's terms seen from v and of v's seen from u; listed
        are attributes and neighbours that both have. An attribute that comes through a neighbour counts to both.

        The first question costs one pass over the graph, others what lies around the nodes asked for.

        Parameters
        ----------
        node, other
            Ids.
        top
            How many attributes and neighbours to list.
        """
        fitted = self._require_fitted()
        reasons = fitted.reasons
        if reasons is None:
            from neural_brane.methods import METHODS

            able = [name for name, method in METHODS.items() if method._reasons is not Embedder._reasons]
            raise ParameterError(f"{self.title} cannot say what its vectors are made of; {', '.join(able)} can")
        embedding, graph = fitted.embedding, fitted.graph
        row = embedding.row(node)
        if other is None:
            return explain_node(reasons, embedding, graph, row, top)
        return explain_pairs(reasons, embedding, graph, row, [embedding.row(other)], top)[0]

    def suggest(self, node: Any, k: int = 10, *, exclude: Iterable[Any] = (), by: str = "all") -> list[Suggestion]:
        """The k nodes that a node is likeliest to be linked to, and is not, with reasons, best first.

        Never the node itself, its neighbours or a node of `exclude`. The score adds two numbers, each brought to mean 0
        and deviation 1 over the nodes that could be linked: one by vectors (the method's own score of the pair where
        it has learned one, or the similarity of the vectors: whichever ranks links of this graph better) and what
        common neighbours tell (Σ 1 / degree), which weighs by how well it ranks links of this graph. `by` asks for one
        alone: "score", "similarity" or "neighbours". The first question looks at 256 links to find these weights.

        The reasons are the attributes and neighbours that add most to the cosine, as `explain(node, other)` has them;
        of a method that cannot explain, the rarest attributes and neighbours that both have.

        >>> from neural_brane import PropagatedAttributes, load
        >>> model = PropagatedAttributes(dim=16, seed=0).fit(load("stdlib"))
        >>> [found.id for found in model.suggest("json.decoder", k=2)]
        ['json.encoder', 'json.tool']
        """
        check_top(k, "k")
        fitted = self._require_fitted()
        embedding, graph = fitted.embedding, fitted.graph
        row = embedding.row(node)
        scorer = LinkScorer(embedding, graph, fitted.method.similarity)
        excluded = map(embedding.row, exclude)
        rows, scores = scorer.rank(row, k, by=by, weights=lambda: fitted.link_weights, exclude=excluded)
        others = rows.tolist()
        if fitted.reasons is not None:
            told = explain_pairs(fitted.reasons, embedding, graph, row, others, REASONS)
            shared = [Shared(one.attributes, one.neighbours) for one in told]
        else:
            weights = inverse_frequency(graph.attributes)
            shared = [shared_in_graph(graph, weights, row, other, REASONS) for other in others]
        found = zip(graph.ids[rows].tolist(), scores.tolist(), shared, strict=True)
        return [Suggestion(*one) for one in found]

    def save(self, path: str | Path) -> None:
        """Write what was learned to a file, such as m.brane, which `neural_brane.load_model` opens."""
        from neural_brane.files.models import save_model

        save_model(self, path)

    @abstractmethod
    def _learn(self, graph: AttributedGraph, seed: int) -> Any:
        """Learn, and return all that was learned as a named tuple. `self` is a copy whose parameters are in force."""

    def _update(self, start: Start, graph: AttributedGraph, seed: int) -> Any:
        """Go on from `start`, on the graph as it is now; returns what `_learn` does and leaves `start` as it is."""
        raise NotImplementedError  # `find_start` refuses methods without `updates`

    def memory(self, sizes: Sizes) -> Moments:
        """The memory of a training besides the graph: bytes by part, at the moments when it takes most.

        A method counts its own arrays; one that does not is taken to need its vectors alone.
        """
        return {"training": {"vectors": 4 * sizes.nodes * self.dim}}

    def work(self, sizes: Sizes) -> float:
        """How much there is to compute, in any unit: the time of a training grows with it."""
        return float((sizes.nodes + sizes.links + sizes.attribute_entries) * self.dim)

    def seconds(self, sizes: Sizes) -> dict[str, float] | None:
        """The seconds of each part of a training on this machine; None where the method cannot time them apart."""
        return None

    def _blocks(self, graph: AttributedGraph, learned: Any) -> Iterator[np.ndarray]:
        """The vectors in the order of the nodes, as (k, dim) float32 arrays."""
        yield learned.vectors

    def _ignores_amounts(self) -> bool:
        """Whether vectors depend on which attributes nodes have, and not on how much of each they have."""
        return False

    def parameters_for(self, graph: AttributedGraph) -> dict[str, Any]:
        """The parameters in force for one graph."""
        return self.parameters_in_force()

    def _reasons(self, fitted: Fitted) -> Reasons | None:
        """What its vectors are made of, for `explain`; None where it cannot say."""
        return None

    def _facts(self, graph: AttributedGraph, learned: Any) -> dict[str, Any]:
        """What the provenance tells of how the training went."""
        return {}

    def _in_force(self, graph: AttributedGraph, values: dict[str, Any] | None = None) -> Self:
        """A copy that trains: every parameter checked, the device chosen; a seed that is not given is the checkpoint's,
        or drawn. values: the parameters, where they do not follow from the graph.
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
            raise not_fitted(f"this {type(self).__name__} has not learned yet; call fit(graph) first")
        return fitted


def require(holds: bool, name: str, value: object, expected: str) -> None:
    """Raise a ParameterError that names the parameter unless its value is as expected."""
    if not holds:
        raise ParameterError(f"{name}={value!r} makes no sense; give {expected}")


class InductiveEmbedder(Embedder):
    """A method that learns how to make a vector, and so makes them for nodes it never saw.

    Attributes are matched by name to those learned from, links by the ids of the nodes that they lead to.
    """

    inductive = True
    by_attributes: ClassVar[bool] = False  # whether it tells new nodes from each other by their attributes

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
        if self.by_attributes and fitted.graph.attributes.shape[1] == 0:
            raise ParameterError(
                f"this {type(self).__name__} learned from a graph without attributes, which other nodes could share; "
                "fit it on one that has some, or embed all nodes with fit_transform(graph)"
            )

    @abstractmethod
    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        """The vectors of new nodes, (new nodes, dim) float32."""


class Start(NamedTuple):
    """The start of an update: what was learned before, and how the graph has changed since."""

    learned: Any
    changes: Changes
    updated: dict[str, Any]  # the provenance's entry


def find_start(method: Embedder, init: Any, graph: AttributedGraph) -> tuple[dict[str, Any], Start]:
    """Find the parameters and the start of an update, or refuse it.

    method: has its parameters as given. Those left as None keep the values of the earlier training, also where they
    followed from the size of its graph.
    """
    if not method.updates:
        raise ParameterError(
            f"{method.title} cannot go on from what it has learned: {method.why_not}; learn anew with fit(graph), or "
            "choose a method that 'brane methods' lists with updates"
        )
    if type(init) is not type(method):
        raise ParameterError(
            f"init={init!r} makes no sense; give a fitted {type(method).__name__}, whose tables this one can go on from"
        )
    before: Fitted | None = init.__dict__.get("_fitted")
    if before is None:
        raise NotFittedError(f"this {type(init).__name__} has not learned yet, so nothing can go on from it; fit it")
    earlier = before.settings
    given = {name: one.check(getattr(method, name)) for name, one in method.parameters().items()}
    for name, value in given.items():
        if name not in RUN and value is not None and value != earlier[name]:
            raise ParameterError(
                f"{name}={value!r} makes no sense where training goes on from a model that learned with "
                f"{name}={earlier[name]!r}; give that value, or learn anew with fit(graph)"
            )
    if given.get("checkpoint") is not None:
        raise ParameterError(
            f"checkpoint={str(given['checkpoint'])!r} makes no sense for an update, which is short and keeps no state; "
            "set_params(checkpoint=None) first"
        )
    run = {name: given[name] for name in RUN if name in given}
    if run["seed"] is None:
        run["seed"] = earlier["seed"]
    values = earlier | run
    updated = {"times": 1, "first": before.data, "before": before.data}
    if before.updated is not None:
        updated |= {"times": before.updated["times"] + 1, "first": before.updated["first"]}
    return values, Start(before.learned, find_changes(before.graph, graph), updated)
