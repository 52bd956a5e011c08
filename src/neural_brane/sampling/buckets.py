"""Skip-gram pairs and their negatives, sorted into cells that can be trained side by side.

Source rows and target rows are dealt into a fixed number of buckets. A pair falls into the cell of its source's
and its target's bucket. Its negatives are an item of their own, all from one bucket, which is drawn for them whatever
the target: a node's negatives come from everywhere, though its targets may not. Cells with no bucket in
common touch no common row; a schedule lists rounds of such cells that cover all of them.
"""

from itertools import pairwise
from typing import NamedTuple

import numba
import numpy as np
from numba import prange

from neural_brane.sampling.alias import draw_alias
from neural_brane.sampling.random import advance, stream, uniform
from neural_brane.sampling.tables import AliasTable, alias_table

MAX_BUCKETS = 16
BUCKET_ROWS = 128  # fewer targets in a bucket would make its negatives too much alike
SORT_BLOCKS = 8


class Cells(NamedTuple):
    """Pairs and negatives in the order of their cells, and which cells may be trained side by side."""

    items: np.ndarray  # (2 × pairs, 2) int32: a source row, and a target row t; or ~t, for the negatives of that pair
    negatives: np.ndarray  # (2 × pairs, negatives) int32: target rows; -1 for none, as for all of a pair
    starts: np.ndarray  # (cells + 1,) int64: where each cell's items begin
    schedule: np.ndarray  # (rounds, tasks) int64: cells; those of one round share no row


class Deal(NamedTuple):
    """Rows dealt into buckets like cards, the most frequent first: every bucket gets about the same work.

    A bucket's rows stand together, so that a cell's work stays in a few pages of memory.
    """

    place: np.ndarray  # (rows,) int32: where a row stands
    bucket: np.ndarray  # (rows,) int32
    starts: np.ndarray  # (buckets + 1,) int64: where each bucket begins


class CellSorter:
    """Sorts pairs into cells and draws their negatives, in proportion to frequency ** power.

    sources, frequency: how often each source and each target occurs; only the ratios matter. one_table: sources
    and targets are rows of one table, so that a round may not use a bucket twice and no negative is its source.
    The rows named in the cells are places: source u stands at row sources.place[u] of its table.
    """

    def __init__(
        self,
        sources: np.ndarray,
        frequency: np.ndarray,
        *,
        negatives: int = 5,
        power: float = 0.75,
        one_table: bool = False,
        buckets: int | None = None,
        seed: int = 0,
    ):
        self.negatives = negatives
        self.one_table = one_table
        self.seed = seed
        self.buckets = buckets or count_buckets(sources, frequency)
        self.targets = _deal(frequency, self.buckets)
        self.sources = self.targets if one_table else _deal(sources, self.buckets)
        self._bucket_noise, self._noise = _noise(frequency**power, self.targets)
        self._schedule = _tournament(self.buckets) if one_table else _rotation(self.buckets)

    def sort(self, pairs: np.ndarray, first: int) -> Cells:
        """Sort pairs (k, 2), keeping their order within a cell; `first` numbers them: it fixes the negatives."""
        counts = np.zeros((SORT_BLOCKS, self.buckets**2), np.int64)
        cell = np.empty_like(pairs)
        bucket_seed, seed = np.uint64(self.seed), np.uint64(self.seed ^ 1)
        _assign(pairs, self.sources, self.targets, self._bucket_noise, bucket_seed, first, cell, counts)
        ends = np.cumsum(counts.T).reshape(counts.T.shape).T
        items = np.empty((2 * len(pairs), 2), np.int32)
        negatives = np.empty((2 * len(pairs), self.negatives), np.int32)
        starts = np.concatenate([[0], ends[-1]])
        _scatter(pairs, self.sources.place, self.targets.place, cell, ends - counts, items)
        _draw_negatives(items, starts, self.targets.starts, self._noise, self.one_table, seed, 2 * first, negatives)
        return Cells(items, negatives, starts, self._schedule)


