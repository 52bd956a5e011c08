"""A model whose tables lie with their ranks; W and b are small, and the same on every rank."""

from typing import Any

import numpy as np
import torch

from neural_brane.cluster.exchange import Exchange
from neural_brane.cluster.tables import ShardedTable
from neural_brane.kernels.model import Model, padded
from neural_brane.methods.neural_brane.initial import fill_rows, initial_seeds, random_weight

SMALLEST_SCALE = 0.25  # of the tables' common factor
FILLED_ROWS = 1 << 13  # whose first values are drawn at a time


class ShardedModel:
    """P and P' by rows over the ranks, and W and b.

    The tables hold P / scale: L2 on the parameters shrinks every row at every step, and one common factor does that
    without touching the rows.
    """

    def __init__(
        self, attributes: int, nodes: int, settings: dict[str, Any], exchange: Exchange, device: torch.device
    ):  # fmt: skip
        d1, dim, hidden = settings["attribute_dim"], settings["dim"], settings["hidden"]
        self.widths, self.exchange, self.device, self.scale = (d1, dim - d1), exchange, device, 1.0
        self.attributes = ShardedTable("attributes", attributes, padded(d1), exchange, device)
        self.neighbours = ShardedTable("neighbours", nodes, padded(dim - d1), exchange, device)
        self.weight = torch.zeros((hidden, dim), device=device)
        self.bias = torch.zeros(hidden, device=device)

    @property
    def tables(self) -> tuple[ShardedTable, ShardedTable]:
        """Both tables."""
        return self.attributes, self.neighbours

    def start(self, settings: dict[str, Any], seed: int) -> None:
        """Give all parameters their first values: the same numbers as one process, each rank its own rows."""
        seeds = initial_seeds(seed)
        for table, own_seed, width in zip(self.tables, seeds[:2], self.widths, strict=True):
            _fill(table, own_seed, width, settings["table_std"])
        hidden, dim = self.weight.shape
        self.weight.copy_(torch.from_numpy(random_weight(seeds.layer, hidden, dim, settings["weight_std"])))
        self.bias.zero_()
        self.scale = 1.0

    def fold(self) -> None:
        """Multiply the tables by their common factor, which is 1 from then on."""
        if self.scale != 1:
            for table in self.tables:
                table.local.mul_(self.scale)
            self.scale = 1.0

    def shrink(self, decay: float) -> None:
        """Shrink every row of both tables; folds the factor in where it has become small."""
        self.scale *= decay
        if self.scale < SMALLEST_SCALE:
            self.fold()

    def tensors(self) -> dict[str, Any]:
        """All that training changes and is no plain number, as distributed checkpoints keep it."""
        tables = {name: tensor for table in self.tables for name, tensor in table.state().items()}
        return tables | {"weight": self.weight, "bias": self.bias}

    def own(self) -> dict[str, np.ndarray]:
        """The parameters that this rank has."""
        held = {table.name: table.local for table in self.tables} | {"weight": self.weight, "bias": self.bias}
        return {name: tensor.cpu().numpy() for name, tensor in held.items()}

    def whole(self) -> Model:
        """The model as one process has it, on every rank."""
        self.fold()
        first, second = (table.whole() for table in self.tables)
        return Model(first, second, self.weight.cpu().numpy(), self.bias.cpu().numpy())


def _fill(table: ShardedTable, seed: np.random.SeedSequence, width: int, std: float) -> None:
    local = table.local
    for first in range(0, len(local), FILLED_ROWS):
        rows = np.zeros((len(local[first : first + FILLED_ROWS]), table.width), np.float32)
        fill_rows(rows[:, :width], seed, table.own.start + first, std)
        local[first : first + FILLED_ROWS] = torch.from_numpy(rows)
