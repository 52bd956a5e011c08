"""HNE in its linear form: learn a map of attributes that gives linked nodes larger inner products."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Newcomers
from neural_brane.graph.memory import Sizes
from neural_brane.linalg.tables import Tables, tables_on
from neural_brane.linalg.weights import without_self_loops
from neural_brane.methods.base import Fitted, InductiveEmbedder, stack
from neural_brane.methods.descent import uniform
from neural_brane.methods.features import own_attributes, row_blocks
from neural_brane.methods.parameters import number, shared, whole
from neural_brane.methods.spectral import weighed
from neural_brane.methods.training import DOUBLE, SINGLE, WEIGHED, Loop, Moments

MEAN_SHARE, SQUARE_SHARE, SMALLEST = 0.9, 0.999, 1e-8  # constants of Adam, from its paper

LEAST_LINKS, BATCHES = 20_000, 50  # least links in a step, and steps in a pass over a large graph


class Pairs(NamedTuple):
    """Pairs of nodes by number, linked or not."""

    first: np.ndarray
    second: np.ndarray
    signs: np.ndarray  # 1 for a link, -1 for none
    weights: np.ndarray  # weight of each pair in the loss


class LearnedMap(NamedTuple):
    """The map, its threshold and the losses of the training."""

    map: np.ndarray  # U (attributes, dim)
    threshold: np.ndarray  # t (1,), inner product above which a link is expected
    loss_history: list[float]  # mean over the pairs of each step, plus the regularisation


class HNE(InductiveEmbedder):
    """Learn a linear map of attributes whose inner products are larger for linked nodes.

    Heterogeneous network embedding via deep architectures (Chang, Han, Tang, Qi, Aggarwal, Huang; 2015), in its linear
    form and for nodes of one kind. It is fast and embeds new nodes by their attributes; it is good if attributes
    predict links. One map U turns attributes x into vectors Uᵀx. The score s = xᵀUUᵀy − t of two nodes should be
    positive if and only if they are linked: U and t minimise the mean of ln(1 + exp(∓s)) over linked and unlinked
    pairs, plus l2 / links × ‖U‖². The paper has a second map for images, after a deep network; these graphs have no
    images.

    Attributes are weighted by tf-idf, and rows have length one, as in the paper. Each step draws some links, weighted
    by their weights, and as many unlinked pairs. Adam takes the steps instead of plain descent, and the threshold t is
    learned. The regularisation is divided by the number of links, so that one value fits small and large graphs. The
    defaults were chosen by the classes of citeseer, cora, wiki, caltech36 and acm. A node without attributes has the
    vector zero. If a graph has no attributes, each node is its own attribute, and new nodes cannot be embedded.
    """

    title = "hne"
    growth = "time: epochs × (batch_size × entries of a node + attributes) × dim; memory: edges + attributes × dim"
    paper = "Chang, Han, Tang, Qi, Aggarwal, Huang: Heterogeneous network embedding via deep architectures, 2015"
    grid = {"learning_rate": [0.003, 0.01, 0.03], "l2": [0.05, 0.5, 5.0]}  # The paper gives no range.
    small = {"epochs": 2}
    holds = {"hne": LearnedMap}
    learns = {
        "map_": "ndarray of shape (attributes, dim), float32: The map U.",
        "threshold_": "ndarray of shape (1,), float32: The threshold t.",
        "loss_history_": "list of float: Loss of every step.",
    }
    similarity = "dot"  # Training uses inner products.
    by_attributes = True
    why_not = "its map is shared by all nodes, so more steps would move every vector; transform embeds new nodes"
    prolongs = ("epochs",)

    l2: float = number("Weight of the regularisation, as if losses were summed over all links.", default=0.5, least=0)
    batch_size: int | None = whole(
        "Links in a step; it has as many unlinked pairs. None: a fiftieth of all links, at least 20,000 or all links.",
        default=None,
    )
    learning_rate: float = shared("learning_rate", default=0.01, about="Learning rate of Adam.")
    epochs: int = shared("epochs", default=100, about="Steps, each over `batch_size` links.")
    checkpoint: str | Path | None = shared("checkpoint", default=None)

    def memory(self, sizes: Sizes) -> Moments:
        n, width = sizes.nodes, sizes.attributes or sizes.nodes
        entries = sizes.attribute_entries or n
        pairs = 2 * self._batch(sizes.edges)
        nodes = min(2 * pairs, n)
        matrices = {"matrices": 8 * entries + 12 * sizes.links}
        tables = {"tables": 5 * SINGLE * width * self.dim}  # the map, its gradient, Adam's two means and one step
        batches = SINGLE * self.dim * (2 * pairs + nodes) + 16 * DOUBLE * pairs + 24 * nodes * entries // n
        return {
            "weighing attributes": {"matrices": 2 * WEIGHED * max(entries, sizes.links)},
            "training": matrices | tables | {"batches": batches},
            "vectors": matrices | {"vectors": SINGLE * (n + width) * self.dim},
        }

    def work(self, sizes: Sizes) -> float:
        """Return the number of multiplications in all steps."""
        width, entries = sizes.attributes or sizes.nodes, sizes.attribute_entries or sizes.nodes
        pairs = 2 * self._batch(sizes.edges)
        nodes = min(2 * pairs, sizes.nodes)
        return float(self.epochs * self.dim * (2 * nodes * entries / max(sizes.nodes, 1) + 4 * pairs + 8 * width))

    def _learn(self, graph: AttributedGraph, seed: int) -> LearnedMap:
        own = own_attributes(graph)
        attributes = weighed(own, own)
        table = uniform(np.random.default_rng(seed), (attributes.shape[1], self.dim))
        weights = {"U": table, "t": np.zeros(1, np.float32)}
        links = LinkSampler(graph.adjacency)
        adam, tables = Adam(weights, self.learning_rate), tables_on("cpu", self.threads)

        def step(epoch: int) -> float:
            pairs = links.draw(self._batch(links.count), np.random.default_rng([seed, epoch]))
            l2 = self.l2 / max(links.count, 1)
            loss, *gradients = slopes(attributes, weights["U"], weights["t"], pairs, l2=l2, tables=tables)
            adam.step(gradients, epoch + 1)
            return loss

        losses = Loop.over_epochs(self, "map").run(adam.arrays, step)
        return LearnedMap(weights["U"], weights["t"], losses)

    def _batch(self, links: int) -> int:
        return min(self.batch_size or max(LEAST_LINKS, links // BATCHES), links)

    def _blocks(self, graph: AttributedGraph, learned: LearnedMap) -> Iterator[np.ndarray]:
        own = own_attributes(graph)
        return _vectors(weighed(own, own), learned.map)

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        attributes = weighed(new.attributes, fitted.graph.attributes)
        return stack(_vectors(attributes, fitted.learned.map), len(new), self.dim)


class LinkSampler:
    """The links of a graph, from which steps draw links and unlinked pairs."""

    def __init__(self, adjacency: sparse.csr_array):
        entries = sparse.triu(without_self_loops(adjacency), format="coo")
        self.nodes, self.count = adjacency.shape[0], entries.nnz
        self.rows, self.columns = entries.row, entries.col
        self.weights = entries.data / entries.data.mean() if self.count else entries.data
        self.keys = np.sort(self._keys(entries.row, entries.col))

    def draw(self, size: int, rng: np.random.Generator) -> Pairs:
        """Return `size` links and as many random pairs of nodes, without those that are linked."""
        links = np.arange(size) if size == self.count else rng.choice(self.count, size, replace=False, shuffle=False)
        left, right = rng.integers(self.nodes, size=(2, size))
        keys = self._keys(np.minimum(left, right), np.maximum(left, right))
        places = np.minimum(np.searchsorted(self.keys, keys), self.count - 1)
        apart = (left != right) & (self.keys[places] != keys if self.count else True)
        left, right = left[apart], right[apart]
        signs = np.repeat([1.0, -1.0], [size, len(left)])
        weights = np.concatenate([self.weights[links], np.ones(len(left))])
        first, second = (self.rows[links], left), (self.columns[links], right)
        return Pairs(np.concatenate(first), np.concatenate(second), signs, weights)

    def _keys(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return one number for each pair of nodes; the first node has the smaller number."""
        return first.astype(np.int64) * self.nodes + second