def count_buckets(*frequencies: np.ndarray) -> int:
    """Into how many buckets rows of these frequencies are dealt: one, or an even number. Threads do not matter."""
    rows = min(int(np.count_nonzero(frequency)) for frequency in frequencies)
    return max(1, min(MAX_BUCKETS, rows // BUCKET_ROWS) // 2 * 2)


def _deal(frequency: np.ndarray, buckets: int) -> Deal:
    rank = np.empty(len(frequency), np.int64)
    rank[np.argsort(-frequency, kind="stable")] = np.arange(len(frequency))
    bucket = rank % buckets
    starts = np.cumsum([0, *np.bincount(bucket, minlength=buckets)])
    return Deal((starts[bucket] + rank // buckets).astype(np.int32), bucket.astype(np.int32), starts)


def _noise(weights: np.ndarray, targets: Deal) -> tuple[AliasTable, AliasTable]:
    """An alias table of the buckets, and one per bucket, end to end; their `other` counts from the bucket's start."""
    placed = np.empty_like(weights)
    placed[targets.place] = weights
    tables = [alias_table(placed[start:stop]) for start, stop in pairwise(targets.starts)]
    within = AliasTable(*(np.concatenate(parts) for parts in zip(*tables, strict=True)))
    return alias_table(np.add.reduceat(placed, targets.starts[:-1])), within


def _rotation(buckets: int) -> np.ndarray:
    """Rounds of cells (a, a + r): every source bucket once, every target bucket once."""
    own = np.arange(buckets)
    return np.stack([own * buckets + (own + turn) % buckets for turn in range(buckets)])


def _tournament(buckets: int) -> np.ndarray:
    """Rounds of cells (a, b) in which every bucket occurs once: all play all, home and away, by the circle method."""
    if buckets == 1:
        return np.zeros((1, 1), np.int64)
    half = buckets // 2
    rounds = [own * (buckets + 1) for own in np.split(np.arange(buckets), 2)]  # (a, a)
    for turn in range(buckets - 1):
        seats = np.concatenate([[buckets - 1], (np.arange(buckets - 1) + turn) % (buckets - 1)])
        home, away = seats[:half], seats[half:][::-1]
        rounds += [home * buckets + away, away * buckets + home]
    return np.stack(rounds)


@numba.njit(cache=True, parallel=True)
def _assign(pairs, sources, targets, noise, seed, first, cell, counts):
    """Find the cells (pairs, 2) of each pair and of its negatives; count them (blocks, cells) for blocks of pairs."""
    buckets = len(targets.starts) - 1
    for block in prange(len(counts)):
        for k in range(block * len(pairs) // len(counts), (block + 1) * len(pairs) // len(counts)):
            corner = sources.bucket[pairs[k, 0]] * buckets
            cell[k, 0] = corner + targets.bucket[pairs[k, 1]]
            cell[k, 1] = corner + draw_alias(noise, uniform(stream(seed, first + k)))
            counts[block, cell[k, 0]] += 1
            counts[block, cell[k, 1]] += 1


@numba.njit(cache=True, parallel=True)
def _scatter(pairs, source_place, target_place, cell, free, items):
    """Put every pair, then its negatives, at the next place of its block and cell; consumes free (blocks, cells)."""
    for block in prange(len(free)):
        for k in range(block * len(pairs) // len(free), (block + 1) * len(pairs) // len(free)):
            source, target = source_place[pairs[k, 0]], target_place[pairs[k, 1]]
            for kind in range(2):
                at = free[block, cell[k, kind]]
                free[block, cell[k, kind]] += 1
                items[at, 0] = source
                items[at, 1] = target if kind == 0 else ~target


@numba.njit(cache=True, parallel=True)
def _draw_negatives(items, cell_starts, starts, noise, one_table, seed, first, negatives):
    """Draw the negatives of every cell from its target bucket."""
    buckets = len(starts) - 1
    for cell in prange(buckets * buckets):
        bucket = np.int64(cell % buckets)
        bounds = cell_starts[cell], cell_starts[cell + 1], starts[bucket], starts[bucket + 1]
        _draw_cell(items, bounds, noise.keep, noise.other, one_table, seed, first, negatives)


@numba.njit(cache=True)
def _draw_cell(items, bounds, keep, other, one_table, seed, first, negatives):
    """Draw the negatives of one cell; one that is the pair's target (or its source) counts as none."""
    begin, end, start, stop = bounds
    for k in range(begin, end):
        source, target = items[k, 0], ~items[k, 1]
        if target < 0:
            for n in range(negatives.shape[1]):
                negatives[k, n] = -1
            continue
        state = stream(seed, first + k)
        for n in range(negatives.shape[1]):
            position = uniform(state) * (stop - start)
            slot = np.int64(position)
            leaves = position - slot >= keep[start + slot]
            drawn = start + slot + leaves * (other[start + slot] - slot)  # no branch: it would be guessed wrong often
            refused = (drawn == target) | (one_table & (drawn == source))
            negatives[k, n] = -1 if refused else drawn
            state = advance(state)
