"""Products of sparse matrices with tables, as SciPy's `matrix @ table` defines them, in registers."""

import numpy as np

from neural_brane.compiling import njit
from neural_brane.kernels.cpu.lanes import fill, load, multiply_add, prefetch, store
from neural_brane.kernels.model import LANE

COLUMNS = 2 * LANE  # of a table that are summed at once: two lanes
PREFETCH = 8  # entries ahead of the one being added


@njit(nogil=True, error_model="numpy")
def multiply_rows(indptr, indices, values, table, first, last, product):
    """Write the rows first, …, last − 1 of a sparse matrix times a table to product.

    indptr int64, indices int32, values float32: the sparse matrix. table and product are float32, and their width is a
    multiple of COLUMNS. Each number is one sum in the order of the row's entries.
    """
    end = indptr[last] - 1
    for row in range(first, last):
        for column in range(0, table.shape[1], COLUMNS):
            low, high = fill(np.float32(0)), fill(np.float32(0))
            for k in range(indptr[row], indptr[row + 1]):
                ahead, other, value = indices[min(k + PREFETCH, end)], indices[k], fill(values[k])
                prefetch(table, ahead, column)
                prefetch(table, ahead, column + LANE)
                low = multiply_add(value, load(table, other, column), low)
                high = multiply_add(value, load(table, other, column + LANE), high)
            store(low, product, row, column)
            store(high, product, row, column + LANE)
