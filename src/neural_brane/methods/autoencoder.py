"""SDNE and DNGR: autoencoders that compress the sparse rows of a matrix and write them again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Newcomers
from neural_brane.graph.memory import Sizes
from neural_brane.kernels.threads import map_threads, one_blas_thread
from neural_brane.linalg.weights import transition
from neural_brane.methods import descent as backend
from neural_brane.methods.base import Fitted, InductiveEmbedder, stack
from neural_brane.methods.features import proper_links, row_blocks
from neural_brane.methods.links import above, largest_of_rows
from neural_brane.methods.parameters import cores, number, shared, whole
from neural_brane.methods.training import SINGLE, Loop, Moments
from neural_brane.progress import Meter

if TYPE_CHECKING:
    import torch

BATCH_NODES = 200  # in a step, unless that makes more than MOST_STEPS of an epoch
MOST_STEPS = 20


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


def squares_of_all(hidden: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Σ (hᵀw + c)² over all rows h of `hidden` and all rows w of `weights`, each with its c.

    hidden: (batch, width). weights: (nodes, width). bias: (1, nodes). It takes as many multiplications as there are
    weights, times the width, however large the batch is.
    """
    gram = weights.T @ weights.detach()  # half the gradient of the symmetric product: the other half is the same again
    fixed = hidden.detach()
    by_weights = 2 * (gram * (fixed.T @ fixed)).sum()
    by_hidden = ((hidden @ gram.detach()) * hidden).sum()
    between = hidden.sum(0) @ (bias @ weights)[0]
    return by_weights - by_weights.detach() + by_hidden + 2 * between + len(hidden) * (bias * bias).sum()


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


def batch_nodes(given: int | None, nodes: int) -> int:
    """Count the nodes of a batch: as given, or so many that an epoch has `MOST_STEPS` steps at most."""
    return given or max(BATCH_NODES, -(-nodes // MOST_STEPS))


def steps_of_epoch(given: int | None, nodes: int) -> int:
    """Count the batches of an epoch."""
    return -(-nodes // batch_nodes(given, nodes))


class Batches:
    """The nodes of every step: all of them once in an epoch, shuffled anew for each.

    seed: of the order of nodes, beside the number of the epoch.
    """

    def __init__(self, nodes: int, per_epoch: int, seed: list[int]):
        self.nodes, self.per_epoch, self.seed = nodes, per_epoch, seed
        self.epoch = -1
        self.parts: list[np.ndarray] = []

    def draw(self, step: int) -> np.ndarray:
        """The nodes of a step, sorted."""
        epoch, at = divmod(step, self.per_epoch)
        if epoch != self.epoch:
            order = np.random.default_rng([*self.seed, epoch]).permutation(self.nodes)
            self.epoch, self.parts = epoch, np.array_split(order, self.per_epoch)
        return np.sort(self.parts[at])


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
        loop = Loop.of(self, "weights", per_epoch=per_epoch)
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
