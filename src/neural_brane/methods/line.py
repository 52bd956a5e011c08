"""LINE: linked nodes get similar vectors, and so do nodes with the same neighbours."""

import numpy as np

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.linalg.weights import unit_rows, without_self_loops
from neural_brane.methods.parameters import whole
from neural_brane.methods.skipgram import EdgeSkipGram, SkipGram, edges_of, two_seeds
from neural_brane.methods.training import ALIAS, SINGLE, Moments


class Line(EdgeSkipGram):
    """Learn similar vectors for linked nodes and for nodes with the same neighbours.

    LINE: large-scale information network embedding (Tang, Qu, Wang, Zhang, Yan, Mei; 2015) is good for large graphs
    without attributes. The first dim // 2 columns learn first-order proximity: both ends of an edge use the same table.
    The others learn second-order proximity: the other end has a separate context vector. Edges are drawn in proportion
    to their weight; the first order leaves out self-loops. Each half of a vector has length one, as in the authors'
    program. A node without neighbours keeps a random direction.
    """

    title = "line"
    uses = ("links",)
    growth = "time: edges × dim; memory: edges + nodes × dim"
    paper = "Tang, Qu, Wang, Zhang, Yan, Mei: LINE, 2015"

    samples: int | None = whole(
        "Edges drawn for each order. None: 100 for each adjacency entry, at least 3 million.", default=None
    )

    def _vectors(self, graph: AttributedGraph, seed: int) -> np.ndarray:
        samples = self._samples(graph.adjacency.nnz)
        parts = []
        for order, width, own_seed in zip(
            (1, 2), (self.dim // 2, self.dim - self.dim // 2), two_seeds(seed), strict=True
        ):
            matrix = graph.adjacency if order == 2 else without_self_loops(graph.adjacency)
            if width and matrix.nnz:
                degree = matrix.sum(axis=1)
                targets = None if order == 1 else degree
                model = SkipGram(degree, targets, dim=width, negatives=self.negatives, seed=own_seed)
                parts.append((edges_of(matrix, samples, own_seed), model))
        self._train(parts, "edges")
        halves = [unit_rows(model.vectors) for _, model in parts]
        vectors = np.zeros((len(graph), self.dim), np.float32)
        vectors[:, self.dim - sum(half.shape[1] for half in halves) :] = np.hstack(halves)
        return vectors

    def memory(self, sizes: Sizes) -> Moments:
        n, entries = sizes.nodes, sizes.links
        held = self._tables(n, n)  # one table of half the width, and two
        held = {"tables": held["tables"] * 3 // 4, "sampling": 2 * held["sampling"] + 32 * entries}
        return {
            "preparing draws": held | {"sampling": (20 + ALIAS) * entries},
            "training": held | self._chunk(n, self.negatives),
            "joining both orders": held | {"vectors": 3 * SINGLE * n * self.dim},
        }
