"""Operations on dense float32 tables: with NumPy and Numba on the CPU, with PyTorch on the GPU.

A table has a row per node or attribute. Sums over rows are float64.
"""

import warnings
from collections.abc import Callable
from copy import copy
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.kernels.model import rows_of
from neural_brane.kernels.threads import by_slabs, map_threads

BLOCK_ENTRIES = 65_536  # matrix entries that a thread multiplies at a time
BLOCK_ROWS = 8_192  # table rows that a thread multiplies at a time

Table = Any  # a NumPy array or a PyTorch tensor


class ScaledMatrix:
    """A sparse matrix with scales and a diagonal: diag(rows) · matrix · diag(columns) + diag(diagonal).

    Threads share its rows. Each number of a product is one sum, in the order of the entries. Scaled entries are not
    stored, so several matrices of a graph take no more memory than its adjacency.
    """

    def __init__(self, matrix: sparse.csr_array, threads: int | None):
        from neural_brane.kernels.cpu import lanes as kernels

        self.kernels, self.threads, self.size = kernels, threads, matrix.shape[0]
        self.matrix = kernels.Scaled(
            *rows_of(matrix),
            rows=np.ones(matrix.shape[0], np.float32),
            columns=np.ones(matrix.shape[1], np.float32),
            diagonal=np.empty(0, np.float32),
        )
        cuts = np.searchsorted(matrix.indptr, np.arange(BLOCK_ENTRIES, matrix.nnz, BLOCK_ENTRIES))
        ends = np.unique([0, *cuts, self.size])  # ends of blocks with about BLOCK_ENTRIES entries
        self.blocks = [slice(first, last) for first, last in pairwise(ends.tolist())]

    def scaled(self, **scales: np.ndarray) -> "ScaledMatrix":
        """Return the matrix with other scales `rows` or `columns`, or another `diagonal`; the entries are shared."""
        scaled = copy(self)
        scaled.matrix = self.matrix._replace(**{name: scale.astype(np.float32) for name, scale in scales.items()})
        return scaled

    def __matmul__(self, table: np.ndarray) -> np.ndarray:
        wide = self._pad(table)
        product = np.empty((self.size, wide.shape[1]), np.float32)

        def multiply(block: slice) -> None:
            self.kernels.multiply_rows(self.matrix, wide, block.start, product[block])

        list(map_threads(multiply, self.blocks, self.threads))
        return product[:, : table.shape[1]]

    def gram(self, table: np.ndarray) -> np.ndarray:
        """Return the inner products of the columns of `self @ table`, float64; the product is made block by block."""
        wide, width = self._pad(table), table.shape[1]

        def share(block: slice) -> np.ndarray:
            product = np.empty((block.stop - block.start, wide.shape[1]), np.float32)
            self.kernels.multiply_rows(self.matrix, wide, block.start, product)
            return _squares(product[:, :width].astype(np.float64))

        return sum(map_threads(share, self.blocks, self.threads), np.zeros((width, width)))

    def _pad(self, table: np.ndarray) -> np.ndarray:
        """Return the table with columns of zeros added, up to a width that the kernel accepts."""
        missing = -table.shape[1] % self.kernels.COLUMNS
        return np.pad(table, ((0, 0), (0, missing))) if missing else table


class TorchScaledMatrix:
    """Like `ScaledMatrix`, on a device by PyTorch; each matrix stores its scaled entries and shares their positions."""

    def __init__(self, tables: "OnTorch", matrix: Any, diagonal: Any = None):
        self.tables, self.matrix, self.diagonal = tables, matrix, diagonal

    def scaled(
        self, *, rows: np.ndarray | None = None, columns: np.ndarray | None = None, diagonal: np.ndarray | None = None
    ) -> "TorchScaledMatrix":
        """Return the matrix with these scales of rows and columns, and this diagonal."""
        crow, col, values = self.matrix.crow_indices(), self.matrix.col_indices(), self.matrix.values()
        if columns is not None:
            values = values * self.tables.table(columns)[col]
        if rows is not None:
            values = values * self.tables.table(rows).repeat_interleave(crow.diff())
        own = None if diagonal is None else self.tables.table(diagonal)[:, None]
        return TorchScaledMatrix(self.tables, self.tables.csr(crow, col, values, self.matrix.shape), own)

    def __matmul__(self, table: Any) -> Any:
        product = self.matrix @ table
        return product if self.diagonal is None else product.add_(self.diagonal * table[: len(self.diagonal)])

    def gram(self, table: Any) -> np.ndarray:
        """Return the inner products of the columns of `self @ table`, float64."""
        return self.tables.gram(self @ table)


