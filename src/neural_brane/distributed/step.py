"""One step on the CPU: our own kernel trains the rows that arrive, and the owners get back what it subtracted."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import distributed

from neural_brane.distributed.batches import Batch
from neural_brane.distributed.model import ShardedModel
from neural_brane.kernels.model import Bags, Model, Settings


class Decays:
    """The factors by which L2 on the parameters shrinks the tables' rows, and W and b, in a step."""

    def __init__(self, settings: Settings):
        self.tables = 1 - 2 * settings.table_rate * settings.parameter_l2
        self.layer = 1 - 2 * settings.learning_rate * settings.parameter_l2


Phase = Callable[[str], AbstractContextManager[object]]  # what counts the seconds of the block that it opens


def no_phase(name: str) -> AbstractContextManager[object]:
    """Count nothing."""
    return nullcontext()


class CPUStep:
    """Steps of a model on the CPU; its scratch memory is allocated once, for batches of `count` triplets."""

    together = 1  # steps whose losses are looked at together

    def __init__(self, model: ShardedModel, settings: Settings, batch: int, count: int, phase: Phase = no_phase):
        from neural_brane.kernels import cpu

        self.model, self.batch, self.count, self.phase = model, batch, count, phase
        self._rates = settings._replace(parameter_l2=0.0)  # the kernel sees some of the rows; all of them shrink
        slots = np.empty((3 * count, model.neighbours.width), np.float32)  # memory that is never written is never had
        none = np.empty((0, model.attributes.width), np.float32)
        largest = Model(none, slots, model.weight.numpy(), model.bias.numpy())
        empty = Bags(np.zeros(1, np.int64), np.empty(0, np.int32))
        self._trainer = cpu.Trainer(largest, empty, empty, self._rates, count)
        self._exchange = StepExchange(model, settings, batch)

    def __call__(self, batch: Batch) -> torch.Tensor:
        """Take one step by all ranks' shares of a batch; returns the whole batch's mean of −ln σ before it."""
        model, ids = self.model, (batch.attributes, batch.neighbours)
        with self.phase("lookup"):
            rows = [table.lookup(torch.from_numpy(own)) for table, own in zip(model.tables, ids, strict=True)]
        with self.phase("kernel"):
            trained = [arrived.detach() * model.scale for arrived in rows]  # times 1, as a rule: a copy
            weight, bias = (theta.clone() for theta in (model.weight, model.bias))
            small = Model(*(theta.numpy() for theta in (*trained, weight, bias)))
            self._trainer.turn_to(small, *batch.bags)
            loss = self._trainer(batch.triplets[None])[0]
        with self.phase("exchange"):
            self._exchange.give_back(rows, trained)
            return self._exchange.add_up(weight, bias, float(loss) * self.count)


class StepExchange:
    """Send the differences of rows, of W and b, and the loss to the other ranks at the end of a step."""

    def __init__(self, model: ShardedModel, settings: Settings, batch: int):
        self.model, self.batch, self.train_bias = model, batch, settings.train_bias
        self.decays = Decays(settings)
        self._sums = torch.zeros(model.weight.numel() + model.bias.numel() + 1, device=model.device)

    def give_back(self, rows: list[torch.Tensor], trained: list[torch.Tensor]) -> None:
        """Tell the owners what a kernel has subtracted from the rows that arrived.

        The tables hold T = P / scale, and P becomes decay · P − change, so T becomes T − change / (scale · decay).
        """
        model, decay = self.model, self.decays.tables
        for table, arrived, new in zip(model.tables, rows, trained, strict=True):
            change = torch.sub(arrived.detach() * model.scale if model.scale != 1 else arrived.detach(), new)
            table.give_back(arrived, change.div_(model.scale * decay) if model.scale * decay != 1 else change)
        model.shrink(decay)

    def add_up(self, weight: torch.Tensor, bias: torch.Tensor, loss: Any) -> torch.Tensor:
        """Change W and b by the sum of what the ranks have found; returns the mean loss from the ranks' sums of it."""
        model, sums, end = self.model, self._sums, self.model.weight.numel()
        torch.sub(weight, model.weight, out=sums[:end].view_as(weight))
        torch.sub(bias, model.bias, out=sums[end:-1])
        sums[-1] = loss
        distributed.all_reduce(sums, group=model.exchange.group)
        model.weight.mul_(self.decays.layer).add_(sums[:end].view_as(weight))
        if self.train_bias:
            model.bias.mul_(self.decays.layer).add_(sums[end:-1])
        return sums[-1] / self.batch
