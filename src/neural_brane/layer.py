"""What scores pairs of vectors, where a method has learned such a thing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from neural_brane.blas import one_blas_thread
from neural_brane.errors import EmbeddingError
from neural_brane.graph.ids import locate
from neural_brane.graph.unknown import about_unknown

BLOCK_PAIRS = 65_536  # scored at a time


class Layer(NamedTuple):
    """A ReLU layer over vectors: h(u) = max(0, W v(u) + b). ⟨h(u), h(v)⟩ says how likely a link is."""

    weight: np.ndarray  # (hidden, dim) float32
    bias: np.ndarray  # (hidden,) float32

    def score(self, vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The score of pairs of rows (k, 2) of the vectors; (k,) float32."""
        with one_blas_thread():  # the order of sums, and so the last bits, would follow the threads
            return np.concatenate(
                [np.empty(0, np.float32)]
                + [self._score(vectors, rows[at : at + BLOCK_PAIRS]) for at in range(0, len(rows), BLOCK_PAIRS)]
            )

    def _score(self, vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
        nodes, places = np.unique(rows, return_inverse=True)
        hidden = np.maximum(vectors[nodes] @ self.weight.T + self.bias, 0)
        return inner_products(hidden, places.reshape(rows.shape))


def inner_products(table: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The inner product of both rows of each pair (k, 2)."""
    return np.einsum("ij,ij->i", table[rows[:, 0]], table[rows[:, 1]])


def find_pairs(ids: np.ndarray, pairs: Sequence[tuple[Any, Any]] | np.ndarray) -> np.ndarray:
    """Pairs of ids as pairs of rows (k, 2); one that is unknown is refused."""
    asked = np.asarray(pairs)
    if asked.ndim != 2 or asked.shape[1] != 2:
        raise EmbeddingError(f"pairs of ids are needed, as in [(u, v), …], not an array of shape {asked.shape}")
    rows = locate(ids, asked.ravel())
    if (rows < 0).any():
        raise EmbeddingError(about_unknown(ids, asked.ravel()[rows < 0][0].item()))
    return rows.reshape(-1, 2)
