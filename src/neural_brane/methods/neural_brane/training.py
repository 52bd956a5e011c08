"""Train the learned part: epochs of batches, until the last one or until the loss is flat."""

import warnings
from typing import Any

import numpy as np

from neural_brane.checkpoint import Stage
from neural_brane.errors import CheckpointError, UntrainedWarning
from neural_brane.graph import AttributedGraph
from neural_brane.methods._divergence import diverged, require_finite
from neural_brane.methods.neural_brane.engines import Engine
from neural_brane.progress import Meter, Reporter

FLAT_EPOCHS = 3
USUAL_BATCH = 100  # the recipes' own: above, a row of the tables takes the sum of more steps at once
CHANCE = float(np.log(2))  # the loss of a model that ranks at random
NEAR_CHANCE = 0.98  # of that loss: small first weights hold it there for a while


def start_numbers() -> dict[str, Any]:
    """What a training keeps beside its model: the mean −ln σ of each epoch, and the sum so far of the present one."""
    return {"losses": [], "sum": 0.0}


class Epochs:
    """The losses of a run by epochs, and whether it goes on; `numbers` keeps them."""

    def __init__(self, settings: dict[str, Any], numbers: dict[str, Any]):
        self.settings, self.numbers = settings, numbers
        self.losses: list[float] = numbers["losses"]

    def count(self, done: int, losses: np.ndarray) -> float:
        """Count the losses of the latest steps, `done` of this epoch with them; returns the mean of the epoch so far.

        Those that end an epoch put its mean loss among the losses. No epoch ends before the last of them.
        """
        if not np.isfinite(losses).all():
            diverged(f"in epoch {len(self.losses) + 1}: the loss is no longer a number", **self.remedies())
        total = float(self.numbers["sum"] + losses.sum())
        ended = done == self.settings["batches_per_epoch"]
        self.numbers["sum"] = 0.0 if ended else total
        if ended:
            self.losses.append(total / done)
        return total / done

    def is_flat(self) -> bool:
        """Whether the run ends here, before its last epoch."""
        return self.settings["tolerance"] is not None and is_flat(self.losses, self.settings["tolerance"])

    def require_no_earlier_end(self) -> None:
        """Refuse to go on with a run that would have ended before where it was left, had it had this tolerance."""
        tolerance, losses = self.settings["tolerance"], self.losses
        left = len(losses) if self.numbers["sum"] else len(losses) - 1
        for epochs in range(1, left + 1):
            if tolerance is not None and is_flat(losses[:epochs], tolerance):
                raise CheckpointError(
                    f"the checkpoint has trained {len(losses)} epochs, and with tolerance={tolerance:g} the run ends "
                    f"after {epochs}; give a smaller tolerance to go on, or name another file"
                )

    def remedies(self) -> dict[str, Any]:
        """What to change where training diverges, of the settings in force."""
        s = self.settings
        if s["loss"] == "sum":
            return {"learning_rate": s["learning_rate"], "advice": "set loss='mean', which divides by the batch"}
        large = {"batch_size": s["batch_size"]} if s["batch_size"] > USUAL_BATCH else {}
        return {"learning_rate": s["learning_rate"]} | large

    def warn_if_untrained(self) -> None:
        """Warn of a training that has ended where it began: its model ranks at random."""
        if self.losses and self.losses[-1] > NEAR_CHANCE * CHANCE:
            warnings.warn(
                f"the learned part has not learned: training ended at loss {self.losses[-1]:.3f}, and ln 2 = "
                f"{CHANCE:.3f} is chance; train longer, as in epochs={2 * self.settings['epochs']}",
                UntrainedWarning,
                stacklevel=2,
            )


class Training(Epochs):
    """One run of stochastic gradient descent; `numbers` gets its losses."""

    def __init__(self, settings: dict[str, Any], engine: Engine, numbers: dict[str, Any], progress: Reporter | None):
        super().__init__(settings, numbers)
        self.engine, self.progress = engine, progress
        batch, batches = settings["batch_size"], settings["batches_per_epoch"]
        self.chunk = max(1, min(batches, engine.chunk_triplets // batch))  # batches that are one step of a stage
        self.chunks = -(-batches // self.chunk)  # in an epoch

    def run(self, graph: AttributedGraph, seed: int, stage: Stage, *, among: np.ndarray | None = None) -> None:
        """Train to the last epoch, or until the loss is flat. among: whether each node may be ranked for, or all."""
        s = self.settings
        self.require_no_earlier_end()
        options = {name: s[name] for name in ("negative_power", "allow_self_negative")}
        sampler = self.engine.sampler(graph.adjacency, seed=seed, among=among, **options)
        per_epoch = s["batches_per_epoch"] * s["batch_size"]
        meter = Meter(self.progress, s["epochs"] * per_epoch, "triplets", epochs=s["epochs"], nodes=len(graph))
        epoch, chunk = divmod(stage.position, self.chunks)
        meter.resume(epoch * per_epoch + chunk * self.chunk * s["batch_size"])
        total = s["epochs"] * self.chunks
        for step in stage.steps(
            total, lambda: self.engine.model()._asdict(), self.numbers, per_epoch=self.chunks, until=self.is_flat
        ):
            epoch, chunk = divmod(step, self.chunks)
            self._train_chunk(epoch, chunk, sampler, meter)
        require_finite(self.engine.model()._asdict(), f"epoch {len(self.losses)}", **self.remedies())

    def _train_chunk(self, epoch: int, chunk: int, sampler: Any, meter: Meter) -> None:
        """Train some batches of an epoch."""
        batch, batches = self.settings["batch_size"], self.settings["batches_per_epoch"]
        done = chunk * self.chunk
        count = min(self.chunk, batches - done)
        first = (epoch * batches + done) * batch
        losses = self.engine.train(sampler.draw(first, count * batch).reshape(count, batch, 3))
        meter.advance(count * batch, epoch=epoch + 1, loss=self.count(done + count, losses))


def is_flat(losses: list[float], tolerance: float) -> bool:
    """Whether the loss has stopped falling; while it is near ln 2 it has not begun to."""
    if len(losses) <= FLAT_EPOCHS or losses[-1] > NEAR_CHANCE * CHANCE:
        return False
    before = losses[-1 - FLAT_EPOCHS]
    return before - losses[-1] < tolerance * before
