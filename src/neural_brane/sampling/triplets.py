"""Triplets (u, i, j) for Bayesian personalized ranking: i is a neighbour of u, j is not."""

import numba
import numpy as np
from numba import prange
from scipy import sparse

from neural_brane.kernels.compiling import njit
from neural_brane.sampling.tables import triplet_tables
from neural_brane.sampling.walks import Draws, advance, draw_alias, draw_neighbour, is_neighbour, stream, uniform

BLOCK = 128  # triplets drawn together
PATIENCE = 64  # draws of j before the exact draw, which visits all nodes


class TripletSampler:
    """Draws triplets 0, 1, 2, … of a seed; any range can be drawn, in any order.

    u is uniform over the nodes that have a neighbour and a non-neighbour. i is drawn in proportion to the edge's
    weight, j in proportion to (number of neighbours) ** negative_power among the nodes that are not neighbours of u.

    allow_self_negative: j may be u itself unless u is its own neighbour. among: (nodes,) bool, the nodes that may be u.
    """

    def __init__(
        self,
        adjacency: sparse.csr_array,
        *,
        negative_power: float = 0.75,
        allow_self_negative: bool = False,
        seed: int = 0,
        among: np.ndarray | None = None,
    ):
        self.seed, self.allow_self_negative = seed, allow_self_negative
        self._tables, self._alias = triplet_tables(
            adjacency, negative_power=negative_power, allow_self_negative=allow_self_negative, among=among
        )

    def draw(self, first: int, count: int) -> np.ndarray:
        """Return triplets first … first + count - 1, as (count, 3) int32."""
        triplets = np.empty((count, 3), np.int32)
        _draw(self._tables, self._alias, self.allow_self_negative, Draws(np.uint64(self.seed), first), triplets)
        return triplets


@njit(parallel=True)
def _draw(tables, alias, allow_self, draws, triplets):
    for block in prange(-(-len(triplets) // BLOCK)):
        start = np.int64(block) * BLOCK
        _draw_block(tables, alias, allow_self, Draws(draws.seed, draws.first + start), triplets[start : start + BLOCK])


@njit
def _draw_block(tables, alias, allow_self, draws, triplets):
    """Write triplets (k, 3) int32: every u, then every i, then every j, so that the reads of a loop overlap."""
    for t in range(len(triplets)):
        chance = uniform(stream(draws.seed, draws.first + t))
        triplets[t, 0] = tables.anchors[np.int64(chance * len(tables.anchors))]
    for t in range(len(triplets)):
        chance = uniform(advance(stream(draws.seed, draws.first + t)))
        triplets[t, 1] = draw_neighbour(tables, triplets[t, 0], chance)
    for t in range(len(triplets)):
        chance = uniform(advance(advance(stream(draws.seed, draws.first + t))))
        triplets[t, 2] = draw_alias(alias, chance)
    for t in range(len(triplets)):
        if not _is_other(tables, triplets[t, 0], triplets[t, 2], allow_self):
            state = advance(advance(stream(draws.seed, draws.first + t)))
            triplets[t, 2] = _draw_other(tables, alias, triplets[t, 0], allow_self, state)


@numba.njit(inline="always")
def _is_other(tables, u, j, allow_self):
    """Return whether j may be ranked below the neighbours of u."""
    return not (is_neighbour(tables, u, j) or (j == u and not allow_self))


@njit
def _draw_other(tables, alias, u, allow_self, state):
    """Draw j again until it is no neighbour of u; after PATIENCE draws, draw from the non-neighbours alone."""
    for _ in range(PATIENCE - 1):
        state = advance(state)
        j = draw_alias(alias, uniform(state))
        if _is_other(tables, u, j, allow_self):
            return j
    total = _walk_others(tables, u, allow_self, np.inf)[1]
    return _walk_others(tables, u, allow_self, uniform(advance(state)) * total)[0]


@njit
def _walk_others(tables, u, allow_self, target):
    """Add up the weights of u's non-neighbours until the sum exceeds target; return the last node added and the sum."""
    total = 0.0
    last = -1
    for j in range(len(tables.weights)):
        if tables.weights[j] == 0 or not _is_other(tables, u, j, allow_self):
            continue
        total += tables.weights[j]
        last = j
        if total > target:
            break
    return last, total
