"""Graph2Gauss: embed every node as a Gaussian, with low energy between near nodes and high energy between far ones."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Newcomers
from neural_brane.graph.memory import Sizes
from neural_brane.kernels import cpu
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.methods import descent as backend
from neural_brane.methods.base import Fitted, InductiveEmbedder, stack
from neural_brane.methods.features import own_attributes, row_blocks
from neural_brane.methods.parameters import choice, flag, shared, whole
from neural_brane.methods.training import SINGLE, Loop, Moments
from neural_brane.sampling.walks import BLOCKS, HopSampler

SMALLEST_VARIANCE = 1e-6  # the authors add 1e-14, which gives infinite energies in float32


class GaussianWeights(NamedTuple):
    """The learned weights: a layer over the attributes, and the layers that compute means and variances from it."""

    hidden: Any  # (attributes, hidden)
    hidden_bias: Any  # (1, hidden)
    mean: Any  # (hidden, dim)
    mean_bias: Any  # (1, dim)
    variance: Any  # (hidden, dim)
    variance_bias: Any  # (1, dim)


class Triplets(NamedTuple):
    """For each anchor a nearer node, a farther node, and the number of triplets that this one represents."""

    anchors: np.ndarray
    near: np.ndarray
    far: np.ndarray
    weights: np.ndarray  # float32


class Graph2Gauss(backend.Network, InductiveEmbedder):
    """Learn a Gaussian for every node, with lower energy for nodes at fewer hops.

    Deep Gaussian embedding of graphs (Bojchevski, Günnemann; 2018) is good for new nodes, embedded by attributes. A
    ReLU layer over a node's attributes gives the mean μ and the variances σ of a Gaussian. The energy of two nodes is
    the Kullback-Leibler divergence of their Gaussians. Training lowers it for the nearer of two nodes and raises it for
    the farther: E(near)² + exp(−E(far)). In every epoch each node draws one node from each hop and one beyond. If these
    triplets are weighted by the sizes of their two hops, the loss is an unbiased estimate of that over all triplets;
    otherwise every triplet counts the same.

    The vector is μ, with `dim` columns; the variances are learned but not part of it. If a graph has no attributes,
    each node is its own attribute, and new nodes cannot be embedded.
    """

    title = "graph2gauss"
    growth = "time: epochs × (attribute entries + nodes × dim) × hidden; memory: edges + (nodes + attributes) × hidden"
    paper = "Bojchevski, Günnemann: Deep Gaussian embedding of graphs, 2018"
    grid = {"epochs": [50, 100, 200]}  # instead of the authors' early stopping on held-out links
    holds = {"graph2gauss": backend.TrainedNetwork, "graph2gauss weights": GaussianWeights}
    learns = {"weights_": "GaussianWeights: The weights of the layers."}
    similarity = "distance"  # distance between means; training compares Gaussians by their divergence
    by_attributes = True

    hidden: int = whole("Width of the ReLU layer.", default=512)
    hops: int = choice(
        "Largest number of hops that are distinguished, the paper's K; all nodes beyond count as far.",
        default=1,
        options=(1, 2, 3),
    )
    weighted: bool = flag(
        "Weigh triplets by the sizes of their hops, as in the paper; the authors' program and the default do not.",
        default=False,
    )
    learning_rate: float = shared("learning_rate", default=1e-3, about="Learning rate of Adam.")
    epochs: int = shared(
        "epochs",
        default=100,
        about="Steps, each over all nodes with a neighbour. The authors' program stops early by held-out links; this "
        "one trains on all links for a fixed number of steps. On small graphs many more steps make worse vectors.",
    )

    def _learn(self, graph: AttributedGraph, seed: int) -> backend.TrainedNetwork:
        backend.import_torch()
        rng = np.random.default_rng(seed)
        attributes = own_attributes(graph)
        shapes = ((attributes.shape[1], self.hidden), (self.hidden, self.dim), (self.hidden, self.dim))
        layers = (backend.glorot(rng, shape, self.device) for shape in shapes)
        weights = GaussianWeights(*(part for one in layers for part in (one, backend.zeros(one.shape[1], self.device))))
        with cpu.threads(self.threads), backend.one_thread():
            sampler = HopSampler(graph.adjacency, hops=self.hops, seed=seed)
            rows = backend.SparseRows(attributes, self.device)
            descent = backend.Descent(weights, self.learning_rate)

            def loss_of(epoch: int) -> Any:
                return rank_loss(*gaussians(weights, rows), self._triplets(sampler, epoch))

            losses = descent.train(Loop.over_epochs(self, "weights"), loss_of)
        return backend.TrainedNetwork(GaussianWeights(*backend.to_numpy(weights)), losses)

    def memory(self, sizes: Sizes) -> Moments:
        n, width = sizes.nodes, sizes.attributes or sizes.nodes
        entries = sizes.attribute_entries or n
        return {
            "training": {
                "tables": 4 * SINGLE * width * self.hidden,  # the first layer, its gradient and Adam's two means
                "matrices": 12 * entries,
                "sampling": (BLOCKS + 4 * self.hops) * 8 * n + 4 * sizes.links,
                "batches": SINGLE * n * (4 * self.hidden + 24 * self.dim),
            }
        }

    def _triplets(self, sampler: HopSampler, epoch: int) -> Triplets:
        """Return a triplet for every two hops of every node, with a node drawn from each hop."""
        drawn = sampler.draw(epoch)
        parts = []
        for near, far in combinations(range(self.hops + 1), 2):
            anchors = np.flatnonzero((drawn[:, near] >= 0) & (drawn[:, far] >= 0))
            weights = sampler.sizes[anchors, near] * sampler.sizes[anchors, far]
            parts.append((anchors, drawn[anchors, near], drawn[anchors, far], weights))
        anchors, close, distant, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        if len(anchors) == 0:
            found = "no node of this graph has a neighbour and a node farther away, so no triplet can be drawn;"
            raise GraphError(f"{found} give a graph in which some linked nodes are not linked to all others")
        if not self.weighted:
            weights = np.ones(len(anchors))
        shares = weights / weights.sum()
        return Triplets(anchors, close.astype(np.int64), distant.astype(np.int64), shares.astype(np.float32))

    def _blocks(self, graph: AttributedGraph, learned: backend.TrainedNetwork) -> Iterator[np.ndarray]:
        return _centres(own_attributes(graph), learned.weights)

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        return stack(_centres(new.attributes, fitted.learned.weights), len(new), self.dim)


def _centres(attributes: sparse.csr_array, weights: GaussianWeights) -> Iterator[np.ndarray]:
    """Yield the means of the nodes' Gaussians, block by block."""
    for rows in row_blocks(attributes.shape[0]):
        hidden = attributes[rows] @ weights.hidden + weights.hidden_bias
        with one_blas_thread():
            yield np.maximum(hidden, 0) @ weights.mean + weights.mean_bias


