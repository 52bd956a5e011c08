"""Scatter many edges into the rows of a symmetric sparse matrix, in linear time, with Numba.

Then several threads sort the rows and merge repeats. Each row has one writer, so the number of threads does not change
the result. Only large graphs use this file, because loading Numba takes longer than assembling a small graph.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy import sparse


class MergedRows(NamedTuple):
    """The rows of a matrix while repeats are merged."""

    starts: np.ndarray  # (rows + 1,) where each row begins
    columns: np.ndarray  # (entries,) int32
    values: np.ndarray  # (entries,) float32
    sizes: np.ndarray  # (rows + 1,) sizes[r + 1] is the number of entries of row r after merging


def scatter_edges(
    ends: np.ndarray, weights: np.ndarray | None, nodes: int, *, add: bool, loops: bool, threads: int | None = None
) -> sparse.csr_array:
    """Return the matrix of `assemble` for ends (edges, 2) int32; `add` sums repeats, `loops` keeps self-loops."""
    kind = np.int32 if 2 * len(ends) <= np.iinfo(np.int32).max else np.int64
    starts = np.zeros(nodes + 1, kind)
    count_neighbours(ends, loops, starts)
    np.cumsum(starts, out=starts)
    columns, sizes, at = np.empty(starts[-1], np.int32), np.zeros(nodes + 1, kind), starts[:-1].copy()
    values = np.empty(starts[-1], np.float32)
    if weights is None:
        scatter_ends(ends, loops, at, columns)
    else:
        scatter_weights(ends, weights, loops, at, columns, values)
    del at
    merge = merge_counts if weights is None else merge_weights
    rows = MergedRows(starts, columns, values, sizes)
    threads = threads or min(os.cpu_count() or 1, 8)
    cuts = np.linspace(0, nodes, threads + 1).astype(np.int64)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda first, last: merge(rows, add, first, last), cuts[:-1], cuts[1:]))
    kept = np.cumsum(sizes, dtype=kind)
    if kept[-1] < len(columns):
        close_gaps(starts, kept, columns, values)
        columns.resize(kept[-1], refcheck=False)  # frees the rest without a copy
        values.resize(kept[-1], refcheck=False)
    return sparse.csr_array((values, columns.astype(kind, copy=False), kept), shape=(nodes, nodes))


@njit(nogil=True, cache=True)
def count_neighbours(ends, loops, counts):
    """Count the entries of every row in counts[row + 1]."""
    for edge in range(len(ends)):
        u, v = ends[edge, 0], ends[edge, 1]
        if u != v:
            counts[u + 1] += 1
            counts[v + 1] += 1
        elif loops:
            counts[u + 1] += 1


@njit(nogil=True, cache=True)
def scatter_ends(ends, loops, at, columns):
    """Write each end of an edge into the row of the other end; at[row] is the next free position, advanced in place."""
    for edge in range(len(ends)):
        u, v = ends[edge, 0], ends[edge, 1]
        if u != v:
            columns[at[u]], columns[at[v]] = v, u
            at[u] += 1
            at[v] += 1
        elif loops:
            columns[at[u]] = v
            at[u] += 1


@njit(nogil=True, cache=True)
def scatter_weights(ends, weights, loops, at, columns, values):
    """Write ends as `scatter_ends` does, and the weights into `values`."""
    for edge in range(len(ends)):
        u, v = ends[edge, 0], ends[edge, 1]
        if u != v or loops:
            columns[at[u]], values[at[u]] = v, weights[edge]
            at[u] += 1
        if u != v:
            columns[at[v]], values[at[v]] = u, weights[edge]
            at[v] += 1


@njit(nogil=True, cache=True)
def merge_counts(rows, add, first, last):
    """Sort rows first to last - 1 and merge repeats in place; write the entries left to sizes[row + 1]."""
    starts, columns, values, sizes = rows
    for row in range(first, last):
        begin, end = starts[row], starts[row + 1]
        if end - begin <= 32:
            for k in range(begin + 1, end):
                column, to = columns[k], k
                while to > begin and columns[to - 1] > column:
                    columns[to] = columns[to - 1]
                    to -= 1
                columns[to] = column
        else:
            columns[begin:end] = np.sort(columns[begin:end])
        to = begin - 1
        for k in range(begin, end):
            if k > begin and columns[k] == columns[to]:
                values[to] += np.float32(add)
            else:
                to += 1
                columns[to], values[to] = columns[k], np.float32(1)
        sizes[row + 1] = to + 1 - begin


@njit(nogil=True, cache=True)
def merge_weights(rows, add, first, last):
    """Merge weighted rows as `merge_counts` does; repeats are added in the order of the edges, in float64."""
    starts, columns, values, sizes = rows
    for row in range(first, last):
        begin, end = starts[row], starts[row + 1]
        order = np.argsort(columns[begin:end], kind="mergesort")
        sorted_columns, sorted_values = columns[begin:end][order], values[begin:end][order]
        to, total = begin - 1, 0.0
        for k in range(end - begin):
            if k > 0 and sorted_columns[k] == columns[to]:
                total = total + sorted_values[k] if add else max(total, np.float64(sorted_values[k]))
            else:
                to += 1
                columns[to], total = sorted_columns[k], np.float64(sorted_values[k])
            values[to] = total
        sizes[row + 1] = to + 1 - begin


@njit(nogil=True, cache=True)
def close_gaps(starts, kept, columns, values):
    """Close the gaps that merged repeats have left between rows, in place."""
    for row in range(len(starts) - 1):
        shift = starts[row] - kept[row]
        if shift:
            for k in range(kept[row], kept[row + 1]):
                columns[k], values[k] = columns[k + shift], values[k + shift]
