"""Neural-Brane defined in plain NumPy, short and slow. Tests compare every fast kernel with it."""

import numpy as np

from neural_brane.kernels.model import MAX, MEAN, Bags, Model, Settings


def pool(bags: Bags, table: np.ndarray, nodes: np.ndarray, pooling: int, zero_floor: bool):
    """Reduce the bag of each of nodes (k,) to one row by max, sum or mean; an empty bag gives zeros.

    zero_floor: add a row of zeros to every bag in max pooling.
    Returns pooled (k, d) and winner (k, d) int32: in max pooling the row that each number came from, else -1.
    """
    pooled = np.zeros((len(nodes), table.shape[1]), table.dtype)
    winner = np.full(pooled.shape, -1, np.int32)
    columns = np.arange(table.shape[1])
    for slot, node in enumerate(nodes):
        rows = bags.indices[bags.indptr[node] : bags.indptr[node + 1]]
        if len(rows) == 0:
            continue
        if pooling == MAX:
            best = table[rows].argmax(axis=0)
            pooled[slot] = table[rows[best], columns]
            winner[slot] = rows[best]
            if zero_floor:
                winner[slot, pooled[slot] <= 0] = -1
                pooled[slot] = np.maximum(pooled[slot], 0)
        else:
            pooled[slot] = table[rows].sum(axis=0)
            if pooling == MEAN:
                pooled[slot] /= len(rows)
    return pooled, winner


def embed(model: Model, attribute_bags: Bags, neighbour_bags: Bags, nodes: np.ndarray, settings: Settings):
    """Return the embedding f(u) of nodes (k,): pooled attributes beside pooled neighbours, (k, d1 + d2)."""
    parts = _pool_both(model, attribute_bags, neighbour_bags, nodes, settings)
    return np.hstack([pooled for pooled, _ in parts])


def hide(model: Model, pooled: np.ndarray):
    """Return h(u) = ReLU(W f(u) + b) as (k, hidden), from f(u) as pooled (k, d1 + d2)."""
    return np.maximum(pooled @ model.weight.T + model.bias, 0)


def loss(model: Model, attribute_bags: Bags, neighbour_bags: Bags, triplets: np.ndarray, settings: Settings):
    """Return the objective of one batch of triplets (batch, 3), including regularisation."""
    h = hide(model, embed(model, attribute_bags, neighbour_bags, triplets.T.ravel(), settings))
    h_u, h_i, h_j = np.split(h, 3)
    margin = (h_u * (h_i - h_j)).sum(axis=1)
    total = settings.triplet_scale * np.logaddexp(0, -margin).sum()
    total += settings.hidden_l2 * (h**2).sum()
    return total + settings.parameter_l2 * sum((theta**2).sum() for theta in model)


def gradients(model: Model, attribute_bags: Bags, neighbour_bags: Bags, triplets: np.ndarray, settings: Settings):
    """Return the gradient of `loss` as a Model of dense arrays, and the mean of −ln σ over the batch."""
    nodes = triplets.T.ravel()
    parts = _pool_both(model, attribute_bags, neighbour_bags, nodes, settings)
    (attribute_part, attribute_winner), (neighbour_part, neighbour_winner) = parts
    f = np.hstack([attribute_part, neighbour_part])
    h = hide(model, f)
    h_u, h_i, h_j = np.split(h, 3)

    margin = (h_u * (h_i - h_j)).sum(axis=1, keepdims=True)
    slope = -settings.triplet_scale / (1 + np.exp(margin))
    dh = np.vstack([slope * (h_i - h_j), slope * h_u, -slope * h_u]) + 2 * settings.hidden_l2 * h
    dz = np.where(h > 0, dh, 0)
    df = dz @ model.weight

    gradient = Model(*(2 * settings.parameter_l2 * theta for theta in model))
    d1 = settings.attribute_dim
    _scatter(gradient.attribute_table, attribute_bags, nodes, attribute_winner, df[:, :d1], settings.pooling)
    _scatter(gradient.neighbour_table, neighbour_bags, nodes, neighbour_winner, df[:, d1:], settings.pooling)
    gradient.weight[:] += dz.T @ f
    gradient.bias[:] += dz.sum(axis=0)
    return gradient, np.logaddexp(0, -margin).mean()


def train(model: Model, attribute_bags: Bags, neighbour_bags: Bags, triplets: np.ndarray, settings: Settings):
    """Update the model by an SGD step per batch (steps, batch, 3) int32; return the losses before each step."""
    losses = np.empty(len(triplets))
    for step, batch in enumerate(triplets):
        gradient, losses[step] = gradients(model, attribute_bags, neighbour_bags, batch, settings)
        rates = settings.table_rate, settings.table_rate, settings.learning_rate
        for theta, slope, rate in zip(model[:3], gradient[:3], rates, strict=True):
            theta -= rate * slope
        if settings.train_bias:
            model.bias[:] -= settings.learning_rate * gradient.bias
    return losses


def _pool_both(model: Model, attribute_bags: Bags, neighbour_bags: Bags, nodes: np.ndarray, settings: Settings):
    """Pool both tables; return (pooled, winner) of the attributes and (pooled, winner) of the neighbours."""
    d1, d2 = settings.attribute_dim, model.weight.shape[1] - settings.attribute_dim
    tables = (attribute_bags, model.attribute_table[:, :d1]), (neighbour_bags, model.neighbour_table[:, :d2])
    return [pool(*table, nodes, settings.pooling, settings.zero_floor) for table in tables]


def _scatter(gradient, bags: Bags, nodes: np.ndarray, winner: np.ndarray, df: np.ndarray, pooling: int):
    """Add each slot's gradient df (k, d) to rows of `gradient`, in place: to the winners, or to all rows of the bag."""
    columns = np.arange(df.shape[1])
    for slot, node in enumerate(nodes):
        if pooling == MAX:
            won = winner[slot] >= 0
            gradient[winner[slot, won], columns[won]] += df[slot, won]
        else:
            rows = bags.indices[bags.indptr[node] : bags.indptr[node + 1]]
            share = max(len(rows), 1) if pooling == MEAN else 1
            np.add.at(gradient[:, : df.shape[1]], rows, df[slot] / share)
