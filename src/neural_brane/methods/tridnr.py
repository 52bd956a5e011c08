"""TriDNR: walks over links beside attributes read as words, and known labels that predict words as well."""

from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.model import padded
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.skipgram import (
    Part,
    SkipGram,
    SkipGramEmbedder,
    count_visits,
    edges_of,
    pairs_of_walks,
    two_seeds,
)
from neural_brane.methods.training import ALIAS, SINGLE, Moments, neighbour_bytes
from neural_brane.sampling.buckets import count_buckets
from neural_brane.sampling.walks import WalkSampler

WALKS, FEWEST_WALKS = 10, 30_000  # from each node, and in all: a small graph needs as many steps as a larger one


class TriDNR(SkipGramEmbedder):
    """Tri-party deep network representation (Pan, Wu, Zhu, Zhang, Wang; 2016).

    A node's vector predicts the nodes around it on random walks, and the words of its document; the vector of a label
    predicts the words of all documents that are known to have it, and so shapes what words mean to nodes. All three are
    skip-gram with negative sampling, trained side by side on one table of vectors. A node's attributes are the words of
    its document, drawn in proportion to their amounts. They have no order, so a document has no windows: every word of
    it is predicted (the paper's PV-DBOW does the same but for words that are far apart).

    Labels are learned from only where they are given, by `fit(graph, labels=known)`; without them two parties are left.
    The paper's alpha weighs the logarithms of chances; here it is the share of pairs that are drawn from documents. The
    authors' program makes 20 walks and ten passes, and mixes the vectors of a pass over walks with those of one over
    documents in the proportion alpha, 0.8. So many pairs of documents would let the few labels, each of which has the
    words of many nodes, outweigh the nodes; so ten walks, more in a small graph, one pass and an even share are the
    default, chosen by the classes of cora, citeseer and stdlib.

    Examples
    --------
    >>> from neural_brane import load
    >>> graph = load("stdlib")
    >>> known = dict(zip(graph.ids[:300].tolist(), graph.labels[:300].tolist()))
    >>> TriDNR(dim=16, walks_per_node=1, seed=0).fit_transform(graph, labels=known).vectors.shape
    (554, 16)
    """

    title = "tridnr"
    uses_labels = True
    growth = "time: nodes × walks × length × window × dim; memory: edges + entries + (nodes + attributes) × dim"
    paper = "Pan, Wu, Zhu, Zhang, Wang: Tri-party deep network representation, 2016"
    grid = {"learning_rate": [], "text_weight": [0.2, 0.5, 0.8], "walks_per_node": [5, 10, 20]}
    small = {"epochs": 2, "walks_per_node": 1, "walk_length": 10}
    trial = {"walks_per_node": 1}

    text_weight: float = number(
        "Share of pairs that are drawn from documents, the paper's alpha; the others come from walks.",
        default=0.5,
        least=0,
        below=1,
    )
    walks_per_node: int | None = whole(
        "Walks that start at each node. None: 10, and more in a small graph, so that there are 30,000 in all.",
        default=None,
    )
    walk_length: int = whole("Nodes in a walk.", default=10)
    window: int = whole(
        "A node is paired with those at most so many places away; for each place the reach is drawn from 1 … window.",
        default=5,
    )
    negatives: int = whole("Drawn against each pair, in proportion to frequency ** 0.75.", default=5)
    epochs: int = shared("epochs", default=1, about="Passes over the walks.")

    def memory(self, sizes: Sizes) -> Moments:
        n, entries = sizes.nodes, sizes.attribute_entries
        held = self._tables(n, n + sizes.attributes)
        held["sampling"] += neighbour_bytes(sizes) + 20 * n + 24 * entries
        return {
            "preparing draws": held | {"sampling": (24 + ALIAS) * entries},
            "training": held | self._chunk(n, self.negatives),
            "vectors": held | {"vectors": SINGLE * n * self.dim},
        }

    def work(self, sizes: Sizes) -> float:
        """Numbers of the vectors of all pairs and their negatives."""
        walks = self._walks(sizes.nodes) * self.walk_length * (self.window + 1)
        return float(self.epochs * walks / (1 - self.text_weight) * (1 + self.negatives) * padded(self.dim))

    def _walks(self, nodes: int) -> int:
        """Count all walks: as many from each node."""
        return nodes * (self.walks_per_node or max(WALKS, -(-FEWEST_WALKS // max(nodes, 1))))

    def _vectors(self, graph: AttributedGraph, seed: int) -> np.ndarray:
        words = self._documents(graph)
        rows, own_seeds = words.shape[0], two_seeds(seed)
        sampler, total = WalkSampler(graph.adjacency, length=self.walk_length, seed=seed), self._walks(len(graph))
        visits = self._stages.once("visits", lambda: count_visits(sampler.draw, total, len(graph)))
        sources = np.concatenate([visits / visits.sum(), np.zeros(rows - len(graph))])
        texts = words.nnz > 0 and self.text_weight > 0
        if texts:
            share = self.text_weight / (1 - self.text_weight)
            sources = sources + share * words.sum(axis=1) / words.sum()
        frequencies = [visits, words.sum(axis=0)] if texts else [visits]
        buckets = count_buckets(sources, *frequencies)
        options: dict[str, Any] = {"dim": self.dim, "negatives": self.negatives, "buckets": buckets}
        walks = SkipGram(sources, visits, seed=own_seeds[0], **options)
        corpus = pairs_of_walks(sampler.draw, total, length=self.walk_length, window=self.window, seed=seed)
        parts: list[Part] = [(corpus, walks)]
        if texts:
            model = SkipGram(walks, frequencies[1], seed=own_seeds[1], **options)
            drawn = max(1, round(share * total * corpus.pairs))
            parts.append((edges_of(words, drawn, own_seeds[1]), model))
        self._train(parts, "pairs", self.epochs)
        return walks.vectors[: len(graph)]

    def _documents(self, graph: AttributedGraph) -> sparse.csr_array:
        """The words of every node and, below, of every known label: those of all its nodes together."""
        if graph.attributes.nnz and not graph.attributes.data.min() > 0:
            raise GraphError(
                f"attribute values reach down to {graph.attributes.data.min()}; tridnr draws attributes in proportion "
                "to their value, so all must be above 0: shift or drop the negative ones"
            )
        words = graph.attributes.astype(np.float64)
        if self._known is None:
            return words
        known = np.flatnonzero(self._known != "")
        classes, numbers = np.unique(self._known[known], return_inverse=True)
        members = sparse.csr_array((np.ones(len(known)), (numbers, known)), shape=(len(classes), len(graph)))
        return sparse.vstack([words, members @ words], format="csr")
