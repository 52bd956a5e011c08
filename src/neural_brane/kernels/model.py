"""The arguments of every backend's kernels: bags of rows, the model's parameters, the settings of a step."""

from typing import Any, NamedTuple

import numpy as np

LANE = 16  # float32 numbers in a cache line: tables' columns are padded to a multiple of it
MAX, SUM, MEAN = 0, 1, 2
Array = Any  # a NumPy array or, in the GPU's memory, a PyTorch tensor
POOLING = {"max": MAX, "sum": SUM, "mean": MEAN}


class Bags(NamedTuple):
    """Which rows of a table each node pools: the structure of a CSR matrix."""

    indptr: Array  # (nodes + 1,) int64
    indices: Array  # (entries,) int32


def bags_of(matrix: Any) -> Bags:
    """The bags that the rows of a CSR matrix are."""
    return Bags(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False))


class Rows(NamedTuple):
    """A sparse matrix by rows: the arrays of CSR."""

    indptr: np.ndarray  # (rows + 1,) int64
    indices: np.ndarray  # (entries,) int32
    values: np.ndarray  # (entries,) float32


def rows_of(matrix: Any) -> Rows:
    """A CSR matrix for a kernel of the CPU."""
    return Rows(*bags_of(matrix), matrix.data.astype(np.float32, copy=False))


class Model(NamedTuple):
    """The parameters Θ. Tables may have spare columns of zeros on the right; training keeps them zero."""

    attribute_table: Array  # P (attributes, ≥ d1) float32
    neighbour_table: Array  # P' (nodes, ≥ d2) float32
    weight: Array  # W (hidden, d1 + d2) float32
    bias: Array  # b (hidden,) float32


class Settings(NamedTuple):
    """The numbers of one step of mini-batch SGD."""

    attribute_dim: int  # d1; the neighbours' share d2 is what is left of W's width
    pooling: int  # MAX, SUM or MEAN
    zero_floor: bool  # max pooling sees one more row, of zeros
    learning_rate: float  # of W and b
    table_rate: float  # of the tables' rows
    triplet_scale: float  # 1 / batch where the loss is a mean, 1 where it is a sum
    hidden_l2: float  # λ of Σ ‖h‖² over the batch, or 0
    parameter_l2: float  # λ of ‖Θ‖², or 0
    train_bias: bool


def padded(width: int) -> int:
    """The row length, in numbers, that starts every row of a table on a cache line."""
    return -(-width // LANE) * LANE


def zeros(rows: int, columns: int) -> np.ndarray:
    """A float32 array of zeros that starts on a cache line."""
    memory = np.zeros(rows * columns + LANE, np.float32)
    start = (-memory.ctypes.data // 4) % LANE
    return memory[start : start + rows * columns].reshape(rows, columns)
