"""SDNE: train an autoencoder of the rows of the adjacency that keeps neighbours close."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Newcomers
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.linalg.weights import transition
from neural_brane.methods import descent as backend
from neural_brane.methods.base import Fitted, InductiveEmbedder, stack
from neural_brane.methods.features import row_blocks
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.training import SINGLE, Loop, Moments

if TYPE_CHECKING:
    import torch

BATCH_NODES = 200  # nodes in a batch, more if an epoch would have over MOST_STEPS batches
MOST_STEPS = 20


def squares_of_all(hidden: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return Σ (hᵀw + c)² over rows h of hidden and rows w of weights, each with its c, in nodes × width² products."""
    gram = weights.T @ weights.detach()  # gives half of the gradient; the product is symmetric, so it is doubled below
    fixed = hidden.detach()
    by_weights = 2 * (gram * (fixed.T @ fixed)).sum()
    by_hidden = ((hidden @ gram.detach()) * hidden).sum()
    between = hidden.sum(0) @ (bias @ weights)[0]
    return by_weights - by_weights.detach() + by_hidden + 2 * between + len(hidden) * (bias * bias).sum()


def batch_nodes(given: int | None, nodes: int) -> int:
    """Return the number of nodes in a batch: as given, or so many that an epoch has at most `MOST_STEPS` steps."""
    return given or max(BATCH_NODES, -(-nodes // MOST_STEPS))


def steps_of_epoch(given: int | None, nodes: int) -> int:
    """Return the number of batches in an epoch."""
    return -(-nodes // batch_nodes(given, nodes))


class Batches:
    """The nodes of every step: each epoch takes every node once, in an order drawn from `seed` and its number."""

    def __init__(self, nodes: int, per_epoch: int, seed: list[int]):
        self.nodes, self.per_epoch, self.seed = nodes, per_epoch, seed
        self.epoch = -1
        self.parts: list[np.ndarray] = []

    def draw(self, step: int) -> np.ndarray:
        """Return the nodes of a step, sorted."""
        epoch, at = divmod(step, self.per_epoch)
        if epoch != self.epoch:
            order = np.random.default_rng([*self.seed, epoch]).permutation(self.nodes)
            self.epoch, self.parts = epoch, np.array_split(order, self.per_epoch)
        return np.sort(self.parts[at])


class Encoder(NamedTuple):
    """The two layers, in NumPy, that turn a row into a vector; tanh follows each."""

    hidden: np.ndarray  # (columns, hidden)
    hidden_bias: np.ndarray  # (1, hidden)
    code: np.ndarray  # (hidden, dim)
    code_bias: np.ndarray  # (1, dim)

    def blocks(self, rows: sparse.csr_array) -> Iterator[np.ndarray]:
        """Yield the vectors of rows, some at a time."""
        for block in row_blocks(rows.shape[0]):
            hidden = np.tanh(rows[block] @ self.hidden + self.hidden_bias)
            with one_blas_thread():
                yield np.tanh(hidden @ self.code + self.code_bias)


class Entries:
    """The entries of a batch's sparse rows, by row and column, on a device."""

    def __init__(self, rows: sparse.csr_array, device: str):
        torch = backend.import_torch()
        numbers = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        self.rows = torch.from_numpy(numbers).to(device)
        self.columns = torch.from_numpy(rows.indices.astype(np.int64)).to(device)
        self.values = torch.from_numpy(rows.data.astype(np.float32, copy=False)).to(device)

    def products(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Return, for each entry, the inner product of its row of `left` and its row of `right`."""
        gather = backend.import_torch().nn.functional.embedding
        return (gather(self.rows, left) * gather(self.columns, right)).sum(1)

    def distances(self, table: torch.Tensor) -> torch.Tensor:
        """Return, for each entry, the squared distance of its two rows of a table."""
        gather = backend.import_torch().nn.functional.embedding
        return ((gather(self.rows, table) - gather(self.columns, table)) ** 2).sum(1)


class SDNEWeights(NamedTuple):
    """The two layers of the encoder and the two of the decoder."""

    hidden: Any  # (nodes, hidden)
    hidden_bias: Any  # (1, hidden)
    code: Any  # (hidden, dim)
    code_bias: Any  # (1, dim)
    back: Any  # (dim, hidden)
    back_bias: Any  # (1, hidden)
    output: Any  # (nodes, hidden)
    output_bias: Any  # (1, nodes)


class LearnedRows(NamedTuple):
    """The encoder, the scale of its input, and the losses."""

    encoder: Encoder
    scale: float  # mean weight of a link, by which weights are divided
    loss_history: list[float]  # mean loss of a node for each epoch, without the squares of weights


class SDNE(backend.Network, InductiveEmbedder):
    """Compress each node's links with an autoencoder whose vectors are close for linked nodes.

    Structural deep network embedding (Wang, Cui, Zhu; 2016). Two layers compress a node's row x of the adjacency into
    its vector y, and two more layers reconstruct the row as x̂. The loss is Σ ((x̂ − x) b)², where b is `beta` at links
    and 1 elsewhere, plus `alpha` times Σ a_uv ‖y_u − y_v‖², plus `l2` times half the squares of all weights. In a batch
    the second sum has only the links among its nodes, scaled to estimate the sum over all links. Weights of links are
    divided by their mean. A node without neighbours has an empty row, so all such nodes share one vector.

    Some things differ from the paper. Layers use tanh, not a sigmoid, and the last one is linear, so that the method
    computes the error over all nodes exactly without dense rows: memory stays that of two tables (nodes, hidden), and
    the time of an epoch grows with nodes × hidden². There is one hidden layer. Weights start at random instead of being
    trained as a deep belief network, and Adam trains them. The paper chooses `alpha` and `beta` for each graph; the
    defaults were chosen by scores on wiki and cora.

    It is good for new nodes without attributes. The vector of a new node comes from its links to known nodes or, if it
    is linked only to new nodes, is their mean.
    """

    title = "sdne"
    uses = ("links",)
    growth = "time: epochs × (edges × hidden + nodes × hidden²); memory: edges + nodes × (hidden + dim)"
    paper = "Wang, Cui, Zhu: Structural deep network embedding, 2016"
    grid = {  # The paper searches alpha and beta.
        "learning_rate": [], "l2": [], "alpha": [0.0, 0.001, 0.01, 0.1], "beta": [2.0, 5.0, 10.0],
    }  # fmt: skip
    holds = {"sdne": LearnedRows, "encoder of rows": Encoder}
    learns = {
        "encoder_": "Encoder: The two layers that turn a node's links into its vector.",
        "scale_": "float: The mean weight of a link, by which weights are divided.",
    }
    why_not = "its layers have a row for each node of the training; transform embeds new nodes by their links"

    hidden: int = whole("Width of the layer before the vector, and of the one after it.", default=256)
    alpha: float = number("Weight of the distances between neighbours.", default=1e-3, least=0)
    beta: float = number("Factor of an error at a link.", default=5.0, least=1)
    l2: float = number("Weight of half the squares of all weights in the loss.", default=1e-6, least=0)
    learning_rate: float = shared("learning_rate", default=3e-3, about="Learning rate of Adam.")
    batch_size: int | None = whole(
        "Nodes in a batch. None: 200, or a twentieth of all nodes if that is more.", default=None
    )
    epochs: int = shared("epochs", default=20)

    def _learn(self, graph: AttributedGraph, seed: int) -> LearnedRows:
        backend.import_torch()
        scale = float(graph.adjacency.data.mean(dtype=np.float64))
        links = scaled(graph.adjacency, scale)
        weights = first_weights(len(graph), self.hidden, self.dim, np.random.default_rng(seed), self.device)
        per_epoch = steps_of_epoch(self.batch_size, len(graph))
        batches = Batches(len(graph), per_epoch, [seed])
        loop = Loop.over_epochs(self, "weights", per_epoch=per_epoch)
        descent = backend.Descent(weights, self.learning_rate, l2=self.l2)
        with backend.one_thread():
            losses = descent.train(loop, lambda step: self._loss(weights, links, batches.draw(step)))
        return LearnedRows(Encoder(*backend.to_numpy(weights[:4])), scale, losses)

    def memory(self, sizes: Sizes) -> Moments:
        n, batch = sizes.nodes, batch_nodes(self.batch_size, sizes.nodes)
        entries = sizes.links * min(batch / max(n, 1), 1)
        return {
            "training": {
                "tables": 8 * SINGLE * n * self.hidden,  # two tables, their gradients and Adam's two means of each
                "gradients": 3 * SINGLE * n * self.hidden,  # gradients of the terms of the loss before their sum
                "matrices": 8 * sizes.links,
                "batches": int(SINGLE * (4 * entries + 12 * batch) * max(self.hidden, self.dim)),
            },
            "vectors": {"tables": SINGLE * n * self.hidden, "vectors": 2 * SINGLE * n * self.dim},
        }

    def work(self, sizes: Sizes) -> float:
        """Return the number of multiplications in all steps."""
        n, per_epoch = sizes.nodes, steps_of_epoch(self.batch_size, sizes.nodes)
        layers = n * self.hidden * (self.dim + per_epoch * self.hidden) + 3 * sizes.links * self.hidden
        return float(self.epochs * layers)

    def _loss(self, weights: SDNEWeights, links: sparse.csr_array, batch: np.ndarray) -> Any:
        """Return the mean loss of a batch's nodes."""
        rows = links[batch]
        codes, decoded = apply_layers(weights, backend.SparseRows(rows, self.device))
        entries = Entries(rows, self.device)  # An error at a link counts beta² times as much as elsewhere.
        values = entries.products(decoded, weights.output) + weights.output_bias[0][entries.columns]
        at_links = (self.beta * (values - entries.values)) ** 2 - values**2
        second = squares_of_all(decoded, weights.output, weights.output_bias) + at_links.sum()
        size, nodes = len(batch), links.shape[0]
        among = Entries(rows[:, batch], self.device)
        scale = (nodes - 1) / max(size - 1, 1)  # all links over the expected links among the batch's nodes
        first = scale * (among.values * among.distances(codes)).sum()
        return (second + self.alpha * first) / size

    def _blocks(self, graph: AttributedGraph, learned: LearnedRows) -> Iterator[np.ndarray]:
        return learned.encoder.blocks(scaled(graph.adjacency, learned.scale))

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        linked = np.diff(new.links.indptr) > 0
        among = sparse.csr_array(new.among.multiply(linked))
        among.eliminate_zeros()
        shares = transition(among)  # averages over new neighbours that are linked to a known node
        around = ~linked & (np.diff(shares.indptr) > 0)
        lost = ~(linked | around)
        if lost.any():
            first = new.given.ids[new.rows[lost][0]].item()
            if lost.all():
                raise GraphError(
                    f"sdne embeds new nodes by their links to known nodes, but no new node (such as {first!r}) has "
                    "such a link; give links, or choose a method that embeds new nodes by attributes"
                )
            found = f"{np.count_nonzero(lost):,} new nodes (such as {first!r}) have no link to a known node;"
            warnings.warn(f"{found} sdne gives all of them the same vector", stacklevel=3)
        rows = scaled(new.links, fitted.learned.scale)
        vectors = stack(fitted.learned.encoder.blocks(rows), len(new), self.dim)
        vectors[around] = (shares @ vectors)[around]
        return vectors


def first_weights(nodes: int, hidden: int, dim: int, rng: np.random.Generator, device: str) -> SDNEWeights:
    """Return the initial weights."""
    tables = [backend.glorot(rng, shape, device) for shape in ((nodes, hidden), (hidden, dim), (dim, hidden))]
    output = backend.glorot(rng, (nodes, hidden), device)
    biases = [backend.zeros(width, device) for width in (hidden, dim, hidden, nodes)]
    return SDNEWeights(*(part for layer in zip([*tables, output], biases, strict=True) for part in layer))


def apply_layers(weights: SDNEWeights, rows: backend.SparseRows) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the vectors (batch, dim) and the input (batch, hidden) of the last layer, which reconstructs the rows."""
    hidden = (rows @ weights.hidden + weights.hidden_bias).tanh()
    codes = (hidden @ weights.code + weights.code_bias).tanh()
    return codes, (codes @ weights.back + weights.back_bias).tanh()


def scaled(links: sparse.csr_array, scale: float) -> sparse.csr_array:
    """Return links with their weights divided by a number, float32."""
    found = links.astype(np.float32)
    found.data /= np.float32(scale)
    return found
