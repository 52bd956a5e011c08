"""Train and apply Neural-Brane on the CPU with Numba, as `reference` does; the bits never depend on the threads."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numba
import numpy as np

from neural_brane.errors import ParameterError
from neural_brane.kernels import reference
from neural_brane.kernels.compiling import check_threads
from neural_brane.kernels.cpu.lanes import Side, pool_nodes
from neural_brane.kernels.cpu.steps import make_space, pooled_width, train_nodes, train_slots
from neural_brane.kernels.model import Bags, Model, Settings
from neural_brane.kernels.threads import map_threads, one_blas_thread

__all__ = ["Trainer", "embed", "hide", "threads"]

# Threads wait for each other several times a step. By default, waiting OpenMP threads spin for milliseconds and slow
# each other and other processes. OpenMP reads this variable when Numba first starts its threads.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")

EMBEDDED_NODES = 1_024  # nodes that a thread embeds at a time
LARGE_BATCH = 400  # smallest batch, in triplets, that is faster node by node


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Run kernels on `count` threads inside the block; None keeps the current number."""
    check_threads()
    before, most = numba.get_num_threads(), numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    if count is not None and not 1 <= count <= most:
        raise ParameterError(f"threads={count} makes no sense; give 1 to {most}, the number of cores here")
    numba.set_num_threads(count or before)
    try:
        yield
    finally:
        numba.set_num_threads(before)


class Trainer:
    """Trains a model in place by batches of `batch` triplets, node by node if batch ≥ large_batch."""

    def __init__(
        self,
        model: Model,
        attribute_bags: Bags,
        neighbour_bags: Bags,
        settings: Settings,
        batch: int,
        *,
        large_batch: int = LARGE_BATCH,
    ):
        is_large = batch >= large_batch
        self._settings = settings
        self._kernel: Callable[..., None] = train_nodes if is_large else train_slots
        self._space = make_space(model, settings, batch, by_node=is_large)
        self._sides = sides_of(model, attribute_bags, neighbour_bags, settings, vectors=len(self._space.nodes))
        self._weight = model.weight

    def __call__(self, triplets: np.ndarray) -> np.ndarray:
        """Take one SGD step per batch of triplets (steps, batch, 3) int32; return the mean of −ln σ before each one."""
        losses = np.empty(len(triplets))
        self._kernel(*self._sides, self._space, self._settings, (triplets, losses), numba.get_num_threads())
        self._weight[:] = self._space.weight[:, : self._weight.shape[1]]
        return losses

    def switch_model(self, model: Model, attribute_bags: Bags, neighbour_bags: Bags) -> None:
        """Train another model of the same widths in the same memory; it has at most the first model's nodes."""
        sides = sides_of(model, attribute_bags, neighbour_bags, self._settings, vectors=0)
        self._sides = [new._replace(winner=old.winner) for new, old in zip(sides, self._sides, strict=True)]
        self._space, self._weight = self._space._replace(bias=model.bias), model.weight
        hidden, dim = model.weight.shape
        self._space.weight[:, :dim], self._space.weight_transposed[:, :hidden] = model.weight, model.weight.T


def sides_of(
    model: Model, attribute_bags: Bags, neighbour_bags: Bags, settings: Settings, *, vectors: int
) -> list[Side]:
    """Return the two sides of a model, attributes and neighbours, with room for the winners of `vectors` vectors."""
    d1, dim = settings.attribute_dim, model.weight.shape[1]
    tables = (attribute_bags, model.attribute_table, 0, d1), (neighbour_bags, model.neighbour_table, d1, dim)
    return [
        Side(*bags, table, np.empty((vectors, table.shape[1]), np.int32), first, last)
        for bags, table, first, last in tables
    ]


def embed(model: Model, attribute_bags: Bags, neighbour_bags: Bags, nodes: np.ndarray, settings: Settings):
    """Return the embedding f(u) of nodes (k,): pooled attributes beside pooled neighbours, (k, d1 + d2) float32."""
    nodes = np.asarray(nodes, np.int32)
    pooled = np.empty((len(nodes), pooled_width(model, settings)), np.float32)

    def pool(start: int) -> None:
        rows = slice(start, start + EMBEDDED_NODES)
        for side in sides_of(model, attribute_bags, neighbour_bags, settings, vectors=1):
            pool_nodes(side, nodes[rows], settings, pooled[rows])

    # Numba takes longer to compile a parallel loop.
    list(map_threads(pool, range(0, len(nodes), EMBEDDED_NODES), numba.get_num_threads()))
    return pooled[:, : model.weight.shape[1]].copy()


def hide(model: Model, pooled: np.ndarray):
    """Return h(u) = ReLU(W f(u) + b) as (k, hidden), from f(u) as pooled (k, d1 + d2)."""
    with one_blas_thread():  # on more threads the last bits of sums may change
        return reference.hide(model, pooled)
