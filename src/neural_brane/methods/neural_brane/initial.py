"""The first values of a model."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from neural_brane.graph import AttributedGraph
from neural_brane.kernels.model import Model, padded, zeros

BLOCK_ROWS = 8_192  # drawn from one seed


def initial_model(graph: AttributedGraph, settings: dict[str, Any], seed: int) -> Model:
    """A model of a graph before training, its parameters drawn at random."""
    d1, dim, hidden = settings["attribute_dim"], settings["dim"], settings["hidden"]
    seeds = initial_seeds(seed)
    return Model(
        attribute_table=random_table(seeds.attributes, graph.attributes.shape[1], d1, settings["table_std"]),
        neighbour_table=random_table(seeds.neighbours, len(graph), dim - d1, settings["table_std"]),
        weight=random_weight(seeds.layer, hidden, dim, settings["weight_std"]),
        bias=np.zeros(hidden, np.float32),
    )


class Seeds(NamedTuple):
    """What the first values of a model's arrays are drawn from."""

    attributes: np.random.SeedSequence
    neighbours: np.random.SeedSequence
    layer: np.random.SeedSequence


def initial_seeds(seed: int) -> Seeds:
    """The seeds of the parts of a model."""
    return Seeds(*np.random.SeedSequence(seed).spawn(3))


def random_weight(seed: np.random.SeedSequence, hidden: int, dim: int, std: float) -> np.ndarray:
    """W before training, (hidden, dim)."""
    return np.random.default_rng(seed).standard_normal((hidden, dim), np.float32) * np.float32(std)


def random_table(seed: np.random.SeedSequence, rows: int, width: int, std: float) -> np.ndarray:
    """A table of N(0, std²) whose rows are padded to whole cache lines."""
    table = zeros(rows, padded(width))
    fill_rows(table[:, :width], seed, 0, std)
    return table


def fill_rows(part: np.ndarray, seed: np.random.SeedSequence, first: int, std: float) -> None:
    """Draw the rows from `first` on of a random table into `part`.

    Each block of rows has its own seed, so neither the number of threads nor where a part begins changes anything.
    """

    def fill(block: int) -> None:
        start = block * BLOCK_ROWS
        low, high = max(first - start, 0), min(first + len(part) - start, BLOCK_ROWS)
        own = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, block))
        drawn = np.random.default_rng(own).standard_normal((high, part.shape[1]), np.float32)
        to = part[start + low - first : start + high - first]
        np.multiply(drawn[low:], np.float32(std), out=to)

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(first // BLOCK_ROWS, -(-(first + len(part)) // BLOCK_ROWS))))
