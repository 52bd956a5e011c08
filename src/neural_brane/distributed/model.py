"""Divide a model's tables among the ranks, and train it one step on CPUs."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import distributed

from neural_brane.distributed.batches import Batch
from neural_brane.distributed.exchange import Exchange, node_range
from neural_brane.kernels.model import Bags, Model, Settings, padded
from neural_brane.methods.neural_brane.training import fill_rows, initial_seeds, random_weight

# TorchRec only looks up rows; our kernels pool them. Its fused SGD with rate 1 subtracts gradients at the owner of a
# row, so the "gradient" passed to it is the change to subtract.

FEATURE = "rows"


class ShardedTable:
    """A table (rows, width) float32, divided among the ranks by `node_range`; rows and width may be 0."""

    def __init__(self, name: str, rows: int, width: int, exchange: Exchange):
        self.name, self.rows, self.width, self.device, self.exchange = name, rows, width, exchange.device, exchange
        self.own = node_range(rows, exchange.rank, exchange.ranks)
        self._module: Any = None
        if rows and width:
            with _quiet():
                from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

                self._module = _shard(name, rows, width, exchange)
            self._request = KeyedJaggedTensor

    @property
    def local(self) -> torch.Tensor:
        """The rows that this rank owns; read and write them in place."""
        if self._module is None:
            return torch.empty((len(self.own), self.width), device=self.device)
        shards = self.state()[f"{self.name}.weight"].local_shards()
        return shards[0].tensor if shards else torch.empty((0, self.width), device=self.device)

    def lookup(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of distinct ids (k,) int64, in their order. All ranks call at once; k may be 0."""
        if self._module is None:
            return torch.empty((len(ids), self.width), device=self.device)
        # FBGEMM needs a bag for each id. With length_per_key, no rank waits for the GPU to count the ids.
        lengths = torch.ones(len(ids), dtype=torch.int64, device=self.device)
        request = self._request(keys=[FEATURE], values=ids, lengths=lengths, length_per_key=[len(ids)])
        rows: torch.Tensor = self._module(request)[FEATURE].values()
        return rows

    def subtract(self, rows: torch.Tensor, change: torch.Tensor) -> None:
        """Subtract a change from looked-up rows, at their owners; the changes of several ranks add up."""
        if self._module is not None:
            torch.autograd.backward([rows], [change])

    def state(self) -> dict[str, Any]:
        """Return the table by its name in checkpoints."""
        if self._module is None:
            return {}
        with _quiet():
            return {f"{self.name}.weight": self._module.state_dict()[f"embeddings.{self.name}.weight"]}

    def whole(self) -> np.ndarray:
        """Return all rows, on every rank."""
        if self._module is None:
            return np.zeros((self.rows, self.width), np.float32)
        rows: torch.Tensor = self.exchange.gather(self.local.contiguous())
        return rows.cpu().numpy()


def _shard(name: str, rows: int, width: int, exchange: Exchange) -> Any:
    """Return TorchRec's module of a table divided by rows; no rank allocates the whole table."""
    import torchrec
    from torch.distributed.optim import _apply_optimizer_in_backward
    from torchrec.distributed.comm_ops import set_gradient_division
    from torchrec.distributed.embedding import EmbeddingCollectionSharder
    from torchrec.distributed.sharding_plan import construct_module_sharding_plan, row_wise
    from torchrec.distributed.types import ShardingEnv

    set_gradient_division(False)  # changes of several ranks add up; the default would average them
    config = torchrec.EmbeddingConfig(name=name, embedding_dim=width, num_embeddings=rows, feature_names=[FEATURE])
    module = torchrec.EmbeddingCollection(tables=[config], device=torch.device("meta"))
    _apply_optimizer_in_backward(torch.optim.SGD, module.parameters(), {"lr": 1.0})
    sharder, ranks, device = EmbeddingCollectionSharder(), exchange.ranks, exchange.device
    plan = construct_module_sharding_plan(
        module, {name: row_wise()}, sharder=sharder, local_size=ranks, world_size=ranks, device_type=device.type
    )
    group = ShardingEnv.from_process_group(exchange.group or distributed.group.WORLD)
    return sharder.shard(module, plan, group, device)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the warnings of TorchRec and of the packages it calls."""
    logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


SMALLEST_SCALE = 0.25  # below it, the tables are multiplied by their common factor
FILLED_ROWS = 1 << 13  # rows initialised at a time


class ShardedModel:
    """A model whose rows of P and P' are divided among the ranks, as tables P / scale; W and b are on every rank."""

    def __init__(self, attributes: int, nodes: int, settings: dict[str, Any], exchange: Exchange):
        d1, dim, hidden = settings["attribute_dim"], settings["dim"], settings["hidden"]
        self.widths, self.exchange, self.device, self.scale = (d1, dim - d1), exchange, exchange.device, 1.0
        self.attributes = ShardedTable("attributes", attributes, padded(d1), exchange)
        self.neighbours = ShardedTable("neighbours", nodes, padded(dim - d1), exchange)
        self.weight = torch.zeros((hidden, dim), device=self.device)
        self.bias = torch.zeros(hidden, device=self.device)

    @property
    def tables(self) -> tuple[ShardedTable, ShardedTable]:
        """The tables P and P'."""
        return self.attributes, self.neighbours

    def start(self, settings: dict[str, Any], seed: int) -> None:
        """Initialise all parameters as one process would; each rank fills its own rows."""
        seeds = initial_seeds(seed)
        for table, own_seed, width in zip(self.tables, seeds[:2], self.widths, strict=True):
            local = table.local
            for first in range(0, len(local), FILLED_ROWS):
                rows = np.zeros((len(local[first : first + FILLED_ROWS]), table.width), np.float32)
                fill_rows(rows[:, :width], own_seed, table.own.start + first, settings["table_std"])
                local[first : first + FILLED_ROWS] = torch.from_numpy(rows)
        hidden, dim = self.weight.shape
        self.weight.copy_(torch.from_numpy(random_weight(seeds[2], hidden, dim, settings["weight_std"])))
        self.bias.zero_()
        self.scale = 1.0

    def fold(self) -> None:
        """Multiply the tables by their common factor and set it to 1."""
        if self.scale != 1:
            for table in self.tables:
                table.local.mul_(self.scale)
            self.scale = 1.0

    def shrink(self, decay: float) -> None:
        """Shrink all rows of both tables by changing the scale; if the scale gets small, multiply the tables by it."""
        self.scale *= decay
        if self.scale < SMALLEST_SCALE:
            self.fold()

    def tensors(self) -> dict[str, Any]:
        """Return the tensors that training changes, by their names in checkpoints."""
        tables = {name: tensor for table in self.tables for name, tensor in table.state().items()}
        return tables | {"weight": self.weight, "bias": self.bias}

    def whole(self) -> Model:
        """Return the whole model, on every rank."""
        self.fold()
        first, second = (table.whole() for table in self.tables)
        return Model(first, second, self.weight.cpu().numpy(), self.bias.cpu().numpy())


