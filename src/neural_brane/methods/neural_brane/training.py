"""Train the learned part: first values, engines on CPU and GPU, epochs of batches."""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self

import numpy as np
from scipy import sparse

from neural_brane.errors import CheckpointError, UntrainedWarning
from neural_brane.files.checkpoints import Stage
from neural_brane.graph import AttributedGraph
from neural_brane.kernels.model import Bags, Model, Settings, padded, zeros
from neural_brane.methods.training import Loop, diverged
from neural_brane.progress import Meter

BLOCK_ROWS = 8_192  # drawn from one seed


def initial_model(graph: AttributedGraph, settings: dict[str, Any], seed: int) -> Model:
    """A model of a graph before training, its parameters drawn at random."""
    d1, dim, hidden = settings["attribute_dim"], settings["dim"], settings["hidden"]
    attributes, neighbours, layer = initial_seeds(seed)
    return Model(
        attribute_table=random_table(attributes, graph.attributes.shape[1], d1, settings["table_std"]),
        neighbour_table=random_table(neighbours, len(graph), dim - d1, settings["table_std"]),
        weight=random_weight(layer, hidden, dim, settings["weight_std"]),
        bias=np.zeros(hidden, np.float32),
    )


def initial_seeds(seed: int) -> list[np.random.SeedSequence]:
    """The seeds of a model's attributes, neighbours and layer."""
    return np.random.SeedSequence(seed).spawn(3)


def random_weight(seed: np.random.SeedSequence, hidden: int, dim: int, std: float) -> np.ndarray:
    """W before training, (hidden, dim)."""
    return np.random.default_rng(seed).standard_normal((hidden, dim), np.float32) * np.float32(std)


def random_table(seed: np.random.SeedSequence, rows: int, width: int, std: float) -> np.ndarray:
    """A table of N(0, std²) whose rows are padded to whole cache lines."""
    table = zeros(rows, padded(width))
    fill_rows(table[:, :width], seed, 0, std)
    return table


