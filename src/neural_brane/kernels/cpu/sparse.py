"""Products of sparse matrices with tables, as SciPy's `matrix @ table` defines them, in registers."""

from typing import NamedTuple

import numpy as np

from neural_brane.compiling import njit
from neural_brane.kernels.cpu.lanes import fill, load, multiply_add, prefetch, store
from neural_brane.kernels.model import LANE

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
