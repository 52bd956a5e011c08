"""Build a symmetric sparse matrix from edges: drop directions, merge repeats, keep or drop self-loops."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from numba import njit
from scipy import sparse

from neural_brane.errors import ParameterError

# Edges to the rows of a symmetric matrix in linear time: each edge is scattered to the rows of its two ends.
#
# Rows are then sorted, and repeats in them merged, on several threads; each row has one writer, so the number of
# threads changes nothing.


class Rows(NamedTuple):
    """The rows of a matrix while they are merged: row r stands from starts[r] on, and keeps sizes[r + 1] entries."""

    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    sizes: np.ndarray


def scatter_edges(
    ends: np.ndarray, weights: np.ndarray | None, nodes: int, *, add: bool, loops: bool, threads: int | None = None
) -> sparse.csr_array:
    """Do what `assemble` does, for ends (edges, 2) in int32: repeats add up if `add`, self-loops stay if `loops`."""
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
    rows = Rows(starts, columns, values, sizes)
    threads = threads or min(os.cpu_count() or 1, 8)
    cuts = np.linspace(0, nodes, threads + 1).astype(np.int64)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda first, last: merge(rows, add, first, last), cuts[:-1], cuts[1:]))
    kept = np.cumsum(sizes, dtype=kind)
    if kept[-1] < len(columns):
        close_gaps(starts, kept, columns, values)
        columns.resize(kept[-1], refcheck=False)  # gives the rest back without a copy
        values.resize(kept[-1], refcheck=False)
    return sparse.csr_array((values, columns.astype(kind, copy=False), kept), shape=(nodes, nodes))


@njit(nogil=True, cache=True)
def count_neighbours(ends, loops, counts):
    """Count the entries of every row, each one place further: counts[row + 1]."""
    for edge in range(len(ends)):
        u, v = ends[edge, 0], ends[edge, 1]
        if u != v:
            counts[u + 1] += 1
            counts[v + 1] += 1
        elif loops:
            counts[u + 1] += 1


@njit(nogil=True, cache=True)
def scatter_ends(ends, loops, at, columns):
    """Write each end of an edge into the row of the other, at its next place."""
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
    """Do what `scatter_ends` does, with the weights."""
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
    """Sort the rows from first to last and merge repeats in place; sizes[row + 1] is what is left."""
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
    """Do what `merge_counts` does, with weights: repeats are added in the order of the edges, in double precision."""
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
    """Move the rows together, where repeats have left gaps."""
    for row in range(len(starts) - 1):
        shift = starts[row] - kept[row]
        if shift:
            for k in range(kept[row], kept[row + 1]):
                columns[k], values[k] = columns[k + shift], values[k + shift]


# Edges to a symmetric sparse matrix: directions are dropped, repeats merged, self-loops kept or dropped.

Duplicates = Literal["max", "sum"]
SelfLoops = Literal["keep", "drop"]

LARGE = 2_000_000  # edges from which compiled code is faster than it takes to load
ENTRIES_PER_STRIP = 4_000_000  # keeps the temporary copies of is_symmetric to about 70 MB


def check_rules(duplicates: str, self_loops: str) -> None:
    """Refuse a rule for repeated edges or self-loops that does not exist."""
    if duplicates not in ("max", "sum"):
        raise ParameterError(f"duplicates is {duplicates!r}; give 'max' (keep the heaviest) or 'sum'")
    if self_loops not in ("keep", "drop"):
        raise ParameterError(f"self_loops is {self_loops!r}; give 'keep' or 'drop'")


class Rules(NamedTuple):
    """The rules that merge edges: repeats by their largest weight or their sum, self-loops kept or dropped."""

    duplicates: Duplicates = "max"
    self_loops: SelfLoops = "keep"


USUAL = Rules()


def assemble(
    ends: np.ndarray, weights: np.ndarray | None, nodes: int, rules: Rules = USUAL, *, large: int = LARGE
) -> sparse.csr_array:
    """Make the (nodes, nodes) symmetric matrix of edges, whose `ends` (edges, 2) are positions of nodes.

    Edges may stand in any direction and order. One that is stated several times, in whichever direction, gets
    the largest of its weights or their sum, as the rules say. Without weights, each weighs 1. From `large` edges on,
    compiled code does the same in less time and memory; it copies no ends that are int32.
    """
    check_rules(*rules)
    if len(ends) >= large and nodes <= np.iinfo(np.int32).max:
        whole = np.ascontiguousarray(ends, dtype=np.int32)
        return scatter_edges(whole, weights, nodes, add=rules.duplicates == "sum", loops=rules.self_loops == "keep")
    return _assemble_by_sorting(ends, weights, nodes, rules)


def _assemble_by_sorting(ends: np.ndarray, weights: np.ndarray | None, nodes: int, rules: Rules) -> sparse.csr_array:
    """Define what `assemble` gives, in plain NumPy."""
    weights = np.ones(len(ends), dtype=np.float32) if weights is None else weights
    low, high = np.minimum(ends[:, 0], ends[:, 1]).astype(np.int64), np.maximum(ends[:, 0], ends[:, 1])
    if rules.self_loops == "drop":
        proper = low != high
        low, high, weights = low[proper], high[proper], weights[proper]
    low *= nodes
    low += high
    low, weights = merge(low, weights, rules.duplicates)
    low, high = np.divmod(low, max(nodes, 1))
    mirrored = low != high
    matrix = sparse.coo_array(
        (
            np.concatenate([weights, weights[mirrored]]),
            (np.concatenate([low, high[mirrored]]), np.concatenate([high, low[mirrored]])),
        ),
        shape=(nodes, nodes),
    )
    return compact(matrix.tocsr())


def merge(keys: np.ndarray, weights: np.ndarray, duplicates: Duplicates) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys, sorted, each with the largest of its weights or their sum, as float32."""
    if len(keys) == 0:
        return keys, weights.astype(np.float32)
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    if len(first) < len(keys):
        combine = np.maximum if duplicates == "max" else np.add
        keys, weights = keys[first], combine.reduceat(weights, first, dtype=np.float64)
    with np.errstate(over="ignore"):  # a sum beyond float32 is refused where a graph is checked
        return keys, weights.astype(np.float32)


