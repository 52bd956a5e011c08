"""The spectral part by ranks: each holds its own nodes' rows, and fetches what products need."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from neural_brane.distributed.exchange import Exchange, Requests, node_range, owners
from neural_brane.files.graphs.parts import Rows
from neural_brane.kernels.threads import SLAB_COLUMNS
from neural_brane.linalg.eigenvectors import arrange_hops, leading_eigenvectors
from neural_brane.linalg.tables import BLOCK_ROWS, Table, Tables, tables_on
from neural_brane.linalg.weights import average_scales, link_scales, rarity, weigh
from neural_brane.methods.neural_brane.parts import Joint, join
from neural_brane.methods.spectral import Decomposition, HopProduct

# The rows that a rank owns of a sparse matrix, and what it needs from other ranks to multiply with them.

MOST_ROWS = 65_536  # of other ranks that are held at once, or as many as a rank owns where that is more
BLOCK = 1 << 20  # entries that are renumbered at once


class OwnMatrix(NamedTuple):
    """The rows of a sparse matrix that a rank owns.

    Its columns are renumbered: first all that the rank owns, then those of others in which it has an entry. What
    belongs to these is asked for in rounds, so that little of it is here at any time; each round has its own columns,
    one after another. All ranks have as many rounds.
    """

    matrix: sparse.csr_array  # (own rows, own columns + others)
    shape: tuple[int, int]  # of the whole matrix
    rounds: list[Requests]  # about the columns of others

    def pieces(self) -> list[sparse.csr_array]:
        """The columns of each round; those of the first begin with the rank's own."""
        if len(self.rounds) == 1:
            return [self.matrix]
        asked = np.cumsum([requests.asked for requests in self.rounds]) + self.own_columns
        ends = np.append(0, asked)
        return [self.matrix[:, ends[at] : ends[at + 1]] for at in range(len(self.rounds))]

    @property
    def own_columns(self) -> int:
        """The number of columns that the rank owns."""
        return len(self.rounds[0].own)

    def fetch(self, values: np.ndarray) -> np.ndarray:
        """A number for each column of the renumbered matrix, from one for each column that the rank owns."""
        return np.concatenate([values, *(requests.answers(values[requests.wanted]) for requests in self.rounds)])

    def collect(self, values: np.ndarray) -> np.ndarray:
        """Sums over the ranks for each column that the rank owns, from a number for each renumbered column."""
        total, at = values[: self.own_columns].copy(), self.own_columns
        for requests in self.rounds:
            requests.add(values[at : at + requests.asked], total)
            at += requests.asked
        return total


def own_rows(shards: Any, kind: str, own: range) -> Rows:
    """A copy of some nodes' rows of "adjacency" or "attributes", from all parts that have any of them."""
    first = int(np.searchsorted(shards.bounds, own.start, side="right")) - 1
    lengths, indices, data = [np.zeros(1, np.int64)], [np.empty(0, np.int32)], [np.empty(0, np.float32)]
    for number in range(max(first, 0), len(shards.bounds) - 1):
        if shards.bounds[number] >= own.stop:
            break
        part = shards.part(number)
        rows: Rows = getattr(part, kind)
        begin, end = max(own.start - part.first, 0), min(own.stop - part.first, len(rows.indptr) - 1)
        entries = slice(int(rows.indptr[begin]), int(rows.indptr[end]))
        lengths.append(np.diff(rows.indptr[begin : end + 1]))
        indices.append(rows.indices[entries])
        data.append(np.ones(entries.stop - entries.start, np.float32) if rows.data is None else rows.data[entries])
    return Rows(np.cumsum(np.concatenate(lengths)), np.concatenate(indices), np.concatenate(data))


