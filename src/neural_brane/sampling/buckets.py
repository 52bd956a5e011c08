"""Sort skip-gram pairs and their negatives into tiles that can be trained in parallel.

Source rows and target rows are divided into a fixed number of buckets. A tile is a pair of a source bucket and a target
bucket; a skip-gram pair belongs to the tile of its two rows. Its negatives are a separate item with the target t
written as ~t. All negatives of an item come from one target bucket, which is drawn independently of the target, so that
a node's negatives come from all buckets. Tiles without a common bucket change no common row; the schedule lists rounds
of such tiles.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import prange

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.sgns import Tiles
from neural_brane.sampling.tables import AliasTable, alias_table
from neural_brane.sampling.walks import Draws, advance, draw_alias, stream, uniform

MAX_BUCKETS = 16
BUCKET_ROWS = 128  # fewest rows of a bucket: negatives from fewer targets would be too similar
SORT_BLOCKS = 8  # blocks of pairs that are sorted in parallel


class BucketedRows(NamedTuple):
    """Rows dealt to buckets in turn, the most frequent first: equal work per bucket, and adjacent rows of the table."""

    place: np.ndarray  # (rows,) int32: row of the table
    bucket: np.ndarray  # (rows,) int32: bucket of each row
    starts: np.ndarray  # (buckets + 1,) int64: start of each bucket in the table


class TileSorter:
    """Sorts pairs into tiles and draws their negatives in proportion to frequency ** power.

    sources, frequency: number of occurrences of each source and each target, up to a factor. one_table: sources and
    targets are rows of one table; then a round uses no bucket twice, and no negative equals its source.
    Tiles contain places in a table: source u is row sources.place[u].
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
        self.negatives, self.one_table, self.seed = negatives, one_table, seed
        self.buckets = buckets or count_buckets(sources, frequency)
        self.targets = _divide_rows(frequency, self.buckets)
        self.sources = self.targets if one_table else _divide_rows(sources, self.buckets)
        self._bucket_noise, self._noise = _noise(frequency**power, self.targets)
        own = np.arange(self.buckets)
        # With two tables, round r has the tiles (a, a + r): every source bucket and every target bucket once.
        rounds = own * self.buckets + (own + own[:, None]) % self.buckets
        self._schedule = _tournament(self.buckets) if one_table else rounds

    def sort(self, pairs: np.ndarray, first: int) -> Tiles:
        """Return the tiles of pairs (k, 2) int32, in order within a tile; first: the number of the first pair."""
        counts = np.zeros((SORT_BLOCKS, self.buckets**2), np.int64)
        tile = np.empty_like(pairs)
        draws = Draws(np.uint64(self.seed), first)
        _assign(pairs, self.sources.bucket, self.targets.bucket, self._bucket_noise, draws, (tile, counts))
        ends = np.cumsum(counts.T).reshape(counts.T.shape).T
        tiles = Tiles(
            items=np.empty((2 * len(pairs), 2), np.int32),
            negatives=np.empty((2 * len(pairs), self.negatives), np.int32),
            starts=np.concatenate([[0], ends[-1]]),
            schedule=self._schedule,
        )
        _scatter(pairs, self.sources.place, self.targets.place, tile, ends - counts, tiles.items)
        draws = Draws(np.uint64(self.seed ^ 1), 2 * first)
        _draw_negatives(tiles, self.targets.starts, self._noise, draws, self.one_table)
        return tiles


