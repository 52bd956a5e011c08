"""Triplets (u, i, j), the same for a seed and a number as `sampling.triplets` draws, wherever the graph's rows lie."""

import numpy as np

from neural_brane.cluster.draws import begin_triplets, draw_again, draw_others
from neural_brane.cluster.rows import GraphRows
from neural_brane.cluster.sampling_tables import SamplingTables
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
        begin_triplets(self.seed, first, self.tables.anchors, self.tables.alias, triplets, chance, states)
        u = triplets[:, 0].astype(np.int64)
        triplets[:, 1] = self.rows.neighbours(u, chance)
        refused = np.flatnonzero(self._refused(u, triplets[:, 2]))
        for _ in range(PATIENCE - 1):
            if not self.rows.any(np.array([len(refused)])):
                return triplets
            draw_again(self.tables.alias, states, refused, triplets)
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
        draw_others(self.tables.weights, bags, u[refused], self.allow_self_negative, states[refused], refused, triplets)
