"""Train the learned part: initial values, engines on CPU and GPU, epochs of batches."""

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

BLOCK_ROWS = 8_192  # rows drawn from one seed


def initial_model(graph: AttributedGraph, settings: dict[str, Any], seed: int) -> Model:
    """Return the model of a graph before training, with random parameters."""
    d1, dim, hidden = settings["attribute_dim"], settings["dim"], settings["hidden"]
    attributes, neighbours, layer = initial_seeds(seed)
    return Model(
        attribute_table=random_table(attributes, graph.attributes.shape[1], d1, settings["table_std"]),
        neighbour_table=random_table(neighbours, len(graph), dim - d1, settings["table_std"]),
        weight=random_weight(layer, hidden, dim, settings["weight_std"]),
        bias=np.zeros(hidden, np.float32),
    )


def initial_seeds(seed: int) -> list[np.random.SeedSequence]:
    """Return the seeds of the attribute table, the neighbour table and the ReLU layer."""
    return np.random.SeedSequence(seed).spawn(3)


def random_weight(seed: np.random.SeedSequence, hidden: int, dim: int, std: float) -> np.ndarray:
    """Return W before training, (hidden, dim) float32."""
    return np.random.default_rng(seed).standard_normal((hidden, dim), np.float32) * np.float32(std)


def random_table(seed: np.random.SeedSequence, rows: int, width: int, std: float) -> np.ndarray:
    """Return a table (rows, width) of N(0, std²); its rows are padded to whole cache lines."""
    table = zeros(rows, padded(width))
    fill_rows(table[:, :width], seed, 0, std)
    return table


