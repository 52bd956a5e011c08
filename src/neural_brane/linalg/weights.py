"""Weigh attributes and links as sparse matrices, and compute random walks with restart over them."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.kernels.model import rows_of
from neural_brane.kernels.threads import map_threads


def inverse_frequency(attributes: sparse.csr_array) -> np.ndarray:
    """Return the weight ln((1 + nodes) / (1 + nodes that have it)) + 1 of each attribute, (attributes,) float64."""
    nodes, width = attributes.shape
    return rarity(np.bincount(attributes.indices, minlength=width), nodes)


def rarity(holders: np.ndarray, nodes: int) -> np.ndarray:
    """Return the weight of attributes that `holders` of the nodes have, in the shape of holders."""
    return np.log((1 + nodes) / (1 + holders)) + 1


def distinguishes_nodes(attributes: sparse.csr_array) -> bool:
    """Return whether some attribute distinguishes nodes: not all of them have it in the same amount."""
    nodes, width = attributes.shape
    holders = np.bincount(attributes.indices, minlength=width)
    everywhere = np.flatnonzero(holders == nodes)
    if np.count_nonzero(holders) > len(everywhere):
        return True
    amounts = attributes[:, everywhere].toarray()  # all entries exist, so this needs no more memory
    return bool((amounts != amounts[:1]).any())


def weigh(attributes: sparse.csr_array, weights: np.ndarray) -> sparse.csr_array:
    """Return attributes times their weights, each row then scaled to length one; an empty row stays empty."""
    matrix = attributes.astype(np.float64)
    matrix.data *= weights[matrix.indices]
    return _divide_rows(matrix, np.sqrt(matrix.power(2).sum(axis=1)))


def link_scales(adjacency: sparse.csr_array, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return scales of rows and columns, float64, that turn A into what `weigh` returns for neighbours as attributes.

    weights: the weights of the columns if the matrix has only some rows of A; computed from A when None.
    """
    weights = inverse_frequency(adjacency) if weights is None else weights
    parts = (np.square(adjacency.data, dtype=np.float64), adjacency.indices, adjacency.indptr)
    lengths = np.sqrt(sparse.csr_array(parts, shape=adjacency.shape) @ np.square(weights))
    return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0), weights


def average_scales(adjacency: sparse.csr_array, weight: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the row scale D⁻¹ and the diagonal wD⁻¹ of Â = D⁻¹(A + wI), float64; w is the mean weight of an edge.

    Â averages over a node and its neighbours: its rows sum to one. A node without neighbours is its own average.
    weight: w if the matrix has only some rows of A; computed from A when None.
    """
    if weight is None:
        weight = adjacency.data.mean(dtype=np.float64) if adjacency.nnz else 1.0
    degrees = adjacency @ np.ones(adjacency.shape[1]) + weight
    return 1 / degrees, weight / degrees


def transition(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return the transition matrix D⁻¹A of a random walk: rows sum to one, or are empty without neighbours."""
    matrix = adjacency.astype(np.float64)
    return _divide_rows(matrix, matrix.sum(axis=1))


def without_self_loops(adjacency: sparse.csr_array) -> sparse.csr_array:
    """Return the adjacency matrix without its diagonal."""
    entries = adjacency.tocoo()
    proper = entries.row != entries.col
    kept = (entries.data[proper], (entries.row[proper], entries.col[proper]))
    return sparse.csr_array(kept, shape=adjacency.shape)


def unit_rows(table: np.ndarray) -> np.ndarray:
    """Return the table with its rows scaled to length one; a row of zeros stays zero."""
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    return table / np.where(lengths > 0, lengths, 1)


def _divide_rows(matrix: sparse.csr_array, by: np.ndarray) -> sparse.csr_array:
    matrix.data /= np.repeat(by, np.diff(matrix.indptr))  # an empty row is repeated 0 times
    return matrix


# Random walks with restart over sparse rows, r Σ (1 − r)ˡ PˡX, with a limit on the entries of a row.

BLOCK_NUMBERS = 1_000_000  # numbers that a thread has room for at a time: 8 MB


def restart_walk(walk: Any, start: np.ndarray, *, restart: float, steps: int) -> np.ndarray:
    """Return r Σ (1 − r)ˡ Pˡ times a column of numbers, over l = 0 … steps; float64."""
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
    """Return r Σ (1 − r)ˡ Pˡ times a sparse matrix `start` of numbers ≥ 0, over l = 0 … steps ≥ 1; float32.

    After every step a row keeps its `most` largest numbers. report: called after every step. block: numbers that a
    thread has room for at a time.
    """
    total = start = (restart * start).astype(np.float32)
    room = max(1, min(most, start.shape[1]))
    for _ in range(steps):
        total = _step((walk, total, start), 1 - restart, room, max(1, block // room), threads)
        if report is not None:
            report()
    return total


def _step(
    matrices: tuple[sparse.csr_array, ...], share: float, room: int, rows: int, threads: int | None
) -> sparse.csr_array:
    """Return start + share · walk @ table for matrices (walk, table, start); a row keeps its `room` largest numbers."""
    from neural_brane.kernels.cpu.lanes import Largest, step_rows

    walk, table, start = (rows_of(matrix) for matrix in matrices)
    nodes, width = matrices[2].shape

    def compute(first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shape = min(rows, nodes - first), room
        largest = Largest(np.empty(shape, np.int32), np.empty(shape, np.float32), np.empty(shape[0], np.int64), width)
        step_rows(walk, table, start, share, first, largest)
        full = np.arange(room) < largest.counts[:, None]
        return largest.columns[full], largest.values[full], largest.counts

    most = nodes * room  # room that stays empty is never touched and takes no memory
    columns, values, ends = np.empty(most, np.int32), np.empty(most, np.float32), np.zeros(nodes + 1, np.int64)
    row = done = 0
    for block_columns, block_values, counts in map_threads(compute, range(0, nodes, rows), threads):
        size = len(block_columns)
        columns[done : done + size], values[done : done + size] = block_columns, block_values
        ends[row + 1 : row + 1 + len(counts)] = done + np.cumsum(counts)
        row, done = row + len(counts), done + size
    # SciPy would convert columns to int64 if ends were int64.
    ends = ends.astype(np.int32) if done <= np.iinfo(np.int32).max else ends
    return sparse.csr_array((values[:done], columns[:done], ends), shape=(nodes, width))
