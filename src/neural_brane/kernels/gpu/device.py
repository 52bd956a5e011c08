"""Where the Triton kernels run: on an NVIDIA GPU or, with TRITON_INTERPRET=1, slowly on the CPU, for tests."""

import os
from collections.abc import Callable

import torch

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"
HALF = torch.float32 if INTERPRETED else torch.bfloat16  # of a split number; the interpreter has no bfloat16

Allocate = Callable[..., torch.Tensor]  # called as `empty` is


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Uninitialised memory on the device."""
    return torch.empty(shape, dtype=dtype, device=DEVICE)


def can_launch_ahead() -> bool:
    """Whether a kernel may start while the one before it ends and wait for it inside (Hopper and later).

    It hides part of a launch's latency.
    """
    return not INTERPRETED and torch.cuda.get_device_capability() >= (9, 0)
