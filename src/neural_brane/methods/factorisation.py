"""Share what methods need that solve for all vectors at once, by linear algebra."""

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from neural_brane.graph import AttributedGraph
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.linalg.tables import Table, Tables
from neural_brane.linalg.weights import unit_rows
from neural_brane.methods.base import Embedder
from neural_brane.methods.parameters import shared


class Factorisation(Embedder):
    """A method whose vectors are factors of matrices, solved for in double precision."""

    prolongs: ClassVar[tuple[str, ...]] = ("epochs",)
    why_not = "its factors are solved for all nodes at once"
    small = {"epochs": 2}

    checkpoint: str | Path | None = shared("checkpoint", default=None)

    def _learn(self, graph: AttributedGraph, seed: int) -> Any:
        with one_blas_thread():
            factors = self._factorise(graph, seed)
        return factors._replace(vectors=factors.vectors.astype(np.float32))

    @abstractmethod
    def _factorise(self, graph: AttributedGraph, seed: int) -> Any:
        """A named tuple that has the vectors (nodes, dim) and whatever else was solved for."""


# Sparse matrices, reduced to vectors by their leading singular directions.


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