def gaussians(weights: GaussianWeights, attributes: backend.SparseRows) -> tuple[Any, Any]:
    """Return the means and the variances of the nodes' Gaussians, both (nodes, dim)."""
    hidden = (attributes @ weights.hidden + weights.hidden_bias).relu()
    raw = hidden @ weights.variance + weights.variance_bias
    variance = backend.import_torch().nn.functional.elu(raw) + 1 + SMALLEST_VARIANCE
    return hidden @ weights.mean + weights.mean_bias, variance


def energy(mean: Any, variance: Any, first: Any, second: Any) -> Any:
    """Return the Kullback-Leibler divergence of each second node's Gaussian from the first's."""
    ratio = variance[second] / variance[first]
    apart = (mean[first] - mean[second]) ** 2 / variance[first]
    return 0.5 * (ratio + apart - 1 - ratio.log()).sum(1)


def rank_loss(mean: Any, variance: Any, triplets: Triplets) -> Any:
    """Return the weighted mean of E(near)² + exp(−E(far)), which lowers near energies and raises far ones."""
    torch = backend.import_torch()
    anchors, near, far, weights = (torch.from_numpy(part).to(mean.device) for part in triplets)
    low = energy(mean, variance, anchors, near)
    high = energy(mean, variance, anchors, far)
    return (weights * (low**2 + (-high).exp())).sum()
