"""Random walks, and the pairs that skip-gram trains on."""

import numpy as np
from numba import prange
from scipy import sparse

from neural_brane.kernels.compiling import njit
from neural_brane.sampling.random import Draws, advance, draw_alias, draw_neighbour, is_neighbour, stream, uniform
from neural_brane.sampling.tables import AliasTable, alias_table, neighbour_table

# Random walks of first order, or of node2vec's second order. Walk k of a seed is the same on any number of threads.


class WalkSampler:
    """Draws walks number 0, 1, 2, … of a seed; any range of them can be drawn, in any order.

    Every n walks in a row start once at each of the n nodes. A step is drawn in proportion to the edge's weight
    and, where p or q is not 1, to node2vec's bias: 1/p back to the node before, 1 to a neighbour of that node,
    1/q farther away. Rejection makes the bias exact without any table but the graph's own. A self-loop is an edge
    like any other; a walk that reaches a node without neighbours ends.
    """

    def __init__(self, adjacency: sparse.csr_array, *, length: int, p: float = 1.0, q: float = 1.0, seed: int = 0):
        self.length = length
        self.p = p
        self.q = q
        self.seed = seed
        self._neighbours = neighbour_table(adjacency)
        self._starts = np.random.default_rng(seed).permutation(adjacency.shape[0]).astype(np.int32)

    def draw(self, first: int, count: int) -> np.ndarray:
        """Walks first … first + count - 1, as (count, length) int32, padded with -1 where a walk ends early."""
        walks = np.empty((count, self.length), np.int32)
        draws, bias = Draws(np.uint64(self.seed), first), (1 / self.p, 1 / self.q)
        _draw(self._neighbours, self._starts, bias, draws, walks)
        return walks


@njit(parallel=True)
def _draw(tables, starts, bias, draws, walks):
    biased = bias[0] != 1 or bias[1] != 1
    for w in prange(len(walks)):
        state = stream(draws.seed, draws.first + w)
        node = np.int64(starts[(draws.first + w) % len(starts)])
        before = np.int64(-1)
        for step in range(walks.shape[1]):
            walks[w, step] = node
            if node < 0 or tables.indptr[node] == tables.indptr[node + 1]:
                node = np.int64(-1)
            elif biased and step > 0:
                state, following = _second_order(tables, before, node, bias, state)
                before, node = node, following
            else:
                state = advance(state)
                before, node = node, np.int64(draw_neighbour(tables, node, uniform(state)))


@njit
def _second_order(tables, before, node, bias, state):
    """Draw by weight and accept in proportion to the bias, until one is accepted. Returns the state and the node.

    bias: of the node before, and of nodes farther away; that of a neighbour of the node before is 1.
    """
    back, away = bias
    highest, lowest = max(1.0, back, away), min(1.0, back, away)
    while True:
        state = advance(state)
        following = np.int64(draw_neighbour(tables, node, uniform(state)))
        state = advance(state)
        chance = uniform(state) * highest
        if chance < lowest:  # accepted whatever its bias: no need to look it up
            return state, following
        if chance < (back if following == before else 1.0 if is_neighbour(tables, before, following) else away):
            return state, following


# Pairs (source, target) for skip-gram training: from the windows of walks, or from the entries of a matrix.


class EdgeSampler:
    """Draws entries of a sparse matrix in proportion to their values: draws number 0, 1, 2, … of a seed."""

    def __init__(self, matrix: sparse.csr_array, *, seed: int = 0):
        self.seed = seed
        self._sources = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
        self._targets = matrix.indices.astype(np.int32, copy=False)
        self._alias = alias_table(matrix.data)

    def draw(self, first: int, count: int) -> np.ndarray:
        """Draws first … first + count - 1, as (count, 2) int32: row and column."""
        pairs = np.empty((count, 2), np.int32)
        _draw_edges(self._sources, self._targets, self._alias, Draws(np.uint64(self.seed), first), pairs)
        return pairs


def window_pairs(walks: np.ndarray, *, window: int, seed: int, first: int) -> np.ndarray:
    """Pair every node of walks (k, length) with the nodes at most r places away; r is drawn anew from 1 … window.

    This is word2vec's window: near nodes are paired more often. `first` is the number of the first walk, which fixes
    what is drawn. Returns (pairs, 2) int32, walk by walk.
    """
    counts = np.empty(len(walks), np.int64)
    draws = Draws(np.uint64(seed), first)
    _count_pairs(walks, window, draws, counts)
    ends = np.cumsum(counts)
    pairs = np.empty((counts.sum(), 2), np.int32)
    _fill_pairs(walks, window, draws, ends - counts, pairs)
    return pairs


def window_targets(
    walks: np.ndarray, places: np.ndarray, *, window: int, negatives: int, frequent: AliasTable, seed: int, first: int
) -> np.ndarray:
    """For one place of each of walks (k, length): the nodes at most `window` places away, each before its negatives.

    Negatives are drawn from `frequent`; one that is the node it is drawn against is left out. `first` is the number of
    the first walk, which fixes what is drawn. Returns (k, 2 window, 1 + negatives) int32, with -1 for none.
    """
    targets = np.full((len(walks), 2 * window, 1 + negatives), -1, np.int32)
    _draw_targets(walks, places, frequent, Draws(np.uint64(seed), first), targets)
    return targets


@njit(parallel=True)
def _draw_targets(walks, places, frequent, draws, targets):
    window = targets.shape[1] // 2
    for w in prange(len(walks)):
        state, at = stream(draws.seed, draws.first + w), 0
        for place in range(max(places[w] - window, 0), min(places[w] + window + 1, walks.shape[1])):
            node = walks[w, place]
            if place == places[w] or node < 0:
                continue
            targets[w, at, 0] = node
            for k in range(1, targets.shape[2]):
                state = advance(state)
                drawn = draw_alias(frequent, uniform(state))
                if drawn != node:
                    targets[w, at, k] = drawn
            at += 1


@njit(parallel=True)
def _draw_edges(sources, targets, alias, draws, pairs):
    for k in prange(len(pairs)):
        entry = draw_alias(alias, uniform(stream(draws.seed, draws.first + k)))
        pairs[k, 0] = sources[entry]
        pairs[k, 1] = targets[entry]


@njit
def _reach(walks, w, place, window, draws):
    """The first and last place of a window: inside the walk, at most the drawn radius from `place`."""
    chance = uniform(stream(draws.seed, (draws.first + w) * walks.shape[1] + place))
    radius = 1 + np.int64(chance * window)
    last = min(place + radius, walks.shape[1] - 1)
    while walks[w, last] < 0:
        last -= 1
    return max(place - radius, 0), last


@njit(parallel=True)
def _count_pairs(walks, window, draws, counts):
    for w in prange(len(walks)):
        total = 0
        for place in range(walks.shape[1]):
            if walks[w, place] < 0:
                break
            low, high = _reach(walks, w, place, window, draws)
            total += high - low
        counts[w] = total


@njit(parallel=True)
def _fill_pairs(walks, window, draws, starts, pairs):
    for w in prange(len(walks)):
        at = starts[w]
        for place in range(walks.shape[1]):
            if walks[w, place] < 0:
                break
            low, high = _reach(walks, w, place, window, draws)
            for other in range(low, high + 1):
                if other != place:
                    pairs[at, 0] = walks[w, place]
                    pairs[at, 1] = walks[w, other]
                    at += 1
