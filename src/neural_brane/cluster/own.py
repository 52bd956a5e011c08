"""The rows that a rank owns of a sparse matrix, and what it needs from other ranks to multiply with them."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.cluster.exchange import Exchange, Requests
from neural_brane.cluster.ranges import node_range, owners
from neural_brane.shards import Rows

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
        """How many columns the rank owns."""
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
