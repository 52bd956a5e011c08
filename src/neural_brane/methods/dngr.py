"""DNGR: random surfing, its pointwise mutual information, and denoising autoencoders stacked on that."""

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
from neural_brane.methods.autoencoder import Batches, batch_nodes, squares_of_all, steps_of_epoch
from neural_brane.methods.base import stack
from neural_brane.methods.features import proper_links, row_blocks
from neural_brane.methods.grarep import above, largest_of_rows
from neural_brane.methods.parameters import cores, number, shared, whole
from neural_brane.methods.training import SINGLE, Loop, Moments
from neural_brane.progress import Meter

if TYPE_CHECKING:
    import torch

BLOCK_NUMBERS = 8_000_000  # chances held at a time, 4 bytes each
KEPT_NUMBERS, KEPT_IN_A_ROW = 12_000_000, 100  # numbers of the matrix that are kept, 8 bytes each


class Layer(NamedTuple):
    """One autoencoder: a layer that compresses rows, and one that writes them again."""

    into: Any  # (columns, width)
    into_bias: Any  # (1, width)
    back: Any  # (columns, width)
    back_bias: Any  # (1, columns)


class LearnedLayers(NamedTuple):
    """The vectors, and how the training went."""

    vectors: np.ndarray  # (nodes, dim) float32
    loss_history: list[float]  # the mean squared error of a node: all epochs of the first layer, then of the second


