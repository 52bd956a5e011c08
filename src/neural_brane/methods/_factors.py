"""Sparse matrices, reduced to vectors by their leading singular directions."""

import numpy as np
from scipy import sparse

from neural_brane.linalg import unit_rows
from neural_brane.linalg.tables import Table, Tables


class SparseProduct:
    """Products with a sparse matrix and with its transpose."""

    def __init__(self, matrix: sparse.csr_array, tables: Tables):
        self.size = matrix.shape[0]
        self.matrix, self.transposed = tables.matrix(matrix), tables.matrix(matrix.T.tocsr())

    def image(self, table: Table) -> Table:
        """M(Mᵀ table)."""
        return self.matrix @ (self.transposed @ table)

    def gram(self, table: Table) -> np.ndarray:
        """The inner products of the columns of Mᵀ table, float64."""
        return self.transposed.gram(table)


def rooted_unit_rows(vectors: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Rows of length one of the singular vectors times the roots of the singular values.

    vectors, values: as `leading_eigenvectors` gives them, singular vectors times singular values, and their squares.
    """
    scales = np.divide(1, values**0.25, out=np.zeros_like(values), where=values > 0)
    return as_unit_rows(vectors * scales.astype(np.float32))


def as_unit_rows(table: np.ndarray) -> np.ndarray:
    """The table with rows of length one, float32 and in one piece."""
    return np.ascontiguousarray(unit_rows(table), np.float32)
