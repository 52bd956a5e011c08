"""The layer's launches at small batches, where a step is over before memory can be busy."""

from typing import Any

import triton

from neural_brane.kernels.gpu import small_kernels as gpu_fused
from neural_brane.kernels.gpu.layer import Layer
from neural_brane.kernels.gpu.plan import Plan
from neural_brane.kernels.gpu.shapes import BEHIND, DEPTH, INTERPRETED, SMALL_POOL, Frame, empty, launching
from neural_brane.kernels.model import Model, Settings

ROWS, COLUMNS = 16, 32  # slots, and columns or hidden units, of a program
HIDE_WARPS, HIDE_STAGES = 4, 5
LEARN_WARPS, LEARN_STAGES = 4, 1  # with loads ahead a step took longer: perhaps for the shared memory they need
WEIGHT_TILE, SLOTS = 32, 128  # units and columns of W's gradient, slots at a time
SPLITS = 2 if INTERPRETED else 3  # of the slots, in W's gradient


class SmallLayer(Layer):
    """Two launches behind the pooling; W's step is taken beside the next one."""

    pool_tiles = SMALL_POOL

    def __init__(self, frame: Frame, settings: Settings, model: Model, plan: Plan, scatter: bool):
        super().__init__(frame, settings, model, plan, scatter, shares=SPLITS)
        self.ahead = launching()
        self.strips = frame.hidden // COLUMNS
        self.hidden = empty(self.rows, frame.hidden)  # h
        self.margins = empty(self.strips, self.batch)
        self.losses = empty(plan.steps, triton.cdiv(self.rows, ROWS))  # sums of −ln σ

    def pooling(self, step: int) -> dict[str, Any]:
        """How to launch a step's pooling: behind all before it where it is the first, then beside W's step."""
        if step == 0:
            return BEHIND
        strips = triton.cdiv(self._blocks(), self.rows)
        return {"kernel": gpu_fused.pool_and_descend, "more_strips": strips, **self._descent(), **self.ahead}

    def step(self, step: int, tables: tuple, rate: float) -> None:
        """Launch the ReLU layer, then the sums of W's gradient beside the tables' step."""
        s, frame = self.settings, self.frame
        pooled, weight = (self.pooled, self.pooled.stride(0)), (self.split_weight, self.split_weight.stride(0))
        sizes = {"WIDTH": frame.width, "HIDDEN": frame.hidden, "ROWS": ROWS, "COLUMNS": COLUMNS, "DEPTH": DEPTH}
        gpu_fused.hide[self.strips, triton.cdiv(self.batch, ROWS // 3)](
            *pooled, *weight, self.bias, self.hidden, self.margins, self.rows,
            num_warps=HIDE_WARPS, num_stages=HIDE_STAGES, **sizes, **self.ahead,
        )  # fmt: skip
        weight_programs = frame.hidden // WEIGHT_TILE * (frame.width // WEIGHT_TILE) * SPLITS
        gpu_fused.learn[weight_programs + triton.cdiv(self.rows, ROWS) * (frame.width // COLUMNS),](
            *pooled, *weight, self.hidden, self.margins, self.winner, self.gradient, self.weight_shares,
            self.bias_shares, self.losses[step], *tables, self.rows, frame.second, rate, s.triplet_scale,
            2 * s.hidden_l2, weight_programs, STRIPS=self.strips, SCATTER=self.scatter, BIAS=s.train_bias,
            TILE=WEIGHT_TILE, SLOTS=SLOTS, SPLITS=SPLITS, num_warps=LEARN_WARPS, num_stages=LEARN_STAGES, **sizes,
            **self.ahead,
        )  # fmt: skip

    def finish(self) -> None:
        """Launch the last step of W and b."""
        self._descend()
