"""Tables of which every rank holds its own rows, and products with sparse matrices of which it does too."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from neural_brane.cluster.exchange import Exchange, Requests
from neural_brane.cluster.own import OwnMatrix
from neural_brane.cluster.ranges import node_range
from neural_brane.linalg.tables import BLOCK_ROWS, Table, Tables
from neural_brane.linalg.threads import SLAB_COLUMNS


class OnRanks(Tables):
    """Tables whose rows the ranks share out by `node_range`; what is done with own rows is done by other tables.

    All ranks call the same functions in the same order. Sums over rows go over all ranks, in one order, and what turns
    a table is the first rank's, so that machines that round differently still turn the same way.
    """

    def __init__(self, local: Tables, exchange: Exchange):
        self.local, self.exchange = local, exchange

    def matrix(self, matrix: OwnMatrix) -> "FetchedRows":
        """A sparse matrix that `@` multiplies with tables."""
        return FetchedRows(self, matrix.rounds, [self.local.matrix(piece) for piece in matrix.pieces()])

    def both_ways(self, matrix: OwnMatrix) -> tuple["FetchedRows", "ReturnedRows"]:
        """A sparse matrix and its transpose, which shares the columns' owners and asks nothing new."""
        local, pieces = self.local, matrix.pieces()
        fetched = FetchedRows(self, matrix.rounds, [local.matrix(piece) for piece in pieces])
        return fetched, ReturnedRows(self, matrix.rounds, [local.matrix(piece.T.tocsr()) for piece in pieces])

    def table(self, values: np.ndarray) -> Table:
        """A NumPy array of own rows as a table."""
        return self.local.table(values)

    def normal(self, rows: int, columns: int, seed: int) -> Table:
        """The own rows of the table that one process would draw.

        A draw takes a varying number of random bits, so that the rows before must be drawn too; they are thrown away,
        block by block. Numbers take about a second per hundred million.
        """
        own = node_range(rows, self.exchange.rank, self.exchange.ranks)
        generator = np.random.default_rng(seed)
        for at in range(0, own.start, BLOCK_ROWS):
            generator.standard_normal((min(BLOCK_ROWS, own.start - at), columns), np.float32)
        return self.table(generator.standard_normal((len(own), columns), np.float32))

    def zeros(self, rows: int, columns: int) -> Table:
        """A table of zeros, of so many own rows."""
        return self.local.zeros(rows, columns)

    def array(self, table: Table) -> np.ndarray:
        """The own rows of a table as a NumPy array."""
        return self.local.array(table)

    def by_slabs(self, product: Callable[[Table], Table], table: Table, *, reuse: bool = False) -> Table:
        """product(table), for a product that treats each column on its own."""
        return self.local.by_slabs(product, table, reuse=reuse)

    def gram(self, table: Table) -> np.ndarray:
        """The inner products of a table's columns over all ranks, float64."""
        return self.exchange.total(self.local.gram(table))

    def rotate(self, table: Table, rotation: np.ndarray) -> Table:
        """A table times the first rank's small dense matrix."""
        return self.local.rotate(table, self.exchange.from_first(rotation))

    def extremes(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The smallest and the largest number of each column over all ranks."""
        least, most = values.min(axis=0, initial=np.inf), values.max(axis=0, initial=-np.inf)
        found = self.exchange.largest(np.stack([-least, most]))
        return -found[0], found[1]


class Rounds:
    """A product with a sparse matrix, the columns of some other ranks after another's."""

    def __init__(self, tables: OnRanks, rounds: list[Requests], pieces: list[Any]):
        self.tables, self.rounds, self.pieces = tables, rounds, pieces

    def __matmul__(self, table: Table) -> Table:
        if table.shape[1] <= SLAB_COLUMNS:
            return self._multiply(table)
        return self.tables.by_slabs(self._multiply, table)

    def gram(self, table: Table) -> np.ndarray:
        """The inner products of the product's columns, float64."""
        return self.tables.gram(self @ table)

    def _multiply(self, table: Table) -> Table:
        raise NotImplementedError


class FetchedRows(Rounds):
    """The own rows of a matrix: the table's rows that belong to its columns are fetched from their owners."""

    def scaled(self, **scales: np.ndarray) -> Self:
        """The matrix with these scales of own `rows`, own `columns` and own `diagonal`."""
        pieces = []
        for at, (requests, piece) in enumerate(zip(self.rounds, self.pieces, strict=True)):
            changed = {name: scale for name, scale in scales.items() if name == "rows" or at == 0}
            if "columns" in scales:
                own = scales["columns"]
                fetched = requests.answers(own[requests.wanted])
                changed["columns"] = fetched if at else np.concatenate([own, fetched])
            pieces.append(piece.scaled(**changed))
        return type(self)(self.tables, self.rounds, pieces)

    def _multiply(self, table: Table) -> Table:
        product: Any = None
        for requests, piece in zip(self.rounds, self.pieces, strict=True):
            rows = requests.rows_of(table)
            if product is None:  # own rows stand first, where a diagonal looks for them
                product = piece @ stack([table, rows])
            else:
                product += piece @ rows
        return product


class ReturnedRows(Rounds):
    """The transpose of such a matrix: every rank sums over its own nodes, and the owners add the sums up.

    The rows of a transpose would need its nodes' rows of a table on every rank, for there is hardly a node without some
    attribute of each rank's. Sums are fewer: one for each attribute that some own node has.
    """

    def _multiply(self, table: Table) -> Table:
        total: Any = None
        for requests, piece in zip(self.rounds, self.pieces, strict=True):
            sums = piece @ table
            if total is None:
                own = len(requests.own)
                total, sums = sums[:own], sums[own:]
            requests.add(sums, total)
        return total


def stack(tables: list[Table]) -> Table:
    """Tables one above another, those without rows left out."""
    tables = [table for table in tables if len(table)] or tables[:1]
    if len(tables) == 1:
        return tables[0]
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    import torch

    return torch.cat(tables)
