"""GraphSAGE: compute a node's vector from its attributes and those of sampled neighbours."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Newcomers
from neural_brane.graph.memory import Sizes
from neural_brane.kernels import cpu
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.methods import descent as backend
from neural_brane.methods.base import Fitted, InductiveEmbedder, stack
from neural_brane.methods.features import own_attributes, proper_links, row_blocks
from neural_brane.methods.parameters import shared, whole
from neural_brane.methods.training import SINGLE, Loop, Moments, neighbour_bytes
from neural_brane.progress import Meter
from neural_brane.sampling.tables import renumber, sample_neighbours
from neural_brane.sampling.walks import WalkSampler

NEGATIVE_POWER = 0.75


class SAGEWeights(NamedTuple):
    """The learned weights of two layers, each for a node's own row and for the mean of its neighbours' rows."""

    own_1: Any  # (attributes, dim - dim // 2)
    around_1: Any  # (attributes, dim // 2)
    own_2: Any  # (dim, dim - dim // 2)
    around_2: Any  # (dim, dim // 2)


class Batch(NamedTuple):
    """Pairs and negatives as positions among the batch's nodes, and the two hops around these nodes."""

    pairs: np.ndarray  # (2, k)
    negatives: np.ndarray  # (negatives,)
    own: np.ndarray  # positions of the batch's nodes among the nodes of one hop
    around_2: sparse.csr_array  # means over sampled neighbours (batch's nodes, nodes of one hop)
    attributes_1: sparse.csr_array  # attributes of the nodes of one hop
    around_1: sparse.csr_array  # (nodes of one hop, nodes of two hops)
    attributes_2: sparse.csr_array  # attributes of the nodes of two hops


