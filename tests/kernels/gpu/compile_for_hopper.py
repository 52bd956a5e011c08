"""Compile every launch of a training for an H200, on a machine without a GPU, and print the kernels' names.

The interpreter accepts Python code that the compiler refuses. Arrays are in host memory, and a driver that launches
nothing replaces CUDA's. `test_compile.py` runs this file in a separate process, because a process either compiles or
interprets all Triton kernels.
"""

import sys
from typing import Any

import numpy as np
import torch
from scipy import sparse
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from neural_brane.kernels import gpu
from neural_brane.kernels.model import MAX, MEAN, Bags, Model, Settings, padded
from neural_brane.sampling.triplets_gpu import TripletSampler

NODES, ATTRIBUTES, D1, D2, HIDDEN, BATCH = 40, 30, 7, 12, 13, 20


class Nothing:
    """A driver for an H200 that loads and launches nothing."""

    def __init__(self) -> None:
        self.utils, self.launcher_cls = self, lambda source, metadata: lambda *arguments: None

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_device_properties(self, device: int) -> dict[str, int]:
        return {"max_shared_mem": 232_448}

    def load_binary(self, name: str, *rest: Any) -> tuple[int, int, int, int, int]:
        print(name)
        return 1, 1, 0, 0, 1024  # module, function, registers, spills, most threads


def place_on_host() -> None:
    """Make arrays in host memory, and let the driver report a Hopper GPU."""
    assert not gpu.INTERPRETED
    driver.set_active(Nothing())
    torch.cuda.get_device_capability = lambda *device: (9, 0)
    for name, module in list(sys.modules.items()):
        if name.startswith("neural_brane.kernels.gpu") and hasattr(module, "DEVICE"):
            module.DEVICE = "cpu"


def train(pooling: int, deterministic: bool, **limits: float) -> None:
    """Train a model with bags of five rows for two steps."""
    tables = torch.zeros(ATTRIBUTES, padded(D1)), torch.zeros(NODES, padded(D2))
    model = Model(*tables, torch.zeros(HIDDEN, D1 + D2), torch.zeros(HIDDEN))
    bags = Bags(torch.arange(0, 5 * NODES + 1, 5), torch.arange(5).repeat(NODES).int())
    settings = Settings(D1, pooling, True, 0.1, 0.2, 1, 0.002, 0.01, True)
    trainer = gpu.Trainer(model, bags, bags, settings, BATCH, deterministic, limits=gpu.Limits(**limits))
    trainer(torch.zeros((2, BATCH, 3), dtype=torch.int32))
    gpu.embed(model, bags, bags, np.arange(1), settings)


if __name__ == "__main__":
    place_on_host()
    for pooling, deterministic in ((MAX, False), (MAX, True), (MEAN, False)):
        train(pooling, deterministic)
        train(pooling, deterministic, large_batch=1, nodes_per_slot=0, crowded_slots=0)
        train(pooling, deterministic, large_batch=1, nodes_per_slot=2**40, hub_rows=3, hub_rows_at_large_batches=3)
    train(MAX, False, hub_rows=3)
    for weight in (0, 1):
        ring = sparse.diags_array([np.ones(NODES - 1), np.ones(NODES - 1) + weight], offsets=[1, -1])
        TripletSampler(sparse.csr_array(ring, dtype=np.float32), device="cpu").draw(0, 10)
