"""Neural-Brane on an NVIDIA GPU, in Triton: the functions of `reference`.

They take NumPy arrays, which are copied to the GPU and back, or the arrays that `place` returns, which stay there.
With TRITON_INTERPRET=1 the same kernels run on the CPU, slowly: so they are tested where there is no GPU.
"""

from typing import Any

import torch

from neural_brane.kernels.gpu.bundles import DEVICE, INTERPRETED, Allocate, Limits, Pooled, Shape, Spans, Tables, empty
from neural_brane.kernels.gpu.pool import POOL_WARPS, PoolWork, locate
from neural_brane.kernels.gpu.pool import pool as pool_kernel
from neural_brane.kernels.gpu.trainer import Trainer, fetch, place, require_memory
from neural_brane.kernels.model import Bags, Model, Settings

__all__ = ["DEVICE", "INTERPRETED", "Limits", "Trainer", "embed", "fetch", "hide", "place", "require_memory", "train"]


def train(model: Model, attribute_bags: Bags, neighbour_bags: Bags, triplets: Any, settings: Settings, **options: Any):
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


def embed(
    model: Model, attribute_bags: Bags, neighbour_bags: Bags, nodes: Any, settings: Settings, *,
    allocate: Allocate = empty,
):  # fmt: skip
    """f(u), the embedding: pooled attributes beside pooled neighbours. Returns (k, d1 + d2)."""
    if not isinstance(model.weight, torch.Tensor):
        placed = place(model), place(attribute_bags), place(neighbour_bags)
        return embed(*placed, nodes, settings, allocate=allocate).cpu().numpy()
    nodes = torch.as_tensor(nodes, dtype=torch.int32, device=DEVICE)
    shape, bags, count = Shape.of(model, settings), (attribute_bags, neighbour_bags), len(nodes)
    starts, sizes = allocate(2, count, dtype=torch.int64), allocate(2, count, dtype=torch.int32)
    locate(bags, nodes[None], starts, sizes)
    pooled, winner = allocate(count, shape.width), allocate(count, shape.width, dtype=torch.int32)
    work = PoolWork.of(shape, settings)
    pool_kernel[count, work.strips()](
        Tables.of(model, bags, shape), Spans(starts, sizes, count), Pooled(pooled, None, winner),
        WORK=work, num_warps=POOL_WARPS,
    )  # fmt: skip
    return pooled[:, shape.columns()]


def hide(model: Model, pooled: Any):
    """h(u) = ReLU(W f(u) + b). Returns (k, hidden)."""
    weight, bias = (torch.as_tensor(theta, device=DEVICE) for theta in (model.weight, model.bias))
    hidden = torch.relu(torch.as_tensor(pooled, device=DEVICE) @ weight.T + bias)
    return hidden if isinstance(pooled, torch.Tensor) else hidden.cpu().numpy()
