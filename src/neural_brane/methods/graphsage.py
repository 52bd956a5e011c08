"""GraphSAGE: a node's vector is made of its attributes and of samples of those around it."""

import secrets
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from neural_brane.errors import GraphError, ParameterError
from neural_brane.graph import AttributedGraph
from neural_brane.kernels import cpu
from neural_brane.linalg import without_self_loops
from neural_brane.methods import _torch as backend
from neural_brane.methods.base import InductiveEmbedder, require
from neural_brane.progress import Progress, Reporter
from neural_brane.sampling.neighbourhoods import number, sample_neighbours
from neural_brane.sampling.walks import WalkSampler

BLOCK_NODES = 8192  # embedded at a time
REPORT_SECONDS = 0.3
NEGATIVE_POWER = 0.75


class Weights(NamedTuple):
    """What is learned: for each of two layers, what a node's own row and its neighbours' mean are multiplied by."""

    own_1: Any  # (attributes, dim - dim // 2)
    around_1: Any  # (attributes, dim // 2)
    own_2: Any  # (dim, dim - dim // 2)
    around_2: Any  # (dim, dim // 2)


class Batch(NamedTuple):
    """Pairs and negatives as positions among the batch's nodes, and the two hops around these."""

    pairs: np.ndarray  # (2, k)
    negatives: np.ndarray  # (negatives,)
    own: np.ndarray  # the batch's nodes among those of one hop
    around_2: sparse.csr_array  # means over sampled neighbours: (the batch's nodes, those of one hop)
    attributes_1: sparse.csr_array  # of the nodes of one hop
    around_1: sparse.csr_array  # (those of one hop, those of two)
    attributes_2: sparse.csr_array  # of the nodes of two hops


