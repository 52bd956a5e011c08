"""PTE: LINE's second order on links and attributes at once."""

import numpy as np

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.methods._skipgram import Corpus, SkipGram, SkipGramEmbedder, check, default_samples, train
from neural_brane.progress import Reporter
from neural_brane.sampling.buckets import count_buckets
from neural_brane.sampling.pairs import EdgeSampler


class PTE(SkipGramEmbedder):
    """PTE: predictive text embedding through large-scale heterogeneous text networks (Tang, Qu, Mei; 2015).

    The node-node and the node-attribute network are trained jointly, without labels: a node's vector must tell its
    neighbours from other nodes, and its attributes from others. Entries are drawn in proportion to their value, as
    many from the one network as from the other. A node with neither keeps the small random vector it starts with.

    Parameters
    ----------
    dim : width of a vector.
    samples : entries drawn from each network; when None 100 for each entry of the larger, 3 million at least.
    negatives : drawn against each entry, in proportion to (weighted degree) ** 0.75.
    learning_rate : at the start; it falls evenly to zero.
    seed : the same seed gives the same vectors, bit for bit, on any number of threads. None draws one.
    threads : CPU threads; all when None.
    progress : called with a `Progress` a few times a second.

    Examples
    --------
    >>> from neural_brane import load
    >>> PTE(dim=16, samples=10_000, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "pte"
    uses = ("links", "attributes")
    inductive = False
    growth = "time: (edges + attribute entries) × dim; memory: edges + attribute entries + (nodes + attributes) × dim"
    paper = "Tang, Qu, Mei: PTE, 2015"

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
        if graph.attributes.nnz and not graph.attributes.data.min() > 0:
            raise GraphError(
                f"attribute values reach down to {graph.attributes.data.min()}; pte draws attributes in proportion to "
                "their value, so all must be above 0: shift or drop the negative ones"
            )
        networks = [matrix for matrix in (graph.adjacency, graph.attributes) if matrix.nnz]
        samples = default_samples(max(matrix.nnz for matrix in networks)) if self.samples is None else self.samples
        check(
            counts={"samples": samples, "negatives": self.negatives},
            rates={"learning_rate": self.learning_rate},
        )
        seeds = [int(part) for part in np.random.SeedSequence(self.seed_).generate_state(2, np.uint64)]
        sources = sum(matrix.sum(axis=1) / matrix.sum() for matrix in networks)
        targets = [matrix.sum(axis=0) for matrix in networks]
        buckets = count_buckets(sources, *targets)
        parts: list[tuple[Corpus, SkipGram]] = []
        for matrix, frequency, seed in zip(networks, targets, seeds, strict=False):
            model = SkipGram(
                sources,
                frequency,
                dim=self.dim,
                negatives=self.negatives,
                buckets=buckets,
                shares=parts[0][1] if parts else None,
                seed=seed,
            )
            parts.append((Corpus(EdgeSampler(matrix, seed=seed).draw, samples, pairs=1), model))
        train(parts, learning_rate=self.learning_rate, unit="edges", progress=self.progress)
        return parts[0][1].vectors
