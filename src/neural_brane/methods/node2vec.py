"""node2vec: DeepWalk whose walks turn back, or away, on purpose."""

from neural_brane.graph import AttributedGraph
from neural_brane.methods._skipgram import check
from neural_brane.methods.deepwalk import DeepWalk
from neural_brane.progress import Reporter
from neural_brane.sampling.walks import WalkSampler


class Node2Vec(DeepWalk):
    """node2vec: scalable feature learning for networks (Grover, Leskovec; 2016).

    A walk that came from t to v goes on to a neighbour x of v in proportion to the edge's weight times 1/p if x is t,
    1 if x is a neighbour of t, and 1/q otherwise. The transitions are exact, drawn by rejection; no table of
    them is ever made. Everything else is DeepWalk's, and so is p = q = 1.

    Parameters
    ----------
    p : return parameter: the higher, the rarer a walk steps back.
    q : in-out parameter: below 1 walks explore, above 1 they stay near.
    dim, walks_per_node, walk_length, window, negatives, learning_rate, epochs, seed, threads, progress : as in
        DeepWalk.

    Examples
    --------
    >>> from neural_brane import load
    >>> Node2Vec(dim=16, walks_per_node=1, p=0.5, q=2.0, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "node2vec"
    paper = "Grover, Leskovec: node2vec, 2016"

    def __init__(
        self,
        *,
        dim: int = 150,
        p: float = 1.0,
        q: float = 0.5,
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
        super().__init__(
            dim=dim,
            walks_per_node=walks_per_node,
            walk_length=walk_length,
            window=window,
            negatives=negatives,
            learning_rate=learning_rate,
            epochs=epochs,
            seed=seed,
            threads=threads,
            progress=progress,
        )
        self.p = p
        self.q = q

    def _check(self) -> None:
        super()._check()
        check(counts={}, rates={"p": self.p, "q": self.q})

    def _walks(self, graph: AttributedGraph) -> WalkSampler:
        return WalkSampler(graph.adjacency, length=self.walk_length, p=self.p, q=self.q, seed=self.seed_)
