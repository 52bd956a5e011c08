"""Share the parts of methods that train a graph convolution."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.graph.changes import Newcomers
from neural_brane.graph.memory import Sizes
from neural_brane.linalg.weights import without_self_loops
from neural_brane.methods import descent as backend
from neural_brane.methods.base import Fitted, InductiveEmbedder, stack
from neural_brane.methods.features import own_attributes, row_blocks
from neural_brane.methods.parameters import shared, whole
from neural_brane.methods.training import SINGLE, Loop, Moments
from neural_brane.sampling.tables import sample_neighbours

WALK_NODES = 4  # nodes of a walk; walks choose the nodes of a piece
STEP_TABLES = 16  # tables of nodes × dim in memory during a step


class TrainedConvolution(NamedTuple):
    """The weights of the network, its losses, and the scale of its vectors."""

    weights: Any  # a named tuple of the method
    loss_history: list[float]  # mean loss of each epoch
    scale: float  # factor of all vectors that makes the mean square of their entries one


class Subgraph:
    """The part of a graph that a step uses; the whole graph if it is small enough."""

    def __init__(self, links: sparse.csr_array, attributes: sparse.csr_array, device: str):
        self.links, self.entries, self.device = links, attributes, device
        self._made: dict[str, Any] = {}

    def __len__(self) -> int:
        return int(self.links.shape[0])

    def kept(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a value that a method derives from the piece; it is made once."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    @cached_property
    def attributes(self) -> backend.BothWays:
        """The attributes on the device, to be multiplied with a table of weights."""
        return backend.BothWays(self.entries, self.device)

    @cached_property
    def averages(self) -> backend.BothWays:
        """The matrix on the device that averages over neighbours."""
        return backend.BothWays(normalised(self.links), self.device, symmetric=True)


class Pieces:
    """The pieces of a graph; the random numbers of a step decide its piece."""

    def __init__(self, graph: AttributedGraph, most: int, device: str):
        self.links = without_self_loops(graph.adjacency)
        self.attributes = shares(own_attributes(graph))
        self.most, self.device = most, device
        self.per_epoch = -(-len(graph) // most)
        self.whole = Subgraph(self.links, self.attributes, device) if self.per_epoch == 1 else None

    def draw(self, rng: np.random.Generator) -> Subgraph:
        """Return the whole graph or, if it is too large for a step, the nodes of random walks."""
        if self.whole is not None:
            return self.whole
        nodes = walk_nodes(self.links, self.most, rng)
        return Subgraph(self.links[nodes][:, nodes], self.attributes[nodes], self.device)


class Convolutional(backend.Network, InductiveEmbedder):
    """A method that trains a convolution of attributes over links, in steps on the graph or on pieces of it."""

    by_attributes = True
    inputs: ClassVar[int] = 1  # learned tables (attributes, dim)
    holds = {"convolution": TrainedConvolution}
    learns = {"scale_": "float: The factor of all vectors, which makes the mean square of their entries one."}

    nodes_per_step: int = whole(
        "Most nodes in a step. A larger graph is trained in pieces; each contains the nodes of random walks.",
        default=20_000,
        least=WALK_NODES,
    )
    learning_rate: float = shared("learning_rate", default=1e-3, about="Learning rate of Adam.")
    epochs: int | None = shared("epochs", default=100)

    @abstractmethod
    def _first_weights(self, rng: np.random.Generator, attributes: int) -> Any:
        """Return the weights before the first step, a named tuple of tensors."""

    @abstractmethod
    def _loss(self, weights: Any, piece: Subgraph, rng: np.random.Generator) -> Any:
        """Return the loss of one step; all its random numbers come from `rng`."""

    @abstractmethod
    def _encode(self, weights: Any, links: sparse.csr_array, attributes: sparse.csr_array) -> Iterator[np.ndarray]:
        """Yield the vectors of a whole graph, computed from NumPy weights, some nodes at a time."""

    def _learn(self, graph: AttributedGraph, seed: int) -> TrainedConvolution:
        backend.import_torch()
        with backend.one_thread():
            pieces = Pieces(graph, self.nodes_per_step, self.device)
            weights = self._first_weights(np.random.default_rng(seed), pieces.attributes.shape[1])
            losses = self._train(pieces, weights, seed)
        learned = type(weights)(*backend.to_numpy(weights))
        vectors = self._encode(learned, pieces.links, pieces.attributes)
        squares = sum(float(np.square(block, dtype=np.float64).sum()) for block in vectors)
        mean = squares / len(graph) / self.dim
        return TrainedConvolution(learned, losses, float(mean**-0.5) if mean > 0 else 1.0)

    def _train(self, pieces: Pieces, weights: Any, seed: int) -> list[float]:
        """Train the weights in place and return the mean loss of every epoch."""
        descent, per_epoch, patience = self._descent(weights), pieces.per_epoch, self._patience()
        loop = Loop.over_epochs(self, "weights", per_epoch=per_epoch)
        named = {} if patience is None else {f"{name}, best": one for name, one in weights._asdict().items()}
        best = {name: weight.detach().clone() for name, weight in named.items()}  # weights with the lowest loss
        if (before := loop.stage.kept) is not None:
            for name, weight in best.items():
                weight.copy_(backend.import_torch().from_numpy(before.arrays[name]))

        def loss_of(step: int) -> Any:
            rng = np.random.default_rng([seed, step])
            loss = self._loss(weights, pieces.draw(rng), rng)
            if (step + 1) % per_epoch == 0:
                mean = float(np.mean([*loop.numbers["epoch"], loss.item()]))
                if mean < min(loop.numbers["losses"], default=np.inf):
                    for name, kept in best.items():
                        kept.copy_(named[name].detach())
            self._set_rate(descent, step / loop.steps)
            return loss

        def is_past() -> bool:
            losses = loop.numbers["losses"]
            return patience is not None and len(losses) - 1 - int(np.argmin(losses or [0])) >= patience

        def arrays() -> dict[str, np.ndarray]:
            return {name: weight.cpu().numpy() for name, weight in best.items()}

        losses = descent.train(loop, loss_of, beside=arrays, until=is_past)
        for name, kept in best.items():
            named[name].detach().copy_(kept)
        return losses

    def _descent(self, weights: Any) -> backend.Descent:
        """Return the optimiser."""
        return backend.Descent(weights, self.learning_rate)

    def _epochs_for(self, nodes: int) -> int:
        """Return the number of epochs for a graph with so many nodes."""
        return cast(int, self.epochs)

    def _patience(self) -> int | None:
        """Return after how many epochs without a lower loss training ends, with the best weights; None: never."""
        return None

    def _set_rate(self, descent: backend.Descent, done: float) -> None:
        """Change the learning rate if it depends on `done`, the finished share of the training."""

    def memory(self, sizes: Sizes) -> Moments:
        n, width = sizes.nodes, sizes.attributes or sizes.nodes
        entries, taken = sizes.attribute_entries or n, min(n, self.nodes_per_step)
        held = {"matrices": 8 * entries + 12 * sizes.links}  # divided attributes, and links without self-loops
        part = taken / max(n, 1)
        copies = 4 if self._patience() is None else 5  # a gradient, Adam's two means and the best weights
        tables = SINGLE * self.inputs * width * self.dim
        batches = int(part * (36 * entries + 24 * sizes.links)) + STEP_TABLES * SINGLE * taken * self.dim
        return {
            "training": held | {"tables": copies * tables, "batches": batches},
            "vectors": held | {"tables": tables, "vectors": 3 * SINGLE * n * self.dim},
        }

    def work(self, sizes: Sizes) -> float:
        """Return the number of multiplications in all steps."""
        n, entries = sizes.nodes, sizes.attribute_entries or sizes.nodes
        return float(self._epochs_for(n) * self.dim * (2 * entries + 4 * (sizes.links + n) + n * self.dim))

    def _blocks(self, graph: AttributedGraph, learned: TrainedConvolution) -> Iterator[np.ndarray]:
        links, attributes = without_self_loops(graph.adjacency), shares(own_attributes(graph))
        for block in self._encode(learned.weights, links, attributes):
            yield block * np.float32(learned.scale)

    def _place(self, fitted: Fitted, new: Newcomers) -> np.ndarray:
        graph = new.together()
        return stack(self._blocks(graph, fitted.learned), len(graph), self.dim)[len(new.known) :]


def normalised(links: sparse.csr_array) -> sparse.csr_array:
    """Return D^(−1/2) (A + wI) D^(−1/2) in float32: w is the mean weight of an edge, D the row sums of A + wI."""
    looped = with_loops(links)
    scales = 1 / np.sqrt(np.asarray(looped.sum(axis=1)).ravel())
    looped.data *= np.repeat(scales, np.diff(looped.indptr)) * scales[looped.indices]
    return looped.astype(np.float32)


def with_loops(links: sparse.csr_array) -> sparse.csr_array:
    """Return A + wI in float64 with sorted rows; w is the mean weight of an edge."""
    weight = links.data.mean(dtype=np.float64) if links.nnz else 1.0
    looped = (links.astype(np.float64) + weight * sparse.eye_array(links.shape[0], format="csr")).tocsr()
    looped.sort_indices()
    return looped


def shares(attributes: sparse.csr_array) -> sparse.csr_array:
    """Return attributes with every row divided by the sum of its amounts; an empty row stays empty."""
    sums = np.asarray(abs(attributes).sum(axis=1, dtype=np.float64)).ravel()
    scales = np.divide(1, sums, out=np.zeros_like(sums), where=sums > 0)
    data = attributes.data * np.repeat(scales, np.diff(attributes.indptr))
    return sparse.csr_array((data.astype(np.float32), attributes.indices, attributes.indptr), shape=attributes.shape)


def walk_nodes(links: sparse.csr_array, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return the nodes of random walks from distinct nodes, sorted and without repetition, at most `most`."""
    at = rng.choice(links.shape[0], max(most // WALK_NODES, 1), replace=False)
    found = [at]
    for _ in range(WALK_NODES - 1):
        at = sample_neighbours(links, at, 1, rng)[1]
        found.append(at)
    return np.unique(np.concatenate(found))


def convolved(averages: sparse.csr_array, table: np.ndarray, bias: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the averages of a table's rows over neighbours, plus a bias, some nodes at a time."""
    for rows in row_blocks(averages.shape[0]):
        yield averages[rows] @ table + bias
