"""LINE: linked nodes are alike, and so are nodes with the same neighbours."""

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.linalg import unit_rows, without_self_loops
from neural_brane.methods._skipgram import Corpus, SkipGram, SkipGramEmbedder, check, default_samples, train
from neural_brane.progress import Reporter
from neural_brane.sampling.pairs import EdgeSampler


class Line(SkipGramEmbedder):
    """LINE: large-scale information network embedding (Tang, Qu, Wang, Zhang, Yan, Mei; 2015).

    Half the width is first-order proximity (both ends of an edge have one vector each, in one table), half is
    second-order (the other end has a vector of its own as context). Edges are drawn in proportion to their weight.
    As in the authors' program, each half of a vector is scaled to length one. A node without neighbours keeps a
    random direction.

    Parameters
    ----------
    dim : width of a vector; the first order has dim // 2 of it. Self-loops say nothing of the first order.
    samples : edges drawn for each order; when None 100 for each adjacency entry, 3 million at least.
    negatives : nodes drawn against each edge, in proportion to (weighted degree) ** 0.75.
    learning_rate : at the start; it falls evenly to zero.
    seed : the same seed gives the same vectors, bit for bit, on any number of threads. None draws one.
    threads : CPU threads; all when None.
    progress : called with a `Progress` a few times a second.

    Examples
    --------
    >>> from neural_brane import load
    >>> Line(dim=16, samples=10_000, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "line"
    uses = ("links",)
    inductive = False
    growth = "time: edges × dim; memory: edges + nodes × dim"
    paper = "Tang, Qu, Wang, Zhang, Yan, Mei: LINE, 2015"

    def __init__(
        self,
        *,
        dim: int = 150,
        samples: int | None = None,
        negatives: int = 5,
        learning_rate: float = 0.025,
        seed: int | None = None,
        threads: int | None = None,
        progress: Reporter | None = None,
    ):
        self.dim = dim
        self.samples = samples
        self.negatives = negatives
        self.learning_rate = learning_rate
        self.seed = seed
        self.threads = threads
        self.progress = progress

    def _vectors(self, graph: AttributedGraph) -> np.ndarray:
        samples = default_samples(graph.adjacency.nnz) if self.samples is None else self.samples
        check(
            counts={"samples": samples, "negatives": self.negatives},
            rates={"learning_rate": self.learning_rate},
        )
        seeds = [int(part) for part in np.random.SeedSequence(self.seed_).generate_state(2, np.uint64)]
        parts = []
        for order, width, seed in zip((1, 2), (self.dim // 2, self.dim - self.dim // 2), seeds, strict=True):
            matrix = graph.adjacency if order == 2 else without_self_loops(graph.adjacency)
            if width and matrix.nnz:
                parts.append(self._part(matrix, order, width, samples, seed))
        train(parts, learning_rate=self.learning_rate, unit="edges", progress=self.progress)
        halves = [unit_rows(model.vectors) for _, model in parts]
        vectors = np.zeros((len(graph), self.dim), np.float32)
        vectors[:, self.dim - sum(half.shape[1] for half in halves) :] = np.hstack(halves)
        return vectors

    def _part(
        self, matrix: sparse.csr_array, order: int, width: int, samples: int, seed: int
    ) -> tuple[Corpus, SkipGram]:
        degree = matrix.sum(axis=1)
        model = SkipGram(degree, degree, dim=width, negatives=self.negatives, one_table=order == 1, seed=seed)
        return Corpus(EdgeSampler(matrix, seed=seed).draw, samples, pairs=1), model
