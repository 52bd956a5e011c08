"""DeepWalk: nodes that occur together on short random walks get similar vectors."""

from typing import ClassVar

import numpy as np

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.methods.parameters import shared, whole
from neural_brane.methods.skipgram import MIXED_PAIRS, SkipGram, SkipGramEmbedder, Walks, count_visits, pairs_of_walks
from neural_brane.methods.training import SINGLE, Moments, neighbour_bytes
from neural_brane.sampling.walks import WalkSampler


class DeepWalk(SkipGramEmbedder):
    """Learn similar vectors for nodes that occur together on short random walks.

    DeepWalk: online learning of social representations (Perozzi, Al-Rfou, Skiena; 2014). Skip-gram reads random walks
    as sentences and nodes as words. It uses negative sampling; the paper uses hierarchical softmax, as earlier versions
    of word2vec did. A walk chooses edges in proportion to their weights. A node without neighbours keeps the small
    random vector that it starts with. DeepWalk is good for graphs without attributes.
    """

    title = "deepwalk"
    uses: ClassVar[tuple[str, ...]] = ("links",)
    growth = "time: nodes × walks × length × window × dim; memory: edges + nodes × dim"
    paper = "Perozzi, Al-Rfou, Skiena: DeepWalk, 2014"
    shortlisted = True
    grid = {"learning_rate": [], "walk_length": [20, 40, 60, 80]}  # the paper searches the length
    small = {"epochs": 2, "walks_per_node": 1, "walk_length": 10}
    trial = {"walks_per_node": 1}

    walks_per_node: int = whole("Walks that start at each node.", default=80)
    walk_length: int = whole("Nodes in a walk.", default=40)
    window: int = whole(
        "Largest distance on the walk between the nodes of a pair. Each place draws its own reach from 1 … window, as "
        "in word2vec, so near nodes count more.",
        default=10,
    )
    negatives: int = whole(
        "Negative nodes for each pair, drawn in proportion to (visits of the walks) ** 0.75.", default=5
    )
    epochs: int = shared("epochs", default=1, about="Passes over the walks.")

    def _vectors(self, graph: AttributedGraph, seed: int) -> np.ndarray:
        return self.learn(self._walks(graph, seed).draw, len(graph) * self.walks_per_node, len(graph), seed)

    def learn(self, walks: Walks, total: int, nodes: int, seed: int) -> np.ndarray:
        """Return vectors (nodes, dim) learned from `total` walks; walks(first, count) draws some of them."""
        visits = self._stages.once("visits", lambda: count_visits(walks, total, nodes))
        corpus = pairs_of_walks(walks, total, length=self.walk_length, window=self.window, seed=seed)
        model = SkipGram(visits, visits, dim=self.dim, negatives=self.negatives, seed=seed)
        self._train([(corpus, model)], "walks", self.epochs)
        return model.vectors

    def _walks(self, graph: AttributedGraph, seed: int) -> WalkSampler:
        """Return the sampler of walks; DeepWalk and node2vec differ only here."""
        return WalkSampler(graph.adjacency, length=self.walk_length, seed=seed)

    def memory(self, sizes: Sizes) -> Moments:
        n = sizes.nodes
        held = self._tables(n, n)
        held["sampling"] += neighbour_bytes(sizes) + 20 * n
        chunk = self._chunk(n, self.negatives)["batches"] + 10 * MIXED_PAIRS
        return {"training": held | {"batches": chunk}, "vectors": held | {"vectors": SINGLE * n * self.dim}}
