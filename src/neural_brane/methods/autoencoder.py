"""Share what SDNE and DNGR need: batches of nodes, and the error over a sparse row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

BATCH_NODES = 200  # in a step, unless that makes more than MOST_STEPS of an epoch
MOST_STEPS = 20


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