def count_buckets(*frequencies: np.ndarray) -> int:
    """Return the number of buckets for rows of these frequencies, one or even; it does not depend on the threads."""
    rows = min(int(np.count_nonzero(frequency)) for frequency in frequencies)
    return max(1, min(MAX_BUCKETS, rows // BUCKET_ROWS) // 2 * 2)


def _divide_rows(frequency: np.ndarray, buckets: int) -> BucketedRows:
    rank = np.empty(len(frequency), np.int64)
    rank[np.argsort(-frequency, kind="stable")] = np.arange(len(frequency))
    bucket = rank % buckets
    starts = np.cumsum([0, *np.bincount(bucket, minlength=buckets)])
    return BucketedRows((starts[bucket] + rank // buckets).astype(np.int32), bucket.astype(np.int32), starts)


def _noise(weights: np.ndarray, targets: BucketedRows) -> tuple[AliasTable, AliasTable]:
    """Return the alias table of the buckets, and those of rows within each bucket, concatenated, with local numbers."""
    placed = np.empty_like(weights)
    placed[targets.place] = weights
    tables = [alias_table(placed[start:stop]) for start, stop in pairwise(targets.starts)]
    within = AliasTable(*(np.concatenate(parts) for parts in zip(*tables, strict=True)))
    return alias_table(np.add.reduceat(placed, targets.starts[:-1])), within


def _tournament(buckets: int) -> np.ndarray:
    """Return rounds of tiles (a, b) with every bucket once per round: a round-robin tournament by the circle method."""
    if buckets == 1:
        return np.zeros((1, 1), np.int64)
    half = buckets // 2
    rounds = [own * (buckets + 1) for own in np.split(np.arange(buckets), 2)]  # (a, a)
    for turn in range(buckets - 1):
        seats = np.concatenate([[buckets - 1], (np.arange(buckets - 1) + turn) % (buckets - 1)])
        home, away = seats[:half], seats[half:][::-1]
        rounds += [home * buckets + away, away * buckets + home]
    return np.stack(rounds)


@njit(parallel=True)
def _assign(pairs, source_bucket, target_bucket, noise, draws, results):
    """Write results: tile (pairs, 2) of each pair and of its negatives, and counts (blocks, tiles) of items."""
    tile, counts = results
    buckets = len(noise.keep)
    for block in prange(len(counts)):
        for k in range(block * len(pairs) // len(counts), (block + 1) * len(pairs) // len(counts)):
            corner = source_bucket[pairs[k, 0]] * buckets
            tile[k, 0] = corner + target_bucket[pairs[k, 1]]
            tile[k, 1] = corner + draw_alias(noise, uniform(stream(draws.seed, draws.first + k)))
            counts[block, tile[k, 0]] += 1
            counts[block, tile[k, 1]] += 1


@njit(parallel=True)
def _scatter(pairs, source_place, target_place, tile, free, items):
    """Write every pair, then its negatives, to the next free place of its block and tile; advance free in place."""
    for block in prange(len(free)):
        for k in range(block * len(pairs) // len(free), (block + 1) * len(pairs) // len(free)):
            source, target = source_place[pairs[k, 0]], target_place[pairs[k, 1]]
            for kind in range(2):
                at = free[block, tile[k, kind]]
                free[block, tile[k, kind]] += 1
                items[at, 0] = source
                items[at, 1] = target if kind == 0 else ~target


@njit(parallel=True)
def _draw_negatives(tiles, starts, noise, draws, one_table):
    """Write the negatives of every tile, from its target bucket; starts (buckets + 1,) int64: start of each bucket."""
    buckets = len(starts) - 1
    for tile in prange(buckets * buckets):
        bucket = np.int64(tile % buckets)
        _draw_tile(tiles, tile, (starts[bucket], starts[bucket + 1]), noise, draws, one_table)


@njit
def _draw_tile(tiles, tile, rows, noise, draws, one_table):
    """Write the negatives of one tile; -1 replaces a draw of the pair's target or, with one table, of its source."""
    items, negatives = tiles.items, tiles.negatives
    start, stop = rows
    for k in range(tiles.starts[tile], tiles.starts[tile + 1]):
        source, target = items[k, 0], ~items[k, 1]
        if target < 0:
            for n in range(negatives.shape[1]):
                negatives[k, n] = -1
            continue
        state = stream(draws.seed, draws.first + k)
        for n in range(negatives.shape[1]):
            position = uniform(state) * (stop - start)
            slot = np.int64(position)
            leaves = position - slot >= noise.keep[start + slot]
            # A branch here would often be predicted wrongly.
            drawn = start + slot + leaves * (noise.other[start + slot] - slot)
            refused = (drawn == target) | (one_table & (drawn == source))
            negatives[k, n] = -1 if refused else drawn
            state = advance(state)
