"""What all methods share: parameters in, one vector per node out."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import InitVar
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np

from neural_brane.checkpoint import Stages, kept_seed
from neural_brane.embedding import Embedding
from neural_brane.errors import GraphError, ParameterError, not_fitted
from neural_brane.graph import AttributedGraph
from neural_brane.graph.sizes import Sizes
from neural_brane.methods._memory import Moments, check_room
from neural_brane.methods._reasons import Explained
from neural_brane.methods.devices import resolve
from neural_brane.methods.features import as_given, as_matrix, graph_for
from neural_brane.methods.fitted import Fitted, summarise
from neural_brane.methods.keeping import keeping
from neural_brane.methods.known import count_labels, known_labels, refuse_targets
from neural_brane.methods.notices import tell_ignored_amounts
from neural_brane.methods.output import Output
from neural_brane.methods.parameters import Parametrised, shared
from neural_brane.methods.updating import Start, find_start, own_seed
from neural_brane.progress import Reporter
from neural_brane.writers import write_model

Source = Any  # whatever `neural_brane.graph.convert.as_graph` takes


class Embedder(Explained, Output, Parametrised, ABC):
    """A method. Its parameters are stored as given and checked in `fit`.

    `fit` puts all that it has learned in place at once, as its last act: one that is refused, fails or is interrupted
    leaves what was learned before. What was learned is read under names that end in an underscore: `embedding_`,
    `graph_`, `seed_`, `settings_` (the parameters in force) and what the method itself learns, as in `loss_history_`.
    """

    uses: ClassVar[tuple[str, ...]]
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
    _stages = Stages()  # that it trains in; `fit` gives a training those of its checkpoint
    _known = cast("np.ndarray | None", None)  # labels to learn from, one per node: those that `fit` was given

    dim: int = shared("dim", default=150)
    seed: int | None = shared("seed", default=None)
    random_state: InitVar[Any] = None
    threads: int | None = shared("threads", default=None)
    progress: Reporter | None = shared("progress", default=None)

    def fit(self, graph: Source, y: None = None, *, labels: Any = None, init: "Embedder | None" = None) -> Self:
        """Learn from a graph, or from anything that `neural_brane.graph.convert.as_graph` makes one of. Returns self.

        That is a graph of NetworkX or igraph, a Data of PyTorch Geometric, an adjacency of SciPy, NumPy or pandas, a
        pair (adjacency, attributes), or a pair of tables (edges, nodes). A method that does without links also learns
        from a matrix of features alone; `neural_brane.methods.features.is_features` tells it from an adjacency.

        labels: those to learn from, for methods that have `uses_labels`: a dict from an id to its label, or one label
        per node in the graph's order, "" where it is not known. The graph's own labels are never learned from.
        init: a fitted model of the same class to go on from, as `update` does.
        """
        refuse_targets(self, y)
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
        method._known = known
        with keeping(method, lambda: summarise(checked)) as method._stages:
            learned = method._learn_from(start, checked, cast(int, method.seed))
        del method._stages, method._known  # the states and the labels they hold
        self._fitted = Fitted(method, checked, learned, start.updated if start else None, count_labels(known))
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

    def save(self, path: str | Path) -> None:
        """Write what was learned to a file, such as m.brane, which `neural_brane.load_model` opens."""
        write_model(self, path)

    @abstractmethod
    def _learn(self, graph: AttributedGraph, seed: int) -> Any:
        """Learn, and return all that was learned as a named tuple. `self` is a copy whose parameters are in force."""

    def _learn_from(self, start: Start | None, graph: AttributedGraph, seed: int) -> Any:
        """Learn, from the beginning or from where another training has come to."""
        if start is None:
            return self._learn(graph, seed)
        return self._update(start, graph, own_seed(seed, start.updated["times"]))

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

    def _blocks(self, graph: AttributedGraph, learned: Any) -> Iterator[np.ndarray]:
        """The vectors in the order of the nodes, as (k, dim) float32 arrays."""
        yield learned.vectors

    def _ignores_amounts(self) -> bool:
        """Whether vectors depend on which attributes nodes have, and not on how much of each they have."""
        return False

    def parameters_for(self, graph: AttributedGraph) -> dict[str, Any]:
        """The parameters in force for one graph."""
        return self.parameters_in_force()

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
