"""A model in training on the GPU: the launches of many steps, in one captured graph."""

import numpy as np
import torch

from neural_brane.kernels.gpu import shapes as gpu_frame
from neural_brane.kernels.gpu import tables as gpu_tables
from neural_brane.kernels.gpu.hubs import find_long_bags
from neural_brane.kernels.gpu.large import LargeLayer
from neural_brane.kernels.gpu.layer import decay_of
from neural_brane.kernels.gpu.nodes import NodeLayer, NodePlan
from neural_brane.kernels.gpu.plan import Plan, most_often
from neural_brane.kernels.gpu.shapes import DEVICE, INTERPRETED, Frame
from neural_brane.kernels.gpu.small import SmallLayer
from neural_brane.kernels.model import MAX, Bags, Model, Settings

GROUP_STEPS = 100  # steps captured in one graph
GROUP_SLOTS = 2**22  # but no more slots than that, whose plan takes memory
SMALLEST_SCALE = 1e-6
# Programs that share a table's rows, slots that one reads at a time, its warps; and where some row is hot.
GATHERERS = 2048, 8, 1
HOT_GATHERERS = 1024, 32, 4
HOT = 128  # slots that hold one row
ONCE = 0.75  # nodes to a slot, up to which a step computes every node's vector once


class Trainer:
    """Takes steps of mini-batch SGD; call it with triplets (steps, batch, 3) on the GPU.

    `deterministic` adds up each row's gradients in the slots' order, so that every run gives the same bits; without,
    they are added as they come. Sum and mean pooling always go the first way, where every row of a bag is written.
    """

    def __init__(
        self, model: Model, attribute_bags: Bags, neighbour_bags: Bags, settings: Settings, batch: int,
        deterministic: bool = False,
    ):  # fmt: skip
        self.model, self.bags, self.settings = model, (attribute_bags, neighbour_bags), settings
        self.batch, self.slots = batch, 3 * batch
        self.frame = Frame.of(model, settings)
        self.scatter = settings.pooling == MAX and not deterministic
        self.decay = decay_of(settings)
        self.group = _group_steps(self.slots, self.decay)
        rows = len(model.attribute_table), len(model.neighbour_table)
        plan, layer = _choose(len(neighbour_bags.indptr) - 1, batch)
        self.plan = plan(self.bags, rows, self.group, self.slots)
        in_pieces = settings.pooling == MAX
        self.long = find_long_bags(self.bags, self.frame, self.group, self.plan.rows) if in_pieces else None
        self.columns = self.frame.columns()
        hot = not self.scatter and any(most_often(bags, self.plan.rows) > HOT for bags in self.bags)
        self.gatherers = HOT_GATHERERS if hot else GATHERERS
        self._graph: torch.cuda.CUDAGraph | None = None
        self._compiled = False
        self.layer = layer(self.frame, settings, model, self.plan, self.scatter)

    def __call__(self, triplets: torch.Tensor) -> np.ndarray:
        """Take one step per batch; returns (steps,) float64, the mean of −ln σ before each."""
        losses = torch.empty(len(triplets), dtype=torch.float64, device=DEVICE)
        for first in range(0, len(triplets), self.group):
            part = triplets[first : first + self.group]
            if self.plan.fill(part, segments=not self.scatter):
                self._graph = None
            if self.long:
                self.long.fill(self.plan.nodes_of_rows(part))
            if len(part) == self.group and self._compiled and not INTERPRETED:
                self._graph = self._graph or self._capture()
                self._graph.replay()
            else:
                self._steps(len(part))
                self._compiled = len(part) == self.group
            torch.sum(self.layer.losses[: len(part)], 1, dtype=torch.float64, out=losses[first : first + len(part)])
        self.model.weight.copy_(self.layer.weight[: len(self.model.weight), self.columns])
        self.model.bias.copy_(self.layer.bias[: len(self.model.bias)])
        return (losses / self.batch).cpu().numpy()

    def _capture(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._steps(self.group)
        return graph

    def _steps(self, count: int) -> None:
        """Launch the first steps of the plan.

        L2 on the parameters shrinks every row of both tables at every step. A common factor does it in no time:
        the tables hold P / scale, and pooling commutes with a positive factor.
        """
        for step in range(count):
            self._step(step, self.decay**step)
        if self.decay != 1:
            self.model.attribute_table.mul_(self.decay**count)
            self.model.neighbour_table.mul_(self.decay**count)
        self.layer.finish()

    def _step(self, step: int, scale: float) -> None:
        """Launch one step: all that reads the tables comes before what writes them."""
        plan, layer, rate = self.plan, self.layer, self.settings.learning_rate / (scale * self.decay)
        long = self.long.pool(step, self.model) if self.long else None
        self.frame.pool(
            self.model, self.bags, plan.starts[step], plan.sizes[step], layer.pooled, layer.winner, self.settings,
            layer.pool_tiles, scale, long, **layer.pooling(step),
        )  # fmt: skip
        layer.step(step, self._tables(), rate)
        if not self.scatter:
            self._gather(step, rate)

    def _gather(self, step: int, rate: float) -> None:
        """Launch the update of both tables, a row at a time."""
        frame, plan, tables = self.frame, self.plan, self._tables()
        attributes, neighbours = plan.segments_of(step)
        programs, slots, warps = self.gatherers
        gpu_tables.gather[1 if INTERPRETED else programs, 2](
            *tables[:2], *attributes, *tables[2:], *neighbours, self.layer.gradient, self.layer.winner,
            plan.sizes[step], plan.rows, frame.second, frame.padded, rate, POOLING=self.settings.pooling,
            WIDTH=frame.width, ROWS=slots, COLUMNS=frame.block(), num_warps=warps,
        )  # fmt: skip

    def _tables(self) -> tuple[torch.Tensor, int, torch.Tensor, int]:
        attributes, neighbours = self.model.attribute_table, self.model.neighbour_table
        return attributes, attributes.stride(0), neighbours, neighbours.stride(0)


def _choose(nodes: int, batch: int) -> tuple[type[Plan], type[SmallLayer | LargeLayer]]:
    """The plan and the launches that suit a graph and a batch."""
    if batch < gpu_frame.LARGE_BATCH:
        return Plan, SmallLayer
    return (NodePlan, NodeLayer) if nodes <= ONCE * 3 * batch else (Plan, LargeLayer)


def _group_steps(slots: int, decay: float) -> int:
    """How many steps to plan and capture at once: so few that the tables' common factor stays in range."""
    steps = max(1, min(GROUP_STEPS, GROUP_SLOTS // slots))
    while steps > 1 and not decay**steps > SMALLEST_SCALE:
        steps //= 2
    return steps
