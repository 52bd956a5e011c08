"""Arguments of the kernels on every device: bags of rows, a model's parameters, the settings of a step."""

from typing import Any, NamedTuple

import numpy as np

LANE = 16  # float32 numbers in a cache line; a table's width is padded to a multiple
MAX, SUM, MEAN = 0, 1, 2
Array = Any  # a NumPy array or, on the GPU, a PyTorch tensor
POOLING = {"max": MAX, "sum": SUM, "mean": MEAN}


class Bags(NamedTuple):
    """The table rows that each node pools, as the structure of a CSR matrix."""

    indptr: Array  # (nodes + 1,) int64
    indices: Array  # (entries,) int32


def bags_of(matrix: Any) -> Bags:
    """Return the rows of a CSR matrix as bags, one per row."""
    return Bags(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False))


class CSRArrays(NamedTuple):
    """The arrays of a sparse matrix in CSR format."""

    indptr: np.ndarray  # (rows + 1,) int64
    indices: np.ndarray  # (entries,) int32
    values: np.ndarray  # (entries,) float32


def rows_of(matrix: Any) -> CSRArrays:
    """Return the arrays of a CSR matrix with the dtypes that CPU kernels expect."""
    return CSRArrays(*bags_of(matrix), matrix.data.astype(np.float32, copy=False))


class Model(NamedTuple):
    """The learned parameters Θ. Tables may have extra columns of zeros on the right; training keeps them zero."""

    attribute_table: Array  # P (attributes, ≥ d1) float32
    neighbour_table: Array  # P' (nodes, ≥ d2) float32
    weight: Array  # W (hidden, d1 + d2) float32
    bias: Array  # b (hidden,) float32


class Settings(NamedTuple):
    """The settings of a step of mini-batch SGD."""

    attribute_dim: int  # d1; d2 is the width of W minus d1
    pooling: int  # MAX, SUM or MEAN
    zero_floor: bool  # adds a row of zeros to every bag in max pooling
    learning_rate: float  # for W and b
    table_rate: float  # learning rate for the rows of the tables
    triplet_scale: float  # 1 / batch if the loss is a mean, 1 if it is a sum
    hidden_l2: float  # λ for Σ ‖h‖² over the batch, or 0
    parameter_l2: float  # λ for ‖Θ‖², or 0
    train_bias: bool


def padded(width: int) -> int:
    """Return the smallest multiple of LANE that is at least `width`, so that each row starts on a cache line."""
    return -(-width // LANE) * LANE


def zeros(rows: int, columns: int) -> np.ndarray:
    """Return an array of zeros (rows, columns) float32 whose memory starts on a cache line."""
    memory = np.zeros(rows * columns + LANE, np.float32)
    start = (-memory.ctypes.data // 4) % LANE
    return memory[start : start + rows * columns].reshape(rows, columns)
