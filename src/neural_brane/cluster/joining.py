"""The two parts of the vectors that a rank owns, joined as one process joins them all."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from neural_brane.cluster.exchange import Exchange
from neural_brane.methods.neural_brane.parts import Joint, join


def join_own(
    spectral: np.ndarray, learned: Iterator[np.ndarray], settings: dict[str, Any], exchange: Exchange
) -> Joint:
    """`parts.join` of own rows: centre and scale are those of all nodes, up to rounding. All ranks call it together."""

    def mean(values: np.ndarray) -> np.ndarray:
        sums = np.append(values.sum(axis=0, dtype=np.float64), float(len(values)))
        total = exchange.total(sums)
        return (total[:-1] / total[-1]).reshape(values.shape[1:])

    return join(spectral, learned, settings, mean)
