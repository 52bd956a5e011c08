"""Work on several threads whose number changes no bit; BLAS on one thread."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Lock
from typing import Any

import numpy as np

# BLAS on one thread, for as long as anyone needs it.
#
# On more threads the order of BLAS's sums, and so their last bits, depends on their number. The limit mostly belongs to
# the whole process: were every caller to set it and put back what it found, two callers in two threads could each find,
# and leave behind, the other's limit. So callers are counted: the first one sets the limit, the last one takes it away.

_lock, _callers = Lock(), 0
_limit: Any = None  # while there are callers


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS and OpenMP, which BLAS or scikit-learn may use, on one thread inside the block."""
    if find_spec("threadpoolctl") is None:  # as where PyTorch trains on a GPU, and no bits are promised
        yield
        return
    from threadpoolctl import threadpool_limits

    global _callers, _limit
    with _lock:
        if _callers == 0:
            _limit = threadpool_limits(1, "blas")
        _callers += 1
    try:
        with threadpool_limits(1, "openmp"):  # every thread has its own
            yield
    finally:
        with _lock:
            _callers -= 1
            if _callers == 0:
                _release_control()
                _limit.restore_original_limits()
                _release_control()


def _release_control() -> None:
    """Let any thread change the limit: newer versions of threadpoolctl heed only the one that set it."""
    import threadpoolctl

    controller = getattr(threadpoolctl, "OpenBLASController", None)
    if controller is not None and hasattr(controller, "clear_controlling_thread"):
        controller.clear_controlling_thread(force=True)


def _forget_lock() -> None:
    global _lock
    _lock = Lock()  # another thread of the parent may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


# Work on several threads whose number changes no bit.

SLAB_COLUMNS = 32  # multiplied at a time: they bound temporary copies, and a slab of a large table fits the cache


def map_threads(task: Callable[[Any], Any], items: Iterable[Any], threads: int | None) -> Iterator[Any]:
    """Apply a task to items on several threads, on all cores when None; yields the results in the items' order."""
    items = list(items)
    workers = min(threads or os.cpu_count() or 1, len(items))
    if workers <= 1:  # a pool takes longer to start than many a task
        yield from map(task, items)
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(task, items)


def by_slabs(
    product: Callable[[np.ndarray], np.ndarray],
    table: np.ndarray,
    *,
    threads: int | None = 1,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """product(table), SLAB_COLUMNS columns at a time on several threads; out: where it goes, or the table itself."""
    starts = range(0, table.shape[1], SLAB_COLUMNS)
    slabs = map_threads(lambda at: product(np.ascontiguousarray(table[:, at : at + SLAB_COLUMNS])), starts, threads)
    result = out
    for at, slab in zip(starts, slabs, strict=True):
        if result is None:
            result = np.empty((len(slab), table.shape[1]), slab.dtype)
        result[:, at : at + SLAB_COLUMNS] = slab
    return result if result is not None else product(table)
