"""Train the learned part: epochs of batches, until the last one or until the loss is flat."""

import warnings
from typing import Any

import numpy as np

from neural_brane.checkpoint import Checkpoint
from neural_brane.errors import ParameterError, UntrainedWarning
from neural_brane.graph import AttributedGraph
from neural_brane.methods.neural_brane.engines import Engine
from neural_brane.progress import Meter, Reporter

FLAT_EPOCHS = 3
CHANCE = float(np.log(2))  # the loss of a model that ranks at random
NEAR_CHANCE = 0.98  # of that loss: small first weights hold it there for a while


class Training:
    """One run of stochastic gradient descent. `losses` gets the mean −ln σ of each epoch."""

    def __init__(self, settings: dict[str, Any], engine: Engine, losses: list[float], progress: Reporter | None):
        self.settings, self.engine, self.losses, self.progress = settings, engine, losses, progress
        self.triplets_per_epoch = settings["batches_per_epoch"] * settings["batch_size"]

    def run(self, graph: AttributedGraph, seed: int, checkpoint: Checkpoint | None) -> None:
        """Train to the last epoch, or until the loss is flat; what is in `losses` already is not trained again."""
        s, losses = self.settings, self.losses
        options = {name: s[name] for name in ("negative_power", "allow_self_negative")}
        sampler = self.engine.sampler(graph.adjacency, seed=seed, **options)
        done, total = len(losses) * self.triplets_per_epoch, s["epochs"] * self.triplets_per_epoch
        meter = Meter(self.progress, total, "triplets", epochs=s["epochs"], done=done, nodes=len(graph))
        for epoch in range(len(losses), s["epochs"]):
            losses.append(self._epoch(epoch, sampler, meter))
            flat = s["tolerance"] is not None and is_flat(losses, s["tolerance"])
            if checkpoint:
                last = flat or epoch + 1 == s["epochs"]
                checkpoint.save(self.engine.model()._asdict(), losses, force=last)
            if flat:
                break
        self._warn_if_untrained()

    def _epoch(self, epoch: int, sampler: Any, meter: Meter) -> float:
        """Train one epoch, as many batches at a time as the engine likes; returns its mean loss."""
        s = self.settings
        batch, steps = s["batch_size"], s["batches_per_epoch"]
        chunk = max(1, min(steps, self.engine.chunk_triplets // batch))
        total = 0.0
        for step in range(0, steps, chunk):
            count = min(chunk, steps - step)
            first = (epoch * steps + step) * batch
            losses = self.engine.train(sampler.draw(first, count * batch).reshape(count, batch, 3))
            if not np.isfinite(losses).all():
                raise ParameterError(
                    f"training diverged in epoch {epoch + 1}: the loss is no longer a number; lower "
                    f"learning_rate={s['learning_rate']} or set loss='mean'"
                )
            total += losses.sum()
            meter.advance(count * batch, epoch=epoch + 1, loss=total / (step + count))
        return float(total / steps)

    def _warn_if_untrained(self) -> None:
        if self.losses and self.losses[-1] > NEAR_CHANCE * CHANCE:
            warnings.warn(
                f"the learned part has not learned: training ended at loss {self.losses[-1]:.3f}, and ln 2 = "
                f"{CHANCE:.3f} is chance; train longer, as in epochs={2 * self.settings['epochs']}",
                UntrainedWarning,
                stacklevel=2,
            )


def is_flat(losses: list[float], tolerance: float) -> bool:
    """Whether the loss has stopped falling; while it is near ln 2 it has not begun to."""
    if len(losses) <= FLAT_EPOCHS or losses[-1] > NEAR_CHANCE * CHANCE:
        return False
    before = losses[-1 - FLAT_EPOCHS]
    return before - losses[-1] < tolerance * before