class GraphSAGE(backend.Network, InductiveEmbedder):
    """Learn two layers that compute a node's vector from its attributes and its neighbours'.

    Inductive representation learning on large graphs (Hamilton, Ying, Leskovec; 2017), unsupervised, with means, is
    good for new nodes. Each layer multiplies a node's own row and the mean of its neighbours' rows by learned weights
    and joins the two; each gives half of the columns. A ReLU follows the first layer, which is as wide as the second.
    Vectors have length one. Training draws the ends of short random walks together and away from random nodes. It sees
    a sample of each neighbourhood; the final vectors use whole neighbourhoods. A node without attributes and neighbours
    has the vector zero. If a graph has no attributes, each node is its own attribute, and new nodes cannot be embedded.
    """

    title = "graphsage"
    growth = "time: walks × samples² × dim; memory: edges + attribute entries + (nodes + attributes) × dim"
    paper = "Hamilton, Ying, Leskovec: Inductive representation learning on large graphs, 2017"
    grid = {"learning_rate": [0.01, 0.05, 0.1, 0.5, 1e-4, 1e-5, 1e-6]}  # the paper tries smaller values as well
    small = {"epochs": 2, "walks_per_node": 1, "walk_length": 10}
    trial = {"walks_per_node": 1}
    holds = {"graphsage": backend.TrainedNetwork, "graphsage weights": SAGEWeights}
    learns = {"weights_": "SAGEWeights: The weights of the two layers."}
    by_attributes = True

    first_samples: int = whole(
        "Neighbours sampled for the first layer, the paper's S1; all if a node has no more.", default=25
    )
    second_samples: int = whole("Neighbours sampled for the second layer, the paper's S2.", default=10)
    walk_length: int = whole("Nodes in a walk; the first forms a pair with each other node.", default=5, least=2)
    walks_per_node: int = whole("Walks from each node in an epoch.", default=50)
    negatives: int = whole(
        "Negative nodes of a batch, shared by its pairs and drawn in proportion to degree ** 0.75.", default=20
    )
    learning_rate: float = shared("learning_rate", default=1e-4, about="Learning rate of Adam.")
    batch_size: int = whole("Pairs in a batch.", default=512)
    epochs: int = shared("epochs", default=1, about="Passes; each draws new walks.")

    def _learn(self, graph: AttributedGraph, seed: int) -> backend.TrainedNetwork:
        backend.import_torch()
        links = proper_links(graph, "walks give no pairs to learn from")  # A self-loop pairs a node with itself.
        rng = np.random.default_rng(seed)
        width, half = own_attributes(graph).shape[1], self.dim // 2
        shapes = ((width, self.dim - half), (width, half), (self.dim, self.dim - half), (self.dim, half))
        weights = SAGEWeights(*(backend.glorot(rng, shape, self.device) for shape in shapes))
        with cpu.threads(self.threads), backend.one_thread():
            batches = PairBatches(self, graph, WalkSampler(links, length=self.walk_length, seed=seed), rng)
            pairs = self.epochs * self.walks_per_node * batches.pairs_per_turn
            loop = Loop(
                self._stages.stage("weights"), Meter(self.progress, pairs, "pairs", epochs=self.epochs),
                self.epochs * batches.per_epoch, per_epoch=batches.per_epoch, units=batches.units,
                learning_rate=self.learning_rate,
            )  # fmt: skip
            batches.numbers = loop.numbers

            def loss_of(step: int) -> Any:
                batch = batches.draw(step)
                return None if batch is None else _loss(weights, batch, self.device)

            losses = backend.Descent(weights, self.learning_rate).train(loop, loss_of)
        return backend.TrainedNetwork(SAGEWeights(*backend.to_numpy(weights)), losses)

    def memory(self, sizes: Sizes) -> Moments:
        n, width = sizes.nodes, sizes.attributes or sizes.nodes
        tables = {"tables": 4 * SINGLE * width * self.dim}  # first layer, its gradient and Adam's two means
        walks = 8 * n * (self.walk_length + 5 * (self.walk_length - 1))
        reached = min(n, 2 * self.batch_size * self.second_samples * self.first_samples)
        links = {"matrices": 8 * sizes.links}
        batches = {"sampling": neighbour_bytes(sizes) + walks, "batches": 16 * SINGLE * reached * self.dim}
        return {
            "training": tables | links | batches,
            "vectors": links | {"tables": SINGLE * width * self.dim, "vectors": 4 * SINGLE * n * self.dim},
        }

    def _blocks(self, graph: AttributedGraph, learned: backend.TrainedNetwork) -> Iterator[np.ndarray]:
        return _vectors(graph, own_attributes(graph), learned.weights)

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        graph = new.together()
        return stack(_vectors(graph, graph.attributes, fitted.learned.weights), len(graph), self.dim)[len(new.known) :]


