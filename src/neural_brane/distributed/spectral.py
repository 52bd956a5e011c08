"""Compute the spectral part on many ranks; each keeps the rows of its own nodes and fetches other rows it needs."""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from neural_brane.distributed.exchange import Exchange, Requests, node_range, owners, stack
from neural_brane.files.graphs.shards import ShardRows
from neural_brane.kernels.threads import SLAB_COLUMNS
from neural_brane.linalg.eigenvectors import factor_hops, leading_eigenvectors
from neural_brane.linalg.tables import BLOCK_ROWS, Table, Tables, tables_on
from neural_brane.linalg.weights import average_scales, link_scales, rarity, weigh
from neural_brane.methods.neural_brane.parts import Joint, join
from neural_brane.methods.spectral import Decomposition, HopProduct

MOST_ROWS = 65_536  # rows of other ranks in memory at a time; at least as many as a rank owns
BLOCK = 1 << 20  # entries renumbered at a time


class OwnMatrix(NamedTuple):
    """The rows of a sparse matrix that a rank owns.

    Its columns are renumbered: first the columns that the rank owns, then columns of other ranks with an entry here.
    Table rows of the latter are fetched in rounds, to save memory. All ranks have the same number of rounds.
    """

    matrix: sparse.csr_array  # (own rows, own columns + others)
    shape: tuple[int, int]  # shape of the whole matrix
    rounds: list[Requests]  # requests for the columns of other ranks

    def pieces(self) -> list[sparse.csr_array]:
        """Return the columns of each round; the first round also has the rank's own columns."""
        if len(self.rounds) == 1:
            return [self.matrix]
        ends = np.append(0, np.cumsum([requests.count for requests in self.rounds]) + self.own_columns)
        return [self.matrix[:, ends[at] : ends[at + 1]] for at in range(len(self.rounds))]

    @property
    def own_columns(self) -> int:
        """Number of columns that the rank owns."""
        return len(self.rounds[0].own)

    def fetch(self, values: np.ndarray) -> np.ndarray:
        """Return a number for each renumbered column, given a number for each column that the rank owns."""
        return np.concatenate([values, *(requests.answers(values[requests.own_rows]) for requests in self.rounds)])

    def collect(self, values: np.ndarray) -> np.ndarray:
        """Return sums over the ranks for the columns that the rank owns, given a number per renumbered column."""
        total, at = values[: self.own_columns].copy(), self.own_columns
        for requests in self.rounds:
            requests.add(values[at : at + requests.count], total)
            at += requests.count
        return total


