"""DNGR: stacked denoising autoencoders of the pointwise mutual information of random surfing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import map_threads, one_blas_thread
from neural_brane.linalg.weights import transition
from neural_brane.methods import descent as backend
from neural_brane.methods.base import stack
from neural_brane.methods.features import proper_links, row_blocks
from neural_brane.methods.grarep import above, largest_of_rows
from neural_brane.methods.parameters import cores, number, shared, whole
from neural_brane.methods.sdne import Batches, batch_nodes, squares_of_all, steps_of_epoch
from neural_brane.methods.training import SINGLE, Loop, Moments
from neural_brane.progress import Meter

if TYPE_CHECKING:
    import torch

BLOCK_NUMBERS = 8_000_000  # probabilities in a block, 4 bytes each
KEPT_NUMBERS, KEPT_IN_A_ROW = 12_000_000, 100  # numbers kept of the matrix and least of a row, 8 bytes each


class Layer(NamedTuple):
    """The weights of one autoencoder: a layer that compresses rows, and a layer that reconstructs them."""

    into: Any  # (columns, width)
    into_bias: Any  # (1, width)
    back: Any  # (columns, width)
    back_bias: Any  # (1, columns)


class LearnedLayers(NamedTuple):
    """The vectors and the losses of the training."""

    vectors: np.ndarray  # (nodes, dim) float32
    loss_history: list[float]  # mean squared error of a node: epochs of the first layer, then of the second


class DNGR(backend.Network):
    """Compress which nodes a random surfer reaches, with two stacked denoising autoencoders.

    Deep neural networks for learning graph representations (Cao, Lu, Xu; 2016). A surfer walks from each node; in each
    step it returns there with probability `restart`. The method adds the probabilities of being at each node after 1,
    2, … `steps` steps, drops the start node and scales rows to sum to one. The positive pointwise mutual information is
    X_uv = max(ln(probability_uv / mean probability of v), 0). A denoising autoencoder learns to compress and to
    reconstruct the rows of X; each step sets some entries to 0. A second one compresses the hidden layer of the first;
    its hidden layer is the vector. A node without neighbours has an empty row, so all such nodes share one vector.

    Some things differ from the authors' program. Layers use tanh, not a sigmoid. The reconstructing layers are linear,
    so that the method computes the error over all nodes exactly without dense rows, and memory stays that of two tables
    (nodes, hidden). Probabilities are divided by the sums of rows, not of columns. X is divided by its largest number,
    which scored better on wiki. Adam trains the layers. Probabilities are exact and computed block by block; each row
    keeps the `row_entries` numbers that are largest relative to the mean. With the default, graphs of up to 3,464 nodes
    lose no number.

    It is good for graphs without attributes. It cannot embed new nodes, because it has no probabilities for them.
    """

    title = "dngr"
    uses = ("links",)
    growth = (
        "time: steps × nodes × edges + epochs × nodes × hidden × (row_entries + hidden); "
        "memory: nodes × (row_entries + hidden + dim)"
    )
    paper = "Cao, Lu, Xu: Deep neural networks for learning graph representations, 2016"
    grid = {"learning_rate": [], "steps": [2, 3, 5, 10], "hidden": [256, 512]}  # the authors use 512, not 256
    holds = {"dngr": LearnedLayers}
    learns = {"loss_history_": "list of float: Mean error of a node for each epoch, first layer first."}
    prolongs = ()
    why_not = "its matrix and its layers have a row for each node of the training"

    steps: int = whole("Number of steps of the surfer.", default=3)
    restart: float = number(
        "Probability of returning to the start instead of a step, the paper's 1 − alpha.", default=0.02, least=0,
        below=1,
    )  # fmt: skip
    row_entries: int | None = whole(
        "Numbers kept of each row. None: 12 million for all nodes together, at least 100 each.", default=None
    )
    hidden: int = whole("Width of the first layer.", default=256)
    noise: float = number("Share of the entries that each step sets to 0.", default=0.2, least=0, below=1)
    learning_rate: float = shared("learning_rate", default=3e-3, about="Learning rate of Adam.")
    batch_size: int | None = whole(
        "Nodes in a batch. None: 200, or a twentieth of all nodes if that is more.", default=None
    )
    epochs: int = shared("epochs", default=15, about="Passes over all nodes for each of the two layers.")

    def _learn(self, graph: AttributedGraph, seed: int) -> LearnedLayers:
        backend.import_torch()
        size = len(graph)
        rows = max(1, BLOCK_NUMBERS // size)
        blocks = [slice(at, at + rows) for at in range(0, size, rows)]
        per_epoch = steps_of_epoch(self.batch_size, size)
        meter = Meter(self.progress, len(blocks) + 2 * self.epochs * per_epoch, "steps", epochs=self.epochs)

        def make() -> tuple[np.ndarray, ...]:
            matrix = self._matrix(graph, blocks, meter.advance)
            return matrix.data, matrix.indices, matrix.indptr

        parts = self._stages.all_once("matrix", make)
        meter.resume(len(blocks))  # also if the checkpoint held the matrix
        with backend.one_thread():
            return self._train(sparse.csr_array(parts, shape=(size, size)), per_epoch, meter, seed)

    def memory(self, sizes: Sizes) -> Moments:
        n, batch = sizes.nodes, batch_nodes(self.batch_size, sizes.nodes)
        kept = n * min(n, self._row_entries(n))
        entries = 24 * kept * min(batch / max(n, 1), 1)  # rows of a batch on the device, with and without noise
        return {
            "surfing": {"kept numbers": 3 * 8 * kept, "blocks": 8 * SINGLE * max(BLOCK_NUMBERS, n) * cores()},
            "first layer": {
                "kept numbers": 3 * 8 * kept,  # Python does not give back all memory of the surfer's rows.
                "tables": 8 * SINGLE * n * self.hidden,  # two tables, their gradients and Adam's two means of each
                "second tables": 2 * SINGLE * self.hidden * self.dim,
                "gradients": 3 * SINGLE * n * self.hidden,  # gradients of the terms of the loss before their sum
                "batches": int(entries + 12 * SINGLE * batch * self.hidden),
            },
            "second layer": {"hidden": SINGLE * n * self.hidden, "vectors": 2 * SINGLE * n * self.dim},
        }

    def work(self, sizes: Sizes) -> float:
        """Return the number of multiplications in the surfer's steps and in the training."""
        n, per_epoch = sizes.nodes, steps_of_epoch(self.batch_size, sizes.nodes)
        kept = n * min(n, self._row_entries(n))
        surfing = self.steps * n * (n + sizes.links)
        layers = n * self.hidden * (self.dim + per_epoch * self.hidden) + 5 * kept * self.hidden
        return float(surfing + self.epochs * layers)

    def _matrix(self, graph: AttributedGraph, blocks: list[slice], report: Callable[[], object]) -> sparse.csr_array:
        """Compute the positive pointwise mutual information of the surfer, divided by its largest number."""
        surfer = Surfer(graph, self.steps, self.restart, self._row_entries(len(graph)))
        parts, arrived = [], np.zeros(len(graph))
        for rows, sums in map_threads(surfer.rows, blocks, self.threads):
            parts.append(rows)
            arrived += sums
            report()
        matrix = above(sparse.vstack(parts, format="csr"), arrived / arrived.sum())
        matrix.data /= matrix.data.max()
        return matrix

    def _train(self, matrix: sparse.csr_array, per_epoch: int, meter: Meter, seed: int) -> LearnedLayers:
        """Train the first layer, then the second."""
        size, rng = matrix.shape[0], np.random.default_rng(seed)
        first = first_layer(size, self.hidden, rng, self.device)
        second = first_layer(self.hidden, self.dim, rng, self.device)

        def train(name: str, layer: Layer, loss_of: Callable[[np.ndarray, np.random.Generator], Any]) -> list[float]:
            at = 1 if layer is first else 3
            batches = Batches(size, per_epoch, [seed, at])
            stage, steps = self._stages.stage(name), self.epochs * per_epoch
            loop = Loop(stage, meter, steps, per_epoch=per_epoch, learning_rate=self.learning_rate)
            return backend.Descent(layer, self.learning_rate).train(
                loop, lambda step: loss_of(batches.draw(step), np.random.default_rng([seed, at + 1, step]))
            )

        losses = train("first layer", first, lambda batch, rng: self._sparse_loss(first, matrix[batch], rng))
        hidden = stack(compress(matrix, first), size, self.hidden)
        losses += train("second layer", second, lambda batch, rng: self._dense_loss(second, hidden[batch], rng))
        return LearnedLayers(stack(compress(hidden, second), size, self.dim), losses)

    def _sparse_loss(self, layer: Layer, rows: sparse.csr_array, rng: np.random.Generator) -> torch.Tensor:
        """Return the mean squared error of rows reconstructed from their entries that noise left."""
        seen = rows.copy()
        seen.data *= rng.random(seen.nnz, np.float32) >= self.noise
        hidden = (backend.SparseRows(seen, self.device) @ layer.into + layer.into_bias).tanh()
        true = backend.SparseRows(rows, self.device)
        products = (hidden * (true @ layer.back)).sum() + (true @ layer.back_bias.T).sum()
        error = squares_of_all(hidden, layer.back, layer.back_bias) - 2 * products + (true.values**2).sum()
        return error / rows.shape[0]

    def _dense_loss(self, layer: Layer, rows: np.ndarray, rng: np.random.Generator) -> Any:
        """Return the same error for dense rows of the hidden layer."""
        tensor = backend.import_torch().from_numpy
        seen = rows * (rng.random(rows.shape, np.float32) >= self.noise)
        codes = (tensor(seen).to(self.device) @ layer.into + layer.into_bias).tanh()
        restored = codes @ layer.back.T + layer.back_bias
        return ((restored - tensor(rows).to(self.device)) ** 2).sum() / len(rows)

    def _row_entries(self, nodes: int) -> int:
        return self.row_entries or max(KEPT_IN_A_ROW, KEPT_NUMBERS // nodes)


class Surfer:
    """The probabilities of where a surfer is, added over its steps; without the start node, rows sum to one."""

    def __init__(self, graph: AttributedGraph, steps: int, restart: float, most: int):
        self.walk = transition(proper_links(graph, "a surfer cannot leave its node")).astype(np.float32)
        self.back = self.walk.T.tocsr()  # multiplied with columns of probabilities, one surfer per column
        self.steps, self.restart, self.most = steps, np.float32(restart), most
        now, total = np.ones(len(graph), np.float32), np.zeros(len(graph), np.float32)
        for _ in range(steps):  # These sums include visits of the start node.
            now = (1 - self.restart) * (self.back @ now) + self.restart
            total += now
        self.usual = np.maximum(total, 1e-30)  # approximate visits of each node by surfers from all nodes

    def rows(self, block: slice) -> tuple[sparse.csr_array, np.ndarray]:
        """Return a block of rows and the sums of columns; long rows keep the numbers largest relative to `usual`."""
        numbers = np.arange(self.walk.shape[0])[block]
        begin = (numbers, np.arange(len(numbers)))
        now = (1 - self.restart) * self.walk[block].T.toarray()
        now[begin] += self.restart
        total = now.copy()
        for _ in range(self.steps - 1):
            now = self.back @ now
            now *= 1 - self.restart
            now[begin] += self.restart
            total += now
        total[begin] = 0
        total /= np.maximum(total.sum(axis=0), np.float32(1e-30))
        found = sparse.csr_array(np.ascontiguousarray(total.T))
        if found.shape[1] > self.most:
            found.data /= self.usual[found.indices]
            found = largest_of_rows(found, self.most)
            found.data *= self.usual[found.indices]
        return found, total.sum(axis=1, dtype=np.float64)


def first_layer(columns: int, width: int, rng: np.random.Generator, device: str) -> Layer:
    """Return the initial weights."""
    into, back = (backend.glorot(rng, (columns, width), device) for _ in range(2))
    return Layer(into, backend.zeros(width, device), back, backend.zeros(columns, device))


def compress(rows: Any, layer: Layer) -> Iterator[np.ndarray]:
    """Yield the rows compressed by a layer, block by block."""
    into, bias = backend.to_numpy((layer.into, layer.into_bias))
    for block in row_blocks(rows.shape[0]):
        with one_blas_thread():
            yield np.tanh(rows[block] @ into + bias)
