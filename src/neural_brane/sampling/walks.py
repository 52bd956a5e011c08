"""Draw walks, pairs for skip-gram and nodes at some hops on the CPU; draw k depends on the seed and k alone."""

from typing import NamedTuple

import numpy as np
from numba import prange
from scipy import sparse

from neural_brane.kernels.compiling import njit
from neural_brane.sampling.tables import AliasTable, alias_table, neighbour_table

# Counter-based random numbers. Each depends on a seed and a counter alone, not on earlier draws or on threads.

_STEP = np.uint64(0x9E3779B97F4A7C15)


class Draws(NamedTuple):
    """The draws first, first + 1, … of a seed."""

    seed: np.uint64
    first: int


@njit
def stream(seed, index):
    """Return the first state of stream `index` of a seed; streams of neighbouring indices are unrelated."""
    return _mix(np.uint64(seed) ^ _mix(np.uint64(index) + _STEP))


@njit
def advance(state):
    """Return the next state of a stream (SplitMix64)."""
    return state + _STEP


@njit
def uniform(state):
    """Return a float64 in [0, 1) for a state."""
    return (_mix(state) >> np.uint64(11)) * 2.0**-53


@njit
def _mix(x):
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit
def draw_alias(table, uniform):
    """Return a draw from an `AliasTable`; uniform: a number in [0, 1)."""
    position = uniform * len(table.keep)
    k = np.int64(position)
    return np.int64(k) if position - k < table.keep[k] else np.int64(table.other[k])


@njit
def draw_neighbour(table, u, chance):
    """Return a neighbour of u, drawn by edge weight; table: fields of `Neighbours`; chance: a number in [0, 1)."""
    start, stop = table.indptr[u], table.indptr[u + 1]
    if len(table.cumulative) == 0:
        return table.indices[start + np.int64(chance * (stop - start))]
    target = chance * table.cumulative[stop - 1]
    low, high = start, stop - 1
    while low < high:
        middle = (low + high) // 2
        if table.cumulative[middle] > target:
            high = middle
        else:
            low = middle + 1
    return table.indices[low]


