"""What the GPU's kernels share: device, widths, thresholds, bundles of arguments, the loss, bfloat16 products."""

import os
from collections.abc import Callable
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from neural_brane.kernels.model import Array, Bags, Model, Settings, padded

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
    """Widths of a vector's two parts and of the hidden layer, without and with their spare columns of zeros."""

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
        width, hidden = (-(-size // DEPTH) * DEPTH for size in (first + second, hidden))
        return cls(d1, dim - d1, first, second, width, hidden)

    def block(self) -> int:
        """A power of two that holds all columns of either table."""
        return triton.next_power_of_2(max(self.d1_padded, self.width - self.d1_padded))

    def columns(self) -> torch.Tensor:
        """The columns of a row that hold the d1 + d2 numbers."""
        return torch.cat([torch.arange(self.d1), self.d1_padded + torch.arange(self.d2)]).to(DEVICE)


# The named tuples that several kernels take, so that a kernel's signature says what it reads and writes.
#
# A bundle of arrays and numbers is an ordinary argument: Triton passes its fields one by one. A bundle of numbers that
# are known when a kernel is compiled is a `tl.constexpr` argument, written in capitals; those stand beside their
# kernels. What Triton 3.6 asks for:
#
# - a bundle derives from NamedTuple directly, or its field names are lost, and no field is called `type` or `values`;
# - a compile-time field is bound to a local `tl.constexpr` before it is used in `tl.zeros` or `tl.static_range`;
# - so is a compile-time bundle inside another, before it is passed to a function;
# - in an ordinary bundle inside another, no whole number is 1 and no field is None: Triton takes both for compile-time
#   values and, that deep, loses them;
# - a bundle that may be None as a whole (`hubs is not None`) has no field that may be None.


class Table(NamedTuple):
    """One table of a model, and the rows of it that bags hold."""

    rows: Array  # (rows, stride) float32
    stride: int
    columns: int  # of this table in a vector's row: d1 or d2, padded
    indices: Array  # (entries,) int32: all bags end to end


class Tables(NamedTuple):
    """Both tables of a model."""

    attributes: Table
    neighbours: Table

    @classmethod
    def of(cls, model: Model, bags: tuple[Bags, Bags], shape: Shape) -> "Tables":
        """The tables of a model in the GPU's memory, with the bags of a graph."""
        sides = zip(
            (model.attribute_table, model.neighbour_table), (shape.d1_padded, shape.d2_padded), bags, strict=True
        )
        return cls(*(Table(rows, rows.stride(0), columns, bag.indices) for rows, columns, bag in sides))


class Spans(NamedTuple):
    """The bags that a step pools, one of attributes and one of neighbours for each vector.

    Hubs' bags are pooled before all others: where there are hubs, a row of maxima belongs to each.
    """

    starts: Array  # (2, vectors) int64: where the bags begin in the tables' indices, the attributes' first
    sizes: Array  # (2, vectors) int32: how many rows they have
    vectors: int
    scale: float = 1.0  # what pooled rows are multiplied by
    hubs: Array | None = None  # (2, vectors) int32: which row of maxima belongs to a bag, -1 for none
    maxima: Array | None = None  # (hubs, width) int64: largest number and its row, packed


class Split(NamedTuple):
    """Numbers in two planes of bfloat16: the nearest, and the nearest to the remainder (see `split`)."""

    data: Array  # (2, …), or (…) float32 where plane is None
    plane: int | None  # how many numbers the second plane lies behind the first

    @classmethod
    def of(cls, planes: torch.Tensor) -> "Split":
        """The bundle of an array (2, …)."""
        return cls(planes, planes.stride(0))


class Pooled(NamedTuple):
    """What pooling writes: f of each vector as a `Split`, and for max which rows won."""

    data: Array
    plane: int | None
    winner: Array  # (vectors, width) int32: the row that each number came from, -1 for none


class LayerArrays(NamedTuple):
    """W and b in training; their gradients are sums of shares, which different programs write."""

    weight: Array  # W (hidden, width) float32
    split: Split  # W again, as products read it
    bias: Array  # b (hidden,) float32
    weight_shares: Array  # (shares, hidden, width) float32
    bias_shares: Array  # (shares, hidden) float32
    learning_rate: float
    decay: float  # factor by which L2 on the parameters shrinks W and b in a step


class Slope(NamedTuple):
    """The numbers in the gradient of a batch's loss by its hidden vectors."""

    triplet_scale: float
    shrink: float  # 2 λ of the L2 on hidden vectors
    rate: float = 0.0  # of the tables' rows, for the launch that subtracts their gradients at once


class Change(NamedTuple):
    """What a step subtracts from the tables: rate times the vectors' gradients, from the rows that were pooled."""

    gradient: Array  # dL/df (vectors, width) float32
    winner: Array  # (vectors, width) int32, as in `Pooled`
    rate: float


# The loss of a triplet, −ln σ(margin), and its slope, without overflow at any margin.
#
# The margin is s(u, i) − s(u, j). Both functions take `decay` = e^−|margin|, which is at most one.


@triton.jit
def slopes_of(margin, decay, scale):
    """The derivative of −scale · ln σ by the margin."""
    return -scale * tl.where(margin > 0, decay, 1.0) / (1 + decay)


@triton.jit
def losses_of(margin, decay):
    """−ln σ of the margins."""
    # ln(1 + decay); for a small decay by its series, because 1 + decay loses digits.
    tail = tl.where(decay < 1e-3, decay * (1 - 0.5 * decay), tl.log(1 + decay))
    return tl.maximum(-margin, 0.0) + tail


# Matrix products of float32 numbers on units that multiply bfloat16.
#
# A float32 is kept as the bfloat16 nearest to it and the bfloat16 nearest to the remainder, in two planes. Of a
# product's four terms the three largest are computed: the result is as exact as float32 but for one digit.


@triton.jit
def split(value, HALF: tl.constexpr):
    """The nearest numbers of a shorter type, and the nearest to the remainders."""
    near = value.to(HALF)
    return near, (value - near.to(tl.float32)).to(HALF)


@triton.jit
def store_split(place, plane, value, mask):
    """Write numbers to both planes; `plane` is the distance from the first to the second."""
    near, rest = split(value, place.dtype.element_ty)
    tl.store(place, near, mask=mask)
    tl.store(place + plane, rest, mask=mask)


@triton.jit
def load_split(place, plane, mask):
    """Read numbers from both planes; masked ones are zero."""
    return tl.load(place, mask=mask, other=0.0), tl.load(place + plane, mask=mask, other=0.0)


@triton.jit
def add_product(total, left, left_rest, right, right_rest):
    """total + left × right, adding the small terms first."""
    total = tl.dot(left, right_rest, total)
    total = tl.dot(left_rest, right, total)
    return tl.dot(left, right, total)
