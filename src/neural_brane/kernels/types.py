"""What every backend's kernels take: bags of rows, the model's parameters, the settings of a step."""

from typing import NamedTuple

import numpy as np

MAX, SUM, MEAN = 0, 1, 2
POOLING = {"max": MAX, "sum": SUM, "mean": MEAN}


class Bags(NamedTuple):
    """Which rows of a table each node pools: the structure of a CSR matrix."""

    indptr: np.ndarray  # (nodes + 1,) int64
    indices: np.ndarray  # (entries,) int32


class Model(NamedTuple):
    """The parameters Θ. Tables may have spare columns of zeros on the right; training keeps them zero."""

    attribute_table: np.ndarray  # P (attributes, ≥ d1) float32
    neighbour_table: np.ndarray  # P' (nodes, ≥ d2) float32
    weight: np.ndarray  # W (hidden, d1 + d2) float32
    bias: np.ndarray  # b (hidden,) float32


class Settings(NamedTuple):
    """One step of mini-batch SGD, in numbers a kernel can read."""

    attribute_dim: int  # d1; the neighbours' share d2 is what is left of W's width
    pooling: int  # MAX, SUM or MEAN
    zero_floor: bool  # max pooling sees one more row, of zeros
    learning_rate: float
    triplet_scale: float  # 1 / batch where the loss is a mean, 1 where it is a sum
    hidden_l2: float  # λ of Σ ‖h‖² over the batch, or 0
    parameter_l2: float  # λ of ‖Θ‖², or 0
    train_bias: bool
