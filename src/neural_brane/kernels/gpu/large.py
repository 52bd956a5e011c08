"""The layer's launches at large batches, where memory and the matrix units are what counts."""

import torch
import triton

from neural_brane.kernels.gpu import split as gpu_split
from neural_brane.kernels.gpu import tables as gpu_tables
from neural_brane.kernels.gpu.layer import HALF, Layer
from neural_brane.kernels.gpu.plan import Plan, most_often
from neural_brane.kernels.gpu.shapes import DEPTH, INTERPRETED, LARGE_POOL, Frame, empty
from neural_brane.kernels.model import Model, Settings

ROWS, COLUMNS, TAIL, WARPS = 128, 128, 32, 4  # of a product
TRIPLETS = 4  # whose slopes a program finds
STAGES = 3  # of loads ahead of products
WEIGHT_UNITS, WEIGHT_COLUMNS, WEIGHT_WARPS, WEIGHT_STAGES = 64, 64, 4, 4
SPLITS = 2 if INTERPRETED else 44  # of the slots, in W's gradient
SCATTER_ROWS, SCATTER_COLUMNS = 4, 32
CROWD, CROWDED_ROWS = 4096, 64  # bags with a row in common, from which on a tile adds up first; slots of such a tile
FREQUENT, SAMPLE, LEAST = 4, 256, 3  # rows of a column that a tile adds up, and how they are found
STRIP_CACHE, PART_CACHE = 2**24, 3 * 2**24  # bytes of a strip of columns, and of a part of the rows, kept in the cache
MOST_PARTS = 6  # of a table's rows: every one reads all winners
OFTEN = 32  # rows to a slot: with more, few are met again


class LargeLayer(Layer):
    """The launches behind the pooling, each over all slots."""

    pool_tiles = LARGE_POOL

    def __init__(self, frame: Frame, settings: Settings, model: Model, plan: Plan, scatter: bool):
        super().__init__(frame, settings, model, plan, scatter, shares=SPLITS)
        self.units = triton.next_power_of_2(frame.hidden)
        self.crowded = [scatter and most_often(bags, self.rows) > CROWD for bags in plan.bags]
        self.frequent = empty(FREQUENT, frame.width, dtype=torch.int32)  # rows that win most often
        self.product = empty(self.rows, frame.hidden)  # W f
        self.slope = empty(2, self.rows, frame.hidden, dtype=HALF)  # dL/dz, split
        self.losses = empty(plan.steps, triton.cdiv(self.batch, TRIPLETS))  # sums of −ln σ

    def step(self, step: int, tables: tuple, rate: float) -> None:
        """Launch the ReLU layer and the slopes of its units; then the step of the tables, and of W and b."""
        width = self.frame.width
        self._multiply(self.pooled, self.product, depth_stride=1, column_stride=width)
        self._differentiate(step)
        self._add_gradients()
        self._multiply(self.slope, self.gradient, depth_stride=width, column_stride=1)
        self._descend()
        if self.scatter:
            self._scatter_all(tables, rate)

    def _differentiate(self, step: int) -> None:
        """Launch what finds the slopes of the layer's units."""
        s = self.settings
        gpu_split.differentiate[self.losses.shape[1],](
            self.product, self.bias, self.slope, self.slope.stride(0), self.losses[step], self.batch, s.triplet_scale,
            2 * s.hidden_l2, HIDDEN=self.frame.hidden, TRIPLETS=TRIPLETS, UNITS=self.units,
        )  # fmt: skip

    def _multiply(self, left: torch.Tensor, result: torch.Tensor, **strides: int) -> None:
        """Launch the product of rows of vectors and W or its transpose."""
        width = result.shape[1]
        columns = min(COLUMNS, triton.next_power_of_2(width))
        tail = TAIL if triton.cdiv(width, columns + TAIL) < triton.cdiv(width, columns) else 0
        gpu_split.multiply[triton.cdiv(width, columns + tail), triton.cdiv(self.rows, ROWS)](
            left, left.stride(0), self.split_weight, self.split_weight.stride(0), **strides, result=result,
            rows=self.rows, DEPTHS=left.shape[2], WIDTH=width, ROWS=ROWS, COLUMNS=columns, TAIL=tail, DEPTH=DEPTH,
            num_warps=WARPS, num_stages=STAGES,
        )  # fmt: skip

    def _add_gradients(self) -> None:
        """Launch the sums of W's and b's gradient."""
        frame = self.frame
        tiles = triton.cdiv(frame.hidden, WEIGHT_UNITS) * triton.cdiv(frame.width, WEIGHT_COLUMNS)
        gpu_split.add_gradients[tiles * SPLITS,](
            self.pooled, self.pooled.stride(0), self.slope, self.slope.stride(0), self.weight_shares, self.bias_shares,
            self.rows, WIDTH=frame.width, HIDDEN=frame.hidden, BIAS=self.settings.train_bias, UNITS=WEIGHT_UNITS,
            COLUMNS=WEIGHT_COLUMNS, DEPTH=DEPTH, SPLITS=SPLITS, num_warps=WEIGHT_WARPS, num_stages=WEIGHT_STAGES,
        )  # fmt: skip

    def _scatter_all(self, tables: tuple, rate: float) -> None:
        """Launch the step of both tables' winning rows."""
        attributes, attribute_stride, neighbours, neighbour_stride = tables
        frame = self.frame
        if any(self.crowded):
            gpu_tables.find_frequent[frame.width,](
                self.winner, self.frequent, self.rows,
                WIDTH=frame.width, SAMPLE=SAMPLE, LEAST=LEAST, FREQUENT=FREQUENT,
            )  # fmt: skip
        self._scatter(attributes, attribute_stride, 0, frame.second, rate, self.crowded[0])
        self._scatter(neighbours, neighbour_stride, frame.second, frame.width - frame.second, rate, self.crowded[1])

    def _scatter(self, table: torch.Tensor, stride: int, first: int, span: int, rate: float, crowded: bool) -> None:
        """Launch the step of a table's winning rows."""
        columns, parts = self._strips_and_parts(len(table), stride, span, crowded)
        slots, warps = (CROWDED_ROWS, 4) if crowded else (SCATTER_ROWS, 1)
        tiles, strips = triton.cdiv(self.rows, slots), triton.cdiv(span, columns)
        gpu_tables.scatter[tiles, strips, parts](
            self.gradient, self.winner, table, stride, self.frequent, self.rows, first, span,
            triton.cdiv(len(table), parts), rate, WIDTH=self.frame.width, ROWS=slots, COLUMNS=columns,
            FREQUENT=FREQUENT if crowded else 0, num_warps=warps,
        )  # fmt: skip

    def _strips_and_parts(self, rows: int, stride: int, span: int, crowded: bool) -> tuple[int, int]:
        """How many columns, and how many parts of the rows, come one after the other.

        Rows that are met again and again should still be in the cache: of a small table a strip of columns, of a large
        one, where a strip of all rows would not fit, a part of the rows.
        """
        narrow = crowded or 4 * SCATTER_COLUMNS * rows <= STRIP_CACHE
        columns = SCATTER_COLUMNS if narrow else triton.next_power_of_2(max(span, 1))
        wanted = triton.cdiv(4 * min(columns, stride) * rows, PART_CACHE) if rows < OFTEN * self.rows else 1
        return columns, max(1, min(wanted, MOST_PARTS))