def own_matrix(shards: Any, kind: str, width: int, exchange: Exchange, most_rows: int = MOST_ROWS) -> OwnMatrix:
    """Return the own rows of a graph's "adjacency" or "attributes", a matrix with `width` columns."""
    nodes = node_range(shards.nodes, exchange.rank, exchange.ranks)
    lengths, indices, data = [np.zeros(1, np.int64)], [np.empty(0, np.int32)], [np.empty(0, np.float32)]
    for number, (first, last) in enumerate(pairwise(shards.bounds)):
        if first >= nodes.stop or last <= nodes.start:
            continue
        rows = getattr(shards.shard(number), kind)
        indptr = rows.indptr[max(nodes.start - first, 0) : min(nodes.stop, last) - first + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        lengths.append(np.diff(indptr))
        indices.append(rows.indices[entries])
        data.append(np.ones(entries.stop - entries.start, np.float32) if rows.data is None else rows.data[entries])
    joined = ShardRows(np.cumsum(np.concatenate(lengths)), np.concatenate(indices), np.concatenate(data))
    del indices, data
    own = node_range(width, exchange.rank, exchange.ranks)
    others = _distinct(joined.indices, width)
    begin, end = np.searchsorted(others, [own.start, own.stop])
    others = np.concatenate([others[:begin], others[end:]])
    numbers = _in_rounds(others, width, exchange, max(len(own), most_rows))
    columns = np.concatenate([np.arange(own.start, own.stop, dtype=np.int32), *numbers])
    _renumber(joined.indices, columns, width)
    rounds = [Requests(exchange, one, width) for one in numbers]
    return OwnMatrix(joined.matrix(len(columns)), (shards.nodes, width), rounds)


def _in_rounds(others: np.ndarray, width: int, exchange: Exchange, most: int) -> list[np.ndarray]:
    """Divide the columns of other ranks into rounds, so that a rank sends and receives about `most` rows in each.

    In each round, rank r sends requests to certain ranks after r, so that no rank gets the requests of all.
    """
    ranks, owner = exchange.ranks, owners(others, width, exchange.ranks)
    requested_here = exchange.sizes(np.bincount(owner, minlength=ranks)).sum()
    busiest = exchange.largest(np.array([-(-max(len(others), int(requested_here)) // most)]))
    rounds = int(np.clip(busiest[0], 1, max(ranks - 1, 1)))
    turn = ((owner - exchange.rank) % ranks - 1) * rounds // max(ranks - 1, 1)
    return [others[turn == at] for at in range(rounds)]


def _distinct(numbers: np.ndarray, count: int) -> np.ndarray:
    """Return the distinct numbers of an array of 0 … count − 1, in order, with no more memory than the array."""
    if count > len(numbers):
        return np.unique(numbers)
    present = np.zeros(count, bool)
    present[numbers] = True
    return np.flatnonzero(present).astype(np.int32)


def _renumber(numbers: np.ndarray, columns: np.ndarray, count: int) -> None:
    """Replace each number by its place in `columns`, in place, by a lookup table or, if that is too large, a search."""
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
    """Tables whose rows are divided among the ranks by `node_range`; `local` computes on the rank's own rows.

    All ranks call the same methods in the same order. Sums add the ranks in a fixed order. All ranks use rank 0's
    rotations, because machines may round differently.
    """

    def __init__(self, local: Tables, exchange: Exchange):
        self.local, self.exchange = local, exchange
        for name in ("table", "zeros", "array", "by_slabs"):  # these need only own rows
            setattr(self, name, getattr(local, name))

    def matrix(self, matrix: OwnMatrix) -> "FetchedRows":
        """Return a sparse matrix that `@` multiplies with tables."""
        return FetchedRows(self, matrix.rounds, [self.local.matrix(piece) for piece in matrix.pieces()])

    def with_transpose(self, matrix: OwnMatrix) -> tuple["FetchedRows", "ReturnedRows"]:
        """Return a sparse matrix and its transpose, which uses the same requests."""
        local, pieces = self.local, matrix.pieces()
        fetched = FetchedRows(self, matrix.rounds, [local.matrix(piece) for piece in pieces])
        return fetched, ReturnedRows(self, matrix.rounds, [local.matrix(piece.T.tocsr()) for piece in pieces])

    def normal(self, rows: int, columns: int, seed: int) -> Table:
        """Draw the own rows of the table that one process would draw.

        The rows before them are drawn too, because a draw uses a varying number of random bits: 1 s per 10⁸ numbers.
        """
        own = node_range(rows, self.exchange.rank, self.exchange.ranks)
        generator = np.random.default_rng(seed)
        for at in range(0, own.start, BLOCK_ROWS):
            generator.standard_normal((min(BLOCK_ROWS, own.start - at), columns), np.float32)
        return self.table(generator.standard_normal((len(own), columns), np.float32))

    def gram(self, table: Table) -> np.ndarray:
        """Return the inner products of a table's columns over all ranks, float64."""
        return self.exchange.total(self.local.gram(table))

    def means(self, table: Table) -> np.ndarray:
        """Return the mean of each column over all ranks, float64."""
        total = self.exchange.total(np.append(self.local.sums(table), float(len(table))))
        return total[:-1] / total[-1]

    def rotate(self, table: Table, rotation: np.ndarray) -> Table:
        """Return a table times rank 0's small dense matrix."""
        return self.local.rotate(table, self.exchange.from_first(rotation))

    def extremes(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the smallest and the largest number of each column over all ranks."""
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
        """Return the inner products of the product's columns, float64."""
        return self.tables.gram(self @ table)

    def _multiply(self, table: Table) -> Table:
        raise NotImplementedError


class FetchedRows(Rounds):
    """The own rows of a matrix; a product fetches the table rows of its columns from their owners."""

    def scaled(self, **scales: np.ndarray) -> Self:
        """Return the matrix scaled by these factors of own `rows`, own `columns` and own `diagonal`."""
        pieces = []
        for at, (requests, piece) in enumerate(zip(self.rounds, self.pieces, strict=True)):
            changed = {name: scale for name, scale in scales.items() if name == "rows" or at == 0}
            if "columns" in scales:
                own = scales["columns"]
                fetched = requests.answers(own[requests.own_rows])
                changed["columns"] = fetched if at else np.concatenate([own, fetched])
            pieces.append(piece.scaled(**changed))
        return type(self)(self.tables, self.rounds, pieces)

    def _multiply(self, table: Table) -> Table:
        product: Any = None
        for requests, piece in zip(self.rounds, self.pieces, strict=True):
            rows = requests.rows_of(table)
            if product is None:  # own rows come first, because a diagonal needs them there
                product = piece @ stack([table, rows])
            else:
                product += piece @ rows
        return product


class ReturnedRows(Rounds):
    """The transpose of such a matrix: every rank sums over its own nodes, and owners add up the sums.

    A rank sends one sum per attribute of its nodes, while fetching rows would send nearly all rows to every rank.
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


class OwnGraph:
    """The rows of a graph that a rank owns, for `factor_hops`; counts and flags are those of the whole graph.

    All ranks use its members in the same order. most_rows: rows of other ranks in memory at a time.
    """

    def __init__(self, shards: Any, exchange: Exchange, most_rows: int = MOST_ROWS):
        self.shards, self.exchange, self.most_rows, self.name = shards, exchange, most_rows, shards.name

    @cached_property
    def adjacency(self) -> OwnMatrix:
        """The own rows of the adjacency matrix A."""
        return own_matrix(self.shards, "adjacency", self.shards.nodes, self.exchange, self.most_rows)

    @cached_property
    def attributes(self) -> OwnMatrix:
        """The attributes of the own nodes."""
        return own_matrix(self.shards, "attributes", self.shards.attributes, self.exchange, self.most_rows)

    @cached_property
    def linked(self) -> bool:
        """True if any edge joins two different nodes."""
        matrix = self.adjacency.matrix  # own columns come first, so its diagonal is that of A
        return bool(self._sum(matrix.nnz - np.count_nonzero(matrix.diagonal())) > 0)

    @cached_property
    def holders(self) -> np.ndarray:
        """Number of nodes that have each of the rank's own attributes."""
        own = self.attributes
        return own.collect(np.bincount(own.matrix.indices, minlength=own.matrix.shape[1]))

    @cached_property
    def distinguishes_nodes(self) -> bool:
        """True if some attribute distinguishes nodes: not all nodes have it in the same amount."""
        nodes, matrix = self.shards.nodes, self.attributes.matrix
        if self._sum(np.count_nonzero((self.holders > 0) & (self.holders < nodes))):
            return True
        everywhere = int(self._sum(np.count_nonzero(self.holders)))  # attributes that all nodes have
        amounts = matrix.data.reshape(matrix.shape[0], everywhere)
        first = self.exchange.from_first(amounts[0] if len(amounts) else np.empty(everywhere, np.float32))
        return bool(self._sum(np.count_nonzero(amounts != first)))

    def bags(self) -> OwnMatrix | None:
        """Return the attributes weighted by rarity, or None if no attribute distinguishes nodes."""
        if not self.distinguishes_nodes:
            return None
        own = self.attributes
        weights = own.fetch(rarity(self.holders, self.shards.nodes))
        del self.attributes  # free the memory: only the weighted copy is used from here on
        return own._replace(matrix=weigh(own.matrix, weights).astype(np.float32))

    def averages(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the scale of A's own rows, and the diagonal, that make A an average over neighbours."""
        matrix = self.adjacency.matrix
        entries = self._sum(matrix.nnz)
        return average_scales(matrix, self._sum(matrix.data.sum(dtype=np.float64)) / entries if entries else 1.0)

    def links(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the scales of A's own rows and columns that weight links as `bags` weights attributes."""
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
    """Compute the joint SVD of attributes and links over hops; return the own rows, (own nodes, spectral_dim).

    All ranks call this together. The result equals that of one process up to rounding. `report` is called
    `linalg.eigenvectors.REPORTS` times. most_rows: rows of other ranks in memory at a time.
    """
    graph = OwnGraph(shards, exchange, most_rows)
    tables = OnRanks(tables_on(exchange.device.type, settings["threads"]), exchange)
    weights, link_weight, centred = settings["hop_weights"], settings["link_weight"], settings["centre"]
    hops = factor_hops(graph, weights, link_weight=link_weight, centred=centred)
    product = HopProduct(hops, tables)
    del graph, hops  # with several rounds, the product has its own copy of the entries
    values, vectors = leading_eigenvectors(product, settings["spectral_dim"], tables=tables, seed=seed, report=report)
    return Decomposition(vectors, exchange.from_first(values))


def join_own(
    spectral: Decomposition, learned: Iterator[np.ndarray], settings: dict[str, Any], exchange: Exchange
) -> Joint:
    """Join both parts of own rows as `parts.join` does, with the centre of all nodes; all ranks call it."""

    def mean(values: np.ndarray) -> np.ndarray:
        total = exchange.total(np.append(values.sum(axis=0, dtype=np.float64), float(len(values))))
        return (total[:-1] / total[-1]).reshape(values.shape[1:])

    return join(spectral, learned, settings, mean)
