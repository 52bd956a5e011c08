"""One step on the CPU: our own kernel trains the rows that arrive, and the owners get back what it subtracted."""

from time import perf_counter

import numpy as np
import torch
from torch import distributed

from neural_brane.cluster.batches import Batch
from neural_brane.cluster.model import ShardedModel
from neural_brane.kernels.model import Bags, Model, Settings


class Decays:
    """The factors by which L2 on the parameters shrinks the tables' rows, and W and b, in a step."""

    def __init__(self, settings: Settings):
        self.tables = 1 - 2 * settings.table_rate * settings.parameter_l2
        self.layer = 1 - 2 * settings.learning_rate * settings.parameter_l2


class CPUStep:
    """Steps of a model on the CPU; its scratch memory is allocated once, for batches of `count` triplets.

    seconds: what its parts have taken so far.
    """

    def __init__(self, model: ShardedModel, settings: Settings, batch: int, count: int):
        from neural_brane.kernels import cpu

        self.model, self.batch, self.count = model, batch, count
        self.seconds = dict.fromkeys(("lookup", "kernel", "exchange"), 0.0)
        self._decays = Decays(settings)
        self._rates = settings._replace(parameter_l2=0.0)  # the kernel sees some of the rows; all of them shrink
        hidden, dim = model.weight.shape
        slots = np.empty((3 * count, model.neighbours.width), np.float32)  # memory that is never written is never had
        none = np.empty((0, model.attributes.width), np.float32)
        largest = Model(none, slots, model.weight.numpy(), model.bias.numpy())
        empty = Bags(np.zeros(1, np.int64), np.empty(0, np.int32))
        self._trainer = cpu.Trainer(largest, empty, empty, self._rates, count)
        self._sums = torch.zeros(hidden * dim + hidden + 1)  # what ranks add up: the differences of W and b, the loss

    def __call__(self, batch: Batch) -> torch.Tensor:
        """Take one step by all ranks' shares of a batch; returns the whole batch's mean of −ln σ before it."""
        began = perf_counter()
        model, ids = self.model, (batch.attributes, batch.neighbours)
        rows = [table.lookup(torch.from_numpy(own)) for table, own in zip(model.tables, ids, strict=True)]
        found = perf_counter()
        before = [arrived.detach() for arrived in rows]
        trained = [arrived * model.scale if model.scale != 1 else arrived.clone() for arrived in before]
        weight, bias = (theta.clone() for theta in (model.weight, model.bias))
        small = Model(*(theta.numpy() for theta in (*trained, weight, bias)))
        self._trainer.turn_to(small, *batch.bags)
        loss = self._trainer(batch.triplets[None])[0]
        done = perf_counter()
        self._give_back(rows, before, trained)
        mean = self._add_up(weight, bias, loss)
        self.seconds["lookup"] += found - began
        self.seconds["kernel"] += done - found
        self.seconds["exchange"] += perf_counter() - done
        return mean

    def _give_back(self, rows: list[torch.Tensor], before: list[torch.Tensor], trained: list[torch.Tensor]) -> None:
        """Tell the owners what the kernel subtracted.

        The tables hold T = P / scale, and P becomes decay · P − change, so T becomes T − change / (scale · decay).
        """
        model, decay = self.model, self._decays.tables
        for table, arrived, old, new in zip(model.tables, rows, before, trained, strict=True):
            change = (old * model.scale if model.scale != 1 else old) - new
            table.give_back(arrived, change.div_(model.scale * decay) if model.scale * decay != 1 else change)
        model.shrink(decay)

    def _add_up(self, weight: torch.Tensor, bias: torch.Tensor, loss: float) -> torch.Tensor:
        """Change W and b by the sum of what the ranks have found."""
        model, sums, end = self.model, self._sums, self.model.weight.numel()
        torch.sub(weight, model.weight, out=sums[:end].view_as(weight))
        torch.sub(bias, model.bias, out=sums[end:-1])
        sums[-1] = float(loss) * self.count
        distributed.all_reduce(sums, group=model.exchange.group)
        model.weight.mul_(self._decays.layer).add_(sums[:end].view_as(weight))
        if self._rates.train_bias:
            model.bias.mul_(self._decays.layer).add_(sums[end:-1])
        return sums[-1] / self.batch
