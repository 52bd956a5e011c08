"""PTE: LINE's second order, trained on links and attributes together."""

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.methods.parameters import whole
from neural_brane.methods.skipgram import EdgeSkipGram, Part, SkipGram, edges_of, two_seeds
from neural_brane.methods.training import ALIAS, SINGLE, Moments
from neural_brane.sampling.buckets import count_buckets


def require_positive(graph: AttributedGraph, title: str) -> None:
    """Refuse attribute values of 0 and below, which cannot be drawn in proportion to their value."""
    if graph.attributes.nnz and not graph.attributes.data.min() > 0:
        raise GraphError(
            f"the smallest attribute value is {graph.attributes.data.min()}; {title} draws attributes in proportion to "
            "their value, so all must be above 0; shift the values or drop the negative ones"
        )


class PTE(EdgeSkipGram):
    """Learn vectors from which a node's neighbours and attributes can be predicted.

    PTE: predictive text embedding through large-scale heterogeneous text networks (Tang, Qu, Mei; 2015). The method
    trains the node-node and the node-attribute network jointly, without labels. A node's vector learns to distinguish
    its neighbours from other nodes, and its attributes from other attributes. Both networks give the same number of
    entries, drawn in proportion to their value. A node without neighbours and attributes keeps the small random vector
    that it starts with. It is good on social networks with attributes.
    """

    title = "pte"
    growth = "time: (edges + attribute entries) × dim; memory: edges + attribute entries + (nodes + attributes) × dim"
    paper = "Tang, Qu, Mei: PTE, 2015"

    samples: int | None = whole(
        "Entries drawn from each network. None: 100 for each entry of the larger one, at least 3 million.", default=None
    )

    def memory(self, sizes: Sizes) -> Moments:
        n, entries = sizes.nodes, sizes.links + sizes.attribute_entries
        held = self._tables(n, n + sizes.attributes)
        held["sampling"] += 12 * entries
        return {
            "preparing draws": held | {"sampling": (6 + ALIAS // 2) * entries},
            "training": held | self._chunk(n, self.negatives),
            "vectors": held | {"vectors": SINGLE * n * self.dim},
        }

    def _vectors(self, graph: AttributedGraph, seed: int) -> np.ndarray:
        require_positive(graph, self.title)
        networks = [matrix for matrix in (graph.adjacency, graph.attributes) if matrix.nnz]
        samples = self._samples(max(matrix.nnz for matrix in networks))
        sources = sum(matrix.sum(axis=1) / matrix.sum() for matrix in networks)
        targets = [matrix.sum(axis=0) for matrix in networks]
        buckets = count_buckets(sources, *targets)
        parts: list[Part] = []
        for matrix, frequency, own_seed in zip(networks, targets, two_seeds(seed), strict=False):
            shared = parts[0][1] if parts else sources
            model = SkipGram(shared, frequency, dim=self.dim, negatives=self.negatives, seed=own_seed, buckets=buckets)
            parts.append((edges_of(matrix, samples, own_seed), model))
        self._train(parts, "edges")
        return parts[0][1].vectors
