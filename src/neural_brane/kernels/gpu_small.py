"""The layer's launches at small batches, where a step is over before memory can be busy."""

import torch
import triton

from neural_brane.kernels import gpu_layer
from neural_brane.kernels.gpu_frame import (
    DEPTH,
    DEVICE,
    FAR_POOL,
    INTERPRETED,
    NEAR_BYTES,
    SMALL_POOL,
    Frame,
    empty,
    launching,
)
from neural_brane.kernels.gpu_plan import Plan
from neural_brane.kernels.types import Model, Settings

HIDE_ROWS, HIDE_COLUMNS, HIDE_UNITS = 16, 32, 32
ROWS, COLUMNS, WEIGHT_TILE = 16, 32, 32
SPLITS = 2 if INTERPRETED else 4  # of the slots, in W's gradient
STAGES = 3  # of loads ahead of products
# A product is of three terms, as exact as float32's but for a digit; of one, training drifts off in the third digit
# within fifty steps.
PRECISION = "ieee" if INTERPRETED else "tf32x3"


class SmallLayer:
    """Scratch memory of a step, and its two launches behind the pooling; `scatter`: the tables' step is one of them."""

    def __init__(self, frame: Frame, settings: Settings, model: Model, plan: Plan, scatter: bool):
        self.frame, self.settings, self.scatter = frame, settings, scatter
        self.slots, self.launch = plan.slots, launching()
        batch = self.slots // 3
        far = model.attribute_table.nbytes + model.neighbour_table.nbytes > NEAR_BYTES
        self.pool_tiles = FAR_POOL if far else SMALL_POOL
        self.strips = triton.cdiv(frame.hidden, HIDE_COLUMNS)
        self.pooled = empty(self.slots, frame.width)  # f
        self.winner = empty(self.slots, frame.width, dtype=torch.int32)
        self.hidden = empty(self.slots, frame.hidden)  # h, then dL/dz
        self.gradient = empty(self.slots, frame.width)  # dL/df
        self.margins = empty(self.strips, batch)
        score_tiles = triton.cdiv(batch, HIDE_ROWS // 3)
        self.losses = empty(plan.steps, score_tiles)  # sums of −ln σ
        self.weight_shares = empty(SPLITS, frame.hidden, frame.width)
        self.bias_shares = empty(SPLITS, frame.hidden)
        weight_tiles = triton.cdiv(frame.hidden, WEIGHT_TILE) * triton.cdiv(frame.width, WEIGHT_TILE)
        self.arrivals = torch.zeros(score_tiles, dtype=torch.int32, device=DEVICE)
        self.weight_arrivals = torch.zeros(weight_tiles, dtype=torch.int32, device=DEVICE)
        self.weights = torch.zeros((2, frame.hidden, frame.width), device=DEVICE)
        self.bias = torch.zeros(frame.hidden, device=DEVICE)
        self.weights[0, : len(model.weight), frame.columns()] = model.weight
        self.bias[: len(model.bias)] = model.bias

    @property
    def weight(self) -> torch.Tensor:
        """W (hidden, width) after a group of steps."""
        return self.weights[0]

    def finish(self, count: int) -> None:
        """After `count` steps from the first copy of W, have it there again."""
        if count % 2:
            self.weights[0].copy_(self.weights[1])

    def step(self, step: int, tables: tuple, rate: float, decay: float) -> None:
        """Launch the ReLU layer and the slopes of its units, then the step on W and b, and the tables' gradient."""
        s, frame = self.settings, self.frame
        gpu_layer.hide[self.strips, len(self.arrivals)](
            self.pooled, self.weights[step % 2], self.bias, self.hidden, self.margins, self.arrivals,
            self.losses[step], self.slots, s.triplet_scale, 2 * s.hidden_l2,
            WIDTH=frame.width, HIDDEN=frame.hidden, STRIPS=self.strips, PRECISION=PRECISION,
            ROWS=HIDE_ROWS, COLUMNS=HIDE_COLUMNS, DEPTH=DEPTH, UNITS=HIDE_UNITS, num_stages=STAGES, **self.launch,
        )  # fmt: skip
        table_tiles = triton.cdiv(self.slots, ROWS) * triton.cdiv(frame.width, COLUMNS)
        weight_tiles = len(self.weight_arrivals) * SPLITS
        gpu_layer.descend[weight_tiles + table_tiles,](
            self.pooled, self.hidden, self.weights[step % 2], self.weights[1 - step % 2], self.bias,
            self.weight_shares, self.bias_shares, self.weight_arrivals, self.winner, self.gradient, *tables,
            self.slots, frame.second, s.learning_rate, rate, decay, weight_tiles,
            WIDTH=frame.width, HIDDEN=frame.hidden, PRECISION=PRECISION, SCATTER=self.scatter, BIAS=s.train_bias,
            ROWS=ROWS, COLUMNS=COLUMNS, TILE=WEIGHT_TILE, DEPTH=DEPTH, SPLITS=SPLITS, num_stages=STAGES, **self.launch,
        )  # fmt: skip
