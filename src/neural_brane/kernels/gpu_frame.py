"""How a model's shapes and a batch are cut into the tiles and programs of the Triton kernels."""

import os
from typing import NamedTuple

import torch
import triton

from neural_brane.kernels import gpu_tables
from neural_brane.kernels.types import Bags, Model, Settings, padded

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
DEPTH = 32  # numbers a product takes at a time


class Tiles(NamedTuple):
    """How a step is cut into programs: rows (slots) × columns of each kind."""

    pool_rows: int
    pool_columns: int | None  # None: all of a table's
    pool_warps: int
    hide_rows: int
    hide_columns: int
    hide_units: int  # of dL/dz at a time
    rows: int
    columns: int
    weight_tile: int
    splits: int  # of the slots, in W's gradient
    stages: int  # of loads ahead of products
    apart: bool  # tables are written by a launch of their own
    precision: str  # of products


# At small batches every kernel is over before memory can be busy: many small programs, few waits in each. A product is
# of three terms, of tf32 as exact as float32's but for a digit; of one, training drifts off in the third digit within
# fifty steps. At large batches memory is what counts, and bf16's three terms are quicker.
SMALL = Tiles(
    pool_rows=32, pool_columns=16, pool_warps=2, hide_rows=16, hide_columns=32, hide_units=32, rows=16, columns=32,
    weight_tile=32, splits=4, stages=3, apart=False, precision="tf32x3",
)  # fmt: skip
LARGE = Tiles(
    pool_rows=4, pool_columns=None, pool_warps=1, hide_rows=64, hide_columns=64, hide_units=32, rows=64, columns=64,
    weight_tile=64, splits=128, stages=3, apart=True, precision="bf16x3",
)  # fmt: skip
LARGE_BATCH = 1024


def tiles_for(batch: int) -> Tiles:
    """The tiles measured best for a batch of triplets."""
    tiles = SMALL if batch < LARGE_BATCH else LARGE
    return tiles._replace(precision="ieee", splits=2) if INTERPRETED else tiles


class Frame(NamedTuple):
    """The padded widths that kernels work in."""

    d1: int
    d2: int
    second: int  # d1 with its spare columns: where the neighbours' start
    padded: int  # d2 with its spare columns
    width: int
    hidden: int

    @classmethod
    def of(cls, model: Model, settings: Settings) -> "Frame":
        """The frame of a model's shapes."""
        hidden, dim = model.weight.shape
        d1 = settings.attribute_dim
        second, neighbours = padded(d1), padded(dim - d1)
        return cls(d1, dim - d1, second, neighbours, _whole(second + neighbours), _whole(hidden))

    def block(self) -> int:
        """A power of two that takes all columns of either table."""
        return triton.next_power_of_2(max(self.second, self.width - self.second))

    def columns(self) -> torch.Tensor:
        """The columns that hold the d1 + d2 numbers, without the spare ones."""
        return torch.cat([torch.arange(self.d1), self.second + torch.arange(self.d2)]).to(DEVICE)

    def pool(
        self, model: Model, bags: tuple[Bags, Bags], starts: torch.Tensor, sizes: torch.Tensor,
        pooled: torch.Tensor, winner: torch.Tensor, settings: Settings, tiles: Tiles,
        scale: float = 1.0,
    ) -> None:  # fmt: skip
        """Launch the pooling of both tables for the slots of pooled; starts and sizes are (2, at least as many)."""
        columns = tiles.pool_columns or self.block()
        strips = triton.cdiv(self.second, columns) + triton.cdiv(self.width - self.second, columns)
        gpu_tables.pool[len(pooled), strips](
            model.attribute_table, model.attribute_table.stride(0), self.d1, bags[0].indices,
            model.neighbour_table, model.neighbour_table.stride(0), self.d2, bags[1].indices,
            starts, sizes, pooled, winner, scale, starts.stride(0), self.second, self.padded,
            POOLING=settings.pooling, ZERO_FLOOR=settings.zero_floor, WIDTH=self.width, ROWS=tiles.pool_rows,
            COLUMNS=columns, num_warps=tiles.pool_warps,
        )  # fmt: skip


def _whole(width: int) -> int:
    """Padded to what a product takes at a time."""
    return -(-width // DEPTH) * DEPTH


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Memory on the GPU whose content is yet to be written."""
    return torch.empty(shape, dtype=dtype, device=DEVICE)
