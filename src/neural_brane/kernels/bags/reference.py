"""Trainings of pooled rows in plain NumPy: the definitions that fast kernels are tested against."""

import numpy as np

MEAN_DECAY, SQUARE_DECAY, SMALLEST = 0.9, 0.999, 1e-8  # Adam's, as its paper has them


def corrected(rate: float, step: int) -> float:
    """The rate of step 1, 2, …, with what makes up for Adam's running means having begun at zero."""
    return rate * np.sqrt(1 - SQUARE_DECAY**step) / (1 - MEAN_DECAY**step)


def descend(table, mean, square, gradient, touched, rate: float):
    """A step of Adam for the rows that were touched; the others stay, with their running means, as they are."""
    mean[touched] = MEAN_DECAY * mean[touched] + (1 - MEAN_DECAY) * gradient[touched]
    square[touched] = SQUARE_DECAY * square[touched] + (1 - SQUARE_DECAY) * gradient[touched] ** 2
    table[touched] -= rate * mean[touched] / (np.sqrt(square[touched]) + SMALLEST)


def ranked(around, own, others, margin: float):
    """The loss max(0, margin + |around − own| − |around − other|) of every row, and its three gradients."""
    near, far = around - own, around - others
    lengths = [np.linalg.norm(part, axis=1, keepdims=True) for part in (near, far)]
    losses = np.maximum(margin + lengths[0] - lengths[1], 0)
    near, far = (
        np.where(losses > 0, part / np.where(length > 0, length, 1), 0)
        for part, length in zip((near, far), lengths, strict=True)
    )
    return losses[:, 0], (near - far, -near, far)


def propagate(table, mean, square, around, own, nodes, others, *, margin: float, rate: float, step: int, batch: int):
    """Train a table by embedding propagation, in place: a step for every `batch` of the nodes; returns their losses.

    around, own: (nodes, rows of the table), dense: what makes a node's reconstruction and its own vector of the rows.
    others: a node for each of the nodes. step: how many steps were taken before.
    """
    losses = np.empty(len(nodes))
    for start in range(0, len(nodes), batch):
        some = slice(start, start + batch)
        bags = np.stack([around[nodes[some]], own[nodes[some]], own[others[some]]])
        around_some, own_some, others_some = bags @ table
        losses[some], slopes = ranked(around_some, own_some, others_some, margin)
        gradient = sum(bag.T @ slope for bag, slope in zip(bags, slopes, strict=True))
        step += 1
        descend(table, mean, square, gradient, (bags != 0).any(axis=(0, 1)), corrected(rate, step))
    return losses


def fourier(attributes, maps, dim: int):
    """The vectors of nodes with these attributes, (nodes, dim): cosines of what the maps make of them, then sines.

    maps: (attributes, dim - dim // 2). Of an odd number the last sine is left out.
    """
    angles = attributes @ maps
    return np.hstack([np.cos(angles), np.sin(angles)])[:, :dim] / np.sqrt(maps.shape[1])


def profile_loss(attributes, maps, contexts, source: int, targets, negatives):
    """The loss of one source, whose vector predicts the targets and not the negatives, and its two gradients."""
    dim, half = contexts.shape[1], maps.shape[1]
    vector = fourier(attributes[[source]], maps, dim)[0]
    hits, signs = np.array([*targets, *negatives]), np.repeat([1, -1], [len(targets), len(negatives)])
    scores = contexts[hits] @ vector
    slopes = -signs / (1 + np.exp(signs * scores))
    by_vector = slopes @ contexts[hits]
    angles = attributes[source] @ maps
    by_angle = -np.sin(angles) * by_vector[:half] / np.sqrt(half)
    by_angle[: dim - half] += np.cos(angles[: dim - half]) * by_vector[half:] / np.sqrt(half)
    by_contexts = np.zeros_like(contexts)
    np.add.at(by_contexts, hits, np.outer(slopes, vector))
    return np.logaddexp(0, -signs * scores).sum(), np.outer(attributes[source], by_angle), by_contexts