class GraphSAGE(InductiveEmbedder):
    """Inductive representation learning on large graphs (Hamilton, Ying, Leskovec; 2017): unsupervised, with means.

    Each of two layers sets a node's own row beside the mean of its neighbours', both multiplied by learned weights;
    a ReLU follows the first. Vectors have length one. Training draws together the ends of short random walks, away
    from nodes drawn at random, and sees a sample of each neighbourhood; the vectors that come out are made of whole
    neighbourhoods. A node without attributes and neighbours has the vector zero. In a graph without any attribute
    each node is its own attribute, and only its own nodes can be embedded.

    Parameters
    ----------
    dim : width of a vector: half a node's own, half its neighbours'. The first layer has the same width.
    first_samples, second_samples : neighbours sampled for the first layer and the second (the paper's S1 and S2):
        all of a node's where it has no more.
    walk_length, walks_per_node : nodes in a walk, and walks from each node in an epoch; the first node of a walk
        makes a pair with each of the others.
    negatives : nodes drawn per batch in proportion to degree^0.75, shared by its pairs as in the authors' program.
    learning_rate, batch_size : of Adam; the batch counts pairs.
    epochs : passes, each with walks of its own.
    seed : the same seed gives the same vectors on the CPU, bit for bit, on any number of threads. None draws one.
    threads : CPU threads that draw the walks; all when None. PyTorch works on one, for the sake of the bits.
    device : "cpu", "cuda", or "auto": the GPU where there is one. A GPU's last bits are not promised.
    progress : called with a `Progress` a few times a second.

    Attributes
    ----------
    embedding_, loss_history_ (mean cross-entropy a pair of each epoch), weights_, seed_

    Examples
    --------
    >>> from neural_brane import load
    >>> GraphSAGE(dim=16, walks_per_node=1, seed=0).fit_transform(load("stdlib")).vectors.shape
    (554, 16)
    """

    title = "graphsage"
    uses = ("links", "attributes")
    growth = "time: walks × samples² × dim; memory: edges + attribute entries + (nodes + attributes) × dim"
    paper = "Hamilton, Ying, Leskovec: Inductive representation learning on large graphs, 2017"
    extra = "torch"

    def __init__(
        self,
        *,
        dim: int = 150,
        first_samples: int = 25,
        second_samples: int = 10,
        walk_length: int = 5,
        walks_per_node: int = 50,
        negatives: int = 20,
        learning_rate: float = 1e-4,
        batch_size: int = 512,
        epochs: int = 1,
        seed: int | None = None,
        threads: int | None = None,
        device: str = "auto",
        progress: Reporter | None = None,
    ):
        self.dim = dim
        self.first_samples = first_samples
        self.second_samples = second_samples
        self.walk_length = walk_length
        self.walks_per_node = walks_per_node
        self.negatives = negatives
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.epochs = epochs
        self.seed = seed
        self.threads = threads
        self.device = device
        self.progress = progress

    def _fit(self, graph: AttributedGraph) -> None:
        self._check()
        device = backend.choose_device(self.device)
        links = without_self_loops(graph.adjacency)  # a walk along a self-loop pairs a node with itself
        if links.nnz == 0:
            raise GraphError(
                f"graph '{graph.name}' links nodes to themselves alone, so there are no pairs to learn from; "
                "give a graph in which at least one node is linked to another"
            )
        self.seed_ = secrets.randbits(63) if self.seed is None else self.seed
        rng = np.random.default_rng(self.seed_)
        width, half = backend.features(graph).shape[1], self.dim // 2
        shapes = ((width, self.dim - half), (width, half), (self.dim, self.dim - half), (self.dim, half))
        weights = Weights(*(backend.glorot(rng, shape, device) for shape in shapes))
        self.loss_history_: list[float] = []
        with cpu.threads(self.threads), backend.one_thread():
            self._train(graph, WalkSampler(links, length=self.walk_length, seed=self.seed_), weights, rng)
        self.weights_ = Weights(*(weight.detach().cpu().numpy() for weight in weights))

    def _check(self) -> None:
        for name in ("first_samples", "second_samples", "walks_per_node", "negatives", "batch_size", "epochs"):
            value = getattr(self, name)
            require(isinstance(value, int) and value >= 1, name, value, "a whole number from 1")
        length, seed, rate = self.walk_length, self.seed, self.learning_rate
        require(isinstance(length, int) and length >= 2, "walk_length", length, "a whole number from 2")
        require(0 < rate < np.inf, "learning_rate", rate, "a number above 0")
        require(seed is None or 0 <= seed < 2**63, "seed", seed, "a whole number from 0, or None")

    def _train(self, graph: AttributedGraph, walks: WalkSampler, weights: Weights, rng: np.random.Generator) -> None:
        adam = backend.import_torch().optim.Adam(weights, lr=self.learning_rate, fused=True)
        begun = reported = time.perf_counter()
        per_epoch = self.walks_per_node * len(graph) * (self.walk_length - 1)

        def report(epoch: int, done: int, losses: list[float]) -> None:
            if self.progress:
                rate, loss = done / (time.perf_counter() - begun), float(np.mean(losses))
                self.progress(Progress(epoch + 1, self.epochs, done, self.epochs * per_epoch, loss, rate, "pairs"))

        for epoch in range(self.epochs):
            losses: list[float] = []
            for done, batch in self._batches(graph, walks, epoch, rng):
                adam.zero_grad()
                loss = _loss(weights, batch, weights.own_1.device)
                loss.backward()
                adam.step()
                losses.append(loss.item())
                if time.perf_counter() - reported > REPORT_SECONDS:
                    report(epoch, epoch * per_epoch + done, losses)
                    reported = time.perf_counter()
            report(epoch, (epoch + 1) * per_epoch, losses)
            self.loss_history_.append(float(np.mean(losses)))
            if not np.isfinite(self.loss_history_[-1]):
                raise ParameterError(
                    f"training diverged in epoch {epoch + 1}; lower learning_rate={self.learning_rate}"
                )

    def _batches(
        self, graph: AttributedGraph, walks: WalkSampler, epoch: int, rng: np.random.Generator
    ) -> Iterator[tuple[int, Batch]]:
        """The batches of an epoch, each with the places in walks used up so far; one walk a node is drawn at a time."""
        nodes = len(graph)
        chances = np.cumsum(np.diff(graph.adjacency.indptr) ** NEGATIVE_POWER)
        attributes = backend.features(graph)
        for turn in range(self.walks_per_node):
            drawn = walks.draw((epoch * self.walks_per_node + turn) * nodes, nodes).astype(np.int64)
            pairs = np.stack([np.repeat(drawn[:, 0], self.walk_length - 1), drawn[:, 1:].ravel()])
            pairs = pairs[:, rng.permutation(pairs.shape[1])]
            for start in range(0, pairs.shape[1], self.batch_size):
                part = pairs[:, start : start + self.batch_size]
                proper = part[:, (part[1] >= 0) & (part[0] != part[1])]
                negatives = np.searchsorted(chances, rng.random(self.negatives) * chances[-1], side="right")
                if proper.size:
                    done = turn * pairs.shape[1] + start + part.shape[1]
                    yield done, self._batch(graph.adjacency, attributes, proper, negatives, rng)

    def _batch(
        self,
        adjacency: sparse.csr_array,
        attributes: sparse.csr_array,
        pairs: np.ndarray,
        negatives: np.ndarray,
        rng: np.random.Generator,
    ) -> Batch:
        """What it takes to embed the nodes of a batch: each node once, with its samples."""
        nodes = adjacency.shape[0]
        targets, (pairs, negatives) = number([pairs, negatives], nodes)
        indptr_2, near = sample_neighbours(adjacency, targets, self.second_samples, rng)
        hop_1, (own, near) = number([targets, near], nodes)
        indptr_1, far = sample_neighbours(adjacency, hop_1, self.first_samples, rng)
        hop_2, (far,) = number([far], nodes)
        around_2 = _means(indptr_2, near, len(hop_1))
        around_1 = _means(indptr_1, far, len(hop_2))
        return Batch(pairs, negatives, own, around_2, attributes[hop_1], around_1, attributes[hop_2])

    def _blocks(self) -> Iterator[np.ndarray]:
        graph = self._fitted_graph()
        return self._encode(graph, backend.features(graph))

    def _encode(self, graph: AttributedGraph, attributes: sparse.csr_array) -> Iterator[np.ndarray]:
        weights = self.weights_
        around = _means(graph.adjacency.indptr, graph.adjacency.indices, len(graph))
        hidden = np.hstack([attributes @ weights.own_1, around @ (attributes @ weights.around_1)])
        np.maximum(hidden, 0, out=hidden)
        for start in range(0, len(graph), BLOCK_NODES):
            rows = slice(start, start + BLOCK_NODES)
            with threadpool_limits(1, "blas"):
                vectors = np.hstack([hidden[rows] @ weights.own_2, (around[rows] @ hidden) @ weights.around_2])
            yield vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _means(indptr: np.ndarray, indices: np.ndarray, columns: int) -> sparse.csr_array:
    """The matrix that takes the mean of each row's entries; nothing where a row has none."""
    counts = np.diff(indptr)
    shares = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    return sparse.csr_array((shares, indices, indptr), shape=(len(counts), columns))


def _loss(weights: Weights, batch: Batch, device: Any) -> Any:
    """The mean cross-entropy of a batch's pairs, each against all negatives."""
    torch = backend.import_torch()
    vectors = _forward(weights, batch, device)
    first, second = vectors[torch.from_numpy(batch.pairs).to(device)]
    others = vectors[torch.from_numpy(batch.negatives).to(device)]
    softplus = torch.nn.functional.softplus
    return (softplus(-(first * second).sum(1)) + softplus(first @ others.T).sum(1)).mean()


def _forward(weights: Weights, batch: Batch, device: Any) -> Any:
    """The vectors of a batch's nodes, of length one."""
    torch = backend.import_torch()
    around_1, around_2, attributes_1, attributes_2 = (
        backend.SparseRows(matrix, device)
        for matrix in (batch.around_1, batch.around_2, batch.attributes_1, batch.attributes_2)
    )
    hidden = torch.cat([attributes_1 @ weights.own_1, around_1 @ (attributes_2 @ weights.around_1)], 1).relu()
    own = hidden[torch.from_numpy(batch.own).to(device)]
    return torch.nn.functional.normalize(torch.cat([own @ weights.own_2, (around_2 @ hidden) @ weights.around_2], 1))
