"""For each node, one node drawn at each number of hops from it, and one that is farther away."""

import numpy as np
from numba import prange
from scipy import sparse

from neural_brane.kernels.compiling import njit
from neural_brane.sampling.random import advance, stream, uniform

LIMIT = 256  # nodes kept of each hop beyond the first, and links followed from a node: bounds the cost of hubs
PATIENCE = 64  # draws of a node that is farther away before giving up
BLOCKS = 16  # of nodes, explored in parallel; fixed, so that threads change nothing


class HopSampler:
    """Draws, for every node, one node uniformly at each hop 1 … hops and one beyond; the same for a seed and a round.

    The first hop is exact. Of each later one at most LIMIT nodes are kept, chosen at random where there are more, so
    that memory grows with nodes + edges. A node counts at the smallest hop by which it can be reached; a self-loop is
    no hop.

    sizes: (nodes, hops + 1) float64, how many nodes there are at each hop and beyond; where a hop was cut, how many
    were found.
    """

    def __init__(self, adjacency: sparse.csr_array, *, hops: int, seed: int):
        self.hops = hops
        self.seed = seed
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
        """(nodes, hops + 1) int32: a node at each hop and one beyond; -1 where there is none."""
        drawn = np.empty((len(self.sizes), self.hops + 1), np.int32)
        _draw(self._indptr, self._indices, self.sizes, np.uint64(self.seed), turn, drawn)
        return drawn


@njit(parallel=True)
def _explore(links, seed, kept, sizes, indptr, out):
    """Search around every node, breadth first. Writes kept and sizes and, unless indptr is empty, the sets to out."""
    nodes, hops = kept.shape
    widest = max(LIMIT, np.diff(links[0]).max())
    for block in prange(BLOCKS):
        seen = np.zeros(nodes, np.int64)  # 1 + the node whose search met this one last
        found = np.empty((hops + 1, widest), np.int64)
        for i in range(block, nodes, BLOCKS):
            state = stream(seed, i)
            seen[i] = i + 1
            found[0, 0] = i
            held = 1
            for h in range(hops):
                limit = widest if h == 0 else LIMIT
                state, count = _expand(links, found[h, :held], found[h + 1, :limit], seen, i + 1, state)
                held = min(count, limit)
                kept[i, h], sizes[i, h] = held, count
                if len(indptr):
                    start = indptr[i * hops + h]
                    out[start : start + held] = np.sort(found[h + 1, :held])


@njit
def _expand(links, frontier, reached, seen, stamp, state):
    """Write a uniform sample of a frontier's unseen neighbours to reached. Returns the state and how many there are."""
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
def _draw(indptr, indices, sizes, seed, turn, drawn):
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
    """Whether j is in one of the sets kept for i: a binary search in each."""
    for row in range(i * hops, (i + 1) * hops):
        members = indices[indptr[row] : indptr[row + 1]]
        at = np.searchsorted(members, j)
        if at < len(members) and members[at] == j:
            return True
    return False
