"""Train tables whose rows are pooled in bags, by Adam on the CPU, with the same bits on any number of threads.

Embedding propagation (`propagate`) and skip-gram from attributes (`train`) share the kernels that pool rows, sum
gradients and take steps. The tests define both in NumPy.
"""

from typing import NamedTuple

import numpy as np
from numba import prange

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.cpu.lanes import fill, load, multiply_add, store, total
from neural_brane.kernels.model import LANE, CSRArrays, padded, zeros

MEAN_DECAY, SQUARE_DECAY, SMALLEST = 0.9, 0.999, 1e-8  # the defaults of Adam's paper


@njit(error_model="numpy")
def corrected(rate, step):
    """Return the learning rate of step 1, 2, …, corrected for the running means of Adam that start at zero."""
    return rate * np.sqrt(1 - SQUARE_DECAY**step) / (1 - MEAN_DECAY**step)


class AdamTable(NamedTuple):
    """A table that Adam trains, with its running means; all three arrays have the same shape and are float32."""

    table: np.ndarray  # (rows, width), width a multiple of LANE
    mean: np.ndarray  # mean of the gradients
    square: np.ndarray  # mean of the squared gradients


class StepRange(NamedTuple):
    """The learning rate and the batches of some steps."""

    rate: float
    step: int  # number of earlier steps
    batch: int  # nodes in a step


# Pool bags, and return gradients to the rows of the table. Both trainings use these kernels.
#
# The gradients of a batch are sorted by row. Each row then has one writer and one order of its sum, so that the number
# of threads changes no bit.


@njit(error_model="numpy")
def pool(table, bags, slot, pooled):
    """Write pooled[slot] = Σ value × row of the table, over the entries of bag `slot` of bags (`CSRArrays`)."""
    start, stop = bags.indptr[slot], bags.indptr[slot + 1]
    for c in range(0, table.shape[1], LANE):
        total = fill(np.float32(0))
        for entry in range(start, stop):
            total = multiply_add(fill(bags.values[entry]), load(table, bags.indices[entry], c), total)
        store(total, pooled, slot, c)


@njit(error_model="numpy")
def sort_entries(bags, place):
    """Sort the entries of bags by row of the table; `place` (rows,) int64 is scratch, -1 before and after.

    Returns the distinct rows by first entry, the start of each row's entries, the sorted entries, and their slots.
    """
    indptr, rows = bags.indptr, bags.indices
    distinct, count = np.empty(len(rows), np.int64), 0
    for row in rows:
        if place[row] < 0:
            place[row] = count
            distinct[count] = row
            count += 1
    starts = np.zeros(count + 1, np.int64)
    for row in rows:
        starts[place[row] + 1] += 1
    for at in range(count):
        starts[at + 1] += starts[at]
    entries, slots, filled = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64), starts[:-1].copy()
    for slot in range(len(indptr) - 1):
        for entry in range(indptr[slot], indptr[slot + 1]):
            at = place[rows[entry]]
            entries[filled[at]] = entry
            slots[filled[at]] = slot
            filled[at] += 1
    for row in rows:
        place[row] = -1
    return distinct[:count], starts, entries, slots


@njit(error_model="numpy")
def gather(gradients, values, entries_by_row, k, total):
    """Write total[k] = Σ value × gradient of the slot, over the entries of row k that `sort_entries` found."""
    _, starts, entries, slots = entries_by_row
    for c in range(0, total.shape[1], LANE):
        lane = fill(np.float32(0))
        for at in range(starts[k], starts[k + 1]):
            lane = multiply_add(fill(values[entries[at]]), load(gradients, slots[at], c), lane)
        store(lane, total, k, c)


