"""Neural-Brane on an NVIDIA GPU, in Triton: the functions of `reference`.

Models and bags are those that `place` returns, in the GPU's memory.
With TRITON_INTERPRET=1 the same kernels run on the CPU, slowly: so they are tested where there is no GPU.
"""

from typing import Any, TypeVar

import numpy as np
import torch

from neural_brane.errors import ParameterError
from neural_brane.kernels.gpu import large, small
from neural_brane.kernels.gpu.bundles import (
    DEFAULT,
    DEVICE,
    INTERPRETED,
    Allocate,
    Change,
    Limits,
    Pooled,
    Shape,
    Spans,
    Tables,
    empty,
)
from neural_brane.kernels.gpu.large import LargeLayer, NodeLayer
from neural_brane.kernels.gpu.layer import Context, Gather, Layer, decay_of
from neural_brane.kernels.gpu.pool import POOL_WARPS, NodePlan, Plan, PoolWork, find_hubs, locate
from neural_brane.kernels.gpu.pool import pool as pool_kernel
from neural_brane.kernels.gpu.small import SmallLayer
from neural_brane.kernels.model import MAX, Bags, Model, Settings, padded

__all__ = ["DEVICE", "INTERPRETED", "Limits", "Trainer", "embed", "fetch", "hide", "place", "require_memory"]

# Arrays between the host's memory and the GPU's, and whether a training fits there.

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


def require_memory(tables: int, graph: int, dim: int, hidden: int, batch: int, *, free: int | None = None) -> None:
    """Raise a ParameterError unless tables and graph of these bytes, and a batch's scratch, fit into free bytes.

    free: the GPU's free memory when None; the interpreter has no such limit.
    """
    if free is None:
        if INTERPRETED:
            return
        free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    slots = 3 * batch
    shares = small.SHARES if batch < DEFAULT.large_batch else large.SHARES
    plan = PLAN_BYTES * max(DEFAULT.group_slots, 2 * slots)
    scratch = 4 * slots * (3 * dim + 2 * hidden) + plan + 4 * shares * dim * hidden
    needed = tables + graph + scratch
    if needed > free:
        raise ParameterError(
            f"training needs {needed:,} bytes of GPU memory (tables {tables:,}, graph {graph:,}, scratch {scratch:,}), "
            f"and {free:,} are free; lower dim or batch_size, free the GPU, or train with device='cpu'"
        )


# A model in training on the GPU: plans groups of steps and launches them, most of them as one captured CUDA graph.

SMALLEST_SCALE = 1e-6


