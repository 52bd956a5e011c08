"""What a rank computes of its graph's rows in Numba. None of it holds Python's lock, so that it runs beside a step."""

import numpy as np

from neural_brane.compiling import njit
from neural_brane.sampling.draws import draw_alias, is_neighbour
from neural_brane.sampling.random import advance, stream, uniform


@njit(nogil=True)
def draw_neighbours(indptr, indices, weights, rows, chances):
    """As `sampling.draws.draw_neighbour`, whose running sums of weights are made here, row by row."""
    drawn = np.empty(len(rows), np.int32)
    for k in range(len(rows)):
        start, stop = indptr[rows[k]], indptr[rows[k] + 1]
        if len(weights) == 0:
            drawn[k] = indices[start + np.int64(chances[k] * (stop - start))]
            continue
        total = 0.0
        for at in range(start, stop):
            total += np.float64(weights[at])
        target, total, place = chances[k] * total, 0.0, stop - 1
        for at in range(start, stop):
            total += np.float64(weights[at])
            if total > target:
                place = at
                break
        drawn[k] = indices[place]
    return drawn


@njit(nogil=True)
def find_links(rows, nodes, others):
    """Whether each of others is a neighbour of its node."""
    found = np.empty(len(nodes), np.bool_)
    for k in range(len(nodes)):
        found[k] = is_neighbour(rows, nodes[k], others[k])
    return found


@njit(nogil=True)
def copy_rows(indptr, indices, rows, starts, out):
    """Write each row's numbers to out, from its start on."""
    for k in range(len(rows)):
        first, to = indptr[rows[k]], starts[k]
        for at in range(indptr[rows[k] + 1] - first):
            out[to + at] = indices[first + at]


@njit(nogil=True)
def begin_triplets(seed, first, anchors, alias, triplets, chance, states):
    """Write u and the first draw of j to triplets, i's random number to chance, and the state that j was drawn by."""
    for t in range(len(triplets)):
        state = stream(seed, first + t)
        triplets[t, 0] = anchors[np.int64(uniform(state) * len(anchors))]
        state = advance(state)
        chance[t] = uniform(state)
        states[t] = advance(state)
        triplets[t, 2] = draw_alias(alias, uniform(states[t]))


@njit(nogil=True)
def draw_again(alias, states, refused, triplets):
    """Draw j again for some triplets, and advance their states."""
    for t in refused:
        states[t] = advance(states[t])
        triplets[t, 2] = draw_alias(alias, uniform(states[t]))


@njit(nogil=True)
def draw_others(weights, bags, u, allow_self, states, refused, triplets):
    """Draw j of some triplets from the nodes that their u, whose neighbours are bags, is not linked to."""
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


@njit(nogil=True)
def number_distinct(numbers, keys, places, distinct, shift):
    """Open addressing: a number looks from its own place on for itself or for an empty place, −1."""
    keys[:] = -1
    count = 0
    for k in range(len(numbers)):
        number = numbers[k]
        at = np.int64((np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(shift))
        while keys[at] != number and keys[at] >= 0:
            at = (at + 1) & (len(keys) - 1)
        if keys[at] < 0:
            keys[at], places[at], distinct[count] = number, count, number
            count += 1
        numbers[k] = places[at]
    return count
