"""Share what SDNE and DNGR need: layers that compress the sparse rows of a matrix and write them again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.kernels.threads import one_blas_thread
from neural_brane.methods import descent as backend
from neural_brane.methods.features import row_blocks

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