class Trainer:
    """Takes steps of mini-batch SGD; call it with triplets (steps, batch, 3) on the GPU.

    `deterministic` adds up each row's gradients in a fixed order, so that every run gives the same bits; without it,
    max pooling adds them atomically, in any order. Sum and mean pooling, which change every row of a bag, always add
    in the fixed order. Rows whose rate is 0 are left alone. `limits` decide which launches a step takes; `allocate`
    makes its scratch memory. `steps` is how many a call usually has: they are then cut into equal groups.
    """

    def __init__(
        self, model: Model, attribute_bags: Bags, neighbour_bags: Bags, settings: Settings, batch: int,
        deterministic: bool = False, *, steps: int | None = None, limits: Limits = DEFAULT, allocate: Allocate = empty,
    ):  # fmt: skip
        self.model, self.settings, self.batch = model, settings, batch
        bags, shape = (attribute_bags, neighbour_bags), Shape.of(model, settings)
        self.decay = decay_of(settings, settings.table_rate)  # of the tables
        self.group = _group_steps(3 * batch, self.decay, limits, steps)
        slots, nodes = 3 * batch, len(neighbour_bags.indptr) - 1
        group = bags, (len(model.attribute_table), len(model.neighbour_table)), self.group, slots
        is_large = batch >= limits.large_batch
        # A large batch with more slots than nodes computes each node's vector once.
        by_node = is_large and nodes <= limits.nodes_per_slot * slots
        self.plan = NodePlan(*group, limits.node_piece) if by_node else Plan(*group)
        self.tables, self.columns = Tables.of(model, bags, shape), shape.columns()
        moves = settings.table_rate > 0
        scatter = moves and settings.pooling == MAX and not deterministic
        context = Context(model, self.tables, shape, settings, self.plan, scatter, limits, allocate)
        self.layer: Layer = (NodeLayer if by_node else LargeLayer if is_large else SmallLayer)(context)
        self.gather = Gather(context) if moves and not scatter else None
        by_max = settings.pooling == MAX  # the pieces of a hub's bag are combined by max alone
        self.hubs = find_hubs(bags, shape, self.group, self.plan.vectors, limits) if by_max else None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._compiled = False

    def __call__(self, triplets: torch.Tensor) -> np.ndarray:
        """Take one step per batch; returns (steps,) float64, the mean of −ln σ before each."""
        return self.launch(triplets).cpu().numpy()

    def launch(self, triplets: torch.Tensor) -> torch.Tensor:
        """Launch one step per batch; returns the losses in the GPU's memory, without waiting for them."""
        losses = torch.empty(len(triplets), dtype=torch.float64, device=DEVICE)
        for first in range(0, len(triplets), self.group):
            part = triplets[first : first + self.group]
            if self.plan.fill(part, segments=self.gather is not None):
                self._graph = None
            if self.hubs:
                self.hubs.fill(self.plan.nodes_of_vectors(part))
            if len(part) == self.group and self._compiled and not INTERPRETED:
                if self._graph is None:
                    graph = torch.cuda.CUDAGraph()
                    # Other threads may watch their own streams.
                    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                        self._steps(self.group)
                    self._graph = graph
                self._graph.replay()
            else:
                self._steps(len(part))
                self._compiled = len(part) == self.group
            torch.sum(self.layer.losses[: len(part)], 1, dtype=torch.float64, out=losses[first : first + len(part)])
        self.model.weight.copy_(self.layer.arrays.weight[: len(self.model.weight), self.columns])
        self.model.bias.copy_(self.layer.arrays.bias[: len(self.model.bias)])
        return losses / self.batch

    def reload(self) -> None:
        """Take W and b from the model again, after somebody else has changed them there."""
        self.layer.load()

    def _steps(self, count: int) -> None:
        """Launch the first steps of the plan.

        L2 on the parameters shrinks every row of both tables at every step. One common factor does that without
        touching the rows: the tables hold P / scale, and pooling commutes with a positive factor.
        """
        for step in range(count):
            scale = self.decay**step
            spans, rate = self.plan.spans(step)._replace(scale=scale), self.settings.table_rate / (scale * self.decay)
            # All that reads the tables comes before what writes them.
            if self.hubs:
                spans = self.hubs.pool(step, self.tables, spans)
            self.layer.pool(step, spans)
            self.layer.step(step, rate)
            if self.gather:
                self.gather(step, Change(self.layer.gradient, self.layer.winner, rate), spans)
        if self.decay != 1:
            self.model.attribute_table.mul_(self.decay**count)
            self.model.neighbour_table.mul_(self.decay**count)
        self.layer.finish()


def _group_steps(slots: int, decay: float, limits: Limits, usual: int | None) -> int:
    """How many steps to plan and capture together; the tables' common factor stays in range, and groups are equal."""
    steps = max(1, min(limits.group_steps, limits.group_slots // slots))
    while steps > 1 and not decay**steps > SMALLEST_SCALE:
        steps //= 2
    return -(-usual // -(-usual // steps)) if usual else steps


def embed(
    model: Model, attribute_bags: Bags, neighbour_bags: Bags, nodes: Any, settings: Settings, *,
    allocate: Allocate = empty,
):  # fmt: skip
    """f(u), the embedding: pooled attributes beside pooled neighbours. Returns (k, d1 + d2)."""
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
