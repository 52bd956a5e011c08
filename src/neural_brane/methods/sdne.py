"""SDNE: an autoencoder of the adjacency's rows that keeps neighbours together."""

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
from neural_brane.methods.autoencoder import Batches, batch_nodes, squares_of_all, steps_of_epoch
from neural_brane.methods.base import Fitted, InductiveEmbedder, stack
from neural_brane.methods.features import row_blocks
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.training import SINGLE, Loop, Moments

if TYPE_CHECKING:
    import torch


class Encoder(NamedTuple):
    """The layers that make a vector of a row, as NumPy has them: tanh follows each."""

    hidden: np.ndarray  # (columns, hidden)
    hidden_bias: np.ndarray  # (1, hidden)
    code: np.ndarray  # (hidden, dim)
    code_bias: np.ndarray  # (1, dim)

    def blocks(self, rows: sparse.csr_array) -> Iterator[np.ndarray]:
        """The vectors of rows, some at a time."""
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
        """The inner product of a row of `left` and one of `right` at each entry."""
        gather = backend.import_torch().nn.functional.embedding
        return (gather(self.rows, left) * gather(self.columns, right)).sum(1)

    def distances(self, table: torch.Tensor) -> torch.Tensor:
        """The squared distance of the two rows of a table at each entry."""
        gather = backend.import_torch().nn.functional.embedding
        return ((gather(self.rows, table) - gather(self.columns, table)) ** 2).sum(1)


class Weights(NamedTuple):
    """The encoder's two layers, and the decoder's two; the tables with a row per node are the first and the last."""

    hidden: Any  # (nodes, hidden)
    hidden_bias: Any  # (1, hidden)
    code: Any  # (hidden, dim)
    code_bias: Any  # (1, dim)
    back: Any  # (dim, hidden)
    back_bias: Any  # (1, hidden)
    output: Any  # (nodes, hidden)
    output_bias: Any  # (1, nodes)


class LearnedRows(NamedTuple):
    """The encoder, what links were divided by, and how the training went."""

    encoder: Encoder
    scale: float  # the mean weight of a link
    loss_history: list[float]  # the mean loss of a node without the squares of weights, epoch by epoch


