"""Triplets (u, i, j), the same for a seed and a number as `sampling.triplets` draws, wherever the graph's rows lie."""

import numpy as np

from neural_brane.cluster.rows import GraphRows
from neural_brane.cluster.sampling_tables import SamplingTables
from neural_brane.compiling import njit
from neural_brane.kernels.model import Bags
from neural_brane.sampling.draws import draw_alias
from neural_brane.sampling.random import advance, stream, uniform
from neural_brane.sampling.triplets import PATIENCE


class Triplets:
    """Draws any range of the triplets of a seed. Ranks that hold a range of nodes each draw in lockstep."""

    def __init__(self, rows: GraphRows, tables: SamplingTables, *, allow_self_negative: bool, seed: int):
        self.rows, self.tables = rows, tables
        self.allow_self_negative, self.seed = allow_self_negative, np.uint64(seed)

    def draw(self, first: int, count: int) -> np.ndarray:
        """Triplets first … first + count − 1 of the stream, as (count, 3) int32."""
        triplets, chance = np.empty((count, 3), np.int32), np.empty(count)
        states = np.empty(count, np.uint64)
        _begin(self.seed, first, self.tables.anchors, self.tables.alias, triplets, chance, states)
        u = triplets[:, 0].astype(np.int64)
        triplets[:, 1] = self.rows.neighbours(u, chance)
        refused = np.flatnonzero(self._refused(u, triplets[:, 2]))
        for _ in range(PATIENCE - 1):
            if not self.rows.any(np.array([len(refused)])):
                return triplets
            _draw_again(self.tables.alias, states, refused, triplets)
            refused = refused[self._refused(u[refused], triplets[refused, 2])]
        if self.rows.any(np.array([len(refused)])):
            self._draw_exactly(u, states, refused, triplets)
        return triplets

    def _refused(self, u: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Whether j must not be ranked below the neighbours of u."""
        linked = self.rows.linked(u, j)
        return linked if self.allow_self_negative else linked | (j == u)

    def _draw_exactly(self, u: np.ndarray, states: np.ndarray, refused: np.ndarray, triplets: np.ndarray) -> None:
        """Draw j from the other nodes alone, where u is linked to almost all."""
        bags = self.rows.adjacency_bags(u[refused])
        _draw_others(
            self.tables.weights, bags, u[refused], self.allow_self_negative, states[refused], refused, triplets
        )


@njit(nogil=True)
def _begin(seed, first, anchors, alias, triplets, chance, states):
    """Write u and the first draw of j to triplets, i's random number to chance, and the state that j was drawn by."""
    for t in range(len(triplets)):
        state = stream(seed, first + t)
        triplets[t, 0] = anchors[np.int64(uniform(state) * len(anchors))]
        state = advance(state)
        chance[t] = uniform(state)
        states[t] = advance(state)
        triplets[t, 2] = draw_alias(alias, uniform(states[t]))


@njit(nogil=True)
def _draw_again(alias, states, refused, triplets):
    """Draw j again for some triplets, and advance their states."""
    for t in refused:
        states[t] = advance(states[t])
        triplets[t, 2] = draw_alias(alias, uniform(states[t]))


@njit(nogil=True)
def _draw_others(weights, bags, u, allow_self, states, refused, triplets):
    for k in range(len(refused)):
        row = bags.indices[bags.indptr[k] : bags.indptr[k + 1]]
        total = _walk_others(weights, row, u[k], allow_self, np.inf)[1]
        target = uniform(advance(states[k])) * total
        triplets[refused[k], 2] = _walk_others(weights, row, u[k], allow_self, target)[0]


@njit(nogil=True)
def _walk_others(weights, row, u, allow_self, target):
    """Add up the weights of u's non-neighbours until they pass target. Returns the last one added and the sum."""
    total, last, at = 0.0, -1, 0
    for j in range(len(weights)):
        while at < len(row) and row[at] < j:
            at += 1
        if weights[j] == 0 or (at < len(row) and row[at] == j) or (j == u and not allow_self):
            continue
        total += weights[j]
        last = j
        if total > target:
            break
    return last, total