def own_matrix(shards: Any, kind: str, width: int, exchange: Exchange, most_rows: int = MOST_ROWS) -> OwnMatrix:
    """The own rows of a graph's "adjacency" or "attributes", which has `width` columns."""
    rows = own_rows(shards, kind, node_range(shards.nodes, exchange.rank, exchange.ranks))
    own = node_range(width, exchange.rank, exchange.ranks)
    others = _distinct(rows.indices, width)
    begin, end = np.searchsorted(others, [own.start, own.stop])
    others = np.concatenate([others[:begin], others[end:]])
    numbers = _in_rounds(others, width, exchange, max(len(own), most_rows))
    columns = np.concatenate([np.arange(own.start, own.stop, dtype=np.int32), *numbers])
    _renumber(rows.indices, columns, width)
    matrix = sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=(len(rows.indptr) - 1, len(columns)))
    return OwnMatrix(matrix, (shards.nodes, width), [Requests(exchange, asked, width) for asked in numbers])


def _in_rounds(others: np.ndarray, width: int, exchange: Exchange, most: int) -> list[np.ndarray]:
    """Columns of other ranks, some ranks' in each round, so that a round takes and gives about `most` rows.

    In each round a rank asks those that come so many places after it, so that no two ask the same one alone.
    """
    ranks, owner = exchange.ranks, owners(others, width, exchange.ranks)
    asked_here = exchange.sizes(np.bincount(owner, minlength=ranks)).sum()
    busiest = exchange.largest(np.array([-(-max(len(others), int(asked_here)) // most)]))
    rounds = int(np.clip(busiest[0], 1, max(ranks - 1, 1)))
    turn = ((owner - exchange.rank) % ranks - 1) * rounds // max(ranks - 1, 1)
    return [others[turn == at] for at in range(rounds)]


def _distinct(numbers: np.ndarray, count: int) -> np.ndarray:
    """The distinct numbers of 0 … count − 1 in an array, in order; in no more memory than the array takes."""
    if count > len(numbers):
        return np.unique(numbers)
    there = np.zeros(count, bool)
    there[numbers] = True
    return np.flatnonzero(there).astype(np.int32)


def _renumber(numbers: np.ndarray, columns: np.ndarray, count: int) -> None:
    """Replace each number by its place in `columns`; a table of all places is made only where it is the smaller."""
    if count <= len(numbers):
        places = np.zeros(count, np.int32)
        places[columns] = np.arange(len(columns), dtype=np.int32)
        for at in range(0, len(numbers), BLOCK):
            numbers[at : at + BLOCK] = places[numbers[at : at + BLOCK]]
        return
    order = np.argsort(columns, kind="stable").astype(np.int32)
    ordered = columns[order]
    for at in range(0, len(numbers), BLOCK):
        numbers[at : at + BLOCK] = order[np.searchsorted(ordered, numbers[at : at + BLOCK])]


# Tables of which every rank holds its own rows, and products with sparse matrices of which it does too.


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


# The spectral part by ranks: the joint SVD of attributes and links, of which each rank holds its own nodes' rows.


class OwnGraph:
    """The rows of a graph that a rank owns, as what the matrix M is made of; its numbers are those of the whole graph.

    All ranks ask for the same things in the same order. most_rows: of other ranks that are held at once.
    """

    def __init__(self, shards: Any, exchange: Exchange, most_rows: int = MOST_ROWS):
        self.shards, self.exchange, self.most_rows, self.name = shards, exchange, most_rows, shards.name

    @cached_property
    def adjacency(self) -> OwnMatrix:
        """The own rows of A."""
        return own_matrix(self.shards, "adjacency", self.shards.nodes, self.exchange, self.most_rows)

    @cached_property
    def attributes(self) -> OwnMatrix:
        """The own nodes' attributes."""
        return own_matrix(self.shards, "attributes", self.shards.attributes, self.exchange, self.most_rows)

    @cached_property
    def linked(self) -> bool:
        """Whether any edge joins two nodes; self-loops join nobody."""
        matrix = self.adjacency.matrix  # own columns stand first, so its diagonal is that of A
        return bool(self._sum(matrix.nnz - np.count_nonzero(matrix.diagonal())) > 0)

    @cached_property
    def holders(self) -> np.ndarray:
        """The number of nodes that have each attribute that the rank owns."""
        own = self.attributes
        return own.collect(np.bincount(own.matrix.indices, minlength=own.matrix.shape[1]))

    @cached_property
    def tell_apart(self) -> bool:
        """Whether some attribute tells nodes apart: not all of them have it in the same amount."""
        nodes, matrix = self.shards.nodes, self.attributes.matrix
        if self._sum(np.count_nonzero((self.holders > 0) & (self.holders < nodes))):
            return True
        everywhere = int(self._sum(np.count_nonzero(self.holders)))  # and no node has any other
        amounts = matrix.data.reshape(matrix.shape[0], everywhere)
        first = self.exchange.from_first(amounts[0] if len(amounts) else np.empty(everywhere, np.float32))
        return bool(self._sum(np.count_nonzero(amounts != first)))

    def bags(self) -> OwnMatrix | None:
        """The attributes, weighed by their rarity; None where none of them tells nodes apart."""
        if not self.tell_apart:
            return None
        own = self.attributes
        weights = own.fetch(rarity(self.holders, self.shards.nodes))
        del self.attributes  # the weighed ones take its place
        return own._replace(matrix=weigh(own.matrix, weights).astype(np.float32))

    def averages(self) -> tuple[np.ndarray, np.ndarray]:
        """The scale of A's own rows, and the diagonal, that make A an average over neighbours."""
        matrix = self.adjacency.matrix
        entries = self._sum(matrix.nnz)
        return average_scales(matrix, self._sum(matrix.data.sum(dtype=np.float64)) / entries if entries else 1.0)

    def links(self) -> tuple[np.ndarray, np.ndarray]:
        """The scales of A's own rows and columns that make links what `bags` makes of attributes."""
        own = self.adjacency
        weights = rarity(np.diff(own.matrix.indptr), self.shards.nodes)  # A is symmetric: a column is a row
        return link_scales(own.matrix, own.fetch(weights))[0], weights

    def _sum(self, number: Any) -> float:
        return float(self.exchange.total(np.array([number], np.float64))[0])


def spectral_part(
    shards: Any,
    exchange: Exchange,
    settings: dict[str, Any],
    seed: int,
    report: Callable[[], Any] | None = None,
    most_rows: int = MOST_ROWS,
) -> Decomposition:
    """The joint SVD of attributes and links over hops, with the own nodes' rows as vectors: (own nodes, spectral_dim).

    All ranks call it together, and the vectors of one process come out, up to rounding. `report` is called
    `linalg.REPORTS` times. most_rows: of other ranks that are held at once, or as many as a rank owns if that is more.
    """
    graph = OwnGraph(shards, exchange, most_rows)
    tables = OnRanks(tables_on(exchange.device.type, settings["threads"]), exchange)
    hops = arrange_hops(graph, settings["hop_weights"], link_weight=settings["link_weight"])
    product = HopProduct(hops, tables)
    del graph, hops  # where columns come in several rounds, the product has its own copy of the entries
    values, vectors = leading_eigenvectors(product, settings["spectral_dim"], tables=tables, seed=seed, report=report)
    return Decomposition(vectors, exchange.from_first(values))


# The two parts of the vectors that a rank owns, joined as one process joins them all.


def join_own(
    spectral: np.ndarray, learned: Iterator[np.ndarray], settings: dict[str, Any], exchange: Exchange
) -> Joint:
    """`parts.join` of own rows: centre and scale are those of all nodes, up to rounding. All ranks call it together."""

    def mean(values: np.ndarray) -> np.ndarray:
        sums = np.append(values.sum(axis=0, dtype=np.float64), float(len(values)))
        total = exchange.total(sums)
        return (total[:-1] / total[-1]).reshape(values.shape[1:])

    return join(spectral, learned, settings, mean)