class SDNE(backend.Network, InductiveEmbedder):
    """Structural deep network embedding (Wang, Cui, Zhu; 2016).

    A node's row of the adjacency is compressed by two layers into its vector y, and two more layers write the row
    again. Training lowers Σ ((x̂ − x) b)², the squared error of what is written, where b is `beta` at links and 1
    elsewhere; plus `alpha` times Σ a_uv ‖y_u − y_v‖²; plus `l2` times half the squares of all weights. A batch adds up
    the second term over the links among its nodes, scaled so that it estimates that over all links. Weights of links
    are divided by their mean. A node without neighbours has an empty row, and all such nodes have the same vector.

    Some things differ from the paper. Layers have tanh, which is the paper's sigmoid with its middle at 0, and the last
    one is linear. So the error over all nodes is computed exactly without the written rows: memory stays that of two
    tables (nodes, hidden), and time of an epoch grows with nodes × hidden². There is one hidden layer. Weights begin at
    random, without the training as a deep belief network, and Adam trains them. The paper chooses `alpha` and `beta`
    for each graph; the defaults here were chosen by scores on wiki and cora.

    A new node is embedded by its links to known nodes or, where it is linked to other new nodes alone, as the mean of
    these. PyTorch works on one CPU thread, for the sake of the bits; the
    last bits of a GPU are not promised.
    """

    title = "sdne"
    uses = ("links",)
    growth = "time: epochs × (edges × hidden + nodes × hidden²); memory: edges + nodes × (hidden + dim)"
    paper = "Wang, Cui, Zhu: Structural deep network embedding, 2016"
    grid = {  # its paper searches alpha and beta, and says that neither should be 0 or 1
        "learning_rate": [], "l2": [], "alpha": [0.0, 0.001, 0.01, 0.1], "beta": [2.0, 5.0, 10.0],
    }  # fmt: skip
    holds = {"sdne": LearnedRows, "encoder of rows": Encoder}
    why_not = "its layers have a row for each node it learned from; transform embeds new nodes by their links"

    hidden: int = whole("Width of the layer before the vector, and of the one after it.", default=256)
    alpha: float = number("Weight of the distances between neighbours.", default=1e-3, least=0)
    beta: float = number("How much more an error counts at a link.", default=5.0, least=1)
    l2: float = number(
        "Weight of half the squares of all weights, beside the mean loss of a node.", default=1e-6, least=0
    )
    learning_rate: float = shared("learning_rate", default=3e-3, about="Of Adam.")
    batch_size: int | None = whole(
        "Nodes in a batch; when None 200, and a twentieth of all nodes at least.", default=None
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
                "tables": 8 * SINGLE * n * self.hidden,  # two, their gradients and Adam's two means of each
                "gradients": 3 * SINGLE * n * self.hidden,  # gradients of the parts of the loss before they are added
                "matrices": 8 * sizes.links,
                "batches": int(SINGLE * (4 * entries + 12 * batch) * max(self.hidden, self.dim)),
            },
            "vectors": {"tables": SINGLE * n * self.hidden, "vectors": 2 * SINGLE * n * self.dim},
        }

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied in all steps."""
        n, per_epoch = sizes.nodes, steps_of_epoch(self.batch_size, sizes.nodes)
        layers = n * self.hidden * (self.dim + per_epoch * self.hidden) + 3 * sizes.links * self.hidden
        return float(self.epochs * layers)

    def _loss(self, weights: Weights, links: sparse.csr_array, batch: np.ndarray) -> Any:
        """The mean loss of a batch's nodes."""
        rows = links[batch]
        codes, written = apply_layers(weights, backend.SparseRows(rows, self.device))
        entries = Entries(rows, self.device)  # the error counts beta² times as much there as elsewhere
        values = entries.products(written, weights.output) + weights.output_bias[0][entries.columns]
        at_links = (self.beta * (values - entries.values)) ** 2 - values**2
        second = squares_of_all(written, weights.output, weights.output_bias) + at_links.sum()
        size, nodes = len(batch), links.shape[0]
        among = Entries(rows[:, batch], self.device)
        drawn = (nodes - 1) / max(size - 1, 1)  # one in so many of a node's neighbours is in its batch
        first = drawn * (among.values * among.distances(codes)).sum()
        return (second + self.alpha * first) / size

    def _blocks(self, graph: AttributedGraph, learned: LearnedRows) -> Iterator[np.ndarray]:
        return learned.encoder.blocks(scaled(graph.adjacency, learned.scale))

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        linked = np.diff(new.links.indptr) > 0
        among = sparse.csr_array(new.among.multiply(linked))
        among.eliminate_zeros()
        shares = transition(among)  # over those of a node's new neighbours that have a vector
        around = ~linked & (np.diff(shares.indptr) > 0)
        lost = ~(linked | around)
        if lost.any():
            first = new.given.ids[new.rows[lost][0]].item()
            if lost.all():
                raise GraphError(
                    f"sdne embeds new nodes by their links to known nodes, and none of these (such as {first!r}) has "
                    "one; give their links, or take a method that embeds them by attributes"
                )
            warnings.warn(
                f"{np.count_nonzero(lost):,} new nodes (such as {first!r}) are linked to no known node; sdne gives "
                "them all the same vector",
                stacklevel=3,
            )
        rows = scaled(new.links, fitted.learned.scale)
        vectors = stack(fitted.learned.encoder.blocks(rows), len(new), self.dim)
        vectors[around] = (shares @ vectors)[around]
        return vectors


def first_weights(nodes: int, hidden: int, dim: int, rng: np.random.Generator, device: str) -> Weights:
    """The weights that training begins with."""
    tables = [backend.glorot(rng, shape, device) for shape in ((nodes, hidden), (hidden, dim), (dim, hidden))]
    output = backend.glorot(rng, (nodes, hidden), device)
    biases = [backend.zeros(width, device) for width in (hidden, dim, hidden, nodes)]
    return Weights(*(part for layer in zip([*tables, output], biases, strict=True) for part in layer))


def apply_layers(weights: Weights, rows: backend.SparseRows) -> tuple[torch.Tensor, torch.Tensor]:
    """The vectors of a batch, and what the last layer writes its rows from."""
    hidden = (rows @ weights.hidden + weights.hidden_bias).tanh()
    codes = (hidden @ weights.code + weights.code_bias).tanh()
    return codes, (codes @ weights.back + weights.back_bias).tanh()


def scaled(links: sparse.csr_array, scale: float) -> sparse.csr_array:
    """Links with their weights divided by a number, float32."""
    found = links.astype(np.float32)
    found.data /= np.float32(scale)
    return found
