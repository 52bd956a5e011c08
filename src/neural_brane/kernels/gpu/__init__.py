"""Train and apply Neural-Brane on an NVIDIA GPU with Triton, or slowly on the CPU with TRITON_INTERPRET=1."""

from typing import Any, TypeVar

import numpy as np
import torch

from neural_brane.errors import ParameterError
from neural_brane.kernels.gpu import bundles, large, small
from neural_brane.kernels.gpu.bundles import DEFAULT, DEVICE, INTERPRETED, Allocate, Limits, Shape, TablePair, empty
from neural_brane.kernels.gpu.large import LargeLayer, NodeLayer
from neural_brane.kernels.gpu.layer import Context, Gather, LayerStep, decay_of
from neural_brane.kernels.gpu.pool import POOL_WARPS, NodePlan, Plan, PoolWork, find_hubs, locate
from neural_brane.kernels.gpu.pool import pool as pool_kernel
from neural_brane.kernels.gpu.small import SmallLayer
from neural_brane.kernels.model import MAX, Bags, Model, Settings, padded

__all__ = ["DEVICE", "INTERPRETED", "Limits", "Trainer", "embed", "fetch", "hide", "place", "require_memory"]

PLAN_BYTES = 64  # bytes of a plan per slot

Arrays = TypeVar("Arrays", bound=tuple)


def place(arrays: Arrays) -> Arrays:
    """Copy a named tuple's arrays to GPU memory and return the copy; a model's tables are padded with zero columns."""
    placed = [torch.from_numpy(np.ascontiguousarray(array)).to(DEVICE) for array in arrays]
    if isinstance(arrays, Model):
        spare = [(0, padded(table.shape[1]) - table.shape[1]) for table in placed[:2]]
        placed[:2] = [torch.nn.functional.pad(t, s) if s[1] else t for t, s in zip(placed, spare, strict=False)]
    return type(arrays)(*placed)


def fetch(model: Model, into: Model) -> Model:
    """Copy a model from GPU memory into a model of NumPy arrays, and return it."""
    for theta, placed in zip(into, model, strict=True):
        torch.from_numpy(theta).copy_(placed[..., : theta.shape[-1]])
    return into


def require_memory(tables: int, graph: int, dim: int, hidden: int, batch: int, *, free: int | None = None) -> None:
    """Raise ParameterError unless tables, graph and scratch (bytes) fit into `free`, by default the GPU's memory."""
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
            f"but only {free:,} are free; lower dim or batch_size, stop other programs on the GPU, or set device='cpu'"
        )


SMALLEST_SCALE = 1e-6  # smallest common factor of the tables


