"""The first values of a model's tables."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from neural_brane.kernels.model import padded, zeros

DRAWN_ROWS = 8_192  # from one seed


def random_table(seed: np.random.SeedSequence, rows: int, width: int, std: float) -> np.ndarray:
    """A table of N(0, std²) whose rows are padded to whole cache lines; some rows at a time, each lot from a seed."""
    table = zeros(rows, padded(width))

    def fill(start: int, own: np.random.SeedSequence) -> None:
        part = table[start : start + DRAWN_ROWS, :width]
        np.multiply(np.random.default_rng(own).standard_normal(part.shape, np.float32), np.float32(std), out=part)

    starts = range(0, rows, DRAWN_ROWS)
    with ThreadPoolExecutor() as pool:  # the lots, not the threads, decide what is drawn
        list(pool.map(fill, starts, seed.spawn(len(starts))))
    return table
