"""Graph2Gauss: every node a Gaussian, near nodes at low energy of each other, far ones at high."""

import secrets
import time
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from neural_brane.errors import GraphError, ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.kernels import cpu
from neural_brane.methods import _torch as backend
from neural_brane.methods.base import InductiveEmbedder, require
from neural_brane.progress import Progress, Reporter
from neural_brane.sampling.hops import HopSampler

BLOCK_NODES = 8192  # embedded at a time
REPORT_SECONDS = 0.3
SMALLEST_VARIANCE = 1e-6  # the paper's program adds 1e-14, which float32 turns into energies without end


class Weights(NamedTuple):
    """What is learned: a layer over the attributes, and what makes means and variances of it."""

    hidden: Any  # (attributes, hidden)
    hidden_bias: Any  # (1, hidden)
    mean: Any  # (hidden, dim)
    mean_bias: Any  # (1, dim)
    variance: Any  # (hidden, dim)
    variance_bias: Any  # (1, dim)


class Triplets(NamedTuple):
    """Of each anchor a node at fewer hops and one at more, and how many such pairs this one stands for."""

    anchors: np.ndarray
    near: np.ndarray
    far: np.ndarray
    weights: np.ndarray  # float32


class Graph2Gauss(InductiveEmbedder):
    """Deep Gaussian embedding of graphs (Bojchevski, Günnemann; 2018): unsupervised, inductive through attributes.

    A ReLU layer over a node's attributes gives the mean μ and the variances σ of a Gaussian. Its energy with another
    is their Kullback-Leibler divergence, and training wants it lower for a node at fewer hops than for one at more:
    E(near)² + exp(−E(far)). In every epoch each node draws one node from each hop and one beyond. Weighted by the
    sizes of their two hops, these triplets make the loss an unbiased estimate of that over all triplets of the graph;
    without, every node counts alike.

    The vector is μ, `dim` numbers wide (beside as many variances, which are learned but not part of it). In a graph
    without any attribute each node is its own attribute, and only its own nodes can be embedded.

    Parameters
    ----------
    dim : width of a vector.
    hidden : width of the ReLU layer.
    hops : how far nodes are told apart (the paper's K, 1 to 3): all beyond count as farther.
    weighted : weigh triplets by the sizes of their hops, as the paper writes; its program, and so the default, does
        not.
    learning_rate : of Adam.
    epochs : steps, each over all nodes with a neighbour. The paper's program stops by held-out links; here all links
        are learned from, and the number is fixed: on small graphs many more steps make worse vectors.
    seed : the same seed gives the same vectors on the CPU, bit for bit, on any number of threads. None draws one.
    threads : CPU threads that search the hops and draw; all when None. PyTorch works on one, for the sake of the bits.
    device : "cpu", "cuda", or "auto": the GPU where there is one. A GPU's last bits are not promised.
    progress : called with a `Progress` a few times a second.

    Attributes
    ----------
    embedding_, loss_history_ (weighted mean over the triplets of each epoch), weights_, seed_

    Examples
    --------
    >>> from neural_brane import load
    >>> Graph2Gauss(dim=16, epochs=2, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "graph2gauss"
    uses = ("links", "attributes")
    growth = "time: epochs × (attribute entries + nodes × dim) × hidden; memory: edges + (nodes + attributes) × hidden"
    paper = "Bojchevski, Günnemann: Deep Gaussian embedding of graphs, 2018"
    similarity = "distance"  # of the means: it is trained on the divergence of two Gaussians
    extra = "torch"

    def __init__(
        self,
        *,
        dim: int = 150,
        hidden: int = 512,
        hops: int = 1,
        weighted: bool = False,
        learning_rate: float = 1e-3,
        epochs: int = 100,
        seed: int | None = None,
        threads: int | None = None,
        device: str = "auto",
        progress: Reporter | None = None,
    ):
        self.dim = dim
        self.hidden = hidden
        self.hops = hops
        self.weighted = weighted
        self.learning_rate = learning_rate
        self.epochs = epochs
        self.seed = seed
        self.threads = threads
        self.device = device
        self.progress = progress

    def _fit(self, graph: AttributedGraph) -> None:
        self._check()
        device = backend.choose_device(self.device)
        self.seed_ = secrets.randbits(63) if self.seed is None else self.seed
        rng = np.random.default_rng(self.seed_)
        attributes = backend.features(graph)
        shapes = ((attributes.shape[1], self.hidden), (self.hidden, self.dim), (self.hidden, self.dim))
        layers = (backend.glorot(rng, shape, device) for shape in shapes)
        weights = Weights(*(part for layer in layers for part in (layer, backend.zeros(layer.shape[1], device))))
        self.loss_history_: list[float] = []
        with cpu.threads(self.threads), backend.one_thread():
            self._train(graph, backend.SparseRows(attributes, device), weights)
        self.weights_ = Weights(*(weight.detach().cpu().numpy() for weight in weights))

    def _check(self) -> None:
        for name in ("hidden", "epochs"):
            value = getattr(self, name)
            require(isinstance(value, int) and value >= 1, name, value, "a whole number from 1")
        require(self.hops in (1, 2, 3), "hops", self.hops, "1, 2 or 3")
        require(0 < self.learning_rate < np.inf, "learning_rate", self.learning_rate, "a number above 0")
        require(self.seed is None or 0 <= self.seed < 2**63, "seed", self.seed, "a whole number from 0, or None")

    def _train(self, graph: AttributedGraph, attributes: backend.SparseRows, weights: Weights) -> None:
        torch = backend.import_torch()
        adam = torch.optim.Adam(weights, lr=self.learning_rate, fused=True)
        sampler = HopSampler(graph.adjacency, hops=self.hops, seed=self.seed_)
        reported, told = time.perf_counter(), 0
        for epoch in range(self.epochs):
            triplets = self._triplets(sampler, epoch)
            adam.zero_grad()
            loss = rank_loss(*gaussians(weights, attributes), triplets)
            loss.backward()
            adam.step()
            self.loss_history_.append(loss.item())
            if not np.isfinite(self.loss_history_[-1]):
                raise ParameterError(
                    f"training diverged in epoch {epoch + 1}; lower learning_rate={self.learning_rate}"
                )
            now = time.perf_counter()
            if self.progress and (now - reported > REPORT_SECONDS or epoch + 1 == self.epochs):
                rate, (reported, told) = (epoch + 1 - told) / (now - reported), (now, epoch + 1)
                self.progress(Progress(told, self.epochs, told, self.epochs, self.loss_history_[-1], rate, "steps"))

    def _triplets(self, sampler: HopSampler, epoch: int) -> Triplets:
        """Every two hops of every node, a node drawn from each."""
        drawn = sampler.draw(epoch)
        parts = []
        for near, far in combinations(range(self.hops + 1), 2):
            anchors = np.flatnonzero((drawn[:, near] >= 0) & (drawn[:, far] >= 0))
            weights = sampler.sizes[anchors, near] * sampler.sizes[anchors, far]
            parts.append((anchors, drawn[anchors, near], drawn[anchors, far], weights))
        anchors, close, distant, weights = (np.concatenate(part) for part in zip(*parts, strict=True))
        if len(anchors) == 0:
            raise GraphError(
                f"in graph '{self.graph_.name}' no node has a neighbour and a node farther away, so there is nothing "
                "to rank; give a graph in which some linked nodes are not linked to all others"
            )
        if not self.weighted:
            weights = np.ones(len(anchors))
        shares = weights / weights.sum()
        return Triplets(anchors, close.astype(np.int64), distant.astype(np.int64), shares.astype(np.float32))

    def _blocks(self) -> Iterator[np.ndarray]:
        graph = self._fitted_graph()
        return self._encode(graph, backend.features(graph))

    def _encode(self, graph: AttributedGraph, attributes: sparse.csr_array) -> Iterator[np.ndarray]:
        weights = self.weights_
        for start in range(0, len(graph), BLOCK_NODES):
            hidden = attributes[start : start + BLOCK_NODES] @ weights.hidden + weights.hidden_bias
            with threadpool_limits(1, "blas"):
                yield np.maximum(hidden, 0) @ weights.mean + weights.mean_bias


def gaussians(weights: Weights, attributes: backend.SparseRows) -> tuple[Any, Any]:
    """Mean and variances of every node's Gaussian, both (nodes, dim)."""
    hidden = (attributes @ weights.hidden + weights.hidden_bias).relu()
    raw = hidden @ weights.variance + weights.variance_bias
    variance = backend.import_torch().nn.functional.elu(raw) + 1 + SMALLEST_VARIANCE
    return hidden @ weights.mean + weights.mean_bias, variance


def energy(mean: Any, variance: Any, first: Any, second: Any) -> Any:
    """The Kullback-Leibler divergence of each second node's Gaussian from the first's."""
    ratio = variance[second] / variance[first]
    apart = (mean[first] - mean[second]) ** 2 / variance[first]
    return 0.5 * (ratio + apart - 1 - ratio.log()).sum(1)


def rank_loss(mean: Any, variance: Any, triplets: Triplets) -> Any:
    """The weighted mean of E(near)² + exp(−E(far)): squared where energy should be low, exponential where high."""
    torch = backend.import_torch()
    anchors, near, far, weights = (torch.from_numpy(part).to(mean.device) for part in triplets)
    low = energy(mean, variance, anchors, near)
    high = energy(mean, variance, anchors, far)
    return (weights * (low**2 + (-high).exp())).sum()
