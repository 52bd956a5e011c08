"""Train the learned part by ranks: epochs of batches as in one process, with checkpoints and metrics on the way."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from neural_brane.cluster.checkpoints import Checkpoints
from neural_brane.cluster.metrics import Metrics
from neural_brane.cluster.model import ShardedModel
from neural_brane.methods._divergence import require_finite
from neural_brane.methods.neural_brane.training import Epochs, start_numbers


class Watchers(NamedTuple):
    """Who follows a training: metrics count it, checkpoints keep it, and `tell` says what is worth a line."""

    metrics: Metrics
    checkpoints: Checkpoints | None
    tell: Callable[[str], None]


class RankTraining(Epochs):
    """One run of stochastic gradient descent by all ranks; each calls it at once."""

    def __init__(self, settings: dict[str, Any], model: ShardedModel, watchers: Watchers):
        super().__init__(settings, start_numbers())
        self.model, self.watchers = model, watchers
        self.total = settings["epochs"] * settings["batches_per_epoch"]

    def begin(self, seed: int) -> int:
        """Bring the model to its first values, or to where a checkpoint was left; returns the step that comes next."""
        checkpoints, metrics = self.watchers.checkpoints, self.watchers.metrics
        kept = checkpoints.find() if checkpoints else None
        if kept is None or checkpoints is None:
            self.model.start(self.settings, seed)
            metrics.begin()
            return 0
        checkpoints.read(self.model.tensors())
        self.numbers.update(kept.numbers)
        self.losses, self.model.scale = self.numbers["losses"], self.numbers["scale"]
        self.require_no_earlier_end()
        if line := metrics.begin(kept.step, was=kept.ranks):
            self.watchers.tell(line)
        return kept.step

    def run(
        self, first: int, batches: Callable[[int], Any], step: Callable[[Any], torch.Tensor], together: int
    ) -> None:
        """Train from step `first` to the last, or until the loss is flat.

        batches: a rank's share of a batch by its number. together: steps whose losses are looked at together, since
        to look at one waits for a GPU.
        """
        at, per_epoch = first, self.settings["batches_per_epoch"]
        losses: list[torch.Tensor] = []
        while at < self.total and not (at % per_epoch == 0 and self.is_flat()):
            with self.watchers.metrics.phase("sample"):
                batch = batches(at)
            losses.append(step(batch))
            at += 1
            due = self.watchers.checkpoints is not None and self.watchers.checkpoints.due(at)
            if due or len(losses) == together or at % per_epoch == 0:
                self._count(at, losses)
                losses.clear()
            if due:
                self.save(at)
        self.model.fold()
        require_finite(self.model.own(), f"epoch {len(self.losses)}", **self.remedies())

    def _count(self, at: int, losses: list[torch.Tensor]) -> None:
        """Count the losses of the steps up to `at`."""
        known = torch.stack(losses).double().cpu().numpy()
        per_epoch = self.settings["batches_per_epoch"]
        for number, loss in enumerate(known):
            step = at - len(known) + number
            mean = self.count(step % per_epoch + 1, np.array([loss]))
            self.watchers.metrics.advance(step + 1, epoch=step // per_epoch + 1, loss=float(loss), mean=mean)

    def save(self, at: int) -> None:
        """Keep the state before step `at`."""
        if self.watchers.checkpoints is not None:
            numbers = self.numbers | {"scale": self.model.scale}
            with self.watchers.metrics.phase("checkpoint"):
                self.watchers.checkpoints.save(at, self.model.tensors(), numbers)
