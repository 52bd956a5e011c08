from typing import NamedTuple

import numpy as np
import pytest

from neural_brane.kernels.model import MAX, Bags, Model, Settings, padded

NODES, ATTRIBUTES, HIDDEN = 40, 30, 13


class Case(NamedTuple):
    model: Model
    attribute_bags: Bags
    neighbour_bags: Bags
    triplets: np.ndarray


def random_bags(rng, columns: int) -> Bags:
    """Bags of 0 to 6 rows, the first one empty."""
    sizes = rng.integers(0, 7, NODES)
    sizes[0] = 0
    rows = [np.sort(rng.choice(columns, size, replace=False)) for size in sizes]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return Bags(indptr.astype(np.int64), np.concatenate(rows).astype(np.int32))


@pytest.fixture
def make_case():
    """Make a small random model with bags and triplets; d1 = 7 and d2 = 12 are not multiples of a cache line."""

    def make(dtype=np.float32, d1=7, d2=12, hidden=HIDDEN, steps=100, batch=60, seed=0) -> Case:
        rng = np.random.default_rng(seed)
        attribute_table = np.zeros((ATTRIBUTES, padded(d1)), dtype)
        neighbour_table = np.zeros((NODES, padded(d2)), dtype)
        attribute_table[:, :d1] = rng.normal(size=(ATTRIBUTES, d1))
        neighbour_table[:, :d2] = rng.normal(size=(NODES, d2))
        weight = (0.3 * rng.normal(size=(hidden, d1 + d2))).astype(dtype)
        bias = (0.1 * rng.normal(size=hidden)).astype(dtype)
        triplets = rng.integers(0, NODES, (steps, batch, 3)).astype(np.int32)
        model = Model(attribute_table, neighbour_table, weight, bias)
        return Case(model, random_bags(rng, ATTRIBUTES), random_bags(rng, NODES), triplets)

    return make


@pytest.fixture
def settings() -> Settings:
    return Settings(
        attribute_dim=7,
        pooling=MAX,
        zero_floor=False,
        learning_rate=0.1,
        table_rate=0.12,
        triplet_scale=1 / 60,
        hidden_l2=0.0,
        parameter_l2=0.0,
        train_bias=False,
    )
