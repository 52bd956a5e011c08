"""The padded shapes that the Triton kernels work in, and how pooling is cut into programs."""

import os
from typing import Any, NamedTuple

import torch
import triton

from neural_brane.kernels.gpu import pool as gpu_pool
from neural_brane.kernels.model import Bags, Model, Settings, padded

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
DEPTH = 32  # numbers a product takes at a time
LARGE_BATCH = 1024  # of triplets


class PoolTiles(NamedTuple):
    """How pooling is cut into programs."""

    numbers: int  # that a program reads at a time, of one or more rows
    unroll: int  # so many times in a row
    columns: int | None  # None: all of a table's
    warps: int

    def shape(self, span: int) -> tuple[int, int]:
        """Rows and columns of what a program reads at a time, of a table with so many columns."""
        columns = self.columns or triton.next_power_of_2(max(span, 1))
        return max(1, self.numbers // columns), columns


# At small batches every kernel is over before memory can be busy: many small programs, and few waits in each.
SMALL_POOL = PoolTiles(numbers=128, unroll=8, columns=16, warps=1)
# At large ones four numbers a thread: narrow tables are read some rows at a time.
LARGE_POOL = PoolTiles(numbers=128, unroll=8, columns=None, warps=1)


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
        pooled: torch.Tensor, winner: torch.Tensor, settings: Settings, tiles: PoolTiles,
        scale: float = 1.0, long: tuple[torch.Tensor, torch.Tensor] | None = None,
        kernel: Any = gpu_pool.pool, more_strips: int = 0, **launch: Any,
    ) -> None:  # fmt: skip
        """Launch the pooling of both tables for the slots of winner; starts and sizes are (2, at least as many).

        pooled is (slots, width), or (2, slots, width) to have it split; `long` is which of the slots' bags `gpu_long`
        has pooled already, and to what. Another kernel than `pool` may do more, in `more_strips` of programs.
        """
        spans = self.second, self.width - self.second
        attributes, neighbours = map(tiles.shape, spans)
        strips = triton.cdiv(spans[0], attributes[1]) + triton.cdiv(spans[1], neighbours[1])
        kernel[len(winner), strips + more_strips](
            model.attribute_table, model.attribute_table.stride(0), bags[0].indices,
            model.neighbour_table, model.neighbour_table.stride(0), bags[1].indices,
            starts, sizes, pooled, pooled.stride(0), winner, scale, starts.stride(0), self.second,
            *(long or (sizes, starts)),  # no one reads these two where there is none
            POOLING=settings.pooling, ZERO_FLOOR=settings.zero_floor, SPLIT=pooled.ndim == 3, LONG=long is not None,
            WIDTH=self.width, ATTRIBUTE_WIDTH=self.d1, ATTRIBUTE_ROWS=attributes[0], ATTRIBUTE_COLUMNS=attributes[1],
            NEIGHBOUR_WIDTH=self.d2, NEIGHBOUR_ROWS=neighbours[0], NEIGHBOUR_COLUMNS=neighbours[1],
            UNROLL=tiles.unroll, num_warps=tiles.warps, **(launch or BEHIND),
        )  # fmt: skip


def _whole(width: int) -> int:
    """Padded to what a product takes at a time."""
    return -(-width // DEPTH) * DEPTH


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Memory on the GPU whose content is yet to be written."""
    return torch.empty(shape, dtype=dtype, device=DEVICE)


# A launch may begin while the one before it ends, and wait for it inside: that hides part of its start.
BEHIND: dict[str, Any] = {"AHEAD": False}
AHEAD: dict[str, Any] = {"AHEAD": True, "launch_pdl": True}


def launching() -> dict[str, Any]:
    """How to launch a kernel of a chain: ahead of its predecessor's end where the GPU can (from Hopper on)."""
    return AHEAD if not INTERPRETED and torch.cuda.get_device_capability() >= (9, 0) else BEHIND
