"""A graph in the few numbers that memory and time depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from neural_brane.graph.attributed import AttributedGraph

ENTRY_BYTES = 8  # a column's number and a float32
ID_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large a graph is; none of it need be in memory.

    >>> Sizes(nodes=1_000_000, edges=10_000_000, attributes=100_000, attribute_entries=20_000_000).graph_bytes
    336800000
    """

    nodes: int
    edges: int
    attributes: int = 0
    attribute_entries: int = 0
    weighted: bool = False  # whether edges have different weights
    amounts: bool = False  # whether nodes have different amounts of their attributes
    text_bytes: int = 0  # of labels, and of ids and names beyond ID_BYTES each

    @classmethod
    def of(cls, graph: AttributedGraph) -> Sizes:
        """The sizes of a graph that is there."""
        texts = [graph.ids, graph.attribute_names, *([] if graph.labels is None else [graph.labels])]
        return cls(
            nodes=len(graph),
            edges=graph.edges,
            attributes=graph.attributes.shape[1],
            attribute_entries=graph.attributes.nnz,
            weighted=_differ(graph.adjacency.data),
            amounts=_differ(graph.attributes.data),
            text_bytes=max(sum(text.nbytes for text in texts) - ID_BYTES * sum(graph.attributes.shape), 0),
        )

    @property
    def links(self) -> int:
        """The entries of the adjacency: two for each edge."""
        return 2 * self.edges

    @property
    def graph_bytes(self) -> int:
        """The memory that the graph itself takes."""
        entries = ENTRY_BYTES * (self.links + self.attribute_entries)
        return entries + 8 * self.nodes + ID_BYTES * (self.nodes + self.attributes) + self.text_bytes


def _differ(values: np.ndarray) -> bool:
    return len(values) > 0 and bool(values.min() != values.max())
