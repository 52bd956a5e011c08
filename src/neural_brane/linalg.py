"""Linear algebra that several methods share: weighted attributes, averages over neighbours, leading eigenvectors.

All of it gives the same bits on any number of threads: each column is computed on its own, and sums over nodes run on
one thread (`one_blas_thread`).
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

Product = Callable[[np.ndarray], np.ndarray]

SLAB_COLUMNS = 32  # multiplied at a time: bounds the temporary copies, and the work between two reports
OVERSAMPLING = 10  # vectors computed beyond those wanted, as Halko, Martinsson and Tropp advise
ITERATIONS = 6
NEGLIGIBLE = 1e-10  # of the largest eigenvalue: a smaller one is rounding error


def one_blas_thread() -> AbstractContextManager[Any]:
    """Run BLAS on one thread: on more, the order of its sums, and so their last bits, depends on their number."""
    return threadpool_limits(1, "blas")


def map_threads(task: Callable[[Any], Any], items: Iterable[Any], threads: int | None) -> Iterator[Any]:
    """Apply a task to items on several threads, on all cores when None; yields the results in the items' order."""
    with ThreadPoolExecutor(threads or os.cpu_count()) as pool:
        yield from pool.map(task, items)


def inverse_frequency(attributes: sparse.csr_array) -> np.ndarray:
    """The weight ln((1 + nodes) / (1 + nodes that have it)) + 1 of each attribute."""
    nodes, width = attributes.shape
    holders = np.bincount(attributes.indices, minlength=width)
    return np.log((1 + nodes) / (1 + holders)) + 1


def weigh(attributes: sparse.csr_array, weights: np.ndarray) -> sparse.csr_array:
    """Attributes times their weights, with each row then scaled to length one; an empty row stays empty."""
    matrix = attributes.astype(np.float64)
    matrix.data *= weights[matrix.indices]
    return _divide_rows(matrix, np.sqrt(matrix.power(2).sum(axis=1)))


def transition(adjacency: sparse.csr_array, *, self_loops: bool = False) -> sparse.csr_array:
    """The matrix of a random walk's steps: D⁻¹A or, with self-loops, D̃⁻¹(A + wI), w the mean weight of an edge.

    Rows sum to one. A node without neighbours has an empty row or, with self-loops, a step to itself.
    """
    matrix = adjacency.astype(np.float64)
    if self_loops:
        matrix = (matrix + sparse.diags_array(np.full(matrix.shape[0], matrix.data.mean()))).tocsr()
    return _divide_rows(matrix, matrix.sum(axis=1))


def without_self_loops(adjacency: sparse.csr_array) -> sparse.csr_array:
    """The adjacency matrix without its diagonal."""
    entries = adjacency.tocoo()
    proper = entries.row != entries.col
    kept = (entries.data[proper], (entries.row[proper], entries.col[proper]))
    return sparse.csr_array(kept, shape=adjacency.shape)


def unit_rows(table: np.ndarray) -> np.ndarray:
    """The table with its rows scaled to length one; a row of zeros stays."""
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    return table / np.where(lengths > 0, lengths, 1)


def by_slabs(
    product: Product, table: np.ndarray, *, threads: int | None = 1, report: Callable[[], Any] | None = None
) -> np.ndarray:
    """product(table), SLAB_COLUMNS columns at a time, for a product that treats each column on its own.

    Slabs run on several threads; `report` is called after each.
    """
    starts = range(0, table.shape[1], SLAB_COLUMNS)
    parts = []
    for part in map_threads(
        lambda at: product(np.ascontiguousarray(table[:, at : at + SLAB_COLUMNS])), starts, threads
    ):
        parts.append(part)
        if report:
            report()
    return np.hstack(parts)


def eigenvector_reports(size: int, rank: int) -> int:
    """How often `leading_eigenvectors` calls its report."""
    return (ITERATIONS + 1) * -(-min(size, rank + OVERSAMPLING) // SLAB_COLUMNS)


def leading_eigenvectors(
    product: Product,
    size: int,
    rank: int,
    *,
    seed: int,
    threads: int | None = 1,
    report: Callable[[], Any] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues (rank,) of a symmetric positive operator and their eigenvectors (size, rank).

    Randomised subspace iteration, which needs only the operator's product with a table. For product(q) = M(Mᵀq) these
    are the squared singular values of M and its left singular vectors. Columns beyond the operator's rank are zero.
    """
    basis = np.random.default_rng(seed).standard_normal((size, min(size, rank + OVERSAMPLING)))
    values, vectors = np.zeros(rank), np.zeros((size, rank))
    with one_blas_thread():
        for _ in range(ITERATIONS):
            basis = np.linalg.qr(by_slabs(product, basis, threads=threads, report=report))[0]
        image = by_slabs(product, basis, threads=threads, report=report)
        found, rotation = np.linalg.eigh(_symmetric(basis.T @ image))
        kept = np.flatnonzero(found > NEGLIGIBLE * found[-1])[::-1][:rank]
        values[: len(kept)] = found[kept]
        vectors[:, : len(kept)] = basis @ rotation[:, kept]
    vectors *= np.where(
        vectors[np.abs(vectors).argmax(axis=0), np.arange(rank)] < 0, -1, 1
    )  # of the two signs, the one that makes the largest entry positive
    return values, vectors


def _divide_rows(matrix: sparse.csr_array, by: np.ndarray) -> sparse.csr_array:
    matrix.data /= np.repeat(by, np.diff(matrix.indptr))  # an empty row repeats its zero no times
    return matrix


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return (matrix + matrix.T) / 2
