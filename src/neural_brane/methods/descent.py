"""Code that methods on PyTorch share. PyTorch is imported only when one of them learns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import DependencyError
from neural_brane.methods.base import Embedder
from neural_brane.methods.parameters import shared
from neural_brane.methods.training import Loop

if TYPE_CHECKING:
    import torch

_turns = RLock()


def import_torch() -> Any:
    """Return the torch module, or raise an error that says how to install it."""
    try:
        import torch
    except ImportError as error:
        advice = "run: pip install 'neural-brane[torch]'"
        raise DependencyError(f"this method learns with PyTorch, which is not installed; {advice}") from error
    return torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit PyTorch to one CPU thread, for the last bits of its sums, in one caller at a time."""
    torch = import_torch()
    with _turns:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def uniform(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Return a random weight matrix from the uniform distribution of Glorot and Bengio."""
    values = rng.random(shape, np.float32)
    values -= np.float32(0.5)
    values *= np.float32(2 * np.sqrt(6 / sum(shape)))
    return values


def glorot(rng: np.random.Generator, shape: tuple[int, int], device: str) -> torch.Tensor:
    """Return initial weights as a tensor to be learned; their values do not depend on the device."""
    return import_torch().from_numpy(uniform(rng, shape)).to(device).requires_grad_()


def zeros(columns: int, device: str) -> torch.Tensor:
    """Return a bias to be learned, zeros of shape (1, columns)."""
    return import_torch().zeros((1, columns), device=device, requires_grad=True)


def to_numpy(weights: Iterable[torch.Tensor]) -> Iterator[np.ndarray]:
    """Return an iterator over learned weights as NumPy arrays."""
    return (weight.detach().cpu().numpy() for weight in weights)


class Network(Embedder):
    """A method that learns with PyTorch, on the CPU or on a GPU."""

    extra = "torch"
    learns = {"loss_history_": "list of float: Mean loss of every epoch."}
    prolongs: ClassVar[tuple[str, ...]] = ("epochs",)
    why_not = "its weights are shared by all nodes, so more steps would move every vector; transform embeds new nodes"
    small = {"epochs": 2}
    trial = {"epochs": 3}

    device: str = shared(
        "device",
        default="auto",
        about="Where to train: cpu, cuda (an NVIDIA GPU), or auto (the GPU if there is one). On the CPU one thread of "
        "PyTorch makes the bits depend only on the seed; on a GPU the last bits may differ.",
    )
    checkpoint: str | Path | None = shared("checkpoint", default=None)


class TrainedNetwork(NamedTuple):
    """The weights of a network and the losses of its training."""

    weights: Any  # a named tuple of the method
    loss_history: list[float]  # the mean loss of every epoch


class Descent:
    """Named weights and the Adam optimiser that trains them; l2 / 2 · ‖weights‖² is not in the reported loss."""

    def __init__(self, weights: Any, learning_rate: float, *, l2: float = 0.0):
        self.weights: dict[str, torch.Tensor] = weights._asdict()
        torch = import_torch()
        self.adam = torch.optim.Adam(weights, lr=learning_rate, weight_decay=l2, fused=True)
        for weight in weights:  # The state before the first step, so that a checkpoint can restore it in place.
            none = torch.zeros((), dtype=torch.float32, device=weight.device)
            means = {"exp_avg": torch.zeros_like(weight), "exp_avg_sq": torch.zeros_like(weight)}
            self.adam.state[weight] = {"step": none} | means

    def train(
        self,
        loop: Loop,
        loss_of: Callable[[int], torch.Tensor | None],
        *,
        beside: Callable[[], dict[str, np.ndarray]] = dict,
        until: Callable[[], bool] = lambda: False,
    ) -> list[float]:
        """Return each epoch's mean loss; `loss_of` gives a step's loss, or None to skip it, `until` ends early."""
        if loop.stage.kept is not None:
            self.restore(loop.stage.kept.arrays)
            loop.numbers.update(loop.stage.kept.numbers)
        return loop.run(lambda: self.arrays() | beside(), lambda at: self._step(loss_of(at)), until=until)

    def _step(self, loss: torch.Tensor | None) -> float | None:
        """Take one step down the gradient of a loss, and return the loss."""
        if loss is None:
            return None
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()
        return float(loss.item())

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the weights, and the running means of their gradients and of the squared gradients."""
        found: dict[str, np.ndarray] = {}
        for name, weight in self.weights.items():
            state = self.adam.state[weight]
            found |= dict(zip(_names(name), to_numpy((weight, state["exp_avg"], state["exp_avg_sq"])), strict=True))
        steps = [self.adam.state[weight]["step"].item() for weight in self.weights.values()]
        return found | {"steps": np.array(steps)}

    def restore(self, kept: Mapping[str, np.ndarray]) -> None:
        """Copy the arrays of a checkpoint into the weights and the optimiser."""
        torch = import_torch()
        with torch.no_grad():
            for (name, weight), steps in zip(self.weights.items(), kept["steps"], strict=True):
                state = self.adam.state[weight]
                for tensor, one in zip((weight, state["exp_avg"], state["exp_avg_sq"]), _names(name), strict=True):
                    tensor.copy_(torch.from_numpy(kept[one]))
                state["step"].fill_(float(steps))


def _names(weight: str) -> tuple[str, str, str]:
    return weight, f"{weight}, mean", f"{weight}, square"


class SparseRows:
    """A sparse matrix on a device, for products with dense tables; it is never made dense."""

    def __init__(self, matrix: sparse.csr_array, device: str):
        torch = import_torch()
        self.bag = torch.nn.functional.embedding_bag
        self.indptr = torch.from_numpy(matrix.indptr.astype(np.int64)).to(device)
        self.indices = torch.from_numpy(matrix.indices.astype(np.int64)).to(device)
        self.values = torch.from_numpy(matrix.data.astype(np.float32, copy=False)).to(device)

    def __matmul__(self, dense: torch.Tensor) -> torch.Tensor:
        return self.bag(
            self.indices, dense, self.indptr, mode="sum", per_sample_weights=self.values, include_last_offset=True
        )


class BothWays:
    """A sparse matrix and its transpose on a device: gradients are faster, and the order of every sum is fixed."""

    def __init__(self, matrix: sparse.csr_array, device: str, *, symmetric: bool = False):
        self.rows = SparseRows(matrix, device)
        self.columns = self.rows if symmetric else SparseRows(matrix.T.tocsr(), device)

    def __matmul__(self, dense: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = _product().apply(dense, self.rows, self.columns)
        return product


@cache
def _product() -> Any:
    """Return the product of a sparse and a dense matrix as a function that PyTorch can differentiate."""

    class Product(import_torch().autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(context: Any, dense: torch.Tensor, rows: SparseRows, columns: SparseRows) -> torch.Tensor:
            context.columns = columns
            return rows @ dense.contiguous()

        @staticmethod
        def backward(context: Any, slope: torch.Tensor) -> tuple[torch.Tensor, None, None]:
            return context.columns @ slope.contiguous(), None, None

    return Product