class Trainer:
    """Takes steps of mini-batch SGD; call it with triplets (steps, batch, 3) int32 on the GPU.

    deterministic: sum each row's gradients in a fixed order, so that every run gives the same bits. Otherwise max
    pooling adds them atomically, in any order. Sum and mean pooling change every row of a bag and always use the fixed
    order. The tables stay unchanged if their rate is 0. steps: the usual number of steps per call, which are cut into
    equal groups. limits: thresholds that choose the launches of a step. allocate: makes scratch memory.
    """

    def __init__(
        self, model: Model, attribute_bags: Bags, neighbour_bags: Bags, settings: Settings, batch: int,
        deterministic: bool = False, *, steps: int | None = None, limits: Limits = DEFAULT, allocate: Allocate = empty,
    ):  # fmt: skip
        self.model, self.settings, self.batch = model, settings, batch
        bags, shape = (attribute_bags, neighbour_bags), Shape.of(model, settings)
        self.decay = decay_of(settings, settings.table_rate)  # per step of the tables
        self.group = _group_steps(3 * batch, self.decay, limits, steps)
        slots, nodes = 3 * batch, len(neighbour_bags.indptr) - 1
        group = bags, (len(model.attribute_table), len(model.neighbour_table)), self.group, slots
        is_large = batch >= limits.large_batch
        # A large batch computes one vector per node if it has clearly more slots than nodes.
        by_node = is_large and nodes <= limits.nodes_per_slot * slots
        self.plan = NodePlan(*group, limits.node_piece) if by_node else Plan(*group)
        self.tables, self.columns = TablePair.of(model, bags, shape), shape.columns()
        moves = settings.table_rate > 0
        scatter = moves and settings.pooling == MAX and not deterministic
        context = Context(model, self.tables, shape, settings, self.plan, scatter, limits, allocate)
        self.layer: LayerStep = (NodeLayer if by_node else LargeLayer if is_large else SmallLayer)(context)
        self.gather = Gather(context) if moves and not scatter else None
        by_max = settings.pooling == MAX  # only max pooling can combine the pieces of a hub's bag
        self.hubs = find_hubs(bags, shape, self.group, self.plan.vectors, limits) if by_max else None
        self._graph: torch.cuda.CUDAGraph | None = None
        self._compiled = False

    def __call__(self, triplets: torch.Tensor) -> np.ndarray:
        """Take one step per batch; return the mean of −ln σ before each step, (steps,) float64."""
        return self.launch(triplets).cpu().numpy()

    def launch(self, triplets: torch.Tensor) -> torch.Tensor:
        """Launch one step per batch; return the losses in GPU memory without waiting for them."""
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
                    # Other threads may use their own streams during the capture.
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

    def _steps(self, count: int) -> None:
        """Launch the first `count` steps of the plan; for L2 the tables contain P / scale, as in `cpu.steps`."""
        for step in range(count):
            scale = self.decay**step
            spans, rate = self.plan.spans(step)._replace(scale=scale), self.settings.table_rate / (scale * self.decay)
            # Launches that read the tables come before launches that write them.
            if self.hubs:
                spans = self.hubs.pool(step, self.tables, spans)
            self.layer.pool(step, spans)
            self.layer.step(step, rate)
            if self.gather:
                self.gather(step, bundles.Change(self.layer.gradient, self.layer.winner, rate), spans)
        if self.decay != 1:
            self.model.attribute_table.mul_(self.decay**count)
            self.model.neighbour_table.mul_(self.decay**count)
        self.layer.finish()


def _group_steps(slots: int, decay: float, limits: Limits, usual: int | None) -> int:
    """Return the number of steps in a group: equal groups, within the limits, that keep the common factor in range."""
    steps = max(1, min(limits.group_steps, limits.group_slots // slots))
    while steps > 1 and not decay**steps > SMALLEST_SCALE:
        steps //= 2
    return -(-usual // -(-usual // steps)) if usual else steps


def embed(
    model: Model, attribute_bags: Bags, neighbour_bags: Bags, nodes: Any, settings: Settings, *,
    allocate: Allocate = empty,
):  # fmt: skip
    """Return the embedding f(u) of nodes (k,): pooled attributes beside pooled neighbours, (k, d1 + d2) float32."""
    nodes = torch.as_tensor(nodes, dtype=torch.int32, device=DEVICE)
    shape, bags, count = Shape.of(model, settings), (attribute_bags, neighbour_bags), len(nodes)
    starts, sizes = allocate(2, count, dtype=torch.int64), allocate(2, count, dtype=torch.int32)
    locate(bags, nodes[None], starts, sizes)
    pooled, winner = allocate(count, shape.width), allocate(count, shape.width, dtype=torch.int32)
    work = PoolWork.of(shape, settings)
    pool_kernel[count, work.strips()](
        TablePair.of(model, bags, shape), bundles.Spans(starts, sizes, count), bundles.Pooled(pooled, None, winner),
        WORK=work, num_warps=POOL_WARPS,
    )  # fmt: skip
    return pooled[:, shape.columns()]


def hide(model: Model, pooled: Any):
    """Return h(u) = ReLU(W f(u) + b) as (k, hidden), from f(u) as pooled (k, d1 + d2)."""
    weight, bias = (torch.as_tensor(theta, device=DEVICE) for theta in (model.weight, model.bias))
    hidden = torch.relu(torch.as_tensor(pooled, device=DEVICE) @ weight.T + bias)
    return hidden if isinstance(pooled, torch.Tensor) else hidden.cpu().numpy()
