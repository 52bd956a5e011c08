"""The spectral part by ranks: each holds its own nodes' rows, and fetches what products need."""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
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

MOST_ROWS = 65_536  # of other ranks that are held at once, or as many as a rank owns where that is more
BLOCK = 1 << 20  # entries that are renumbered at once


class OwnMatrix(NamedTuple):
    """The rows of a sparse matrix that a rank owns.

    Its columns are renumbered: first all that the rank owns, then those of other ranks in which it has an entry. Rows
    of a table that belong to the latter are fetched in rounds, to hold few at a time; all ranks have as many rounds.
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


def own_matrix(shards: Any, kind: str, width: int, exchange: Exchange, most_rows: int = MOST_ROWS) -> OwnMatrix:
    """The own rows of a graph's "adjacency" or "attributes", which has `width` columns."""
    nodes = node_range(shards.nodes, exchange.rank, exchange.ranks)
    lengths, indices, data = [np.zeros(1, np.int64)], [np.empty(0, np.int32)], [np.empty(0, np.float32)]
    for number, (first, last) in enumerate(pairwise(shards.bounds)):
        if first >= nodes.stop or last <= nodes.start:
            continue
        rows = getattr(shards.part(number), kind)
        indptr = rows.indptr[max(nodes.start - first, 0) : min(nodes.stop, last) - first + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        lengths.append(np.diff(indptr))
        indices.append(rows.indices[entries])
        data.append(np.ones(entries.stop - entries.start, np.float32) if rows.data is None else rows.data[entries])
    joined = Rows(np.cumsum(np.concatenate(lengths)), np.concatenate(indices), np.concatenate(data))
    del indices, data
    own = node_range(width, exchange.rank, exchange.ranks)
    others = _distinct(joined.indices, width)
    begin, end = np.searchsorted(others, [own.start, own.stop])
    others = np.concatenate([others[:begin], others[end:]])
    numbers = _in_rounds(others, width, exchange, max(len(own), most_rows))
    columns = np.concatenate([np.arange(own.start, own.stop, dtype=np.int32), *numbers])
    _renumber(joined.indices, columns, width)
    asked = [Requests(exchange, one, width) for one in numbers]
    return OwnMatrix(joined.matrix(len(columns)), (shards.nodes, width), asked)


def _in_rounds(others: np.ndarray, width: int, exchange: Exchange, most: int) -> list[np.ndarray]:
    """Columns of other ranks, some ranks' in each round, so that a round takes and gives about `most` rows.

    In each round a rank asks those so many places after it, so that no two ask only the same one.
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


class OnRanks(Tables):
    """Tables whose rows the ranks share out by `node_range`; `local` tables hold the own rows.

    All ranks call the same functions in the same order. Sums go over all ranks, in one order. Rotations are the first
    rank's, since machines may round differently.
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

        A draw takes a varying number of random bits, so the rows before must be drawn too: a second per 10⁸ numbers.
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
    """A sparse matrix that `@` multiplies with tables, in rounds over the columns of other ranks."""

    def __init__(self, tables: OnRanks, rounds: list[Requests], pieces: list[Any]):
        self.tables, self.rounds, self.pieces = tables, rounds, pieces

    def __matmul__(self, table: Table) -> Table:
        return self._multiply(table) if table.shape[1] <= SLAB_COLUMNS else self.tables.by_slabs(self._multiply, table)

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
                product = piece @ _stack(table, rows)
            else:
                product += piece @ rows
        return product


class ReturnedRows(Rounds):
    """The transpose of such a matrix: every rank sums over its own nodes, and the owners add the sums up.

    Fetching would bring nearly all rows to every rank. Sums are fewer: one for each attribute that an own node has.
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


def _stack(first: Table, second: Table) -> Table:
    """Two tables one above the other, without a copy where one has no rows."""
    if not len(first) or not len(second):
        return first if len(first) else second
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    import torch

    return torch.cat([first, second])


class OwnGraph:
    """The rows of a graph that a rank owns, for `arrange_hops`; facts are those of the whole graph.

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
    """The joint SVD of attributes and links over hops; its vectors are the own nodes' rows, (own nodes, spectral_dim).

    All ranks call it together; up to rounding, the result is that of one process. `report` is called `linalg.REPORTS`
    times. most_rows: of other ranks that are held at once, or as many as a rank owns if that is more.
    """
    graph = OwnGraph(shards, exchange, most_rows)
    tables = OnRanks(tables_on(exchange.device.type, settings["threads"]), exchange)
    hops = arrange_hops(graph, settings["hop_weights"], link_weight=settings["link_weight"])
    product = HopProduct(hops, tables)
    del graph, hops  # where columns come in several rounds, the product has its own copy of the entries
    values, vectors = leading_eigenvectors(product, settings["spectral_dim"], tables=tables, seed=seed, report=report)
    return Decomposition(vectors, exchange.from_first(values))


def join_own(
    spectral: np.ndarray, learned: Iterator[np.ndarray], settings: dict[str, Any], exchange: Exchange
) -> Joint:
    """`parts.join` of own rows: centre and scale are those of all nodes, up to rounding. All ranks call it together."""

    def mean(values: np.ndarray) -> np.ndarray:
        sums = np.append(values.sum(axis=0, dtype=np.float64), float(len(values)))
        total = exchange.total(sums)
        return (total[:-1] / total[-1]).reshape(values.shape[1:])

    return join(spectral, learned, settings, mean)
