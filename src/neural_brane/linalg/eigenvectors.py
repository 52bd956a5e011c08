"""Leading eigenvectors of MMᵀ, by products with M and Mᵀ alone."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from neural_brane.blas import one_blas_thread
from neural_brane.linalg.tables import Table, Tables
from neural_brane.linalg.threads import SLAB_COLUMNS

OVERSAMPLING = 10  # vectors computed beyond those wanted, as Halko, Martinsson and Tropp advise
ITERATIONS = 6
REPORTS = ITERATIONS + 1  # how often `leading_eigenvectors` calls its report
INDEPENDENT = 1e-3  # of a column's length, beside what depends on those before it
NEGLIGIBLE = 1e-6  # of the largest eigenvalue: products in single precision do not tell a smaller one from zero


class Operator(Protocol):
    """A matrix M of `size` rows that is only ever multiplied with; no product is written over its argument."""

    size: int

    def image(self, table: Table) -> Table:
        """M(Mᵀ table)."""

    def gram(self, table: Table) -> np.ndarray:
        """The inner products of the columns of Mᵀ table, float64."""


def leading_eigenvectors(
    operator: Operator, rank: int, *, tables: Tables, seed: int, report: Callable[[], Any] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues (rank,) of MMᵀ, and their eigenvectors times their roots (size, rank) in float32.

    In other words the squared singular values of M, and its left singular vectors times the singular values. Columns
    beyond M's rank are zero. Randomised subspace iteration on tables of single precision; what is small, the inner
    products of the columns, is decomposed on the CPU in double precision.
    """
    width = -(-min(operator.size, rank + OVERSAMPLING) // SLAB_COLUMNS) * SLAB_COLUMNS  # part of a slab is no cheaper
    report = report or (lambda: None)
    with one_blas_thread():
        basis = tables.normal(operator.size, width, seed)
        for _ in range(ITERATIONS):
            basis = tables.by_slabs(operator.image, basis, reuse=True)
            basis = tables.rotate(basis, whiten(tables.gram(basis)))
            report()
        values, rotation = _along_axes(basis, operator, tables)
        kept = min(int(np.count_nonzero(values > NEGLIGIBLE * values[0])), rank)
        scaled = np.zeros((width, rank))
        scaled[:, :kept] = rotation[:, :kept] * np.sqrt(values[:kept])
        vectors = tables.array(tables.rotate(basis, scaled))
    report()
    least, most = tables.extremes(vectors)
    vectors *= np.where(-least > most, np.float32(-1), np.float32(1))  # one of two signs
    return np.append(values[:kept], np.zeros(rank - kept)), vectors


def _along_axes(basis: Table, operator: Operator, tables: Tables) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues of MMᵀ within a basis, the largest first, and what turns the basis to their axes."""
    whitened = whiten(tables.gram(basis))  # the basis is orthonormal only as far as single precision goes
    values, axes = np.linalg.eigh(whitened.T @ operator.gram(basis) @ whitened)
    return values[::-1], (whitened @ axes)[:, ::-1]


def whiten(gram: np.ndarray) -> np.ndarray:
    """What makes columns with these inner products orthonormal; those that depend on others become zero.

    Columns are scaled to length one first, so that short ones count as much as long ones. Where all are independent,
    as they mostly are, Cholesky's factor does; eigenvectors take ten times as long.
    """
    lengths = np.sqrt(np.diag(gram))
    scale = np.divide(1, lengths, out=np.zeros(len(gram)), where=lengths > 0)
    unit = gram * scale * scale[:, None]
    try:
        factor = np.linalg.cholesky(unit)
        if np.diag(factor).min() > INDEPENDENT:
            return scale[:, None] * np.linalg.inv(factor).T
    except np.linalg.LinAlgError:
        pass
    squares, axes = np.linalg.eigh(unit)
    kept = squares > NEGLIGIBLE**2 * squares[-1]
    return scale[:, None] * axes * np.divide(1, np.sqrt(np.abs(squares)), out=np.zeros(len(gram)), where=kept)
