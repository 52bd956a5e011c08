"""Products of sparse matrices with tables, and steps of random walks with restart over sparse rows."""

from typing import NamedTuple

import numpy as np

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.cpu.lanes import fill, load, multiply_add, prefetch, store
from neural_brane.kernels.model import LANE

# Products of sparse matrices with tables, as SciPy's `matrix @ table` defines them, in registers.

COLUMNS = 2 * LANE  # of a table that are summed at once: two lanes
PREFETCH = 8  # entries ahead of the one being added


class Scaled(NamedTuple):
    """A sparse matrix between two scalings, and a diagonal: diag(rows) · matrix · diag(columns) + diag(diagonal)."""

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32
    values: np.ndarray  # float32, as all that follow
    rows: np.ndarray  # a number per row
    columns: np.ndarray  # a number per column
    diagonal: np.ndarray  # a number per row, or none at all


@njit(nogil=True, error_model="numpy")
def multiply_rows(matrix, table, first, product):
    """Write rows of a matrix times a table to product, as many as it holds, beginning with the matrix's row `first`.

    matrix: `Scaled`. table and product are float32, and their width is a multiple of COLUMNS. Each number is one sum in
    the order of the row's entries.
    """
    indptr, indices, values, rows, columns, diagonal = matrix
    zero = fill(np.float32(0))
    end = indptr[first + len(product)] - 1
    for at in range(len(product)):
        row = first + at
        for column in range(0, table.shape[1], COLUMNS):
            low, high = zero, zero
            for k in range(indptr[row], indptr[row + 1]):
                ahead, other = indices[min(k + PREFETCH, end)], indices[k]
                value = fill(values[k] * columns[other])
                prefetch(table, ahead, column)
                prefetch(table, ahead, column + LANE)
                low = multiply_add(value, load(table, other, column), low)
                high = multiply_add(value, load(table, other, column + LANE), high)
            scale = fill(rows[row])
            low, high = multiply_add(scale, low, zero), multiply_add(scale, high, zero)
            if len(diagonal):
                own = fill(diagonal[row])
                low = multiply_add(own, load(table, row, column), low)
                high = multiply_add(own, load(table, row, column + LANE), high)
            store(low, product, at, column)
            store(high, product, at, column + LANE)


# One step of random walks with restart over sparse rows, of which the largest numbers are kept.


class Sparse(NamedTuple):
    """A sparse matrix of numbers from 0, by rows."""

    indptr: np.ndarray
    indices: np.ndarray  # int32
    values: np.ndarray  # float32


@njit(nogil=True, error_model="numpy")
def step_rows(walk, table, start, share, first, width, columns, values, counts):
    """Write rows of start + share · walk @ table, as many as counts has, beginning with the row `first`.

    walk, table, start: `Sparse`; width is the number of the table's columns. Of each row the largest numbers are kept,
    as many as a row of columns and values holds, in the order of their columns; counts says how many. Among equal ones
    those met first are kept, which follows from the row alone. Sums are float64, in the order of the entries.
    """
    total, touched, scratch = np.zeros(width), np.empty(width, np.int32), np.empty(width)
    most = columns.shape[1]
    for at in range(len(counts)):
        row, met = first + at, 0
        for k in range(start.indptr[row], start.indptr[row + 1]):
            met = _add(total, touched, met, start.indices[k], np.float64(start.values[k]))
        for k in range(walk.indptr[row], walk.indptr[row + 1]):
            other, chance = walk.indices[k], share * np.float64(walk.values[k])
            for j in range(table.indptr[other], table.indptr[other + 1]):
                met = _add(total, touched, met, table.indices[j], chance * table.values[j])
        kept = _keep_largest(total, touched, met, most, scratch, columns[at])
        for k in range(kept):
            values[at, k] = total[columns[at, k]]
        counts[at] = kept
        for k in range(met):
            total[touched[k]] = 0.0


@njit(nogil=True, error_model="numpy", inline="always")
def _add(total, touched, met, column, value):
    """Add a number to a column's total; returns how many columns have been met."""
    if value > 0.0:
        if total[column] == 0.0:
            touched[met] = column
            met += 1
        total[column] += value
    return met


@njit(nogil=True, error_model="numpy")
def _keep_largest(total, touched, met, most, scratch, columns):
    """Write the columns of the largest totals, in order; returns how many there are."""
    if met <= most:
        columns[:met] = np.sort(touched[:met])
        return met
    for k in range(met):
        scratch[k] = total[touched[k]]
    least = np.partition(scratch[:met], met - most)[met - most]
    equal = most  # places for totals that equal the least one kept: those that larger ones leave
    for k in range(met):
        equal -= scratch[k] > least
    kept = 0
    for k in range(met):
        if scratch[k] > least or (scratch[k] == least and equal > 0):
            equal -= scratch[k] == least
            columns[kept] = touched[k]
            kept += 1
    columns[:kept] = np.sort(columns[:kept])
    return kept