@njit(error_model="numpy")
def descend(trained, row, gradient, k, rate):
    """Update one row and its running means in place by a step of Adam; rate: from `corrected`, float32."""
    keep, forget = np.float32(MEAN_DECAY), np.float32(1 - MEAN_DECAY)
    keep_square, forget_square = np.float32(SQUARE_DECAY), np.float32(1 - SQUARE_DECAY)
    own, own_mean, own_square, slope = trained.table[row], trained.mean[row], trained.square[row], gradient[k]
    for c in range(len(own)):
        own_mean[c] = keep * own_mean[c] + forget * slope[c]
        own_square[c] = keep_square * own_square[c] + forget_square * slope[c] * slope[c]
        own[c] -= rate * own_mean[c] / (np.sqrt(own_square[c]) + np.float32(SMALLEST))


class PropagationBags(NamedTuple):
    """The rows that each node pools: its own rows, and the rows of its neighbours."""

    links: CSRArrays  # neighbours of each node, with weights
    own: CSRArrays  # own rows of each node, with amounts
    sizes: np.ndarray  # (nodes,) float64: divisor of a node's own sum
    around: np.ndarray  # (nodes,) float64: divisor of the sum over its neighbours


def propagate(trained: AdamTable, bags: PropagationBags, nodes, others, margin: float, steps: StepRange) -> np.ndarray:
    """Train a table, a step per batch of nodes (k,) int64 with contrasting `others`; return losses (k,) float32."""
    pooled = zeros(3 * min(steps.batch, len(nodes)), trained.table.shape[1])
    return _propagate(trained, bags, (nodes, others), margin, steps, pooled)


@njit(error_model="numpy", parallel=True)
def _propagate(trained, bags, pairs, margin, steps, pooled):
    nodes, others = pairs
    losses, step = np.empty(len(nodes), np.float32), steps.step
    place = np.full(len(trained.table), -1, np.int64)
    for start in range(0, len(nodes), steps.batch):
        stop = min(start + steps.batch, len(nodes))
        count = stop - start
        indptr, rows, shares = _fill_bags(bags, nodes[start:stop], others[start:stop])
        batch_bags = CSRArrays(indptr, rows, shares)
        for slot in prange(3 * count):
            pool(trained.table, batch_bags, slot, pooled)
        for k in prange(count):
            losses[start + k] = _rank(pooled, k, count + k, 2 * count + k, margin)
        by_row = sort_entries(batch_bags, place)
        step += 1
        rate = np.float32(corrected(steps.rate, step))
        distinct = by_row[0]
        gradient = np.empty((len(distinct), trained.table.shape[1]), np.float32)
        for k in prange(len(distinct)):
            gather(pooled, shares, by_row, k, gradient)
            descend(trained, distinct[k], gradient, k, rate)
    return losses


@njit(error_model="numpy")
def _fill_bags(bags, nodes, others):
    """Return indptr (3 k + 1,), rows and shares of 3 k bags: around nodes (k,), of the nodes, of others (k,)."""
    own, links = bags.own, bags.links
    indptr = np.zeros(3 * len(nodes) + 1, np.int64)
    for k in range(len(nodes)):
        node, other = nodes[k], others[k]
        for link in range(links.indptr[node], links.indptr[node + 1]):
            neighbour = links.indices[link]
            indptr[k + 1] += own.indptr[neighbour + 1] - own.indptr[neighbour]
        indptr[len(nodes) + k + 1] = own.indptr[node + 1] - own.indptr[node]
        indptr[2 * len(nodes) + k + 1] = own.indptr[other + 1] - own.indptr[other]
    for slot in range(3 * len(nodes)):
        indptr[slot + 1] += indptr[slot]
    rows, shares = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    at = 0
    for node in nodes:
        for link in range(links.indptr[node], links.indptr[node + 1]):
            scale = links.values[link] / bags.around[node]
            at = _copy_bag(own, links.indices[link], scale, rows, shares, at)
    for group in (nodes, others):
        for node in group:
            at = _copy_bag(own, node, 1 / bags.sizes[node], rows, shares, at)
    return indptr, rows, shares


@njit(error_model="numpy")
def _copy_bag(own, node, scale, rows, shares, at):
    """Copy a node's own bag, with amounts × scale, to rows and shares from `at` on; return the next free place."""
    for entry in range(own.indptr[node], own.indptr[node + 1]):
        rows[at] = own.indices[entry]
        shares[at] = scale * own.values[entry]
        at += 1
    return at


