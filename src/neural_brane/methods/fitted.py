"""What a method has learned, and the vectors that come of it."""

import warnings
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural_brane import __version__
from neural_brane.embedding import Embedding, Layer
from neural_brane.graph import AttributedGraph
from neural_brane.methods.notices import tell_zero_vectors
from neural_brane.reasons import Reasons
from neural_brane.reasons.likelihood import LinkWeights, weigh_links

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder


class Vectors(NamedTuple):
    """All that a method learns which keeps nothing but the vectors."""

    vectors: np.ndarray  # (nodes, dim) float32


class Fitted:
    """A method that has learned: its parameters in force, the graph, and what it learned. It never changes."""

    def __init__(
        self,
        method: "Embedder",
        graph: AttributedGraph,
        learned: Any,
        updated: dict[str, Any] | None = None,
        known: int = 0,
    ):
        self.method, self.graph, self.learned = method, graph, learned
        self.version = __version__  # that learned it
        self.updated = updated  # how often, and the graphs before; None where it was learned at once
        self.labels_known = known  # how many labels it learned from

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
        return weigh_links(self.embedding, self.graph, self.method.similarity)

    @cached_property
    def data(self) -> dict[str, Any]:
        """What a file of vectors says of the graph they belong to."""
        return summarise(self.graph)

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters that were in force."""
        return self.method.get_params(deep=False)

    @property
    def n_features_in(self) -> int:
        """The number of attributes learned from."""
        return int(self.graph.attributes.shape[1])

    @property
    def feature_names_in(self) -> np.ndarray:
        """The names of the attributes learned from, where these have names and are not numbered."""
        names = self.graph.attribute_names
        if names.dtype.kind != "U" or len(names) == 0:
            raise AttributeError(f"the attributes of graph '{self.graph.name}' have no names")
        return names.astype(object)

    @property
    def seed(self) -> int | None:
        """The seed that was given or drawn."""
        return self.method.seed

    @property
    def layer(self) -> Layer | None:
        """What scores pairs of the vectors, where the method has learned such a thing."""
        return getattr(self.learned, "layer", None)

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
        made: dict[str, Any] = {
            "method": self.method.title,
            "parameters": parameters,
            "data": self.data,
            "version": self.version,
        }
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
    """Blocks of vectors, one under the other, as (nodes, dim) float32; one block that has them all is not copied."""
    vectors: np.ndarray | None = None
    start = 0
    for block in blocks:
        if len(block) == nodes and block.dtype == np.float32:
            vectors = block
        elif vectors is None:
            vectors = np.empty((nodes, dim), np.float32)
        if vectors is not block:
            vectors[start : start + len(block)] = block
        start += len(block)
    return np.empty((nodes, dim), np.float32) if vectors is None else vectors


def summarise(graph: AttributedGraph) -> dict[str, Any]:
    """A graph in a few numbers and its digest, to know it again."""
    return {
        "name": graph.name,
        "nodes": len(graph),
        "edges": graph.edges,
        "attributes": graph.attributes.shape[1],
        "digest": graph.digest(),
    }
