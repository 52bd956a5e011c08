"""Dense float32 tables, and what is done with them on the CPU and, by PyTorch, on a GPU.

`OnCPU` and `OnTorch` have the same functions, so that whoever uses them is written once. A table has a row per node or
attribute. Sums over its rows are float64.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.linalg.threads import by_slabs, map_threads

BLOCK_ENTRIES = 65_536  # multiplied by one thread at a time
BLOCK_ROWS = 8_192  # of a table, likewise

Table = Any  # a NumPy array or a PyTorch tensor


class Rows:
    """A sparse matrix whose rows are shared out among threads; a row of a product is one sum, in its entries' order."""

    def __init__(self, matrix: sparse.csr_array, threads: int | None):
        from neural_brane.kernels.cpu import sparse as kernels  # needs Numba, which a GPU does without

        self.kernels = kernels
        self.threads, self.rows = threads, matrix.shape[0]
        self.indptr = matrix.indptr.astype(np.int64)
        self.indices = matrix.indices.astype(np.int32, copy=False)
        self.values = matrix.data.astype(np.float32, copy=False)
        cuts = np.searchsorted(matrix.indptr, np.arange(BLOCK_ENTRIES, matrix.nnz, BLOCK_ENTRIES))
        self.blocks = np.unique([0, *cuts, self.rows])  # of rows that together have about BLOCK_ENTRIES entries

    def __matmul__(self, table: np.ndarray) -> np.ndarray:
        width = table.shape[1]
        if width % self.kernels.COLUMNS:
            table = np.pad(table, ((0, 0), (0, -width % self.kernels.COLUMNS)))
        product = np.empty((self.rows, table.shape[1]), np.float32)

        def multiply(at: int) -> None:
            first, last = self.blocks[at], self.blocks[at + 1]
            self.kernels.multiply_rows(self.indptr, self.indices, self.values, table, first, last, product)

        list(map_threads(multiply, range(len(self.blocks) - 1), self.threads))
        return product[:, :width]


class OnCPU:
    """Tables that are NumPy arrays: the same bits on any number of threads, on all cores when None."""

    def __init__(self, threads: int | None = 1):
        self.threads = threads

    def matrix(self, matrix: sparse.csr_array) -> Rows:
        """A sparse matrix that `@` multiplies with tables."""
        return Rows(matrix, self.threads)

    def table(self, values: np.ndarray) -> np.ndarray:
        """A NumPy array as a table."""
        return np.ascontiguousarray(values, np.float32)

    def array(self, table: np.ndarray) -> np.ndarray:
        """A table as a NumPy array."""
        return table

    def by_slabs(self, product: Callable[[Table], Table], table: np.ndarray) -> np.ndarray:
        """product(table), for a product that treats each column on its own; the product itself uses the threads."""
        return by_slabs(product, table)

    def gram(self, table: np.ndarray) -> np.ndarray:
        """The inner products of a table's columns, float64."""
        total = np.zeros((table.shape[1],) * 2)
        for share in map_threads(lambda block: _squares(table[block].astype(np.float64)), _blocks(table), self.threads):
            total += share
        return total

    def rotate(self, table: np.ndarray, rotation: np.ndarray) -> np.ndarray:
        """A table times a small dense matrix."""
        small = rotation.astype(np.float32)
        rotated = np.empty((len(table), rotation.shape[1]), np.float32)

        def multiply(block: slice) -> None:
            np.matmul(table[block], small, out=rotated[block])

        list(map_threads(multiply, _blocks(table), self.threads))
        return rotated


class OnTorch:
    """Tables that are PyTorch tensors on a device; the last bits of a GPU are not promised."""

    def __init__(self, device: str):
        import torch

        self.torch, self.device = torch, device

    def matrix(self, matrix: sparse.csr_array) -> Any:
        """A sparse matrix that `@` multiplies with tables."""
        parts = (matrix.indptr, matrix.indices, matrix.data.astype(np.float32))
        indptr, indices, values = (self.torch.from_numpy(part).to(self.device) for part in parts)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse (CSR tensor support is in beta|invariant checks)")
            return self.torch.sparse_csr_tensor(indptr, indices, values, matrix.shape, check_invariants=False)

    def table(self, values: np.ndarray) -> Table:
        """A NumPy array as a table."""
        return self.torch.from_numpy(values.astype(np.float32, copy=False)).to(self.device)

    def array(self, table: Table) -> np.ndarray:
        """A table as a NumPy array."""
        return table.cpu().numpy()

    def by_slabs(self, product: Callable[[Table], Table], table: Table) -> Table:
        """product(table): a GPU is fastest with all columns at once."""
        return product(table)

    def gram(self, table: Table) -> np.ndarray:
        """The inner products of a table's columns, a float64 NumPy array."""
        total = self.torch.zeros((table.shape[1],) * 2, dtype=self.torch.float64, device=self.device)
        for block in _blocks(table):
            total += _squares(table[block].double())
        return total.cpu().numpy()

    def rotate(self, table: Table, rotation: np.ndarray) -> Table:
        """A table times a small dense matrix."""
        return table @ self.table(rotation)


Tables = OnCPU | OnTorch


def tables_on(device: str, threads: int | None = 1) -> Tables:
    """The tables of a device, "cpu" or "cuda"; `threads` is for the CPU."""
    if device == "cpu":
        return OnCPU(threads)
    from neural_brane.kernels.gpu.device import DEVICE  # the GPU, but for tests that interpret its kernels

    return OnTorch(DEVICE)


def _blocks(table: Table) -> list[slice]:
    return [slice(at, at + BLOCK_ROWS) for at in range(0, len(table), BLOCK_ROWS)]


def _squares(block: Table) -> Table:
    return block.T @ block
