"""Code that all GPU kernels share: device, widths, thresholds, bundles of arguments, the loss, bfloat16 products."""

import os
from collections.abc import Callable
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from neural_brane.kernels.model import Array, Bags, Model, Settings, padded

# Triton kernels run on an NVIDIA GPU or, with TRITON_INTERPRET=1, slowly on the CPU, for tests.

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
HALF = torch.float32 if INTERPRETED else torch.bfloat16  # dtype of split numbers; the interpreter has no bfloat16

Allocate = Callable[..., torch.Tensor]  # has the signature of `empty`


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Allocate an uninitialised array on the device."""
    return torch.empty(shape, dtype=dtype, device=DEVICE)


class Limits(NamedTuple):
    """Thresholds measured on an H200. Tests pass smaller ones to reach every path on small graphs."""

    large_batch: int = 1024  # smallest batch, in triplets, that uses the launches of `large`
    nodes_per_slot: float = 0.75  # most nodes per slot at which a large batch computes one vector per node
    group_steps: int = 100  # most steps that are planned together and captured in one CUDA graph
    group_slots: int = 2**22  # most slots in a group, because its plan takes memory

    hub_rows: int = 1024  # most rows of a normal bag; a longer one is cut into pieces and pooled once per step
    hub_rows_at_large_batches: int = 256  # lower, because a large batch contains the same hub many times
    most_hubs: int = 16_384  # most hubs per table, because each takes memory; the longest bags are chosen
    hub_piece: int = 128  # rows in a piece of a hub's bag

    node_piece: int = 64  # slots of one node whose gradients one program sums

    hot_slots: int = 128  # slots per table row; above it, `gather` uses wider programs
    crowded_slots: int = 4096  # slots per table row; above it, `scatter` sums within a tile first
    frequent_wins: int = 3  # fewest wins in the sample for a row that `scatter` sums first
    strip_cache: int = 2**24  # bytes of the GPU's cache for one strip of a table's columns
    part_cache: int = 3 * 2**24  # bytes of the GPU's cache for one part of a table's rows


DEFAULT = Limits()


DEPTH = 32  # inner dimension of a matrix product per iteration


class Shape(NamedTuple):
    """Widths of a vector's two parts and of the hidden layer, without and with padding columns of zeros."""

    d1: int
    d2: int
    d1_padded: int  # also the first column of the neighbours' part
    d2_padded: int
    width: int  # width of a vector's row, a multiple of DEPTH
    hidden: int  # a multiple of DEPTH

    @classmethod
    def of(cls, model: Model, settings: Settings) -> "Shape":
        """Return the widths of a model."""
        hidden, dim = model.weight.shape
        d1 = settings.attribute_dim
        first, second = padded(d1), padded(dim - d1)
        width, hidden = (-(-size // DEPTH) * DEPTH for size in (first + second, hidden))
        return cls(d1, dim - d1, first, second, width, hidden)

    def block(self) -> int:
        """Return the smallest power of two that covers the columns of either table."""
        return triton.next_power_of_2(max(self.d1_padded, self.width - self.d1_padded))

    def columns(self) -> torch.Tensor:
        """Return the columns of a row that are not padding, (d1 + d2,) int64."""
        return torch.cat([torch.arange(self.d1), self.d1_padded + torch.arange(self.d2)]).to(DEVICE)


# Named tuples that several kernels take as arguments, so that a signature shows the arrays of a kernel.
#
# A bundle of arrays and numbers is an ordinary argument; Triton passes its fields one by one. A bundle of compile-time
# numbers is a `tl.constexpr` argument with a name in capitals; it is defined beside its kernel. Triton 3.6 has these
# requirements:
#
# - A bundle derives from NamedTuple directly, otherwise Triton loses its field names. No field is `type` or `values`.
# - Bind a compile-time field to a local `tl.constexpr` before you use it in `tl.zeros` or `tl.static_range`.
# - Do the same with a compile-time bundle inside another before you pass it to a function.
# - In an ordinary bundle inside another, no integer may be 1 and no field may be None. Triton treats both as
#   compile-time values and loses them at that depth.
# - A bundle that may be None as a whole (`hubs is not None`) has no field that may be None.


class Table(NamedTuple):
    """One table of a model, and the bags of its rows."""

    rows: Array  # (rows, stride) float32
    stride: int
    columns: int  # padded d1 or d2: the table's columns in a vector's row
    indices: Array  # (entries,) int32: all bags end to end


class TablePair(NamedTuple):
    """Both tables of a model."""

    attributes: Table
    neighbours: Table

    @classmethod
    def of(cls, model: Model, bags: tuple[Bags, Bags], shape: Shape) -> "TablePair":
        """Return the tables of a model in GPU memory, with the bags of a graph."""
        sides = zip(
            (model.attribute_table, model.neighbour_table), (shape.d1_padded, shape.d2_padded), bags, strict=True
        )
        return cls(*(Table(rows, rows.stride(0), columns, bag.indices) for rows, columns, bag in sides))


class Spans(NamedTuple):
    """The bags that a step pools: one of attributes and one of neighbours per vector; those of hubs come first."""

    starts: Array  # (2, vectors) int64: start of each bag in the tables' indices, attributes first
    sizes: Array  # (2, vectors) int32: number of rows in each bag
    vectors: int
    scale: float = 1.0  # factor of the pooled rows
    hubs: Array | None = None  # (2, vectors) int32: row of maxima of each bag, -1 if it is not a hub's
    maxima: Array | None = None  # (hubs, width) int64: largest number and its row, packed


class Split(NamedTuple):
    """Numbers in two planes of bfloat16: the rounded numbers, and the rounded remainders (see `split`)."""

    data: Array  # (2, …), or (…) float32 if plane is None
    plane: int | None  # distance in numbers from the first plane to the second

    @classmethod
    def of(cls, planes: torch.Tensor) -> "Split":
        """Return the bundle of an array (2, …)."""
        return cls(planes, planes.stride(0))


class Pooled(NamedTuple):
    """The output of pooling: f of each vector as a `Split`, and the winners of max pooling."""

    data: Array
    plane: int | None
    winner: Array  # (vectors, width) int32: row of each number, -1 for none


class LayerArrays(NamedTuple):
    """W and b in training; their gradients are sums of shares that different programs write."""

    weight: Array  # W (hidden, width) float32
    split: Split  # copy of W for products
    bias: Array  # b (hidden,) float32
    weight_shares: Array  # (shares, hidden, width) float32
    bias_shares: Array  # (shares, hidden) float32
    learning_rate: float
    decay: float  # factor by which L2 on the parameters shrinks W and b in a step


class Slope(NamedTuple):
    """Factors of the gradient of a batch's loss by its hidden vectors."""

    triplet_scale: float
    shrink: float  # 2 λ for the L2 penalty on hidden vectors
    rate: float = 0.0  # learning rate of the tables, if the launch also updates them


class Change(NamedTuple):
    """The change that a step subtracts from pooled rows of the tables: rate times the vectors' gradients."""

    gradient: Array  # dL/df (vectors, width) float32
    winner: Array  # (vectors, width) int32, as in `Pooled`
    rate: float


# The loss of a triplet, −ln σ(margin), and its derivative. Neither overflows at any margin.
#
# The margin is s(u, i) − s(u, j). Both functions take `decay` = e^−|margin|, which is at most one.


@triton.jit
def slopes_of(margin, decay, scale):
    """Return the derivative of −scale · ln σ by the margin."""
    return -scale * tl.where(margin > 0, decay, 1.0) / (1 + decay)


@triton.jit
def losses_of(margin, decay):
    """Return −ln σ of the margins."""
    # A small decay needs the series of ln(1 + decay), because 1 + decay loses digits.
    tail = tl.where(decay < 1e-3, decay * (1 - 0.5 * decay), tl.log(1 + decay))
    return tl.maximum(-margin, 0.0) + tail


# Multiply float32 matrices on units that multiply bfloat16.
#
# A float32 number is stored as the nearest bfloat16 and the bfloat16 nearest to the remainder, in two planes. A product
# has four terms; we compute the three largest. The result is as exact as float32 except for one digit.


@triton.jit
def split(value, HALF: tl.constexpr):
    """Return the nearest numbers of dtype HALF, and the HALF numbers nearest to the remainders."""
    near = value.to(HALF)
    return near, (value - near.to(tl.float32)).to(HALF)


@triton.jit
def store_split(place, plane, value, mask):
    """Write float32 numbers to both planes; plane: the distance from the first plane to the second."""
    near, rest = split(value, place.dtype.element_ty)
    tl.store(place, near, mask=mask)
    tl.store(place + plane, rest, mask=mask)


@triton.jit
def load_split(place, plane, mask):
    """Return the numbers of both planes; masked numbers are zero."""
    return tl.load(place, mask=mask, other=0.0), tl.load(place + plane, mask=mask, other=0.0)


@triton.jit
def add_product(total, left, left_rest, right, right_rest):
    """Return total + left × right; small terms are added first."""
    total = tl.dot(left, right_rest, total)
    total = tl.dot(left_rest, right, total)
    return tl.dot(left, right, total)
