"""The layer's launches at large batches, where memory and the matrix units are what counts."""

import torch
import triton

from neural_brane.kernels import gpu_split, gpu_tables
from neural_brane.kernels.gpu_frame import BEHIND, DEPTH, DEVICE, INTERPRETED, LARGE_POOL, Frame, empty
from neural_brane.kernels.gpu_plan import Plan
from neural_brane.kernels.types import Bags, Model, Settings

ROWS, COLUMNS, TAIL, WARPS = 128, 128, 32, 4  # of a product
TRIPLETS = 4  # whose slopes a program finds
WEIGHT_UNITS, WEIGHT_COLUMNS, WEIGHT_WARPS = 128, 64, 8
SPLITS = 2 if INTERPRETED else 66  # of the slots, in W's gradient
WEIGHT_BLOCK = 256
STAGES = 3  # of loads ahead of products
SCATTER_ROWS, SCATTER_COLUMNS = 8, 32
CROWD, CROWDED_ROWS = 4096, 64  # bags with a row in common, from which on a tile adds up first; slots of such a tile
FREQUENT, SAMPLE, LEAST = 4, 256, 3  # rows of a column that a tile adds up, and how they are found
SCATTER_PARTS, SCATTER_CACHE = 4, 2**24  # of a table's rows, so that a strip of them takes no more bytes
HALF = torch.float32 if INTERPRETED else torch.bfloat16  # the interpreter has no bfloat16: there the rest is zero


