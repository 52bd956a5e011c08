"""Work on several threads whose number changes no bit."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

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
    """product(table), SLAB_COLUMNS columns at a time, for a product that treats each column on its own.

    Slabs run on several threads. out: where the result goes; it may be the table itself.
    """
    starts = range(0, table.shape[1], SLAB_COLUMNS)
    slabs = map_threads(lambda at: product(np.ascontiguousarray(table[:, at : at + SLAB_COLUMNS])), starts, threads)
    result = out
    for at, slab in zip(starts, slabs, strict=True):
        if result is None:
            result = np.empty((len(slab), table.shape[1]), slab.dtype)
        result[:, at : at + SLAB_COLUMNS] = slab
    return result if result is not None else product(table)
