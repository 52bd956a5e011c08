"""A map of vectors: their directions projected to the plane, to look at."""

from __future__ import annotations

from typing import Literal

import numpy as np

from neural_brane.blas import one_blas_thread
from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate.labelled import check_finite

How = Literal["tsne", "pca"]


def map_2d(vectors: Embedding | np.ndarray, *, seed: int = 0, how: How = "tsne") -> np.ndarray:
    """Project the directions of vectors to the plane: (nodes, dim) to (nodes, 2) float32.

    how: "tsne", which starts from the two principal axes and takes seconds for a thousand nodes, minutes for ten
    thousand; or "pca", the two principal axes alone, at once. The same seed gives the same map, on any number of
    cores.

    >>> map_2d(np.eye(6), how="pca").shape
    (6, 2)
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if how not in ("tsne", "pca"):
        raise ParameterError(f"how={how!r} makes no sense; give 'tsne' or 'pca'")
    table = vectors.vectors if isinstance(vectors, Embedding) else np.asarray(vectors)
    if table.ndim != 2 or len(table) < 5 or table.shape[1] < 2:
        raise EmbeddingError(f"vectors {table.shape}: a map needs five nodes and two dimensions or more")
    table = table.astype(np.float64)
    check_finite(table)
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    directions = np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0)
    if not directions.std(axis=0).any():
        return np.zeros((len(table), 2), dtype=np.float32)  # all directions are the same
    with one_blas_thread():
        if how == "pca":
            points = PCA(2, svd_solver="covariance_eigh").fit_transform(directions)
        else:
            perplexity = min(30.0, (len(table) - 1) / 3)
            points = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(directions)
    return np.asarray(points, dtype=np.float32)