class LargeLayer:
    """Scratch memory of a step, and its launches behind the pooling; `scatter`: the tables' step is one of them."""

    launch = BEHIND
    pool_tiles = LARGE_POOL

    def __init__(self, frame: Frame, settings: Settings, model: Model, plan: Plan, scatter: bool):
        self.frame, self.settings, self.scatter = frame, settings, scatter
        self.slots, self.batch = plan.slots, plan.slots // 3
        self.crowded = [scatter and _crowded(bags, self.slots) for bags in plan.bags]
        self.frequent = empty(FREQUENT, frame.width, dtype=torch.int32)  # rows that win most often
        self.pooled = empty(2, self.slots, frame.width, dtype=HALF)  # f, split
        self.winner = empty(self.slots, frame.width, dtype=torch.int32)
        self.slope = empty(2, self.slots, frame.hidden, dtype=HALF)  # dL/dz, split
        self.gradient = empty(self.slots, frame.width)  # dL/df
        self.product = empty(self.slots, frame.hidden)  # W f
        self.losses = empty(plan.steps, triton.cdiv(self.batch, TRIPLETS))  # sums of −ln σ
        self.weight_shares = empty(SPLITS, frame.hidden, frame.width)
        self.bias_shares = empty(SPLITS, frame.hidden)
        self.weight = torch.zeros((frame.hidden, frame.width), device=DEVICE)  # W
        self.bias = torch.zeros(frame.hidden, device=DEVICE)
        self.weight[: len(model.weight), frame.columns()] = model.weight
        self.bias[: len(model.bias)] = model.bias
        self.weights = torch.zeros((2, 2, *self.weight.shape), dtype=HALF, device=DEVICE)  # two copies of W, split
        self.weights[0, 0] = self.weight.to(HALF)
        self.weights[0, 1] = (self.weight - self.weights[0, 0].float()).to(HALF)

    def finish(self, count: int) -> None:
        """After `count` steps from the first copy of W, have it there again."""
        if count % 2:
            self.weights[0].copy_(self.weights[1])

    def step(self, step: int, tables: tuple, rate: float, decay: float) -> None:
        """Launch the ReLU layer and the slopes of its units; then the step of W and b, and of the tables."""
        s, frame, weights = self.settings, self.frame, self.weights[step % 2]
        slope = self.slope, self.slope.stride(0)
        self._multiply(self.pooled, weights, self.product, depth_stride=1, column_stride=frame.width)
        gpu_split.differentiate[self.losses.shape[1],](
            self.product, self.bias, *slope, self.losses[step], self.batch, s.triplet_scale, 2 * s.hidden_l2,
            HIDDEN=frame.hidden, TRIPLETS=TRIPLETS, UNITS=triton.next_power_of_2(frame.hidden),
        )  # fmt: skip
        self._descend(self.weights[1 - step % 2], decay)
        self._multiply(self.slope, weights, self.gradient, depth_stride=frame.width, column_stride=1)
        if self.scatter:
            self._scatter_all(tables, rate)

    def _multiply(self, left: torch.Tensor, weights: torch.Tensor, result: torch.Tensor, **strides: int) -> None:
        """Launch the product of slots' vectors and W or its transpose."""
        width = result.shape[1]
        columns = min(COLUMNS, triton.next_power_of_2(width))
        tail = TAIL if triton.cdiv(width, columns + TAIL) < triton.cdiv(width, columns) else 0
        gpu_split.multiply[triton.cdiv(width, columns + tail), triton.cdiv(self.slots, ROWS)](
            left, left.stride(0), weights, weights.stride(0), **strides, result=result, rows=self.slots,
            DEPTHS=left.shape[2], WIDTH=width, ROWS=ROWS, COLUMNS=columns, TAIL=tail, DEPTH=DEPTH, num_warps=WARPS,
            num_stages=STAGES,
        )  # fmt: skip

    def _descend(self, next_weights: torch.Tensor, decay: float) -> None:
        """Launch the step of W and b."""
        s, frame = self.settings, self.frame
        tiles = triton.cdiv(frame.hidden, WEIGHT_UNITS) * triton.cdiv(frame.width, WEIGHT_COLUMNS)
        gpu_split.add_gradients[tiles * SPLITS,](
            self.pooled, self.pooled.stride(0), self.slope, self.slope.stride(0), self.weight_shares, self.bias_shares,
            self.slots, WIDTH=frame.width, HIDDEN=frame.hidden, BIAS=s.train_bias, UNITS=WEIGHT_UNITS,
            COLUMNS=WEIGHT_COLUMNS, DEPTH=DEPTH, SPLITS=SPLITS, num_warps=WEIGHT_WARPS, num_stages=STAGES,
        )  # fmt: skip
        gpu_split.descend[triton.cdiv(self.weight.numel(), WEIGHT_BLOCK),](
            self.weight, self.weight_shares, next_weights, next_weights.stride(0), self.bias, self.bias_shares,
            s.learning_rate, decay,
            SIZE=self.weight.numel(), HIDDEN=frame.hidden, BIAS=s.train_bias, BLOCK=WEIGHT_BLOCK, SPLITS=SPLITS,
        )  # fmt: skip

    def _scatter_all(self, tables: tuple, rate: float) -> None:
        """Launch the step of both tables' winning rows."""
        attributes, attribute_stride, neighbours, neighbour_stride = tables
        frame = self.frame
        if any(self.crowded):
            gpu_tables.find_frequent[frame.width,](
                self.winner, self.frequent, self.slots,
                WIDTH=frame.width, SAMPLE=SAMPLE, LEAST=LEAST, FREQUENT=FREQUENT,
            )  # fmt: skip
        self._scatter(attributes, attribute_stride, 0, frame.second, rate, self.crowded[0])
        self._scatter(neighbours, neighbour_stride, frame.second, frame.width - frame.second, rate, self.crowded[1])

    def _scatter(self, table: torch.Tensor, stride: int, first: int, span: int, rate: float, crowded: bool) -> None:
        """Launch the step of a table's winning rows."""
        # Where rows are met again and again, parts of the table that the cache can hold come one after the other.
        rows = len(table)
        often = rows < SCATTER_COLUMNS * self.slots
        wanted = triton.cdiv(4 * SCATTER_COLUMNS * rows, SCATTER_CACHE) if often else 1
        parts = max(1, min(wanted, SCATTER_PARTS))
        slots = CROWDED_ROWS if crowded else SCATTER_ROWS
        tiles, strips = triton.cdiv(self.slots, slots), triton.cdiv(span, SCATTER_COLUMNS)
        gpu_tables.scatter[tiles, strips, parts](
            self.gradient, self.winner, table, stride, self.frequent, self.slots, first, span,
            triton.cdiv(rows, parts), rate,
            WIDTH=self.frame.width, ROWS=slots, COLUMNS=SCATTER_COLUMNS, FREQUENT=FREQUENT if crowded else 0,
        )  # fmt: skip


def _crowded(bags: Bags, slots: int) -> bool:
    """Whether some row is in so many bags that, were it to win, a batch of slots would add to it again and again."""
    if len(bags.indices) == 0:
        return False
    most = int(torch.bincount(bags.indices).max())
    return most * slots > CROWD * (len(bags.indptr) - 1)