def compact(matrix: sparse.csr_array) -> sparse.csr_array:
    """Store a CSR matrix as float32, with int32 indices where they fit; shares every array that needs no change."""
    small = max(matrix.nnz, *matrix.shape) <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64
    parts = (
        matrix.data.astype(np.float32, copy=False),
        matrix.indices.astype(kind, copy=False),
        matrix.indptr.astype(kind, copy=False),
    )
    return sparse.csr_array(parts, shape=matrix.shape)


def is_symmetric(matrix: sparse.csr_array, *, entries_per_strip: int = ENTRIES_PER_STRIP) -> bool:
    """Tell whether a square CSR matrix, sorted and without repeats, equals its transpose; strips keep copies small."""
    nodes = matrix.shape[0]
    strips = 1 + matrix.nnz // entries_per_strip
    cuts = np.linspace(0, nodes, strips + 1).astype(int)
    for start, stop in pairwise(cuts):
        first, last = matrix.indptr[start], matrix.indptr[stop]
        mirror = matrix[:, start:stop].T.tocsr()
        if not (
            np.array_equal(matrix.indptr[start : stop + 1] - first, mirror.indptr)
            and np.array_equal(matrix.indices[first:last], mirror.indices)
            and np.array_equal(matrix.data[first:last], mirror.data)
        ):
            return False
    return True


def symmetrise(matrix: sparse.csr_array, rules: Rules = USUAL) -> sparse.csr_array:
    """Merge the two directions of every edge of a square CSR matrix, sorted and without repeats, if they differ."""
    symmetric = is_symmetric(matrix)
    if symmetric and (rules.self_loops == "keep" or not matrix.diagonal().any()):
        return matrix
    entries = matrix.tocoo()
    if symmetric:  # each edge is stated twice, and the two must not be added up
        rules = rules._replace(duplicates="max")
    return assemble(np.stack(entries.coords, axis=1), entries.data, matrix.shape[0], rules)
