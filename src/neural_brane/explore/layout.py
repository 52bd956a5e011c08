"""Place each node on the map: by PCA at once, or by t-SNE, which takes minutes and is saved beside the vectors."""

from __future__ import annotations

import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import BraneError, DependencyError, EmbeddingError
from neural_brane.files.npz import open_npz, write_npz
from neural_brane.files.storage import atomic
from neural_brane.graph.ids import locate
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.linalg.weights import unit_rows
from neural_brane.progress import Meter, Reporter
from neural_brane.search.exact import Exact

BLOCK_ROWS = 4096  # rows read at a time: a few MB for each thread
AXES_ROWS = 262_144  # most vectors from which the axes are computed, a random sample with a fixed seed
PERPLEXITY, NEIGHBOURS = 10, 30  # kept the most true neighbours among the tried values
EARLY, LATE = 250, 500  # iterations of t-SNE with and without exaggeration
EVERY = 10  # iterations between two progress reports
QUERIES = 4096  # nodes searched for between two progress reports
FEWEST = 5  # least number of nodes for t-SNE
FORMAT = 1  # version of the saved map; a map of another version is computed again


def pca(vectors: np.ndarray, *, sample: int = AXES_ROWS) -> np.ndarray:
    """Project the directions of vectors (nodes, dim) on their two principal axes: (nodes, 2) float32.

    >>> pca(np.eye(4, dtype=np.float32)).shape
    (4, 2)
    """
    total = len(vectors)
    rows = np.arange(total)
    if total > sample:
        rows = np.sort(np.random.default_rng(0).choice(total, sample, replace=False))
    sums, products = np.zeros(vectors.shape[1]), np.zeros((vectors.shape[1],) * 2)

    def moments(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        unit = unit_rows(vectors[block])
        return unit.sum(axis=0, dtype=np.float64), (unit.T @ unit).astype(np.float64)

    with one_blas_thread(), ThreadPoolExecutor(os.cpu_count()) as pool:
        # The sums are added in the order of the blocks, so that the number of threads changes no bit.
        for block_sum, gram in pool.map(
            moments, [rows[at : at + BLOCK_ROWS] for at in range(0, len(rows), BLOCK_ROWS)]
        ):
            sums += block_sum
            products += gram
        count = max(len(rows), 1)
        mean = sums / count
        axes = np.linalg.eigh(products / count - np.outer(mean, mean))[1][:, ::-1][:, :2]
        axes *= np.where(-axes.min(axis=0) > axes.max(axis=0), -1, 1)  # fixes the sign, which is arbitrary
        rotation, shift = axes.astype(np.float32), (mean @ axes).astype(np.float32)
        points = np.zeros((total, 2), np.float32)

        def project(at: int) -> None:
            span = slice(at, at + BLOCK_ROWS)
            points[span, : rotation.shape[1]] = unit_rows(vectors[span]) @ rotation - shift

        list(pool.map(project, range(0, total, BLOCK_ROWS)))
    return points


def require_tsne() -> Any:
    """Return the package openTSNE, or raise an error if it is not installed."""
    try:
        import openTSNE
    except ImportError as missing:
        advice = "run pip install 'neural-brane[map]', or give --layout pca"
        raise DependencyError(f"--layout tsne needs openTSNE, which is not installed; {advice}") from missing
    return openTSNE


def tsne(vectors: np.ndarray, *, seed: int = 0, progress: Reporter | None = None) -> np.ndarray:
    """Return t-SNE of the directions of vectors: (nodes, 2) float32, exact neighbours, started from PCA."""
    package = require_tsne()
    if len(vectors) < FEWEST:
        return pca(vectors)
    count = min(NEIGHBOURS, len(vectors) - 1)
    meter, search = Meter(progress, len(vectors), "nodes", stage="nearest nodes"), Exact(vectors)
    nearest, cosines = np.empty((len(vectors), count), np.int64), np.empty((len(vectors), count), np.float32)
    for at in range(0, len(vectors), QUERIES):
        rows = np.arange(at, min(at + QUERIES, len(vectors)))
        nearest[rows], cosines[rows] = search.nearest(vectors[rows], count, rows)
        meter.advance(len(rows))
    distances = np.sqrt(np.maximum(2 - 2 * cosines.astype(np.float64), 0))
    known = package.nearest_neighbors.PrecomputedNeighbors(nearest, distances)
    perplexity = min(PERPLEXITY, nearest.shape[1] / 3)
    affinities = package.affinity.PerplexityBasedNN(knn_index=known, perplexity=perplexity, n_jobs=-1)
    start = package.initialization.rescale(pca(vectors).astype(np.float64), inplace=True)
    meter = Meter(progress, EARLY + LATE, "iterations", stage="t-SNE")
    report = {"callbacks": lambda *_: meter.advance(EVERY), "callbacks_every_iters": EVERY}
    options = report | {"n_jobs": -1, "inplace": True}
    # For few nodes a tree sums the forces faster, for many a grid.
    gradient = "bh" if len(vectors) < 10_000 else "fft"
    points = package.TSNEEmbedding(start, affinities, random_state=seed, negative_gradient_method=gradient)
    points.optimize(EARLY, exaggeration=12, momentum=0.5, **options)
    points.optimize(LATE, momentum=0.8, **options)
    return np.asarray(points, dtype=np.float32)


class KeptLayout:
    """The file that saves the t-SNE of a file of vectors beside it; its key says for which vectors it is valid."""

    def __init__(self, vectors_path: Path, vectors: np.ndarray, seed: int):
        self.path = vectors_path.with_name(f"{vectors_path.name}.tsne.npz")
        digest = hashlib.sha256()
        for at in range(0, len(vectors), BLOCK_ROWS):
            digest.update(np.ascontiguousarray(vectors[at : at + BLOCK_ROWS]).data)
        parameters = {"format": FORMAT, "perplexity": PERPLEXITY, "neighbours": NEIGHBOURS, "seed": seed}
        identity = {"digest": digest.hexdigest()[:16], "shape": list(vectors.shape)}
        self.key = json.dumps(parameters | {"iterations": [EARLY, LATE]} | identity)

    def read(self) -> np.ndarray | None:
        """Return the saved map; None if there is none, or it belongs to other vectors or another version."""
        with suppress(BraneError, OSError), open_npz(self.path, EmbeddingError, "arrays 'points' and 'key'") as archive:
            if "key" in archive and archive["key"].item() == self.key:
                return archive["points"]
        return None

    def write(self, points: np.ndarray) -> bool:
        """Save a map; return False if the folder is read-only, so that the next start computes the map again."""
        with suppress(OSError), atomic(self.path) as draft:
            write_npz(draft, {"points": points, "key": np.array(self.key)})
            return True
        return False


def read_layout(path: Path, ids: np.ndarray) -> np.ndarray:
    """Return a map of another program: a file of vectors with two numbers each, matched by id."""
    table = Embedding.load(path)
    if table.dim != 2:
        found = f"{path}: a map needs two numbers for each node, but this file has shape {table.vectors.shape};"
        raise EmbeddingError(f"{found} give another file, or --layout pca")
    rows = locate(table.ids, ids)
    if (rows < 0).any():
        missing = ids[rows < 0]
        found = f"{path}: {len(missing):,} of {len(ids):,} nodes are missing, such as {missing[0].item()!r};"
        raise EmbeddingError(f"{found} give a map of the same nodes")
    return np.asarray(table.vectors[rows], np.float32)


def fit_square(points: np.ndarray) -> np.ndarray:
    """Move and scale points, both axes alike, so that nearly all lie between −1 and 1; outliers move to the edge.

    >>> fit_square(np.array([[0.0, 0.0], [4.0, 2.0]])).tolist()
    [[-0.9523..., -0.4761...], [0.9523..., 0.4761...]]
    """
    low, high = np.percentile(points, [0.05, 99.95], axis=0) if len(points) > 1000 else (points.min(0), points.max(0))
    half = max(float((high - low).max()) / 2, 1e-12)
    return np.clip((points - (low + high) / 2) / (half * 1.05), -1, 1).astype(np.float32)