def fill_rows(part: np.ndarray, seed: np.random.SeedSequence, first: int, std: float) -> None:
    """Draw the rows from `first` on of a random table into `part`.

    Each block of rows has its own seed, so neither the number of threads nor where a part begins changes anything.
    """

    def fill(block: int) -> None:
        start = block * BLOCK_ROWS
        low, high = max(first - start, 0), min(first + len(part) - start, BLOCK_ROWS)
        own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, block))
        drawn = np.random.default_rng(own).standard_normal((high, part.shape[1]), np.float32)
        to = part[start + low - first : start + high - first]
        np.multiply(drawn[low:], np.float32(std), out=to)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(first // BLOCK_ROWS, -(-(first + len(part)) // BLOCK_ROWS))))


# Engines run a model's kernels on the CPU or on an NVIDIA GPU; each imports its kernels only when it is opened.

BothBags = tuple[Bags, Bags]  # of attributes and of neighbours


def require_room(settings: dict[str, Any], graph: AttributedGraph) -> None:
    """Refuse a GPU whose memory is too small, before anything is made."""
    if settings["device"] != "cuda":
        return
    from neural_brane.kernels import gpu

    d1, dim, hidden = settings["attribute_dim"], settings["dim"], settings["hidden"]
    tables = 4 * (graph.attributes.shape[1] * padded(d1) + len(graph) * padded(dim - d1))
    bags = sum(8 * len(matrix.indptr) + 4 * matrix.nnz for matrix in (graph.attributes, graph.adjacency))
    sampler = 20 * len(graph) + 8 * graph.adjacency.nnz  # the most it takes: where edges have different weights
    hubs = 8 * len(graph)  # the most they take
    gpu.require_memory(tables, bags + sampler + hubs, dim, hidden, settings["batch_size"])


class Engine:
    """A model and a graph in the memory of a device, for as long as the block lasts. Arrays go in and come out.

    This one runs Numba kernels on the host's arrays, which they change in place.
    """

    chunk_triplets = 50_000  # drawn and trained between two reports

    def __init__(self, model: Model, bags: BothBags, settings: Settings, threads: int | None):
        from neural_brane.kernels import cpu

        self._cpu = cpu
        self._model, self._bags, self._settings = model, bags, settings
        self._threads = cpu.threads(threads)
        self._trainer: Callable[[np.ndarray], np.ndarray] | None = None

    def __enter__(self) -> Self:
        self._threads.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._threads.__exit__(None, None, None)
        self._trainer = None

    def sampler(self, adjacency: sparse.csr_array, **options: Any) -> Any:
        """Make a TripletSampler whose triplets are drawn into the memory of the device."""
        from neural_brane.sampling.triplets import TripletSampler

        return TripletSampler(adjacency, **options)

    def train(self, triplets: Any) -> np.ndarray:
        """Take one step per batch of triplets (steps, batch, 3); returns the loss of each."""
        if self._trainer is None:
            self._trainer = self._cpu.Trainer(self._model, *self._bags, self._settings, triplets.shape[1])
        return self._trainer(triplets)

    def model(self) -> Model:
        """Give the parameters as they are now, in NumPy arrays."""
        return self._model

    def embed(self, nodes: np.ndarray) -> np.ndarray:
        """Compute f(u), (k, dim)."""
        return self._cpu.embed(self._model, *self._bags, nodes, self._settings)

    def hide(self, pooled: np.ndarray) -> np.ndarray:
        """Compute h(u), (k, hidden)."""
        return self._cpu.hide(self._model, pooled)


class GPUEngine(Engine):
    """An engine of Triton kernels on copies in the GPU's memory."""

    chunk_triplets = 1_000_000

    def __init__(self, model: Model, bags: BothBags, settings: Settings, deterministic: bool):
        from neural_brane.kernels import gpu

        self._gpu = gpu
        self._host, self._settings, self._deterministic = model, settings, deterministic
        self._model = gpu.place(model)
        self._bags = gpu.place(bags[0]), gpu.place(bags[1])
        self._trainer: Callable[[Any], np.ndarray] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        del self._model, self._bags, self._trainer

    def sampler(self, adjacency: sparse.csr_array, **options: Any) -> Any:
        from neural_brane.sampling.triplets_gpu import TripletSampler

        return TripletSampler(adjacency, placed=self._bags[1], device=self._gpu.DEVICE, **options)

    def train(self, triplets: Any) -> np.ndarray:
        if self._trainer is None:
            batch = triplets.shape[1]
            self._trainer = self._gpu.Trainer(
                self._model, *self._bags, self._settings, batch, self._deterministic, steps=len(triplets)
            )
        return self._trainer(triplets)

    def model(self) -> Model:
        return self._gpu.fetch(self._model, self._host)

    def embed(self, nodes: np.ndarray) -> np.ndarray:
        return self._gpu.embed(self._model, *self._bags, nodes, self._settings).cpu().numpy()

    def hide(self, pooled: np.ndarray) -> np.ndarray:
        return self._gpu.hide(self._model, pooled)


def open_engine(settings: dict[str, Any], model: Model, bags: BothBags, kernel: Settings) -> Engine:
    """Open an engine on the device of the parameters in force.

    A model that ranks have trained is whole again, and runs on the CPU.
    """
    if settings["device"] == "cuda":
        return GPUEngine(model, bags, kernel, settings["deterministic"])
    return Engine(model, bags, kernel, settings["threads"])


FLAT_EPOCHS = 3
USUAL_BATCH = 100  # the recipes' own: above, a row of the tables takes the sum of more steps at once
CHANCE = float(np.log(2))  # the loss of a model that ranks at random
NEAR_CHANCE = 0.98  # share of that loss; small first weights hold it there for a while


def start_numbers() -> dict[str, Any]:
    """Make the numbers kept beside a model: the mean −ln σ of each epoch, and the sum so far of the present one."""
    return {"losses": [], "sum": 0.0}


class Epochs:
    """The losses of a run by epochs, kept in `numbers`; they decide whether training continues."""

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
        """Tell whether the run ends here, before its last epoch."""
        return self.settings["tolerance"] is not None and is_flat(self.losses, self.settings["tolerance"])

    def require_no_earlier_end(self) -> None:
        """Refuse to continue a run that would have ended earlier with this tolerance."""
        tolerance, losses = self.settings["tolerance"], self.losses
        left = len(losses) if self.numbers["sum"] else len(losses) - 1
        for epochs in range(1, left + 1):
            if tolerance is not None and is_flat(losses[:epochs], tolerance):
                raise CheckpointError(
                    f"the checkpoint has trained {len(losses)} epochs, and with tolerance={tolerance:g} the run ends "
                    f"after {epochs}; give a smaller tolerance to go on, or name another file"
                )

    def remedies(self) -> dict[str, Any]:
        """Name the settings in force to change where training diverges."""
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

    def __init__(self, settings: dict[str, Any], engine: Engine, numbers: dict[str, Any]):
        super().__init__(settings, numbers)
        self.engine = engine
        batch, batches = settings["batch_size"], settings["batches_per_epoch"]
        self.chunk = max(1, min(batches, engine.chunk_triplets // batch))  # batches that are one step of a stage
        self.chunks = -(-batches // self.chunk)  # in an epoch

    def run(self, graph: AttributedGraph, seed: int, stage: Stage, *, among: np.ndarray | None = None) -> None:
        """Train to the last epoch, or until the loss is flat. among: whether each node may be ranked for, or all."""
        s = self.settings
        self.require_no_earlier_end()
        options = {name: s[name] for name in ("negative_power", "allow_self_negative")}
        sampler = self.engine.sampler(graph.adjacency, seed=seed, among=among, **options)
        total = s["epochs"] * s["batches_per_epoch"] * s["batch_size"]
        meter = Meter(s["progress"], total, "triplets", epochs=s["epochs"], nodes=len(graph))

        def step(at: int) -> float:
            first, last = self._batches_before(at), self._batches_before(at + 1)
            triplets = sampler.draw(first * s["batch_size"], (last - first) * s["batch_size"])
            losses = self.engine.train(triplets.reshape(last - first, s["batch_size"], 3))
            return self.count(last - at // self.chunks * s["batches_per_epoch"], losses)

        loop = Loop(
            stage, meter, s["epochs"] * self.chunks, per_epoch=self.chunks,
            units=lambda at: self._batches_before(at) * s["batch_size"], **self.remedies(),
        )  # fmt: skip
        loop.run(lambda: self.engine.model()._asdict(), step, numbers=self.numbers, until=self.is_flat)

    def _batches_before(self, step: int) -> int:
        """Count the batches of the steps before one."""
        epoch, chunk = divmod(step, self.chunks)
        batches: int = self.settings["batches_per_epoch"]
        return epoch * batches + min(chunk * self.chunk, batches)


def is_flat(losses: list[float], tolerance: float) -> bool:
    """Tell whether the loss has stopped falling; while it is near ln 2 it has not begun to."""
    if len(losses) <= FLAT_EPOCHS or losses[-1] > NEAR_CHANCE * CHANCE:
        return False
    before = losses[-1 - FLAT_EPOCHS]
    return before - losses[-1] < tolerance * before
