"""The hidden layer in training: the scratch memory of a step, W and b, and the kernel that updates them.

`SmallLayer`, `LargeLayer` and `NodeLayer` derive from it: each launches a step in its own way.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from neural_brane.kernels.gpu.bundles import LayerArrays, Pooled, Spans, Split, Tables, store_split
from neural_brane.kernels.gpu.device import DEVICE, HALF, Allocate, Limits, Shape
from neural_brane.kernels.gpu.plan import Plan
from neural_brane.kernels.gpu.pool import POOL_WARPS, PoolWork, pool
from neural_brane.kernels.model import Model, Settings

BLOCK, TOGETHER = 256, 4  # numbers of W that a program updates, shares that it reads at a time


class Context(NamedTuple):
    """What a layer is made for: a model, a plan, and how to train."""

    model: Model
    tables: Tables
    shape: Shape
    settings: Settings
    plan: Plan
    scatter: bool  # whether the layer's launches update the tables too; without, `gather` does it after them
    limits: Limits
    allocate: Allocate


class Descent(NamedTuple):
    """How W and b are updated, known when the kernel is compiled."""

    size: int  # numbers of W
    hidden: int
    bias: bool  # whether b is trained
    shares: int
    block: int
    together: int


def decay_of(settings: Settings, rate: float) -> float:
    """The factor by which L2 on the parameters shrinks those that are learned at this rate in a step."""
    return 1 - 2 * rate * settings.parameter_l2


class Layer(ABC):
    """Scratch memory of a step, W and b, and the launch of the pooling."""

    pool_columns: int | None = None  # of a program that pools; None: all of a table's
    losses: torch.Tensor  # (steps, programs): sums of −ln σ

    def __init__(self, context: Context, shares: int):
        self.context = context
        shape, settings, empty = context.shape, context.settings, context.allocate
        self.vectors, self.batch = context.plan.vectors, context.plan.slots // 3
        self.work = PoolWork.of(shape, settings, self.pool_columns)
        self.pooled = Split.of(empty(2, self.vectors, shape.width, dtype=HALF))  # f
        self.winner = empty(self.vectors, shape.width, dtype=torch.int32)
        self.gradient = empty(self.vectors, shape.width)  # dL/df
        weight_shares, bias_shares = empty(shares, shape.hidden, shape.width), empty(shares, shape.hidden)
        weight = torch.zeros((shape.hidden, shape.width), device=DEVICE)
        split, bias = empty(2, *weight.shape, dtype=HALF), torch.zeros(shape.hidden, device=DEVICE)
        rates = settings.learning_rate, decay_of(settings, settings.learning_rate)
        self.arrays = LayerArrays(weight, Split.of(split), bias, weight_shares, bias_shares, *rates)
        self.load()
        self.descent = Descent(weight.numel(), shape.hidden, settings.train_bias, shares, BLOCK, TOGETHER)

    def load(self) -> None:
        """Copy W and b from the model; spare rows and columns stay zero. W also goes into two planes, as in `split`."""
        model, weight, planes = self.context.model, self.arrays.weight, self.arrays.split.data
        weight[: len(model.weight), self.context.shape.columns()] = model.weight
        self.arrays.bias[: len(model.bias)] = model.bias
        planes[0] = weight.to(HALF)
        planes[1] = (weight - planes[0].float()).to(HALF)

    def pool(self, step: int, spans: Spans) -> None:
        """Launch the pooling of a step's vectors."""
        pool[self.vectors, self.work.strips()](
            self.context.tables, spans, Pooled(*self.pooled, self.winner),
            WORK=self.work, num_warps=POOL_WARPS,
        )  # fmt: skip

    @abstractmethod
    def step(self, step: int, rate: float) -> None:
        """Launch what follows the pooling; `rate` is the learning rate of the tables."""

    def finish(self) -> None:  # noqa: B027  (most layers put nothing off)
        """Launch what the last step of a group has put off."""

    def descend(self) -> None:
        """Launch the update of W and b."""
        descend[self.descent_programs(),](self.arrays, DESCENT=self.descent)

    def descent_programs(self) -> int:
        """Programs that share the update of W and b."""
        return triton.cdiv(self.descent.size, BLOCK)


@triton.jit
def descend(layer, DESCENT: tl.constexpr):
    """Update W and b by the shares of their gradients; layer is LayerArrays."""
    descend_block(layer, tl.program_id(0), DESCENT)


@triton.jit
def descend_block(layer, block, DESCENT: tl.constexpr):
    """Update one block of W's numbers and the same block of b's, in place; writes W's two planes too.

    The shares are always added up in the same order.
    """
    at = block * DESCENT.block + tl.arange(0, DESCENT.block)
    inside = at < DESCENT.size
    result = layer.decay * tl.load(layer.weight + at, mask=inside, other=0.0)
    result -= layer.learning_rate * _add_up(layer.weight_shares, at, inside, DESCENT.size, DESCENT)
    tl.store(layer.weight + at, result, mask=inside)
    store_split(layer.split.data + at, layer.split.plane, result, inside)
    if DESCENT.bias:
        known = at < DESCENT.hidden
        result = layer.decay * tl.load(layer.bias + at, mask=known, other=0.0)
        result -= layer.learning_rate * _add_up(layer.bias_shares, at, known, DESCENT.hidden, DESCENT)
        tl.store(layer.bias + at, result, mask=known)


@triton.jit
def _add_up(shares, at, inside, SIZE: tl.constexpr, DESCENT: tl.constexpr):
    """The sums over shares (shares, SIZE) of some of their numbers."""
    TOGETHER: tl.constexpr = DESCENT.together
    total = tl.zeros([TOGETHER, at.shape[0]], tl.float32)
    for first in range(0, DESCENT.shares, TOGETHER):
        share = (first + tl.arange(0, TOGETHER))[:, None]
        total += tl.load(
            shares + share * SIZE + at[None, :], mask=(share < DESCENT.shares) & inside[None, :], other=0.0
        )
    return tl.sum(total, 0)
