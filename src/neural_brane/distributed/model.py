"""A model whose tables lie with their ranks; W and b are small, and the same on every rank."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import distributed

from neural_brane.distributed.exchange import Exchange, node_range
from neural_brane.kernels.model import Model, padded
from neural_brane.methods.neural_brane.training import fill_rows, initial_seeds, random_weight

# A table whose rows lie with their ranks: TorchRec looks rows up and subtracts what comes back, at the owner.
#
# Rows travel unpooled, since our own kernels pool them. TorchRec's fused SGD has rate 1: the gradient that is given
# back is the difference that a row has to take.

FEATURE = "rows"


class ShardedTable:
    """A table (rows, width) float32 of which each rank owns `node_range`; it is never whole anywhere.

    A table without rows or columns is kept too: looking up in it gives rows without numbers.
    """

    def __init__(self, name: str, rows: int, width: int, exchange: Exchange, device: torch.device):
        self.name, self.rows, self.width, self.device, self.exchange = name, rows, width, device, exchange
        self.own = node_range(rows, exchange.rank, exchange.ranks)
        self._module: Any = None
        if rows and width:
            with _quiet():
                from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

                self._module = _shard(name, rows, width, exchange, device)
            self._asked = KeyedJaggedTensor

    @property
    def local(self) -> torch.Tensor:
        """The rows that this rank owns, to be read and written in place."""
        if self._module is None:
            return torch.empty((len(self.own), self.width), device=self.device)
        shards = self.state()[f"{self.name}.weight"].local_shards()
        return shards[0].tensor if shards else torch.empty((0, self.width), device=self.device)

    def lookup(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of distinct ids (k,) int64, in their order. All ranks ask at once; each may ask for none."""
        if self._module is None:
            return torch.empty((len(ids), self.width), device=self.device)
        # A bag for each id: FBGEMM works bag by bag. The length is told, so that nobody waits for the GPU to count.
        lengths = torch.ones(len(ids), dtype=torch.int64, device=self.device)
        asked = self._asked(keys=[FEATURE], values=ids, lengths=lengths, length_per_key=[len(ids)])
        found: torch.Tensor = self._module(asked)[FEATURE].values()
        return found

    def give_back(self, rows: torch.Tensor, difference: torch.Tensor) -> None:
        """Subtract the difference from rows that were looked up, at their owners; those of several ranks add up."""
        if self._module is not None:
            torch.autograd.backward([rows], [difference])

    def state(self) -> dict[str, Any]:
        """The table as distributed checkpoints keep it: under one name, in the pieces of the ranks."""
        if self._module is None:
            return {}
        with _quiet():
            return {f"{self.name}.weight": self._module.state_dict()[f"embeddings.{self.name}.weight"]}

    def whole(self) -> np.ndarray:
        """All rows, on every rank: for graphs that every rank holds anyway."""
        if self._module is None:
            return np.zeros((self.rows, self.width), np.float32)
        found: torch.Tensor = self.exchange.gather(self.local.contiguous())
        return found.cpu().numpy()


def _shard(name: str, rows: int, width: int, exchange: Exchange, device: torch.device) -> Any:
    """TorchRec's module of a table, cut by rows, whose memory is first asked for in pieces, on their ranks."""
    import torchrec
    from torch.distributed.optim import _apply_optimizer_in_backward
    from torchrec.distributed.comm_ops import set_gradient_division
    from torchrec.distributed.embedding import EmbeddingCollectionSharder
    from torchrec.distributed.sharding_plan import construct_module_sharding_plan, row_wise
    from torchrec.distributed.types import ShardingEnv

    set_gradient_division(False)  # what ranks give back adds up; it is not averaged
    config = torchrec.EmbeddingConfig(name=name, embedding_dim=width, num_embeddings=rows, feature_names=[FEATURE])
    module = torchrec.EmbeddingCollection(tables=[config], device=torch.device("meta"))
    _apply_optimizer_in_backward(torch.optim.SGD, module.parameters(), {"lr": 1.0})
    sharder, ranks = EmbeddingCollectionSharder(), exchange.ranks
    plan = construct_module_sharding_plan(
        module, {name: row_wise()}, sharder=sharder, local_size=ranks, world_size=ranks, device_type=device.type
    )
    group = ShardingEnv.from_process_group(exchange.group or distributed.group.WORLD)
    return sharder.shard(module, plan, group, device)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep TorchRec and what it calls from warning of their own ways."""
    logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# A model whose tables lie with their ranks; W and b are small, and the same on every rank.

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
        self.weight.copy_(torch.from_numpy(random_weight(seeds[2], hidden, dim, settings["weight_std"])))
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
