"""The scratch memory of the CPU's steps, allocated once per call of `train`."""

from typing import NamedTuple

import numpy as np

from neural_brane.kernels.model import Model, padded, zeros

BLOCK_TRIPLETS = 25  # smaller blocks keep more threads busy, larger ones make faster matrix products
MAX_BLOCKS = 64


class Workspace(NamedTuple):
    """The arrays of one batch, with a slice for each block of triplets. Rows are padded to whole lanes."""

    pooled: np.ndarray  # f (blocks, rows, dim)
    hidden: np.ndarray  # h, then dL/dz (blocks, rows, hidden)
    slope: np.ndarray  # dL/df (blocks, rows, dim)
    weight: np.ndarray  # W as it is now (hidden, dim)
    weight_transposed: np.ndarray  # (dim, hidden)
    attribute_best: np.ndarray  # one node's pooled row (blocks, 1, padded d1)
    attribute_winner: np.ndarray  # (blocks, rows, padded d1) int32
    neighbour_best: np.ndarray
    neighbour_winner: np.ndarray
    weight_share: np.ndarray  # (blocks, hidden, dim)
    bias_share: np.ndarray  # (blocks, hidden)
    loss_share: np.ndarray  # (blocks,) float64


def make_workspace(model: Model, batch: int) -> Workspace:
    """A workspace for batches of `batch` triplets, with a copy of W in it."""
    blocks = min(MAX_BLOCKS, -(-batch // BLOCK_TRIPLETS))
    rows = 3 * -(-batch // blocks)
    hidden, dim = model.weight.shape
    d1, d2 = model.attribute_table.shape[1], model.neighbour_table.shape[1]
    weight, transposed = zeros(hidden, padded(dim)), zeros(dim, padded(hidden))
    weight[:, :dim], transposed[:, :hidden] = model.weight, model.weight.T
    return Workspace(
        pooled=np.zeros((blocks, rows, padded(dim)), np.float32),
        hidden=np.empty((blocks, rows, padded(hidden)), np.float32),
        slope=np.empty((blocks, rows, padded(dim)), np.float32),
        weight=weight,
        weight_transposed=transposed,
        attribute_best=np.empty((blocks, 1, d1), np.float32),
        attribute_winner=np.empty((blocks, rows, d1), np.int32),
        neighbour_best=np.empty((blocks, 1, d2), np.float32),
        neighbour_winner=np.empty((blocks, rows, d2), np.int32),
        weight_share=np.empty((blocks, hidden, padded(dim)), np.float32),
        bias_share=np.empty((blocks, hidden), np.float32),
        loss_share=np.empty(blocks),
    )