class Adam:
    """The Adam optimiser for NumPy arrays; `arrays` is its whole state, for checkpoints."""

    def __init__(self, weights: dict[str, np.ndarray], learning_rate: float):
        self.weights, self.rate = weights, learning_rate
        self.means = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.squares = {name: np.zeros_like(weight) for name, weight in weights.items()}
        means = {f"{name}, mean": mean for name, mean in self.means.items()}
        self.arrays = weights | means | {f"{name}, square": square for name, square in self.squares.items()}

    def step(self, gradients: list[np.ndarray], number: int) -> None:
        """Take step `number`, counted from 1, in place; the gradients are overwritten."""
        for name, gradient in zip(self.weights, gradients, strict=True):
            mean, square = self.means[name], self.squares[name]
            mean *= MEAN_SHARE
            mean += (1 - MEAN_SHARE) * gradient
            square *= SQUARE_SHARE
            gradient *= gradient
            gradient *= 1 - SQUARE_SHARE
            square += gradient
            np.sqrt(square / (1 - SQUARE_SHARE**number), out=gradient)
            gradient += SMALLEST
            self.weights[name] -= self.rate / (1 - MEAN_SHARE**number) * mean / gradient


def slopes(
    attributes: sparse.csr_array, table: np.ndarray, threshold: np.ndarray, pairs: Pairs, *, l2: float, tables: Tables
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the loss, the mean of ln(1 + exp(∓(xᵀUUᵀy − t))) plus l2 ‖U‖², and its gradients by U and t."""
    nodes, places = np.unique(np.concatenate([pairs.first, pairs.second]), return_inverse=True)
    first, second = np.split(places, 2)
    rows, transposed = tables.with_transpose(attributes[nodes])
    vectors = rows @ table
    apart = pairs.signs * (np.einsum("ij,ij->i", vectors[first], vectors[second], dtype=np.float64) - threshold)
    loss = np.mean(pairs.weights * np.logaddexp(0, -apart)) + l2 * np.square(table, dtype=np.float64).sum()
    pulls = -pairs.signs * pairs.weights * expit(-apart) / len(apart)
    both = (np.tile(pulls, 2), (places, np.concatenate([second, first])))
    moved = tables.matrix(sparse.csr_array(both, shape=(len(nodes), len(nodes)))) @ vectors
    gradient = transposed @ moved
    gradient += np.float32(2 * l2) * table
    return float(loss), gradient, np.array([-pulls.sum()], np.float32)


def _vectors(attributes: sparse.csr_array, table: np.ndarray) -> Iterator[np.ndarray]:
    """Return an iterator over the vectors of nodes with these attributes, some at a time."""
    return (attributes[rows] @ table for rows in row_blocks(attributes.shape[0]))
