"""Share parts of SDNE and DNGR: batches of nodes, and the error over sparse rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

BATCH_NODES = 200  # nodes in a batch, more if an epoch would have over MOST_STEPS batches
MOST_STEPS = 20


def squares_of_all(hidden: torch.Tensor, weights: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return Σ (hᵀw + c)² over all rows h of `hidden` and all rows w of `weights`, each with its c.

    hidden: (batch, width). weights: (nodes, width). bias: (1, nodes). The number of multiplications is nodes × width²,
    whatever the size of the batch.
    """
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
