"""Random walks with restart over sparse rows: r Σ (1 − r)ˡ PˡX, of which no row grows beyond what is asked for."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.linalg.threads import map_threads

BLOCK_NUMBERS = 1_000_000  # of the rows that one thread makes at a time, if all were full: 8 MB


def weighted_steps(walk: Any, start: np.ndarray, *, restart: float, steps: int) -> np.ndarray:
    """r Σ (1 − r)ˡ Pˡ times a column of numbers, over l = 0 … steps; float64."""
    total = start
    for _ in range(steps):
        total = (1 - restart) * (walk @ total) + start
    return restart * total


def spread(
    walk: sparse.csr_array,
    start: sparse.csr_array,
    *,
    restart: float,
    steps: int,
    most: int,
    threads: int | None = 1,
    report: Callable[[], Any] | None = None,
    block: int = BLOCK_NUMBERS,
) -> sparse.csr_array:
    """The same times a sparse matrix of numbers from 0, in one step at least; float32.

    After every step a row keeps its `most` largest numbers: all of them where the matrix has no more columns. report:
    called after every step. block: numbers that one thread makes room for at a time.
    """
    start = (restart * start).astype(np.float32)
    total = start
    for _ in range(steps):
        total = _step(walk, total, start, 1 - restart, most, threads, block)
        if report is not None:
            report()
    return total


def _step(
    walk: sparse.csr_array,
    table: sparse.csr_array,
    start: sparse.csr_array,
    share: float,
    most: int,
    threads: int | None,
    block: int,
) -> sparse.csr_array:
    """start + share · walk @ table, its rows cut to the largest numbers."""
    from neural_brane.kernels.cpu import restarts as kernels  # needs Numba, which a GPU does without

    parts = [
        kernels.Sparse(
            one.indptr.astype(np.int64),
            one.indices.astype(np.int32, copy=False),
            one.data.astype(np.float32, copy=False),
        )
        for one in (walk, table, start)
    ]
    nodes, width = start.shape
    capacity = max(1, min(most, width))
    rows = max(1, block // capacity)

    def compute(first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        counts = np.empty(min(rows, nodes - first), np.int64)
        columns = np.empty((len(counts), capacity), np.int32)
        values = np.empty((len(counts), capacity), np.float32)
        kernels.step_rows(*parts, share, first, width, columns, values, counts)
        full = np.arange(capacity) < counts[:, None]
        return columns[full], values[full], counts

    room = nodes * capacity  # what no row fills is never touched, and so takes no memory
    columns, values, ends = np.empty(room, np.int32), np.empty(room, np.float32), np.zeros(nodes + 1, np.int64)
    row = done = 0
    for some_columns, some_values, counts in map_threads(compute, range(0, nodes, rows), threads):
        size = len(some_columns)
        columns[done : done + size], values[done : done + size] = some_columns, some_values
        ends[row + 1 : row + 1 + len(counts)] = done + np.cumsum(counts)
        row, done = row + len(counts), done + size
    ends = ends.astype(np.int32) if done <= np.iinfo(np.int32).max else ends  # SciPy keeps both in the wider type
    return sparse.csr_array((values[:done], columns[:done], ends), shape=start.shape)