class Tables:
    """Makes dense float32 tables and sparse matrices and multiplies them; here tables are NumPy arrays on the CPU.

    threads: None uses all cores; the bits are the same on any number.
    """

    def __init__(self, threads: int | None = 1):
        self.threads = threads

    def matrix(self, matrix: sparse.csr_array) -> Any:
        """Return a sparse matrix that `@` multiplies with tables."""
        return ScaledMatrix(matrix, self.threads)

    def with_transpose(self, matrix: sparse.csr_array) -> tuple[Any, Any]:
        """Return a sparse matrix and its transpose, both stored by rows, for fast products."""
        return self.matrix(matrix), self.matrix(matrix.T.tocsr())

    def table(self, values: np.ndarray) -> Table:
        """Return a NumPy array as a table."""
        return np.ascontiguousarray(values, np.float32)

    def normal(self, rows: int, columns: int, seed: int) -> Table:
        """Return a table of independent numbers from the standard normal distribution."""
        return self.table(np.random.default_rng(seed).standard_normal((rows, columns), np.float32))

    def zeros(self, rows: int, columns: int) -> Table:
        """Return a table of zeros."""
        return np.zeros((rows, columns), np.float32)

    def array(self, table: Table) -> np.ndarray:
        """Return a table as a NumPy array."""
        return table

    def by_slabs(self, product: Callable[[Table], Table], table: Table, *, reuse: bool = False) -> Table:
        """Return product(table), for a product that treats columns independently; reuse: it may overwrite the table."""
        return by_slabs(product, table, out=table if reuse else None)

    def gram(self, table: Table) -> np.ndarray:
        """Return the inner products of a table's columns, a float64 NumPy array."""
        squares = map_threads(lambda block: _squares(table[block].astype(np.float64)), _blocks(table), self.threads)
        return sum(squares, np.zeros((table.shape[1],) * 2))

    def sums(self, table: Table) -> np.ndarray:
        """Return the sum of each column, a float64 NumPy array."""
        sums = map_threads(lambda block: table[block].sum(axis=0, dtype=np.float64), _blocks(table), self.threads)
        return sum(sums, np.zeros(table.shape[1]))

    def means(self, table: Table) -> np.ndarray:
        """Return the mean of each column, a float64 NumPy array."""
        return self.sums(table) / len(table)

    def centre(self, table: Table) -> Table:
        """Subtract from each column its mean, in place, and return the table."""
        table -= self.table(self.means(table))
        return table

    def rotate(self, table: Table, rotation: np.ndarray) -> Table:
        """Return a table times a small dense matrix; a square one may overwrite the table."""
        small = rotation.astype(np.float32)
        square = rotation.shape[1] == table.shape[1]
        rotated = table if square else np.empty((len(table), rotation.shape[1]), np.float32)

        def multiply(block: slice) -> None:
            rotated[block] = table[block] @ small

        list(map_threads(multiply, _blocks(table), self.threads))
        return rotated

    def extremes(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest number of each column of a NumPy array."""
        return values.min(axis=0), values.max(axis=0)


class OnTorch(Tables):
    """Tables that are PyTorch tensors on a device; on a GPU their last bits may differ between runs."""

    def __init__(self, device: str):
        import torch

        self.torch, self.device = torch, device

    def matrix(self, matrix: sparse.csr_array) -> TorchScaledMatrix:
        parts = (matrix.indptr, matrix.indices, matrix.data.astype(np.float32, copy=False))
        indptr, indices, values = (self.torch.from_numpy(part).to(self.device) for part in parts)
        return TorchScaledMatrix(self, self.csr(indptr, indices, values, matrix.shape))

    def csr(self, indptr: Any, indices: Any, values: Any, shape: tuple[int, ...]) -> Any:
        """Return a sparse PyTorch matrix, made of tensors on the device."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse (CSR tensor support is in beta|invariant checks)")
            return self.torch.sparse_csr_tensor(indptr, indices, values, shape, check_invariants=False)

    def table(self, values: np.ndarray) -> Table:
        return self.torch.from_numpy(values.astype(np.float32, copy=False)).to(self.device)

    def zeros(self, rows: int, columns: int) -> Table:
        return self.torch.zeros((rows, columns), device=self.device)

    def array(self, table: Table) -> np.ndarray:
        return table.cpu().numpy()

    def by_slabs(self, product: Callable[[Table], Table], table: Table, *, reuse: bool = False) -> Table:
        return product(table)  # all columns at once is fastest on a GPU

    def gram(self, table: Table) -> np.ndarray:
        total = self.torch.zeros((table.shape[1],) * 2, dtype=self.torch.float64, device=self.device)
        for block in _blocks(table):
            total += _squares(table[block].double())
        return total.cpu().numpy()

    def sums(self, table: Table) -> np.ndarray:
        return table.sum(dim=0, dtype=self.torch.float64).cpu().numpy()

    def rotate(self, table: Table, rotation: np.ndarray) -> Table:
        return table @ self.table(rotation)


def tables_on(device: str, threads: int | None = 1) -> Tables:
    """Return the tables of a device; "distributed" uses the CPU, and only the CPU uses `threads`."""
    if device in ("cpu", "distributed"):
        return Tables(threads)
    from neural_brane.kernels.gpu.bundles import DEVICE

    return OnTorch(DEVICE)


def _blocks(table: Table) -> list[slice]:
    return [slice(at, at + BLOCK_ROWS) for at in range(0, len(table), BLOCK_ROWS)]


def _squares(block: Table) -> Table:
    return block.T @ block
