"""Where the Triton kernels run, the padded widths of their arrays, and the thresholds of launches."""

import os
from collections.abc import Callable
from typing import NamedTuple

import torch
import triton

from neural_brane.kernels.model import Model, Settings, padded

# Where the Triton kernels run: on an NVIDIA GPU or, with TRITON_INTERPRET=1, slowly on the CPU, for tests.

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
HALF = torch.float32 if INTERPRETED else torch.bfloat16  # of a split number; the interpreter has no bfloat16

Allocate = Callable[..., torch.Tensor]  # called as `empty` is


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Uninitialised memory on the device."""
    return torch.empty(shape, dtype=dtype, device=DEVICE)


# The thresholds that decide how a step is launched. They change its speed and its memory, never its meaning.


class Limits(NamedTuple):
    """Thresholds measured on an H200. Tests pass smaller ones to reach every path on small graphs."""

    large_batch: int = 1024  # triplets: from here on a batch takes the launches of `large`
    nodes_per_slot: float = 0.75  # with fewer nodes per slot, a large batch computes each node's vector once (`nodes`)
    group_steps: int = 100  # steps that are planned together and captured in one CUDA graph
    group_slots: int = 2**22  # slots in such a group: its plan takes memory

    hub_rows: int = 1024  # rows: a longer bag is a hub's, cut into pieces and pooled once per step
    hub_rows_at_large_batches: int = 256  # lower, because a large batch meets the same hub many times
    most_hubs: int = 16_384  # longest bags of each table that are cut: each takes memory
    hub_piece: int = 128  # rows in a piece of a hub's bag

    node_piece: int = 64  # slots of one node whose gradients one program adds up

    hot_slots: int = 128  # slots that share a table row: with more, `gather` uses wider programs
    crowded_slots: int = 4096  # slots that share a table row: with more, `scatter` adds up within a tile first
    frequent_wins: int = 3  # wins in the sample from which on a row is added up first
    strip_cache: int = 2**24  # bytes of the GPU's cache that one strip of a table's columns may fill
    part_cache: int = 3 * 2**24  # bytes of the GPU's cache that one part of a table's rows may fill


DEFAULT = Limits()


# The padded widths of the arrays that kernels work on.

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
