"""What the methods on PyTorch share; PyTorch itself is imported when one of them learns, not before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from neural_brane.errors import DependencyError, ParameterError
from neural_brane.graph import AttributedGraph

if TYPE_CHECKING:
    import torch

BLOCK_NODES = 8192  # embedded at a time
_turns = RLock()


def import_torch() -> Any:
    """The torch module, or an error that says how to get it."""
    try:
        import torch
    except ImportError as error:
        raise DependencyError(
            "this method learns with PyTorch, which is not installed; run: pip install 'neural-brane[torch]'"
        ) from error
    return torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold PyTorch to one CPU thread: the order of its sums, and so their last bits, follow the number of threads.

    The number is partly the process's and partly the calling thread's own, so callers in several threads take turns.
    """
    torch = import_torch()
    with _turns:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def features(graph: AttributedGraph) -> sparse.csr_array:
    """A graph's attributes or, where it has none at all, one attribute per node: its own."""
    if graph.attributes.shape[1]:
        return graph.attributes
    return sparse.eye_array(len(graph), dtype=np.float32, format="csr")


def glorot(rng: np.random.Generator, shape: tuple[int, int], device: str) -> torch.Tensor:
    """A weight matrix to learn, uniform as Glorot and Bengio's; the same on every device."""
    span = np.sqrt(6 / sum(shape))
    values = rng.random(shape, np.float32)
    values -= np.float32(0.5)
    values *= np.float32(2 * span)
    return import_torch().from_numpy(values).to(device).requires_grad_()


def zeros(columns: int, device: str) -> torch.Tensor:
    """A bias to learn, (1, columns)."""
    return import_torch().zeros((1, columns), device=device, requires_grad=True)


def to_numpy(weights: Iterable[torch.Tensor]) -> Iterator[np.ndarray]:
    """Learned weights as NumPy arrays."""
    return (weight.detach().cpu().numpy() for weight in weights)


def require_finite(loss: float, epoch: int, learning_rate: float) -> None:
    """Raise an error that says what to do where training has diverged."""
    if not np.isfinite(loss):
        raise ParameterError(f"training diverged in epoch {epoch}; lower learning_rate={learning_rate}")


class SparseRows:
    """A sparse matrix on a device, to be multiplied with dense ones: never dense itself."""

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
