"""PTE: LINE's second order on links and attributes at once."""

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.methods.parameters import whole
from neural_brane.methods.skipgram import EdgeSkipGram, Part, SkipGram, edges_of, two_seeds
from neural_brane.methods.training import ALIAS, SINGLE, Moments
from neural_brane.sampling.buckets import count_buckets


class PTE(EdgeSkipGram):
    """PTE: predictive text embedding through large-scale heterogeneous text networks (Tang, Qu, Mei; 2015).

    The node-node and the node-attribute network are trained jointly, without labels: a node's vector must tell its
    neighbours from other nodes, and its attributes from others. Entries are drawn in proportion to their value, as
    many from the one network as from the other. A node with neither keeps the small random vector it starts with.
    """

    title = "pte"
    growth = "time: (edges + attribute entries) × dim; memory: edges + attribute entries + (nodes + attributes) × dim"
    paper = "Tang, Qu, Mei: PTE, 2015"

    samples: int | None = whole(
        "Entries drawn from each network; when None 100 for each entry of the larger, 3 million at least.", default=None
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
        if graph.attributes.nnz and not graph.attributes.data.min() > 0:
            raise GraphError(
                f"attribute values reach down to {graph.attributes.data.min()}; pte draws attributes in proportion to "
                "their value, so all must be above 0: shift or drop the negative ones"
            )
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
