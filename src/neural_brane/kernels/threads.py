"""Share work among threads, with the same bits on any number of them; run BLAS on one thread."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Lock
from typing import Any

import numpy as np

# Run BLAS on one thread.
#
# On several threads the order of BLAS's sums, and so their last bits, depends on the number of threads. BLAS mostly has
# one limit for the whole process. If every caller saved and restored it, two callers in two threads could restore each
# other's limit. So we count the callers: the first sets the limit, and the last restores the original one.

_lock, _callers = Lock(), 0
_limit: Any = None  # restores the original limits; None without callers


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run BLAS on one thread inside the block, and OpenMP too, which BLAS and scikit-learn may use."""
    if find_spec("threadpoolctl") is None:  # a GPU installation, which does not promise equal bits
        yield
        return
    from threadpoolctl import threadpool_limits

    global _callers, _limit
    with _lock:
        if _callers == 0:
            _limit = threadpool_limits(1, "blas")
        _callers += 1
    try:
        with threadpool_limits(1, "openmp"):  # every thread has its own limit
            yield
    finally:
        with _lock:
            _callers -= 1
            if _callers == 0:
                _release_control()
                _limit.restore_original_limits()
                _release_control()


def _release_control() -> None:
    """Let any thread change the limit; newer versions of threadpoolctl allow only the thread that set it."""
    import threadpoolctl

    controller = getattr(threadpoolctl, "OpenBLASController", None)
    if controller is not None and hasattr(controller, "clear_controlling_thread"):
        controller.clear_controlling_thread(force=True)


def _forget_lock() -> None:
    global _lock
    _lock = Lock()  # another thread of the parent may hold the old lock


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


SLAB_COLUMNS = 32  # columns multiplied at a time: bounds temporary copies, and a slab of a large table fits the cache


def map_threads(task: Callable[[Any], Any], items: Iterable[Any], threads: int | None) -> Iterator[Any]:
    """Apply a task to items on `threads` threads (None: one per core); yield the results in the items' order."""
    items = list(items)
    workers = min(threads or os.cpu_count() or 1, len(items))
    if workers <= 1:  # starting a pool can take longer than the task
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
    """Return product(table), computed SLAB_COLUMNS columns at a time on several threads; write to `out` if given."""
    starts = range(0, table.shape[1], SLAB_COLUMNS)
    slabs = map_threads(lambda at: product(np.ascontiguousarray(table[:, at : at + SLAB_COLUMNS])), starts, threads)
    result = out
    for at, slab in zip(starts, slabs, strict=True):
        if result is None:
            result = np.empty((len(slab), table.shape[1]), slab.dtype)
        result[:, at : at + SLAB_COLUMNS] = slab
    return result if result is not None else product(table)