@njit
def is_neighbour(table, u, node):
    """Return whether node is a neighbour of u, by a binary search."""
    low, high = table.indptr[u], table.indptr[u + 1]
    while low < high:
        middle = (low + high) // 2
        if table.indices[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low < table.indptr[u + 1] and table.indices[low] == node


class WalkSampler:
    """Draws walks 0, 1, 2, … of a seed; any range can be drawn, in any order.

    Every n consecutive walks start once at each of the n nodes. A step is drawn in proportion to the edge's weight and,
    unless p and q are 1, to node2vec's bias: 1/p back to the previous node, 1 to a neighbour of the previous node, 1/q
    to other nodes. Rejection sampling makes the bias exact without additional tables. A self-loop is an edge like any
    other. A walk ends at a node without neighbours.
    """

    def __init__(self, adjacency: sparse.csr_array, *, length: int, p: float = 1.0, q: float = 1.0, seed: int = 0):
        self.length, self.p, self.q, self.seed = length, p, q, seed
        self._neighbours = neighbour_table(adjacency)
        self._starts = np.random.default_rng(seed).permutation(adjacency.shape[0]).astype(np.int32)

    def draw(self, first: int, count: int) -> np.ndarray:
        """Return walks first … first + count - 1, as (count, length) int32; -1 follows the end of a short walk."""
        walks = np.empty((count, self.length), np.int32)
        draws, bias = Draws(np.uint64(self.seed), first), (1 / self.p, 1 / self.q)
        _draw_walks(self._neighbours, self._starts, bias, draws, walks)
        return walks


@njit(parallel=True)
def _draw_walks(tables, starts, bias, draws, walks):
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
    """Draw a neighbour by weight, accept it by bias (1/p, 1/q); return the state and the node."""
    back, away = bias
    highest, lowest = max(1.0, back, away), min(1.0, back, away)
    while True:
        state = advance(state)
        following = np.int64(draw_neighbour(tables, node, uniform(state)))
        state = advance(state)
        chance = uniform(state) * highest
        if chance < lowest:  # accepted with any bias, so no look-up
            return state, following
        if chance < (back if following == before else 1.0 if is_neighbour(tables, before, following) else away):
            return state, following


class EdgeSampler:
    """Draws entries 0, 1, 2, … of a seed from a sparse matrix, in proportion to their values."""

    def __init__(self, matrix: sparse.csr_array, *, seed: int = 0):
        self.seed = seed
        self._sources = np.repeat(np.arange(matrix.shape[0], dtype=np.int32), np.diff(matrix.indptr))
        self._targets = matrix.indices.astype(np.int32, copy=False)
        self._alias = alias_table(matrix.data)

    def draw(self, first: int, count: int) -> np.ndarray:
        """Return draws first … first + count - 1, as (count, 2) int32: row and column."""
        pairs = np.empty((count, 2), np.int32)
        _draw_edges(self._sources, self._targets, self._alias, Draws(np.uint64(self.seed), first), pairs)
        return pairs


def window_pairs(walks: np.ndarray, *, window: int, seed: int, first: int) -> np.ndarray:
    """Pair walks' nodes with those 1 … r places away, r drawn up to `window`: (pairs, 2) int32, walk by walk."""
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
    """Return the nodes at most `window` places from one place of each of walks (k, length), followed by negatives.

    Negatives are drawn from `frequent`; a draw of the target itself becomes -1. first: the number of the first walk, on
    which the draws depend. Returns (k, 2 window, 1 + negatives) int32; -1 marks an empty place.
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
    """Return the first and last place of a window: inside the walk, within a random radius of `place`."""
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


LIMIT = 256  # nodes kept per hop after the first, and links followed per node: bounds the cost of hubs
PATIENCE = 64  # draws of a node that is farther away before giving up
BLOCKS = 16  # blocks of nodes explored in parallel; independent of the threads


class HopSampler:
    """Draws, for every node, one node uniformly at each hop 1 … hops and one beyond, from a seed and a round.

    The first hop is exact. Each later hop keeps at most LIMIT nodes, chosen at random, so that memory grows with nodes
    + edges. A node counts at the smallest hop that reaches it; a self-loop is no hop.

    sizes: (nodes, hops + 1) float64, the number of nodes at each hop and beyond; for a hop that was cut, the number
    found.
    """

    def __init__(self, adjacency: sparse.csr_array, *, hops: int, seed: int):
        self.hops, self.seed = hops, seed
        nodes = adjacency.shape[0]
        self.sizes = np.zeros((nodes, hops + 1))
        links = (adjacency.indptr.astype(np.int64), adjacency.indices)
        kept = np.zeros((nodes, hops), np.int64)
        _explore(links, np.uint64(seed), kept, self.sizes, np.empty(0, np.int64), np.empty(0, np.int32))
        self._indptr = np.concatenate([[0], np.cumsum(kept)])
        self._indices = np.empty(self._indptr[-1], np.int32)
        _explore(links, np.uint64(seed), kept, self.sizes, self._indptr, self._indices)
        self.sizes[:, hops] = nodes - 1 - self.sizes[:, :hops].sum(axis=1)

    def draw(self, turn: int) -> np.ndarray:
        """Return, for every node, a node at each hop and one beyond, (nodes, hops + 1) int32; -1 if there is none."""
        drawn = np.empty((len(self.sizes), self.hops + 1), np.int32)
        _draw_hops(self._indptr, self._indices, self.sizes, np.uint64(self.seed), turn, drawn)
        return drawn


@njit(parallel=True)
def _explore(links, seed, kept, sizes, indptr, out):
    """Search breadth-first from every node; write kept, sizes and, unless indptr is empty, the nodes found to out."""
    nodes, hops = kept.shape
    widest = max(LIMIT, np.diff(links[0]).max())
    for block in prange(BLOCKS):
        seen = np.zeros(nodes, np.int64)  # 1 + start of the last search that met the node
        frontiers = np.empty((hops + 1, widest), np.int64)
        for i in range(block, nodes, BLOCKS):
            state = stream(seed, i)
            seen[i] = i + 1
            frontiers[0, 0] = i
            size = 1
            for h in range(hops):
                limit = widest if h == 0 else LIMIT
                state, count = _expand(links, frontiers[h, :size], frontiers[h + 1, :limit], seen, i + 1, state)
                size = min(count, limit)
                kept[i, h], sizes[i, h] = size, count
                if len(indptr):
                    start = indptr[i * hops + h]
                    out[start : start + size] = np.sort(frontiers[h + 1, :size])


@njit
def _expand(links, frontier, reached, seen, stamp, state):
    """Write a uniform sample of the frontier's unseen neighbours to reached. Returns the state and their number."""
    indptr, indices = links
    count = 0
    for node in frontier:
        degree = indptr[node + 1] - indptr[node]
        crowded = degree > len(reached)
        for k in range(min(degree, len(reached))):
            if crowded:
                state = advance(state)
                k = np.int64(uniform(state) * degree)
            j = indices[indptr[node] + k]
            if seen[j] == stamp:
                continue
            seen[j] = stamp
            place = count
            count += 1
            if place >= len(reached):
                state = advance(state)
                place = np.int64(uniform(state) * count)
            if place < len(reached):
                reached[place] = j
    return state, count


@njit(parallel=True)
def _draw_hops(indptr, indices, sizes, seed, turn, drawn):
    nodes, columns = drawn.shape
    hops = columns - 1
    for i in prange(nodes):
        state = stream(seed, turn * nodes + i)
        for h in range(hops):
            start, stop = indptr[i * hops + h], indptr[i * hops + h + 1]
            state = advance(state)
            drawn[i, h] = indices[start + np.int64(uniform(state) * (stop - start))] if stop > start else -1
        drawn[i, hops] = -1
        if sizes[i, hops] > 0:
            for _ in range(PATIENCE):
                state = advance(state)
                j = np.int64(uniform(state) * nodes)
                if j != i and not _within(indptr, indices, i, hops, j):
                    drawn[i, hops] = j
                    break


@njit
def _within(indptr, indices, i, hops, j):
    """Return whether j is among the nodes kept for i, by a binary search in each hop."""
    for row in range(i * hops, (i + 1) * hops):
        members = indices[indptr[row] : indptr[row + 1]]
        at = np.searchsorted(members, j)
        if at < len(members) and members[at] == j:
            return True
    return False
