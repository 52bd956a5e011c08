"""DeepWalk: nodes that meet on short random walks get vectors that are alike."""

from collections.abc import Callable

import numpy as np

from neural_brane.graph import AttributedGraph
from neural_brane.methods._skipgram import Corpus, SkipGram, SkipGramEmbedder, check, train
from neural_brane.progress import Reporter
from neural_brane.sampling.pairs import window_pairs
from neural_brane.sampling.walks import WalkSampler

WALKS = 10_000  # counted at a time


class DeepWalk(SkipGramEmbedder):
    """DeepWalk: online learning of social representations (Perozzi, Al-Rfou, Skiena; 2014).

    Random walks are read as sentences, nodes as words, by skip-gram with negative sampling (the paper's hierarchical
    softmax is what word2vec used before). A step follows the edges' weights. A node without neighbours keeps
    the small random vector it starts with.

    Parameters
    ----------
    dim : width of a vector.
    walks_per_node, walk_length : how many walks start at each node, and how many nodes one has.
    window : a node is paired with those at most so many places away; for each place the reach is drawn from
        1 … window, as word2vec does, so that near nodes count more.
    negatives : nodes drawn against each pair, in proportion to (visits of the walks) ** 0.75.
    learning_rate : at the start; it falls evenly to zero.
    epochs : passes over the walks.
    seed : the same seed gives the same vectors, bit for bit, on any number of threads. None draws one.
    threads : CPU threads; all when None.
    progress : called with a `Progress` a few times a second.

    Examples
    --------
    >>> from neural_brane import load
    >>> DeepWalk(dim=16, walks_per_node=1, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "deepwalk"
    uses = ("links",)
    inductive = False
    growth = "time: nodes × walks × length × window × dim; memory: edges + nodes × dim"
    paper = "Perozzi, Al-Rfou, Skiena: DeepWalk, 2014"

    def __init__(
        self,
        *,
        dim: int = 150,
        walks_per_node: int = 10,
        walk_length: int = 80,
        window: int = 10,
        negatives: int = 5,
        learning_rate: float = 0.025,
        epochs: int = 1,
        seed: int | None = None,
        threads: int | None = None,
        progress: Reporter | None = None,
    ):
        self.dim = dim
        self.walks_per_node = walks_per_node
        self.walk_length = walk_length
        self.window = window
        self.negatives = negatives
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.seed = seed
        self.threads = threads
        self.progress = progress

    def _vectors(self, graph: AttributedGraph) -> np.ndarray:
        self._check()
        return self.learn(self._walks(graph).draw, len(graph) * self.walks_per_node, len(graph))

    def _check(self) -> None:
        names = ("walks_per_node", "walk_length", "window", "negatives", "epochs")
        check(
            counts={name: getattr(self, name) for name in names},
            rates={"learning_rate": self.learning_rate},
        )

    def _walks(self, graph: AttributedGraph) -> WalkSampler:
        """The walks: all that sets DeepWalk and node2vec apart."""
        return WalkSampler(graph.adjacency, length=self.walk_length, seed=self.seed_)

    def learn(self, walks: Callable[[int, int], np.ndarray], total: int, nodes: int) -> np.ndarray:
        """Vectors (nodes, dim) from walks(first, count), of which there are `total`."""
        visits = np.zeros(nodes, np.int64)
        for first in range(0, total, WALKS):
            some = walks(first, min(WALKS, total - first))
            visits += np.bincount(some[some >= 0], minlength=nodes)

        def draw(first: int, count: int) -> np.ndarray:
            return window_pairs(walks(first % total, count), window=self.window, seed=self.seed_, first=first)

        corpus = Corpus(draw, total, pairs=self.walk_length * (self.window + 1))
        model = SkipGram(visits, visits, dim=self.dim, negatives=self.negatives, seed=self.seed_)
        train(
            [(corpus, model)],
            learning_rate=self.learning_rate,
            epochs=self.epochs,
            unit="walks",
            progress=self.progress,
        )
        return model.vectors
