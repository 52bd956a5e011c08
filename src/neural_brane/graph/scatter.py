"""Scatter many edges into the rows of a symmetric sparse matrix, in linear time, with Numba; one writer per row."""

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy import sparse

from neural_brane.graph.adjacency import Rules

SHORT = 32  # entries of a row that is sorted by counting
LAST = np.iinfo(np.int64).max


class MergedRows(NamedTuple):
    """The rows of a matrix while repeats are merged."""

    starts: np.ndarray  # (rows + 1,) where each row begins
    columns: np.ndarray  # (entries,) int32
    values: np.ndarray  # (entries,) float32
    sizes: np.ndarray  # (rows + 1,) sizes[r + 1] is the number of entries of row r after merging


def scatter_edges(
    ends: np.ndarray, weights: np.ndarray | None, nodes: int, rules: Rules, *, spend: bool, threads: int | None = None
) -> sparse.csr_array:
    """Return the matrix of `assemble` for ends (edges, 2) int32; `spend` lets the weights of 1 take their memory."""
    kind = np.int32 if 2 * len(ends) <= np.iinfo(np.int32).max else np.int64
    starts = np.zeros(nodes + 1, kind)
    add, loops = rules.duplicates == "sum", rules.self_loops == "keep"
    count_neighbours(ends, loops, starts)
    np.cumsum(starts, out=starts)
    count = int(starts[-1])
    spend = spend and weights is None
    values = ends.reshape(-1).view(np.float32)[:count] if spend else np.empty(count, np.float32)
    rows = MergedRows(starts, np.empty(count, np.int32), values, np.zeros(nodes + 1, kind))
    merge = merge_counts if weights is None else merge_weights
    threads = threads or min(os.cpu_count() or 1, 8)
    cuts = [0, *np.searchsorted(starts, np.linspace(0, count, threads + 1)[1:-1]), nodes]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda piece: scatter_ends(ends, weights, loops, rows, piece), pairwise(cuts)))
        list(pool.map(lambda piece: merge(rows, add, piece), pairwise(cuts)))
    columns, kept = rows.columns, np.cumsum(rows.sizes, dtype=kind)
    if kept[-1] < count:
        close_gaps(starts, kept, columns, values)
        columns.resize(kept[-1], refcheck=False)  # frees the rest without a copy
        values = values[: kept[-1]] if 2 * kept[-1] > count else values[: kept[-1]].copy()
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
def scatter_ends(ends, weights, loops, rows, piece):
    """Write each end of an edge, and its weight if any, into the other end's row, if in piece[0] … piece[1] - 1."""
    first, last = piece
    columns, values = rows.columns, rows.values
    at = rows.starts[first:last].copy()  # the next free position of each row
    for edge in range(len(ends)):
        u, v = ends[edge, 0], ends[edge, 1]
        if first <= u < last and (u != v or loops):
            columns[at[u - first]] = v
            if weights is not None:
                values[at[u - first]] = weights[edge]
            at[u - first] += 1
        if first <= v < last and u != v:
            columns[at[v - first]] = u
            if weights is not None:
                values[at[v - first]] = weights[edge]
            at[v - first] += 1


@njit(nogil=True, cache=True)
def merge_counts(rows, add, piece):
    """Sort rows piece[0] to piece[1] - 1 and merge repeats in place; write the entries left to sizes[row + 1]."""
    starts, columns, values, sizes = rows
    keys = np.empty(SHORT, np.int64)
    for row in range(piece[0], piece[1]):
        begin, end = starts[row], starts[row + 1]
        if end - begin <= SHORT:  # count the smaller keys of each, without a branch that the processor must guess
            for k in range(SHORT):
                keys[k] = np.int64(columns[begin + k]) * SHORT + k if k < end - begin else LAST
            for k in range(end - begin):
                rank = 0
                for other in range(SHORT):
                    rank += keys[other] < keys[k]
                columns[begin + rank] = keys[k] // SHORT
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
def merge_weights(rows, add, piece):
    """Merge weighted rows as `merge_counts` does; repeats are added in the order of the edges, in float64."""
    starts, columns, values, sizes = rows
    for row in range(piece[0], piece[1]):
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