@njit(error_model="numpy")
def _rank(pooled, around, own, other, margin):
    """Return the loss of one node, and replace its three rows of `pooled` by their gradients."""
    near = far = 0.0
    for c in range(pooled.shape[1]):
        near += np.float64(pooled[around, c] - pooled[own, c]) ** 2
        far += np.float64(pooled[around, c] - pooled[other, c]) ** 2
    near, far = np.sqrt(near), np.sqrt(far)
    loss = margin + near - far
    near_scale = np.float32(1 / near) if loss > 0 and near > 0 else np.float32(0)
    far_scale = np.float32(1 / far) if loss > 0 and far > 0 else np.float32(0)
    for c in range(pooled.shape[1]):
        to_own = near_scale * (pooled[around, c] - pooled[own, c])
        to_other = far_scale * (pooled[around, c] - pooled[other, c])
        pooled[around, c] = to_own - to_other
        pooled[own, c] = -to_own
        pooled[other, c] = to_other
    return max(loss, 0.0)


# Skip-gram whose source vectors are cosines and sines of attributes. Adam uses the sum of a batch's gradients.


class AdamTables(NamedTuple):
    """The trained tables, with the running means of Adam; padding columns stay zero."""

    maps: np.ndarray  # (attributes, padded(half)) float32
    maps_mean: np.ndarray
    maps_square: np.ndarray
    contexts: np.ndarray  # (nodes, 2 × padded(half)) float32: cosine part, then sine part
    contexts_mean: np.ndarray
    contexts_square: np.ndarray


