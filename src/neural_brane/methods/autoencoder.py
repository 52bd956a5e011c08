"""What SDNE and DNGR share: layers that compress the sparse rows of a matrix and write them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.files.checkpoints import Stage
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.methods import descent as backend
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
        for start in range(0, rows.shape[0], backend.BLOCK_NODES):
            hidden = np.tanh(rows[start : start + backend.BLOCK_NODES] @ self.hidden + self.hidden_bias)
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
    """How many nodes a batch has: as given, or such that an epoch has `MOST_STEPS` steps at most."""
    return given or max(BATCH_NODES, -(-nodes // MOST_STEPS))


def steps_of_epoch(given: int | None, nodes: int) -> int:
    """How many batches all nodes make."""
    return -(-nodes // batch_nodes(given, nodes))


class Course(NamedTuple):
    """How long a training takes its steps: over batches of nodes, all of them once in an epoch."""

    nodes: int
    epochs: int
    per_epoch: int
    learning_rate: float
    l2: float
    seed: list[int]  # of the order of nodes, which every epoch shuffles anew


def train(
    weights: Any, course: Course, stage: Stage, meter: Meter, loss_of: Callable[[np.ndarray, int], Any]
) -> list[float]:
    """Train weights in place; returns the mean loss of every epoch.

    loss_of: the mean loss of some nodes, in the step of that number.
    """
    descent = backend.Descent(weights, course.learning_rate, l2=course.l2)
    numbers: dict[str, Any] = {"history": [], "losses": []}
    descent.restore(stage, numbers)
    history, losses = numbers["history"], numbers["losses"]
    meter.resume(meter.done + stage.position)
    batches: list[np.ndarray] = []
    for step in stage.steps(course.epochs * course.per_epoch, descent.arrays, numbers, per_epoch=course.per_epoch):
        epoch, at = divmod(step, course.per_epoch)
        if at == 0 or not batches:
            order = np.random.default_rng([*course.seed, epoch]).permutation(course.nodes)
            batches = np.array_split(order, course.per_epoch)
        losses.append(descent.step(loss_of(np.sort(batches[at]), step), epoch + 1))
        loss = float(np.mean(losses))
        if at + 1 == course.per_epoch:
            history.append(loss)
            losses.clear()
        meter.advance(epoch=epoch + 1, loss=loss)
    descent.require_finite(course.epochs)
    return history
