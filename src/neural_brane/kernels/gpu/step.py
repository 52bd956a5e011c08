"""Neural-Brane on an NVIDIA GPU, in Triton: the kernels of `reference`, a step in three launches, many in one graph.

Functions take NumPy arrays, which are copied to the GPU and back, or what `place` made of them, which stays there.
With TRITON_INTERPRET=1 the same kernels run on the CPU, slowly: that is how they are tested without a GPU.
"""

from typing import Any, TypeVar

import numpy as np
import torch

from neural_brane.errors import ParameterError
from neural_brane.kernels.gpu import large as gpu_large
from neural_brane.kernels.gpu import shapes as gpu_frame
from neural_brane.kernels.gpu import small as gpu_small
from neural_brane.kernels.gpu.plan import locate
from neural_brane.kernels.gpu.shapes import DEVICE, INTERPRETED, LARGE_POOL, Frame, empty
from neural_brane.kernels.gpu.trainer import GROUP_SLOTS, Trainer
from neural_brane.kernels.model import Bags, Model, Settings, padded

PLAN_BYTES = 64  # of a slot

Arrays = TypeVar("Arrays", bound=tuple)


def place(arrays: Arrays) -> Arrays:
    """The same NamedTuple with its arrays in the GPU's memory, a model's tables with spare columns of zeros."""
    placed = [torch.from_numpy(np.ascontiguousarray(array)).to(DEVICE) for array in arrays]
    if isinstance(arrays, Model):
        spare = [(0, padded(table.shape[1]) - table.shape[1]) for table in placed[:2]]
        placed[:2] = [torch.nn.functional.pad(t, s) if s[1] else t for t, s in zip(placed, spare, strict=False)]
    return type(arrays)(*placed)


def fetch(model: Model, into: Model) -> Model:
    """Copy a placed model into one of NumPy arrays, which is returned."""
    for theta, found in zip(into, model, strict=True):
        torch.from_numpy(theta).copy_(found[..., : theta.shape[-1]])
    return into


def train(model: Model, attribute_bags: Bags, neighbour_bags: Bags, triplets: Any, settings: Settings, **options: bool):
    """Take one SGD step per batch of triplets (steps, batch, 3) int32, changing the model in place.

    Options are those of `Trainer`. Returns (steps,) float64: each batch's mean of −ln σ before its step.
    """
    if isinstance(model.weight, torch.Tensor):
        return Trainer(model, attribute_bags, neighbour_bags, settings, triplets.shape[1], **options)(triplets)
    placed = place(model)
    triplets = torch.from_numpy(triplets).to(DEVICE)
    losses = train(placed, place(attribute_bags), place(neighbour_bags), triplets, settings, **options)
    fetch(placed, model)
    return losses


def embed(model: Model, attribute_bags: Bags, neighbour_bags: Bags, nodes: Any, settings: Settings):
    """f(u), the embedding: pooled attributes beside pooled neighbours. Returns (k, d1 + d2)."""
    if not isinstance(model.weight, torch.Tensor):
        return embed(place(model), place(attribute_bags), place(neighbour_bags), nodes, settings).cpu().numpy()
    nodes = torch.as_tensor(nodes, dtype=torch.int32, device=DEVICE)
    frame, bags = Frame.of(model, settings), (attribute_bags, neighbour_bags)
    starts, sizes = empty(2, len(nodes), dtype=torch.int64), empty(2, len(nodes), dtype=torch.int32)
    locate(bags, nodes[None], starts, sizes)
    pooled = empty(len(nodes), frame.width)
    winner = empty(len(nodes), frame.width, dtype=torch.int32)
    frame.pool(model, bags, starts, sizes, pooled, winner, settings, LARGE_POOL)
    return pooled[:, frame.columns()]


def hide(model: Model, pooled: Any):
    """h(u) = ReLU(W f(u) + b). Returns (k, hidden)."""
    weight, bias = (torch.as_tensor(theta, device=DEVICE) for theta in (model.weight, model.bias))
    hidden = torch.relu(torch.as_tensor(pooled, device=DEVICE) @ weight.T + bias)
    return hidden if isinstance(pooled, torch.Tensor) else hidden.cpu().numpy()


def require_memory(tables: int, graph: int, dim: int, hidden: int, batch: int) -> None:
    """Raise a ParameterError unless tables and graph of these bytes, and a batch's scratch, fit the GPU's memory."""
    if INTERPRETED:
        return
    slots = 3 * batch
    shares = gpu_small.SPLITS if batch < gpu_frame.LARGE_BATCH else gpu_large.SPLITS
    plan = PLAN_BYTES * max(GROUP_SLOTS, 2 * slots)
    scratch = 4 * slots * (3 * dim + 2 * hidden) + plan + 4 * shares * dim * hidden
    needed = tables + graph + scratch
    free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    if needed > free:
        raise ParameterError(
            f"training needs {needed:,} bytes of GPU memory (tables {tables:,}, graph {graph:,}, scratch {scratch:,}), "
            f"and {free:,} are free; lower dim or batch_size, free the GPU, or train with device='cpu'"
        )