class PairBatches:
    """The batches of a training; `numbers` holds a generator's state, now and at the turn's start, to resume."""

    def __init__(self, method: "GraphSAGE", graph: AttributedGraph, walks: WalkSampler, rng: np.random.Generator):
        self.method, self.graph, self.walks, self.rng = method, graph, walks, rng
        self.numbers: dict[str, Any] = {}
        self.attributes = own_attributes(graph)
        self.chances = np.cumsum(np.diff(graph.adjacency.indptr) ** NEGATIVE_POWER)
        self.pairs_per_turn = len(graph) * (method.walk_length - 1)
        self.per_turn = -(-self.pairs_per_turn // method.batch_size)
        self.per_epoch = method.walks_per_node * self.per_turn
        self.units = lambda step: (  # pairs in all batches before this step, including those of walks that ended early
            step // self.per_turn * self.pairs_per_turn + step % self.per_turn * method.batch_size
        )
        self.turn = -1
        self.pairs = np.empty((2, 0), np.int64)

    def draw(self, step: int) -> Batch | None:
        """Return batch number `step`, or None if all its walks ended early."""
        turn, at = divmod(step, self.per_turn)
        if turn != self.turn:
            self._begin(turn, at)
        pairs = self.pairs[:, at * self.method.batch_size : (at + 1) * self.method.batch_size]
        proper = pairs[:, (pairs[1] >= 0) & (pairs[0] != pairs[1])]
        drawn = self.rng.random(self.method.negatives) * self.chances[-1]
        batch = self.gather(proper, np.searchsorted(self.chances, drawn, side="right")) if proper.size else None
        self.numbers["rng"] = self.rng.bit_generator.state
        return batch

    def _begin(self, turn: int, at: int) -> None:
        """Draw and shuffle the pairs of a turn; in the middle of a turn, draw the same pairs again."""
        now = self.numbers.get("rng", self.rng.bit_generator.state)
        if at == 0:
            self.numbers["turn"] = now
        self.rng.bit_generator.state = self.numbers["turn"]
        nodes = len(self.graph)
        drawn = self.walks.draw(turn * nodes, nodes).astype(np.int64)
        pairs = np.stack([np.repeat(drawn[:, 0], self.method.walk_length - 1), drawn[:, 1:].ravel()])
        self.turn, self.pairs = turn, pairs[:, self.rng.permutation(pairs.shape[1])]
        if at:
            self.rng.bit_generator.state = now

    def gather(self, pairs: np.ndarray, negatives: np.ndarray) -> Batch:
        """Return the batch of these pairs: its distinct nodes and sampled neighbours around them."""
        adjacency, attributes, rng = self.graph.adjacency, self.attributes, self.rng
        nodes = len(self.graph)
        targets, (pairs, negatives) = renumber([pairs, negatives], nodes)
        indptr_2, near = sample_neighbours(adjacency, targets, self.method.second_samples, rng)
        hop_1, (own, near) = renumber([targets, near], nodes)
        indptr_1, far = sample_neighbours(adjacency, hop_1, self.method.first_samples, rng)
        hop_2, (far,) = renumber([far], nodes)
        around_2 = _means(indptr_2, near, len(hop_1))
        around_1 = _means(indptr_1, far, len(hop_2))
        return Batch(pairs, negatives, own, around_2, attributes[hop_1], around_1, attributes[hop_2])


def _vectors(graph: AttributedGraph, attributes: sparse.csr_array, weights: SAGEWeights) -> Iterator[np.ndarray]:
    """Yield the vectors of a graph's nodes from their whole neighbourhoods, block by block."""
    around = _means(graph.adjacency.indptr, graph.adjacency.indices, len(graph))
    hidden = np.hstack([attributes @ weights.own_1, around @ (attributes @ weights.around_1)])
    np.maximum(hidden, 0, out=hidden)
    for rows in row_blocks(len(graph)):
        with one_blas_thread():
            vectors = np.hstack([hidden[rows] @ weights.own_2, (around[rows] @ hidden) @ weights.around_2])
        yield vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _means(indptr: np.ndarray, indices: np.ndarray, columns: int) -> sparse.csr_array:
    """Return the matrix that averages over each row's entries; an empty row stays empty."""
    counts = np.diff(indptr)
    shares = np.repeat(1 / np.maximum(counts, 1), counts).astype(np.float32)
    return sparse.csr_array((shares, indices, indptr), shape=(len(counts), columns))


def _loss(weights: SAGEWeights, batch: Batch, device: Any) -> Any:
    """Return the mean cross-entropy of a batch's pairs, each against all negatives."""
    torch = backend.import_torch()
    vectors = _forward(weights, batch, device)
    first, second = vectors[torch.from_numpy(batch.pairs).to(device)]
    others = vectors[torch.from_numpy(batch.negatives).to(device)]
    softplus = torch.nn.functional.softplus
    return (softplus(-(first * second).sum(1)) + softplus(first @ others.T).sum(1)).mean()


def _forward(weights: SAGEWeights, batch: Batch, device: Any) -> Any:
    """Return the vectors of a batch's nodes, with length one."""
    torch = backend.import_torch()
    around_1, around_2, attributes_1, attributes_2 = (
        backend.SparseRows(matrix, device)
        for matrix in (batch.around_1, batch.around_2, batch.attributes_1, batch.attributes_2)
    )
    hidden = torch.cat([attributes_1 @ weights.own_1, around_1 @ (attributes_2 @ weights.around_1)], 1).relu()
    own = hidden[torch.from_numpy(batch.own).to(device)]
    return torch.nn.functional.normalize(torch.cat([own @ weights.own_2, (around_2 @ hidden) @ weights.around_2], 1))
