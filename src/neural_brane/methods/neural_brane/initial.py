"""The first values of a model."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from neural_brane.graph import AttributedGraph
from neural_brane.kernels.model import Model, padded, zeros

BLOCK_ROWS = 8_192  # drawn from one seed


def initial_model(graph: AttributedGraph, settings: dict[str, Any], seed: int) -> Model:
    """A model of a graph before training, its parameters drawn at random."""
    d1, dim, hidden = settings["attribute_dim"], settings["dim"], settings["hidden"]
    attributes, neighbours, layer = np.random.SeedSequence(seed).spawn(3)
    weight = np.random.default_rng(layer).standard_normal((hidden, dim), np.float32)
    return Model(
        attribute_table=random_table(attributes, graph.attributes.shape[1], d1, settings["table_std"]),
        neighbour_table=random_table(neighbours, len(graph), dim - d1, settings["table_std"]),
        weight=weight * np.float32(settings["weight_std"]),
        bias=np.zeros(hidden, np.float32),
    )


def random_table(seed: np.random.SeedSequence, rows: int, width: int, std: float) -> np.ndarray:
    """A table of N(0, std²) whose rows are padded to whole cache lines.

    Each block of rows has its own seed, so the number of threads changes nothing.
    """
    table = zeros(rows, padded(width))

    def fill(start: int, own: np.random.SeedSequence) -> None:
        part = table[start : start + BLOCK_ROWS, :width]
        np.multiply(np.random.default_rng(own).standard_normal(part.shape, np.float32), np.float32(std), out=part)

    starts = range(0, rows, BLOCK_ROWS)
    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, starts, seed.spawn(len(starts))))
    return table