def fill_rows(rows: np.ndarray, seed: np.random.SeedSequence, first: int, std: float) -> None:
    """Fill `rows` with the rows of a random table from number `first` on.

    Each block of the table has its own seed, so that the values depend neither on the number of threads nor on `first`.
    """

    def fill(block: int) -> None:
        start = block * BLOCK_ROWS
        low, high = max(first - start, 0), min(first + len(rows) - start, BLOCK_ROWS)
        own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, block))
        drawn = np.random.default_rng(own).standard_normal((high, rows.shape[1]), np.float32)
        np.multiply(drawn[low:], np.float32(std), out=rows[start + low - first : start + high - first])

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(first // BLOCK_ROWS, -(-(first + len(rows)) // BLOCK_ROWS))))


BothBags = tuple[Bags, Bags]  # bags of attributes, bags of neighbours


def require_room(settings: dict[str, Any], graph: AttributedGraph) -> None:
    """Raise an error if the GPU has too little memory, before any array is made."""
    if settings["device"] != "cuda":
        return
    from neural_brane.kernels import gpu

    d1, dim, hidden = settings["attribute_dim"], settings["dim"], settings["hidden"]
    tables = 4 * (graph.attributes.shape[1] * padded(d1) + len(graph) * padded(dim - d1))
    bags = sum(8 * len(matrix.indptr) + 4 * matrix.nnz for matrix in (graph.attributes, graph.adjacency))
    sampler = 20 * len(graph) + 8 * graph.adjacency.nnz  # upper bound, reached if edges have different weights
    hubs = 8 * len(graph)  # upper bound
    gpu.require_memory(tables, bags + sampler + hubs, dim, hidden, settings["batch_size"])


class Engine:
    """A context manager that runs the kernels of a model, here in Numba, which change the host's arrays in place.

    Each engine imports its kernels only when it is opened. Subclasses run on other devices.
    """

    chunk_triplets = 50_000  # triplets drawn and trained between two reports

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
        """Return a TripletSampler that draws into the memory of the device."""
        from neural_brane.sampling.triplets import TripletSampler

        return TripletSampler(adjacency, **options)

    def train(self, triplets: Any) -> np.ndarray:
        """Take one step per batch of triplets (steps, batch, 3) and return their losses (steps,)."""
        if self._trainer is None:
            self._trainer = self._cpu.Trainer(self._model, *self._bags, self._settings, triplets.shape[1])
        return self._trainer(triplets)

    def model(self) -> Model:
        """Return the current parameters as NumPy arrays."""
        return self._model

    def embed(self, nodes: np.ndarray) -> np.ndarray:
        """Return f(u), (k, dim)."""
        return self._cpu.embed(self._model, *self._bags, nodes, self._settings)

    def hide(self, pooled: np.ndarray) -> np.ndarray:
        """Return h(u), (k, hidden)."""
        return self._cpu.hide(self._model, pooled)


class GPUEngine(Engine):
    """An engine that runs Triton kernels on copies in the GPU's memory."""

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
    """Return an engine for the device in force; a model that ranks have trained runs on the CPU."""
    if settings["device"] == "cuda":
        return GPUEngine(model, bags, kernel, settings["deterministic"])
    return Engine(model, bags, kernel, settings["threads"])


FLAT_EPOCHS = 3  # epochs over which the loss must fall
USUAL_BATCH = 100  # a larger batch adds up more steps of a table row, which may diverge
CHANCE = float(np.log(2))  # loss of a model that ranks at random
NEAR_CHANCE = 0.98  # share of that loss; with small initial weights training stays above it for a while


def start_numbers() -> dict[str, Any]:
    """Return the numbers saved with a model: the mean −ln σ of each epoch, and the sum of the unfinished one."""
    return {"losses": [], "sum": 0.0}


class Epochs:
    """The losses of every epoch of a run, stored in `numbers`; they decide when training ends."""

    def __init__(self, settings: dict[str, Any], numbers: dict[str, Any]):
        self.settings, self.numbers = settings, numbers
        self.losses: list[float] = numbers["losses"]

    def count(self, done: int, losses: np.ndarray) -> float:
        """Add the losses of the latest steps and return the mean loss of the epoch so far.

        done: steps of this epoch, these included. An epoch may end only with the last of these steps.
        """
        if not np.isfinite(losses).all():
            diverged(f"in epoch {len(self.losses) + 1}: the loss is NaN or infinite", **self.remedies())
        total = float(self.numbers["sum"] + losses.sum())
        ended = done == self.settings["batches_per_epoch"]
        self.numbers["sum"] = 0.0 if ended else total
        if ended:
            self.losses.append(total / done)
        return total / done

    def is_flat(self) -> bool:
        """Return whether the tolerance ends the run here."""
        return self.settings["tolerance"] is not None and is_flat(self.losses, self.settings["tolerance"])

    def require_no_earlier_end(self) -> None:
        """Raise an error if the resumed run would have ended earlier with this tolerance."""
        tolerance, losses = self.settings["tolerance"], self.losses
        left = len(losses) if self.numbers["sum"] else len(losses) - 1
        for epochs in range(1, left + 1):
            if tolerance is not None and is_flat(losses[:epochs], tolerance):
                raise CheckpointError(
                    f"the checkpoint has {len(losses)} epochs, but with tolerance={tolerance:g} the run ends after "
                    f"{epochs}; give a smaller tolerance to continue, or name another file"
                )

    def remedies(self) -> dict[str, Any]:
        """Return the settings to change if training diverges, for the error message."""
        s = self.settings
        if s["loss"] == "sum":
            return {"learning_rate": s["learning_rate"], "advice": "set loss='mean', which divides by the batch"}
        large = {"batch_size": s["batch_size"]} if s["batch_size"] > USUAL_BATCH else {}
        return {"learning_rate": s["learning_rate"]} | large

    def warn_if_untrained(self) -> None:
        """Warn if the model still ranks at random at the end of training."""
        if self.losses and self.losses[-1] > NEAR_CHANCE * CHANCE:
            warnings.warn(
                f"the learned part ranks at random: its loss is {self.losses[-1]:.3f}, and chance is ln 2 = "
                f"{CHANCE:.3f}; train longer, as in epochs={2 * self.settings['epochs']}",
                UntrainedWarning,
                stacklevel=2,
            )


class GradientDescent(Epochs):
    """One run of stochastic gradient descent, which stores its losses in `numbers`."""

    def __init__(self, settings: dict[str, Any], engine: Engine, numbers: dict[str, Any]):
        super().__init__(settings, numbers)
        self.engine = engine
        batch, batches = settings["batch_size"], settings["batches_per_epoch"]
        self.chunk = max(1, min(batches, engine.chunk_triplets // batch))  # batches in a step of the loop
        self.chunks = -(-batches // self.chunk)  # steps of the loop in an epoch

    def run(self, graph: AttributedGraph, seed: int, stage: Stage, *, among: np.ndarray | None = None) -> None:
        """Train to the last epoch, or until the loss is flat. among: marks the nodes that may start a triplet."""
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
        """Return the number of batches before a step of the loop."""
        epoch, chunk = divmod(step, self.chunks)
        batches: int = self.settings["batches_per_epoch"]
        return epoch * batches + min(chunk * self.chunk, batches)


def is_flat(losses: list[float], tolerance: float) -> bool:
    """Return whether the loss has stopped falling; never while it is near ln 2, before it begins to fall."""
    if len(losses) <= FLAT_EPOCHS or losses[-1] > NEAR_CHANCE * CHANCE:
        return False
    before = losses[-1 - FLAT_EPOCHS]
    return before - losses[-1] < tolerance * before
