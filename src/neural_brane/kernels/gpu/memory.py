"""Arrays between the host's memory and the GPU's, and whether a training fits there."""

from typing import TypeVar

import numpy as np
import torch

from neural_brane.errors import ParameterError
from neural_brane.kernels.gpu import large, small
from neural_brane.kernels.gpu.device import DEVICE, INTERPRETED
from neural_brane.kernels.gpu.limits import DEFAULT, Limits
from neural_brane.kernels.model import Model, padded

PLAN_BYTES = 64  # of a plan, per slot

Arrays = TypeVar("Arrays", bound=tuple)


def place(arrays: Arrays) -> Arrays:
    """The same NamedTuple with its arrays in the GPU's memory; a model's tables get spare columns of zeros."""
    placed = [torch.from_numpy(np.ascontiguousarray(array)).to(DEVICE) for array in arrays]
    if isinstance(arrays, Model):
        spare = [(0, padded(table.shape[1]) - table.shape[1]) for table in placed[:2]]
        placed[:2] = [torch.nn.functional.pad(t, s) if s[1] else t for t, s in zip(placed, spare, strict=False)]
    return type(arrays)(*placed)


def fetch(model: Model, into: Model) -> Model:
    """Copy a model from the GPU's memory into one of NumPy arrays, which is returned."""
    for theta, found in zip(into, model, strict=True):
        torch.from_numpy(theta).copy_(found[..., : theta.shape[-1]])
    return into


def require_memory(
    tables: int, graph: int, dim: int, hidden: int, batch: int, *, free: int | None = None, limits: Limits = DEFAULT
) -> None:
    """Raise a ParameterError unless tables and graph of these bytes, and a batch's scratch, fit into free bytes.

    free: the GPU's free memory when None; the interpreter has no such limit.
    """
    if free is None:
        if INTERPRETED:
            return
        free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    slots = 3 * batch
    shares = small.SHARES if batch < limits.large_batch else large.SHARES
    plan = PLAN_BYTES * max(limits.group_slots, 2 * slots)
    scratch = 4 * slots * (3 * dim + 2 * hidden) + plan + 4 * shares * dim * hidden
    needed = tables + graph + scratch
    if needed > free:
        raise ParameterError(
            f"training needs {needed:,} bytes of GPU memory (tables {tables:,}, graph {graph:,}, scratch {scratch:,}), "
            f"and {free:,} are free; lower dim or batch_size, free the GPU, or train with device='cpu'"
        )
