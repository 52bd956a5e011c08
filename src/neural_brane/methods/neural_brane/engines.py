"""Where a model's kernels run: on the CPU, or on an NVIDIA GPU. Each is imported only when it is asked for."""

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.kernels.model import Bags, Model, Settings, padded

BothBags = tuple[Bags, Bags]  # of attributes and of neighbours


class Engine(Protocol):
    """A model and a graph in the memory of a device, for as long as the block lasts. Arrays go in and come out."""

    chunk_triplets: int  # drawn and trained between two reports

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...

    def sampler(self, adjacency: sparse.csr_array, **options: Any) -> Any:
        """A TripletSampler whose triplets are drawn into the memory of the device."""

    def train(self, triplets: Any) -> np.ndarray:
        """Take one step per batch of triplets (steps, batch, 3); returns each one's loss."""

    def model(self) -> Model:
        """The parameters as they are now, in NumPy arrays."""

    def embed(self, nodes: np.ndarray) -> np.ndarray:
        """f(u), (k, dim)."""

    def hide(self, pooled: np.ndarray) -> np.ndarray:
        """h(u), (k, hidden)."""


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


def open_engine(
    device: str, model: Model, bags: BothBags, settings: Settings, *, threads: int | None, deterministic: bool
) -> Engine:
    """An engine on `device`. `threads` is for the CPU, `deterministic` for the GPU.

    A model that ranks have trained is whole again, and runs on the CPU.
    """
    if device != "cuda":
        return _OnCPU(model, bags, settings, threads)
    return _OnGPU(model, bags, settings, deterministic)


class _OnCPU:
    """Numba kernels on host arrays, which they change in place."""

    chunk_triplets = 50_000

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
        from neural_brane.sampling.triplets import TripletSampler

        return TripletSampler(adjacency, **options)

    def train(self, triplets: Any) -> np.ndarray:
        if self._trainer is None:
            self._trainer = self._cpu.Trainer(self._model, *self._bags, self._settings, triplets.shape[1])
        return self._trainer(triplets)

    def model(self) -> Model:
        return self._model

    def embed(self, nodes: np.ndarray) -> np.ndarray:
        return self._cpu.embed(self._model, *self._bags, nodes, self._settings)

    def hide(self, pooled: np.ndarray) -> np.ndarray:
        return self._cpu.hide(self._model, pooled)


class _OnGPU:
    """Triton kernels on copies in the GPU's memory."""

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