Phase = Callable[[str], AbstractContextManager[object]]  # measures the time of a named block


class Step:
    """A training step; at its end the ranks exchange their changes of rows, of W and of b, and their losses."""

    def __init__(self, model: ShardedModel, settings: Settings, batch: int, count: int, phase: Phase):
        self.model, self.batch, self.count, self.phase = model, batch, count, phase
        self.rates = settings._replace(parameter_l2=0.0)  # L2 shrinks all rows, but kernels see only some
        self._train_bias = settings.train_bias
        self._table_decay = 1 - 2 * settings.table_rate * settings.parameter_l2
        self._layer_decay = 1 - 2 * settings.learning_rate * settings.parameter_l2
        self._sums = torch.zeros(model.weight.numel() + model.bias.numel() + 1, device=model.device)

    def send_changes(self, rows: list[torch.Tensor], trained: list[torch.Tensor]) -> None:
        """Send the changes of looked-up rows to the owners, and shrink all rows.

        The tables contain T = P / scale, and P becomes decay · P − change. So T becomes T − change / (scale · decay).
        """
        model, decay = self.model, self._table_decay
        for table, arrived, new in zip(model.tables, rows, trained, strict=True):
            change = torch.sub(arrived.detach() * model.scale if model.scale != 1 else arrived.detach(), new)
            table.subtract(arrived, change.div_(model.scale * decay) if model.scale * decay != 1 else change)
        model.shrink(decay)

    def add_up(self, weight: torch.Tensor, bias: torch.Tensor, loss: Any) -> torch.Tensor:
        """Change W and b by the sum of the ranks' changes; return the batch's mean loss, given this rank's mean."""
        model, sums, end = self.model, self._sums, self.model.weight.numel()
        torch.sub(weight, model.weight, out=sums[:end].view_as(weight))
        torch.sub(bias, model.bias, out=sums[end:-1])
        sums[-1] = loss * self.count
        distributed.all_reduce(sums, group=model.exchange.group)
        model.weight.mul_(self._layer_decay).add_(sums[:end].view_as(weight))
        if self._train_bias:
            model.bias.mul_(self._layer_decay).add_(sums[end:-1])
        return sums[-1] / self.batch


class CPUStep(Step):
    """A training step on the CPU; its memory for `count` triplets is allocated once."""

    together = 1  # steps whose losses are read at once

    def __init__(self, model: ShardedModel, settings: Settings, batch: int, count: int, phase: Phase = nullcontext):
        from neural_brane.kernels import cpu

        super().__init__(model, settings, batch, count, phase)
        # `slots` is never written, so the system gives it no memory.
        slots = np.empty((3 * count, model.neighbours.width), np.float32)
        none = np.empty((0, model.attributes.width), np.float32)
        largest = Model(none, slots, model.weight.numpy(), model.bias.numpy())
        empty = Bags(np.zeros(1, np.int64), np.empty(0, np.int32))
        self._trainer = cpu.Trainer(largest, empty, empty, self.rates, count)

    def __call__(self, batch: Batch) -> torch.Tensor:
        """Train on all ranks' shares of a batch; return the mean of −ln σ over the whole batch before the step."""
        model = self.model
        with self.phase("lookup"):
            rows = [table.lookup(torch.from_numpy(ids)) for table, ids in zip(model.tables, batch.ids, strict=True)]
        with self.phase("kernel"):
            trained = [arrived.detach() * model.scale for arrived in rows]  # a copy, also when scale is 1
            weight, bias = (theta.clone() for theta in (model.weight, model.bias))
            self._trainer.switch_model(Model(*(theta.numpy() for theta in (*trained, weight, bias))), *batch.bags)
            loss = self._trainer(batch.triplets[None])[0]
        with self.phase("exchange"):
            self.send_changes(rows, trained)
            return self.add_up(weight, bias, float(loss))
