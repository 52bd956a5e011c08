"""What the parameters left open follow from: a few facts about a graph, each found when it is asked for."""

from functools import cached_property
from typing import Protocol

from neural_brane.graph import AttributedGraph
from neural_brane.linalg import tell_apart
from neural_brane.sampling.triplet_tables import can_rank


class Facts(Protocol):
    """What there is to know of a graph."""

    @property
    def nodes(self) -> int:
        """How many nodes it has."""

    @property
    def tell_apart(self) -> bool:
        """Whether some attribute tells nodes apart."""

    @property
    def can_rank(self) -> bool:
        """Whether a node has both a neighbour and a linked node that is not its neighbour."""


class GraphFacts:
    """The facts of a graph in memory."""

    def __init__(self, graph: AttributedGraph):
        self._graph, self.nodes = graph, len(graph)

    @cached_property
    def tell_apart(self) -> bool:
        """Whether some attribute tells nodes apart."""
        return tell_apart(self._graph.attributes)

    @cached_property
    def can_rank(self) -> bool:
        """Whether a node has both a neighbour and a linked node that is not its neighbour."""
        return can_rank(self._graph.adjacency)
