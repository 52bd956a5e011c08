"""A model in training on the GPU: scratch memory, and the launches of many steps in one captured graph."""

import numpy as np
import torch
import triton

from neural_brane.kernels import gpu_layer, gpu_tables
from neural_brane.kernels.gpu_frame import DEPTH, DEVICE, INTERPRETED, Frame, empty, tiles_for
from neural_brane.kernels.gpu_plan import Plan
from neural_brane.kernels.types import MAX, Bags, Model, Settings

GROUP_STEPS = 100  # steps captured in one graph; even, since W's two copies take turns
GROUP_SLOTS = 2**22  # but no more slots than that, whose plan takes memory
SMALLEST_SCALE = 1e-6
SCATTER_ROWS, SCATTER_COLUMNS = 64, 16
GATHERERS = 2048  # programs that share a table's rows


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
        self.batch, self.slots, self.tiles = batch, 3 * batch, tiles_for(batch)
        self.frame = Frame.of(model, settings)
        self.scatter = settings.pooling == MAX and not deterministic
        self.decay = 1 - 2 * settings.learning_rate * settings.parameter_l2
        self.group = _group_steps(self.slots, self.decay)
        rows = len(model.attribute_table), len(model.neighbour_table)
        self.plan = Plan(self.bags, rows, self.group, self.slots)
        self.columns = self.frame.columns()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._compiled = False
        self._allocate()

    def _allocate(self) -> None:
        frame, tiles, model = self.frame, self.tiles, self.model
        self.strips = triton.cdiv(frame.hidden, tiles.hide_columns)
        self.pooled = empty(self.slots, frame.width)  # f
        self.winner = empty(self.slots, frame.width, dtype=torch.int32)
        self.hidden = empty(self.slots, frame.hidden)  # h, then dL/dz
        self.gradient = empty(self.slots, frame.width)  # dL/df
        self.margins = empty(self.strips, self.batch)
        score_tiles = triton.cdiv(self.batch, tiles.hide_rows // 3)
        self.losses = empty(self.group, score_tiles)  # sums of −ln σ
        self.weight_shares = empty(tiles.splits, frame.hidden, frame.width)
        self.bias_shares = empty(tiles.splits, frame.hidden)
        weight_tiles = triton.cdiv(frame.hidden, tiles.weight_tile) * triton.cdiv(frame.width, tiles.weight_tile)
        self.arrivals = torch.zeros(score_tiles, dtype=torch.int32, device=DEVICE)
        self.weight_arrivals = torch.zeros(weight_tiles, dtype=torch.int32, device=DEVICE)
        self.weights = torch.zeros((2, frame.hidden, frame.width), device=DEVICE)
        self.bias = torch.zeros(frame.hidden, device=DEVICE)
        self.weights[0, : len(model.weight), self.columns] = model.weight
        self.bias[: len(model.bias)] = model.bias

    def __call__(self, triplets: torch.Tensor) -> np.ndarray:
        """Take one step per batch; returns (steps,) float64, the mean of −ln σ before each."""
        losses = torch.empty(len(triplets), dtype=torch.float64, device=DEVICE)
        for first in range(0, len(triplets), self.group):
            part = triplets[first : first + self.group]
            if self.plan.fill(part, segments=not self.scatter):
                self._graph = None
            if len(part) == self.group and self._compiled and not INTERPRETED:
                self._graph = self._graph or self._capture()
                self._graph.replay()
            else:
                self._steps(len(part))
                self._compiled = len(part) == self.group
            torch.sum(self.losses[: len(part)], 1, dtype=torch.float64, out=losses[first : first + len(part)])
        self.model.weight.copy_(self.weights[0, : len(self.model.weight), self.columns])
        self.model.bias.copy_(self.bias[: len(self.model.bias)])
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
        if count % 2:
            self.weights[0].copy_(self.weights[1])

    def _step(self, step: int, scale: float) -> None:
        """Launch one step: all that reads the tables comes before what writes them."""
        plan, rate = self.plan, self.settings.learning_rate / (scale * self.decay)
        self.frame.pool(
            self.model, self.bags, plan.starts[step], plan.sizes[step], self.pooled,
            self.winner, self.settings, self.tiles, scale,
        )  # fmt: skip
        self._hide(step)
        self._descend(step, rate)
        if not self.scatter:
            self._gather(step, rate)
        elif self.tiles.apart:
            self._scatter(rate)

    def _hide(self, step: int) -> None:
        """Launch the ReLU layer and the slopes of its units."""
        s, frame, tiles = self.settings, self.frame, self.tiles
        gpu_layer.hide[self.strips, len(self.arrivals)](
            self.pooled, self.weights[step % 2], self.bias, self.hidden, self.margins, self.arrivals,
            self.losses[step], self.slots, s.triplet_scale, 2 * s.hidden_l2,
            WIDTH=frame.width, HIDDEN=frame.hidden, STRIPS=self.strips, PRECISION=tiles.precision,
            ROWS=tiles.hide_rows, COLUMNS=tiles.hide_columns, DEPTH=DEPTH, UNITS=tiles.hide_units,
            num_stages=tiles.stages,
        )  # fmt: skip

    def _descend(self, step: int, rate: float) -> None:
        """Launch the update of W and b, and the tables' gradient: taken at once, or kept for another launch."""
        s, frame, tiles = self.settings, self.frame, self.tiles
        table_tiles = triton.cdiv(self.slots, tiles.rows) * triton.cdiv(frame.width, tiles.columns)
        weight_tiles = len(self.weight_arrivals) * tiles.splits
        gpu_layer.descend[weight_tiles + table_tiles,](
            self.pooled, self.hidden, self.weights[step % 2], self.weights[1 - step % 2], self.bias,
            self.weight_shares, self.bias_shares, self.weight_arrivals, self.winner, self.gradient, *self._tables(),
            self.slots, frame.second, s.learning_rate, rate, self.decay, weight_tiles,
            WIDTH=frame.width, HIDDEN=frame.hidden, PRECISION=tiles.precision,
            SCATTER=self.scatter and not tiles.apart, BIAS=s.train_bias, ROWS=tiles.rows, COLUMNS=tiles.columns,
            TILE=tiles.weight_tile, DEPTH=DEPTH, SPLITS=tiles.splits, num_stages=tiles.stages,
        )  # fmt: skip

    def _scatter(self, rate: float) -> None:
        """Launch the update of the winning rows by the gradients that were kept."""
        gpu_tables.scatter[triton.cdiv(self.slots, SCATTER_ROWS), self.frame.width // SCATTER_COLUMNS](
            self.gradient, self.winner, *self._tables(), self.slots, self.frame.second, rate,
            WIDTH=self.frame.width, ROWS=SCATTER_ROWS, COLUMNS=SCATTER_COLUMNS,
        )  # fmt: skip

    def _gather(self, step: int, rate: float) -> None:
        """Launch the update of both tables, a row at a time."""
        frame, plan, tables = self.frame, self.plan, self._tables()
        lists = [(found.bounds[step:], found.rows, found.ends, found.entries) for found in plan.segments]
        gpu_tables.gather[1 if INTERPRETED else GATHERERS, 2](
            *tables[:2], *lists[0], *tables[2:], *lists[1], self.gradient, self.winner, plan.sizes[step],
            self.slots, frame.second, frame.padded, rate,
            POOLING=self.settings.pooling, WIDTH=frame.width, ROWS=8, COLUMNS=frame.block(), num_warps=1,
        )  # fmt: skip

    def _tables(self) -> tuple[torch.Tensor, int, torch.Tensor, int]:
        attributes, neighbours = self.model.attribute_table, self.model.neighbour_table
        return attributes, attributes.stride(0), neighbours, neighbours.stride(0)


def _group_steps(slots: int, decay: float) -> int:
    """How many steps to plan and capture at once: even, and so few that the tables' common factor stays in range."""
    steps = min(GROUP_STEPS, GROUP_SLOTS // slots)
    while steps > 2 and not decay**steps > SMALLEST_SCALE:
        steps //= 2
    return max(2, steps // 2 * 2)