class DNGR(backend.Network):
    """Deep neural networks for learning graph representations (Cao, Lu, Xu; 2016).

    A surfer walks from each node, and instead of a step returns to it with chance `restart`. The method adds up its
    chances of being at each node after 1, 2, … `steps` steps, drops the node itself and scales rows to sum to one. This
    gives the positive pointwise mutual information X_uv = max(ln(chance_uv / mean chance of v), 0). A denoising
    autoencoder compresses the rows of X and learns to write them again; in every step it sees some entries as 0. A
    second one compresses the hidden layer of the first, and its hidden layer is the vector. A node without neighbours
    has an empty row, and all such nodes have the same vector.

    Some things differ from the authors' program. Layers have tanh in place of its sigmoid, and those that write are
    linear, so that the error over all nodes is exact and no row is written down: memory stays that of two tables
    (nodes, hidden). Chances are divided by the sums of rows, not of columns. X is divided by its
    largest number, as scores on wiki advised. Adam trains the layers. The chances are computed exactly, some rows at a
    time; of each row `row_entries` numbers are kept, those that are largest against the usual chance. With the default
    nothing is left out on graphs of up to 3,464 nodes.

    New nodes are not embedded: the chances of a surfer that begins there, and those of all others, are not known.
    PyTorch works on one CPU thread, for the sake of the bits; the last bits of a GPU are not promised.
    """

    title = "dngr"
    uses = ("links",)
    growth = (
        "time: steps × nodes × edges + epochs × nodes × hidden × (row_entries + hidden); "
        "memory: nodes × (row_entries + hidden + dim)"
    )
    paper = "Cao, Lu, Xu: Deep neural networks for learning graph representations, 2016"
    grid = {"learning_rate": [], "steps": [2, 3, 5, 10], "hidden": [256, 512]}  # its authors' program has 512 for 256
    holds = {"dngr": LearnedLayers}
    prolongs = ()
    why_not = "its matrix and its layers have a row for each node it learned from"

    steps: int = whole("Steps of the surfer.", default=3)
    restart: float = number(
        "The chance to return in place of a step: the paper's 1 − alpha.", default=0.02, least=0, below=1
    )
    row_entries: int | None = whole(
        "Numbers kept of each row; when None 12 million among all nodes, and 100 at least.", default=None
    )
    hidden: int = whole("Width of the first layer.", default=256)
    noise: float = number("Share of the entries that a layer does not see.", default=0.2, least=0, below=1)
    learning_rate: float = shared("learning_rate", default=3e-3, about="Of Adam.")
    batch_size: int | None = whole(
        "Nodes in a batch; when None 200, and a twentieth of all nodes at least.", default=None
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
        meter.resume(len(blocks))  # also where the matrix was kept
        with backend.one_thread():
            return self._train(sparse.csr_array(parts, shape=(size, size)), per_epoch, meter, seed)

    def memory(self, sizes: Sizes) -> Moments:
        n, batch = sizes.nodes, batch_nodes(self.batch_size, sizes.nodes)
        kept = n * min(n, self._row_entries(n))
        entries = 24 * kept * min(batch / max(n, 1), 1)  # a batch's rows, as they are and with noise, on the device
        return {
            "surfing": {"kept numbers": 3 * 8 * kept, "blocks": 8 * SINGLE * max(BLOCK_NUMBERS, n) * cores()},
            "first layer": {
                "kept numbers": 3 * 8 * kept,  # not all memory of the surfer's rows is given back
                "tables": 8 * SINGLE * n * self.hidden,  # two, their gradients and Adam's two means of each
                "second tables": 2 * SINGLE * self.hidden * self.dim,
                "gradients": 3 * SINGLE * n * self.hidden,  # gradients of the parts of the loss before they are added
                "batches": int(entries + 12 * SINGLE * batch * self.hidden),
            },
            "second layer": {"hidden": SINGLE * n * self.hidden, "vectors": 2 * SINGLE * n * self.dim},
        }

    def work(self, sizes: Sizes) -> float:
        """Numbers multiplied: in the surfer's steps, and in all of training."""
        n, per_epoch = sizes.nodes, steps_of_epoch(self.batch_size, sizes.nodes)
        kept = n * min(n, self._row_entries(n))
        surfing = self.steps * n * (n + sizes.links)
        layers = n * self.hidden * (self.dim + per_epoch * self.hidden) + 5 * kept * self.hidden
        return float(surfing + self.epochs * layers)

    def _matrix(self, graph: AttributedGraph, blocks: list[slice], report: Callable[[], object]) -> sparse.csr_array:
        """The positive pointwise mutual information of the surfer's chances, divided by its largest number."""
        surfer = Surfer(graph, self.steps, self.restart, self._row_entries(len(graph)))
        parts, arrived = [], np.zeros(len(graph))
        for chances, sums in map_threads(surfer.rows, blocks, self.threads):
            parts.append(chances)
            arrived += sums
            report()
        matrix = above(sparse.vstack(parts, format="csr"), arrived / arrived.sum())
        matrix.data /= matrix.data.max()
        return matrix

    def _train(self, matrix: sparse.csr_array, per_epoch: int, meter: Meter, seed: int) -> LearnedLayers:
        """Train one layer after the other."""
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
        """The mean squared error of rows of the matrix, written from what is left of them."""
        seen = rows.copy()
        seen.data *= rng.random(seen.nnz, np.float32) >= self.noise
        hidden = (backend.SparseRows(seen, self.device) @ layer.into + layer.into_bias).tanh()
        wanted = backend.SparseRows(rows, self.device)
        alike = (hidden * (wanted @ layer.back)).sum() + (wanted @ layer.back_bias.T).sum()
        error = squares_of_all(hidden, layer.back, layer.back_bias) - 2 * alike + (wanted.values**2).sum()
        return error / rows.shape[0]

    def _dense_loss(self, layer: Layer, rows: np.ndarray, rng: np.random.Generator) -> Any:
        """The same for rows of the hidden layer."""
        tensor = backend.import_torch().from_numpy
        seen = rows * (rng.random(rows.shape, np.float32) >= self.noise)
        codes = (tensor(seen).to(self.device) @ layer.into + layer.into_bias).tanh()
        written = codes @ layer.back.T + layer.back_bias
        return ((written - tensor(rows).to(self.device)) ** 2).sum() / len(rows)

    def _row_entries(self, nodes: int) -> int:
        return self.row_entries or max(KEPT_IN_A_ROW, KEPT_NUMBERS // nodes)


class Surfer:
    """The chances of where a surfer is, added up over its steps: without the node it began at, rows sum to one."""

    def __init__(self, graph: AttributedGraph, steps: int, restart: float, most: int):
        links = proper_links(graph, "a surfer goes nowhere")
        self.walk = transition(links).astype(np.float32)
        self.back = self.walk.T.tocsr()  # its products are with columns that hold the chances of one surfer each
        self.steps, self.restart, self.most = steps, np.float32(restart), most
        now, total = np.ones(len(graph), np.float32), np.zeros(len(graph), np.float32)
        for _ in range(steps):  # visits where surfers began count
            now = (1 - self.restart) * (self.back @ now) + self.restart
            total += now
        self.usual = np.maximum(total, 1e-30)  # how often surfers from all nodes visit each, about

    def rows(self, block: slice) -> tuple[sparse.csr_array, np.ndarray]:
        """Some rows, of which long ones keep what is largest against the usual chance; and the sums of columns."""
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
    """The weights that training begins with."""
    into, back = (backend.glorot(rng, (columns, width), device) for _ in range(2))
    return Layer(into, backend.zeros(width, device), back, backend.zeros(columns, device))


def compress(rows: Any, layer: Layer) -> Iterator[np.ndarray]:
    """Compress rows by a layer, some at a time."""
    into, bias = backend.to_numpy((layer.into, layer.into_bias))
    for block in row_blocks(rows.shape[0]):
        with one_blas_thread():
            yield np.tanh(rows[block] @ into + bias)
