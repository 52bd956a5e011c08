"""The padded widths of the arrays that kernels work on."""

from typing import NamedTuple

import torch
import triton

from neural_brane.kernels.gpu.device import DEVICE
from neural_brane.kernels.model import Model, Settings, padded

DEPTH = 32  # numbers of the inner dimension that a matrix product takes at a time


class Shape(NamedTuple):
    """Widths of a model's vectors and of its hidden layer, without and with their spare columns of zeros.

    A vector's row has the attributes' part, padded, then the neighbours' part, padded.
    """

    d1: int
    d2: int
    d1_padded: int  # also the column where the neighbours' part begins
    d2_padded: int
    width: int  # of a whole row: a multiple of DEPTH
    hidden: int  # a multiple of DEPTH

    @classmethod
    def of(cls, model: Model, settings: Settings) -> "Shape":
        """The widths of a model."""
        hidden, dim = model.weight.shape
        d1 = settings.attribute_dim
        first, second = padded(d1), padded(dim - d1)
        return cls(d1, dim - d1, first, second, _round_up(first + second), _round_up(hidden))

    def block(self) -> int:
        """A power of two that holds all columns of either table."""
        return triton.next_power_of_2(max(self.d1_padded, self.width - self.d1_padded))

    def columns(self) -> torch.Tensor:
        """The columns of a row that hold the d1 + d2 numbers."""
        return torch.cat([torch.arange(self.d1), self.d1_padded + torch.arange(self.d2)]).to(DEVICE)


def _round_up(width: int) -> int:
    return -(-width // DEPTH) * DEPTH
