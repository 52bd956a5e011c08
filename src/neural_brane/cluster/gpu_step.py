"""One step on a rank's GPU: our Triton kernels train the rows that arrive, and the owners get back the difference."""

from collections.abc import Callable
from typing import Any

import torch

from neural_brane.cluster.device import DeviceBatch, DeviceBatches, whole_matrices
from neural_brane.cluster.model import ShardedModel
from neural_brane.cluster.step import Phase, StepExchange, no_phase
from neural_brane.kernels.gpu import DEVICE, Limits, Trainer
from neural_brane.kernels.model import Model, Settings

SPARE = 1.25  # rows for which there is room, for each that the first batch needs


class GPUStep:
    """Steps of a model on a GPU. The rows that arrive are copied to memory that stays, which captured launches read."""

    together = 16  # steps whose losses are looked at together

    def __init__(
        self, model: ShardedModel, settings: Settings, batch: int, batches: DeviceBatches, phase: Phase = no_phase
    ):  # fmt: skip
        self.model, self.batch, self.batches, self.phase = model, batch, batches, phase
        self._rates = settings._replace(parameter_l2=0.0)  # the kernels see some of the rows; all of them shrink
        self._exchange = StepExchange(model, settings, batch)
        self._trainer: Trainer | None = None

    def __call__(self, batch: DeviceBatch) -> torch.Tensor:
        """Take one step by all ranks' shares of a batch; returns the whole batch's mean of −ln σ before it."""
        model = self.model
        with self.phase("lookup"):
            rows = [table.lookup(ids) for table, ids in zip(model.tables, batch.ids, strict=True)]
        with self.phase("kernel"):
            trainer = self._trainer_for([len(arrived) for arrived in rows])
            small = trainer.model
            tables = small.attribute_table, small.neighbour_table
            trained = [table[: len(arrived)] for table, arrived in zip(tables, rows, strict=True)]
            for own, arrived in zip(trained, rows, strict=True):
                torch.mul(arrived.detach(), model.scale, out=own)
            small.weight.copy_(model.weight)
            small.bias.copy_(model.bias)
            trainer.reload()
            loss = trainer.launch(batch.triplets)[0]
        with self.phase("exchange"):
            self._exchange.give_back(rows, trained)
            return self._exchange.add_up(small.weight, small.bias, loss * self.batches.count)

    def _trainer_for(self, rows: list[int]) -> Trainer:
        """A trainer with room for so many rows: the one there is, or a new one with more."""
        if self._trainer is not None:
            small = self._trainer.model
            if rows[0] <= len(small.attribute_table) and rows[1] <= len(small.neighbour_table):
                return self._trainer
        model = self.model
        tables = [
            torch.zeros((min(int(SPARE * count) + 1, max(table.rows, 1)), table.width), device=DEVICE)
            for table, count in zip(model.tables, rows, strict=True)
        ]
        small = Model(tables[0], tables[1], model.weight.clone(), model.bias.clone())
        limits = Limits(nodes_per_slot=0.0)  # one vector per node would read rows that are not here
        first, second = self.batches.local
        count = self.batches.count
        self._trainer = Trainer(small, first, second, self._rates, count, steps=1, limits=limits)
        return self._trainer


def prepare_gpu(
    shards: Any, model: ShardedModel, kernel: Settings, settings: dict[str, Any], seed: int, phase: Phase
) -> tuple[DeviceBatches, Callable[[DeviceBatch], torch.Tensor], int]:
    """The batches and the step of a training on GPUs, and how many losses are looked at together."""
    options = {name: settings[name] for name in ("negative_power", "allow_self_negative")}
    batch, exchange = settings["batch_size"], model.exchange
    batches = DeviceBatches(
        *whole_matrices(shards), batch, exchange.rank, exchange.ranks,
        steps=settings["epochs"] * settings["batches_per_epoch"], seed=seed, **options,
    )  # fmt: skip
    step = GPUStep(model, kernel, batch, batches, phase)

    def step_and_prepare(made: DeviceBatch) -> torch.Tensor:
        loss = step(made)
        batches.prepare(made.step + 1)
        return loss

    return batches, step_and_prepare, step.together
