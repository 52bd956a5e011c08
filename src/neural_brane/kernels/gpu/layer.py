"""What a step's launches behind the pooling have in common, at any batch: scratch memory, W and b."""

from typing import Any

import torch
import triton

from neural_brane.kernels.gpu import split as gpu_split
from neural_brane.kernels.gpu.plan import Plan
from neural_brane.kernels.gpu.shapes import BEHIND, DEVICE, INTERPRETED, Frame, empty
from neural_brane.kernels.model import Model, Settings

HALF = torch.float32 if INTERPRETED else torch.bfloat16  # the interpreter has no bfloat16: there the rest is zero
BLOCK, TOGETHER = 256, 4  # numbers of W whose step a program takes, shares that it reads at a time


def decay_of(settings: Settings) -> float:
    """What a step leaves of a parameter where the penalty alone is at work."""
    return 1 - 2 * settings.learning_rate * settings.parameter_l2


class Layer:
    """Scratch memory of a step, W and b; `scatter`: the launches take the tables' step too.

    W's gradient is the sum of so many shares, which different programs write.
    """

    def __init__(self, frame: Frame, settings: Settings, model: Model, plan: Plan, scatter: bool, shares: int):
        self.frame, self.settings, self.scatter = frame, settings, scatter
        self.rows, self.batch = plan.rows, plan.slots // 3
        self.pooled = empty(2, self.rows, frame.width, dtype=HALF)  # f, split
        self.winner = empty(self.rows, frame.width, dtype=torch.int32)
        self.gradient = empty(self.rows, frame.width)  # dL/df
        self.weight_shares = empty(shares, frame.hidden, frame.width)
        self.bias_shares = empty(shares, frame.hidden)
        self.weight = torch.zeros((frame.hidden, frame.width), device=DEVICE)  # W
        self.bias = torch.zeros(frame.hidden, device=DEVICE)
        self.weight[: len(model.weight), frame.columns()] = model.weight
        self.bias[: len(model.bias)] = model.bias
        self.split_weight = empty(2, *self.weight.shape, dtype=HALF)
        self.split_weight[0] = self.weight.to(HALF)
        self.split_weight[1] = (self.weight - self.split_weight[0].float()).to(HALF)

    def pooling(self, step: int) -> dict[str, Any]:
        """How to launch a step's pooling."""
        return BEHIND

    def finish(self) -> None:
        """Launch what the last step has put off."""

    def _descend(self) -> None:
        """Launch the step of W and b by their gradient's shares."""
        gpu_split.descend[self._blocks(),](**self._descent())

    def _blocks(self) -> int:
        """How many programs take the step of W and b."""
        return triton.cdiv(self.weight.numel(), BLOCK)

    def _descent(self) -> dict[str, Any]:
        """What the step of W and b needs."""
        s = self.settings
        return {
            "weight": self.weight, "weight_shares": self.weight_shares, "split_weight": self.split_weight,
            "weight_plane": self.split_weight.stride(0), "bias": self.bias, "bias_shares": self.bias_shares,
            "learning_rate": s.learning_rate, "decay": decay_of(s), "SIZE": self.weight.numel(),
            "HIDDEN": self.frame.hidden, "BIAS": s.train_bias, "SHARES": len(self.weight_shares),
            "BLOCK": BLOCK, "TOGETHER": TOGETHER,
        }  # fmt: skip
