"""TriDNR: nodes predict their surroundings and their attributes, and known labels predict attributes, too."""

from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.model import padded
from neural_brane.methods import skipgram
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.pte import require_positive
from neural_brane.methods.skipgram import Part, SkipGram, SkipGramEmbedder, count_visits, edges_of, pairs_of_walks
from neural_brane.methods.training import ALIAS, SINGLE, Moments, neighbour_bytes
from neural_brane.sampling.buckets import count_buckets
from neural_brane.sampling.walks import WalkSampler

WALKS, FEWEST_WALKS = 10, 30_000  # walks from each node, and least number of all walks


class TriDNR(SkipGramEmbedder):
    """Learn from walks, attributes and known labels, so that similar nodes get similar vectors.

    Tri-party deep network representation (Pan, Wu, Zhu, Zhang, Wang; 2016). It is good if some labels are known. A
    node's vector predicts the nodes around it on random walks and the words of its document, which are its attributes.
    The vector of a label predicts the words of all documents with this label. All three are skip-gram with negative
    sampling on one table of vectors. Words are drawn in proportion to their amounts. They have no order, so there is no
    window: every word is predicted. Without labels, given by `fit(graph, labels=known)`, the first two remain.

    The paper's alpha weighs logarithms of probabilities; here it is the share of pairs drawn from documents. The
    authors' program takes 20 walks and ten passes, and mixes the vectors of a pass over walks and one over documents in
    the proportion alpha = 0.8. With so many pairs of documents, the few labels would outweigh the nodes, because each
    label has the words of many nodes. So the defaults are ten walks, more in a small graph, one pass and an even share;
    they were chosen by the classes of cora, citeseer and stdlib.

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
        "Share of pairs drawn from documents, the paper's alpha; the others come from walks.", default=0.5, least=0,
        below=1,
    )  # fmt: skip
    walks_per_node: int | None = whole(
        "Walks that start at each node. None: 10, or more in a small graph, for at least 30,000 walks in total.",
        default=None,
    )
    walk_length: int = whole("Nodes in a walk.", default=10)
    window: int = whole(
        "Largest distance of paired nodes on a walk; for each place the distance is drawn from 1 … window.", default=5
    )
    negatives: int = whole("Negatives for each pair, drawn in proportion to frequency ** 0.75.", default=5)
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
        """Return the number of multiplications for all pairs and their negatives."""
        walks = self._walks(sizes.nodes) * self.walk_length * (self.window + 1)
        return float(self.epochs * walks / (1 - self.text_weight) * (1 + self.negatives) * padded(self.dim))

    def _walks(self, nodes: int) -> int:
        """Return the number of all walks."""
        return nodes * (self.walks_per_node or max(WALKS, -(-FEWEST_WALKS // max(nodes, 1))))

    def _vectors(self, graph: AttributedGraph, seed: int) -> np.ndarray:
        words = self._documents(graph)
        rows, own_seeds = words.shape[0], skipgram.two_seeds(seed)
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
        """Return the words of every node and, in the rows below, of every label: the words of all its nodes."""
        require_positive(graph, self.title)
        words = graph.attributes.astype(np.float64)
        if self._known is None:
            return words
        known = np.flatnonzero(self._known != "")
        classes, numbers = np.unique(self._known[known], return_inverse=True)
        members = sparse.csr_array((np.ones(len(known)), (numbers, known)), shape=(len(classes), len(graph)))
        return sparse.vstack([words, members @ words], format="csr")
