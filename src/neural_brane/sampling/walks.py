"""Random walks of first order, or of node2vec's second order. Walk k of a seed is the same on any number of threads."""

import numpy as np
from numba import prange
from scipy import sparse

from neural_brane.compiling import njit
from neural_brane.sampling.draws import draw_neighbour, is_neighbour
from neural_brane.sampling.neighbours import neighbour_table
from neural_brane.sampling.random import advance, stream, uniform


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
        _draw(self._neighbours, self._starts, 1 / self.p, 1 / self.q, np.uint64(self.seed), first, walks)
        return walks


@njit(parallel=True)
def _draw(tables, starts, back, away, seed, first, walks):
    biased = back != 1 or away != 1
    for w in prange(len(walks)):
        state = stream(seed, first + w)
        node = np.int64(starts[(first + w) % len(starts)])
        before = np.int64(-1)
        for step in range(walks.shape[1]):
            walks[w, step] = node
            if node < 0 or tables.indptr[node] == tables.indptr[node + 1]:
                node = np.int64(-1)
            elif biased and step > 0:
                state, following = _second_order(tables, before, node, back, away, state)
                before, node = node, following
            else:
                state = advance(state)
                before, node = node, np.int64(draw_neighbour(tables, node, uniform(state)))


@njit
def _second_order(tables, before, node, back, away, state):
    """Draw by weight and accept in proportion to the bias, until one is accepted. Returns the state and the node."""
    highest = max(1.0, back, away)
    lowest = min(1.0, back, away)
    while True:
        state = advance(state)
        following = np.int64(draw_neighbour(tables, node, uniform(state)))
        state = advance(state)
        chance = uniform(state) * highest
        if chance < lowest:  # accepted whatever its bias: no need to look it up
            return state, following
        if chance < (back if following == before else 1.0 if is_neighbour(tables, before, following) else away):
            return state, following
