"""A rank's share of a batch, drawn and prepared ahead: triplets and bags, renumbered to the rows that they need."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from neural_brane.distributed.rows import (
    Drawn,
    GraphRows,
    SamplingTables,
    begin_triplets,
    draw_again,
    draw_others,
    number_distinct,
)
from neural_brane.kernels.model import Bags
from neural_brane.sampling.triplets import PATIENCE

# Triplets (u, i, j), the same for a seed and a number as `sampling.triplets` draws, wherever the graph's rows lie.


class Triplets:
    """Draw any range of the triplets of a seed. Ranks that hold a range of nodes each draw in lockstep."""

    def __init__(self, rows: GraphRows, tables: SamplingTables, *, allow_self_negative: bool, seed: int):
        self.rows, self.tables = rows, tables
        self.allow_self_negative, self.seed = allow_self_negative, np.uint64(seed)

    def draw(self, first: int, count: int) -> np.ndarray:
        """Triplets first … first + count − 1 of the stream, as (count, 3) int32."""
        drawn = Drawn(np.empty((count, 3), np.int32), np.empty(count), np.empty(count, np.uint64))
        triplets, tables = drawn.triplets, self.tables
        begin_triplets(self.seed, first, tables.anchors, tables.alias, drawn)
        u = triplets[:, 0].astype(np.int64)
        triplets[:, 1] = self.rows.neighbours(u, drawn.chance)
        refused = np.flatnonzero(self._refused(u, triplets[:, 2]))
        for _ in range(PATIENCE - 1):
            if not self.rows.any(np.array([len(refused)])):
                return triplets
            draw_again(tables.alias, refused, drawn)
            refused = refused[self._refused(u[refused], triplets[refused, 2])]
        if self.rows.any(np.array([len(refused)])):  # u is linked to almost all: draw from the other nodes alone
            bags = self.rows.bags("adjacency", u[refused])
            draw_others(tables.weights, bags, self.allow_self_negative, refused, drawn)
        return triplets

    def _refused(self, u: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Whether j must not be ranked below the neighbours of u."""
        linked = self.rows.linked(u, j)
        return linked if self.allow_self_negative else linked | (j == u)


# A rank's share of a batch, prepared ahead: triplets and bags, renumbered to the distinct rows that they need.


class Batch(NamedTuple):
    """Triplets and bags in numbers of this batch's own rows, and which rows of the tables those are."""

    triplets: np.ndarray  # (count, 3) int32: positions among the batch's distinct nodes
    bags: tuple[Bags, Bags]  # of attributes and of neighbours, for each distinct node
    attributes: np.ndarray  # (k,) int64: the rows of P that the bags of attributes hold
    neighbours: np.ndarray  # (k,) int64: the rows of P'


@dataclass(frozen=True)
class Share:
    """The triplets that one rank takes of every batch.

    >>> [(share.first, share.count) for share in (Share(10, rank, 4) for rank in range(4))]
    [(0, 2), (2, 3), (5, 2), (7, 3)]
    """

    batch: int  # triplets of all ranks together
    rank: int
    ranks: int

    @property
    def first(self) -> int:
        """The first triplet of a batch that the rank takes."""
        return self.batch * self.rank // self.ranks

    @property
    def count(self) -> int:
        """The number of triplets that the rank takes."""
        return self.batch * (self.rank + 1) // self.ranks - self.first


class BatchMaker:
    """Make a rank's share of any batch."""

    def __init__(self, rows: GraphRows, triplets: Triplets, share: Share):
        self.rows, self.triplets, self.share = rows, triplets, share
        self._number = Numbering()

    def __call__(self, step: int) -> Batch:
        """Make this rank's share of batch number `step`."""
        triplets = self.triplets.draw(step * self.share.batch + self.share.first, self.share.count)
        nodes = self._number(triplets.reshape(-1))
        return bags_of_nodes(self.rows, nodes, self._number)._replace(triplets=triplets)


def bags_of_nodes(rows: GraphRows, nodes: np.ndarray, number: "Numbering | None" = None) -> Batch:
    """The bags of some distinct nodes; the batch has no triplets."""
    number = number or Numbering()
    bags = rows.bags("attributes", nodes), rows.bags("adjacency", nodes)
    attributes, neighbours = (number(bag.indices) for bag in bags)
    return Batch(np.empty((0, 3), np.int32), bags, attributes, neighbours)


class Prefetch:
    """Prepare the next batch in a thread while this one is trained on; use it in a `with` statement."""

    def __init__(self, make: BatchMaker, steps: int):
        self._make, self._steps = make, steps
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="neural-brane-batches")
        self._next: tuple[int, Future[Batch]] | None = None

    def __call__(self, step: int) -> Batch:
        """Return batch number `step`, and begin the one after it."""
        ahead, self._next = self._next, None
        found = ahead[1] if ahead and ahead[0] == step else self._pool.submit(self._make, step)
        batch = found.result()
        if step + 1 < self._steps:
            self._next = step + 1, self._pool.submit(self._make, step + 1)
        return batch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True)  # other ranks may be waiting for answers to what has begun


class Numbering:
    """Number the distinct entries of arrays by first appearance, with a hash table whose memory is kept."""

    def __init__(self) -> None:
        self._keys, self._places = np.empty(0, np.int32), np.empty(0, np.int32)

    def __call__(self, numbers: np.ndarray) -> np.ndarray:
        """Replace the entries (k,) int32 ≥ 0 by their places among the distinct ones, which are returned as int64.

        >>> numbers = np.array([7, 3, 7], np.int32)
        >>> Numbering()(numbers), numbers
        (array([7, 3]), array([0, 1, 0], dtype=int32))
        """
        bits = max(int(2 * len(numbers) - 1).bit_length(), 4) if len(numbers) else 4
        if len(self._keys) < 1 << bits:
            self._keys, self._places = np.empty(1 << bits, np.int32), np.empty(1 << bits, np.int32)
        distinct = np.empty(len(numbers), np.int64)
        count = number_distinct(numbers, self._keys[: 1 << bits], self._places, distinct, 64 - bits)
        return distinct[:count].copy()