def empty_tables(attributes: int, nodes: int, dim: int) -> AdamTables:
    """Return tables of zeros for vectors (dim,)."""
    width = padded(dim - dim // 2)
    return AdamTables(*(zeros(attributes, width) for _ in range(3)), *(zeros(nodes, 2 * width) for _ in range(3)))


def train(tables: AdamTables, own: CSRArrays, sources, targets, dim: int, steps: StepRange) -> np.ndarray:
    """Train the tables in place, one step per batch of sources (k,); return each source's mean loss, (k,) float32.

    own: the attributes of every node. targets: (k, places, 1 + negatives) int32, the nodes that a source predicts, each
    followed by its negatives; -1 marks an empty place. dim: width of a vector.
    """
    width, slots = tables.maps.shape[1], min(steps.batch, len(sources))
    scratch = zeros(slots, width), zeros(slots, 2 * width), zeros(slots, 2 * width)
    return _train(tables, own, (sources, targets), dim, steps, scratch)


@njit(error_model="numpy", parallel=True)
def _train(tables, own, examples, dim, steps, scratch):
    sources, targets = examples
    angles, vectors, slopes = scratch
    maps = AdamTable(tables.maps, tables.maps_mean, tables.maps_square)
    contexts = AdamTable(tables.contexts, tables.contexts_mean, tables.contexts_square)
    losses, step = np.empty(len(sources), np.float32), steps.step
    place_of_row, place_of_node = np.full(len(maps.table), -1, np.int64), np.full(len(contexts.table), -1, np.int64)
    for start in range(0, len(sources), steps.batch):
        count = min(steps.batch, len(sources) - start)
        drawn = targets[start : start + count]
        factors = np.zeros(drawn.shape, np.float32)
        indptr, rows, amounts = _bags_of(own, sources[start : start + count])
        batch_bags = CSRArrays(indptr, rows, amounts)
        for k in prange(count):
            pool(maps.table, batch_bags, k, angles)
            _embed(angles, vectors, k, dim)
            losses[start + k] = _score(contexts.table, vectors, k, drawn, factors, slopes)
            _backpropagate(angles, slopes, k, dim)
        step += 1
        rate = np.float32(corrected(steps.rate, step))
        by_row = sort_entries(batch_bags, place_of_row)
        distinct = by_row[0]
        gradient = np.empty((len(distinct), angles.shape[1]), np.float32)
        for k in prange(len(distinct)):
            gather(angles, amounts, by_row, k, gradient)
            descend(maps, distinct[k], gradient, k, rate)
        indptr, hits, shares = _flatten_targets(drawn, factors)
        by_node = sort_entries(CSRArrays(indptr, hits, shares), place_of_node)
        others = by_node[0]
        gradients = np.empty((len(others), vectors.shape[1]), np.float32)
        for k in prange(len(others)):
            gather(vectors, shares, by_node, k, gradients)
            descend(contexts, others[k], gradients, k, rate)
    return losses


@njit(error_model="numpy")
def _bags_of(own, nodes):
    """Return the rows of `own` of nodes (k,) as indptr (k + 1,), columns and values of a CSR matrix."""
    indptr = np.zeros(len(nodes) + 1, np.int64)
    for k in range(len(nodes)):
        indptr[k + 1] = indptr[k] + own.indptr[nodes[k] + 1] - own.indptr[nodes[k]]
    rows, amounts = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    for k in range(len(nodes)):
        _copy_bag(own, nodes[k], 1.0, rows, amounts, indptr[k])
    return indptr, rows, amounts


@njit(error_model="numpy")
def _embed(angles, vectors, k, dim):
    """Write the scaled cosines of angles[k] to the first half of vectors[k], and the sines to the second."""
    half, middle = dim - dim // 2, angles.shape[1]
    scale = np.float32(1 / np.sqrt(half))
    for c in range(half):
        vectors[k, c] = scale * np.cos(angles[k, c])
    for c in range(dim - half):
        vectors[k, middle + c] = scale * np.sin(angles[k, c])


@njit(error_model="numpy")
def _backpropagate(angles, slopes, k, dim):
    """Replace angles[k] by the derivative of the loss by the angles; slopes[k] is that by the vector."""
    half, middle = dim - dim // 2, angles.shape[1]
    scale = np.float32(1 / np.sqrt(half))
    for c in range(half):
        angle = angles[k, c]
        angles[k, c] = -scale * np.sin(angle) * slopes[k, c]
        if c < dim - half:
            angles[k, c] += scale * np.cos(angle) * slopes[k, middle + c]


@njit(error_model="numpy")
def _score(contexts, vectors, k, drawn, factors, slopes):
    """Return the mean loss of vectors[k]; write the derivatives by scores to factors[k], by the vector to slopes[k]."""
    loss, targets = 0.0, 0
    for place in range(drawn.shape[1]):
        for role in range(drawn.shape[2]):
            node = drawn[k, place, role]
            if node < 0:
                continue
            score = fill(np.float32(0))
            for c in range(0, contexts.shape[1], LANE):
                score = multiply_add(load(vectors, k, c), load(contexts, node, c), score)
            sign = 1.0 if role == 0 else -1.0
            signed = sign * total(score)
            factors[k, place, role] = np.float32(-sign / (1 + np.exp(signed)))
            loss += np.log1p(np.exp(-signed)) if signed > -30 else -signed
            targets += 1
    for c in range(0, contexts.shape[1], LANE):
        slope = fill(np.float32(0))
        for place in range(drawn.shape[1]):
            for role in range(drawn.shape[2]):
                if drawn[k, place, role] >= 0:
                    factor = fill(factors[k, place, role])
                    slope = multiply_add(factor, load(contexts, drawn[k, place, role], c), slope)
        store(slope, slopes, k, c)
    return loss / max(targets, 1)


@njit(error_model="numpy")
def _flatten_targets(drawn, factors):
    """Return indptr (sources + 1,), the targets of all sources end to end, and their factors."""
    indptr = np.zeros(len(drawn) + 1, np.int64)
    hits, shares = np.empty(drawn.size, np.int32), np.empty(drawn.size, np.float32)
    count = 0
    for k in range(len(drawn)):
        for place in range(drawn.shape[1]):
            for role in range(drawn.shape[2]):
                if drawn[k, place, role] >= 0:
                    hits[count] = drawn[k, place, role]
                    shares[count] = factors[k, place, role]
                    count += 1
        indptr[k + 1] = count
    return indptr, hits[:count], shares[:count]
