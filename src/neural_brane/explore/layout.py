"""Place each node on the map: by two principal axes at once, or by t-SNE on the nearest nodes.

PCA takes a second for a million nodes and shows the large differences. t-SNE keeps nodes together that are near each
other, and takes minutes for a hundred thousand; its map is kept in a file beside the vectors.
"""

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

BLOCK_ROWS = 4096  # read at a time: a few MB for each thread
AXES_ROWS = 262_144  # vectors that the axes are found from, drawn at random with a fixed seed
PERPLEXITY, NEIGHBOURS = 10, 30  # of those tried, these kept the most true neighbours
EARLY, LATE = 250, 500  # iterations of t-SNE, with and without exaggeration
EVERY = 10  # iterations between two reports
QUERIES = 4096  # nodes whose nearest are found between two reports
FEWEST = 5  # nodes that t-SNE can arrange
FORMAT = 1  # of the kept map; a map of another format is made anew


def pca(vectors: np.ndarray, *, sample: int = AXES_ROWS) -> np.ndarray:
    """The directions of vectors on their two principal axes: (nodes, dim) to (nodes, 2) float32.

    >>> pca(np.eye(4, dtype=np.float32)).shape
    (4, 2)
    """
    total = len(vectors)
    rows = np.arange(total)
    if total > sample:
        rows = np.sort(np.random.default_rng(0).choice(total, sample, replace=False))
    sums, products = np.zeros(vectors.shape[1]), np.zeros((vectors.shape[1],) * 2)

    def moments(some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        unit = unit_rows(vectors[some])
        return unit.sum(axis=0, dtype=np.float64), (unit.T @ unit).astype(np.float64)

    with one_blas_thread(), ThreadPoolExecutor(os.cpu_count()) as pool:
        # Sums are added up in the order of blocks, so that the number of threads changes no bit.
        for added, gram in pool.map(moments, [rows[at : at + BLOCK_ROWS] for at in range(0, len(rows), BLOCK_ROWS)]):
            sums += added
            products += gram
        count = max(len(rows), 1)
        mean = sums / count
        axes = np.linalg.eigh(products / count - np.outer(mean, mean))[1][:, ::-1][:, :2]
        axes *= np.where(-axes.min(axis=0) > axes.max(axis=0), -1, 1)  # one of two signs
        turn, shift = axes.astype(np.float32), (mean @ axes).astype(np.float32)
        points = np.zeros((total, 2), np.float32)

        def project(at: int) -> None:
            span = slice(at, at + BLOCK_ROWS)
            points[span, : turn.shape[1]] = unit_rows(vectors[span]) @ turn - shift

        list(pool.map(project, range(0, total, BLOCK_ROWS)))
    return points


def require_tsne() -> Any:
    """The package that t-SNE comes from, or what to do where it is missing."""
    try:
        import openTSNE
    except ImportError as missing:
        raise DependencyError(
            "--layout tsne needs openTSNE, which is not installed; install it with "
            "pip install 'neural-brane[map]', or look at --layout pca"
        ) from missing
    return openTSNE


def tsne(vectors: np.ndarray, *, seed: int = 0, progress: Reporter | None = None) -> np.ndarray:
    """t-SNE of the directions of vectors on their exact nearest nodes: (nodes, 2) float32, the same for the same seed.

    It starts from the principal axes. `progress` first counts nodes whose nearest were found, then iterations.
    """
    package = require_tsne()
    if len(vectors) < FEWEST:
        return pca(vectors)
    count = min(NEIGHBOURS, len(vectors) - 1)
    meter, search = Meter(progress, len(vectors), "nodes", part="nearest nodes"), Exact(vectors)
    nearest, cosines = np.empty((len(vectors), count), np.int64), np.empty((len(vectors), count), np.float32)
    for at in range(0, len(vectors), QUERIES):
        some = np.arange(at, min(at + QUERIES, len(vectors)))
        nearest[some], cosines[some] = search.nearest(vectors[some], count, some)
        meter.advance(len(some))
    distances = np.sqrt(np.maximum(2 - 2 * cosines.astype(np.float64), 0))
    known = package.nearest_neighbors.PrecomputedNeighbors(nearest, distances)
    perplexity = min(PERPLEXITY, nearest.shape[1] / 3)
    affinities = package.affinity.PerplexityBasedNN(knn_index=known, perplexity=perplexity, n_jobs=-1)
    start = package.initialization.rescale(pca(vectors).astype(np.float64), inplace=True)
    meter = Meter(progress, EARLY + LATE, "iterations", part="t-SNE")
    report = {"callbacks": lambda *_: meter.advance(EVERY), "callbacks_every_iters": EVERY}
    options = report | {"n_jobs": -1, "inplace": True}
    # Forces are summed by a tree where there are few nodes, else on a grid.
    gradient = "bh" if len(vectors) < 10_000 else "fft"
    points = package.TSNEEmbedding(start, affinities, random_state=seed, negative_gradient_method=gradient)
    points.optimize(EARLY, exaggeration=12, momentum=0.5, **options)
    points.optimize(LATE, momentum=0.8, **options)
    return np.asarray(points, dtype=np.float32)


class KeptLayout:
    """The file beside a file of vectors that keeps their t-SNE; it counts only for the vectors it was made from."""

    def __init__(self, vectors_path: Path, vectors: np.ndarray, seed: int):
        self.path = vectors_path.with_name(f"{vectors_path.name}.tsne.npz")
        digest = hashlib.sha256()
        for at in range(0, len(vectors), BLOCK_ROWS):
            digest.update(np.ascontiguousarray(vectors[at : at + BLOCK_ROWS]).data)
        parameters = {"format": FORMAT, "perplexity": PERPLEXITY, "neighbours": NEIGHBOURS, "seed": seed}
        vectors_are = {"digest": digest.hexdigest()[:16], "shape": list(vectors.shape)}
        self.key = json.dumps(parameters | {"iterations": [EARLY, LATE]} | vectors_are)

    def read(self) -> np.ndarray | None:
        """The map that was kept; None where there is none, or it is of other vectors or another version."""
        with suppress(BraneError, OSError), open_npz(self.path, EmbeddingError, "arrays 'points' and 'key'") as archive:
            if "key" in archive and archive["key"].item() == self.key:
                return archive["points"]
        return None

    def write(self, points: np.ndarray) -> bool:
        """Keep a map; False where the folder cannot be written to, which costs only the time of the next one."""
        with suppress(OSError), atomic(self.path) as draft:
            write_npz(draft, {"points": points, "key": np.array(self.key)})
            return True
        return False


def read_layout(path: Path, ids: np.ndarray) -> np.ndarray:
    """A map that another program made: a file of vectors of two numbers, matched by id."""
    table = Embedding.load(path)
    if table.dim != 2:
        raise EmbeddingError(
            f"{path}: a map has two numbers for each node, and this file has shape {table.vectors.shape}; "
            "give such a file, or --layout pca"
        )
    rows = locate(table.ids, ids)
    if (rows < 0).any():
        missing = ids[rows < 0]
        raise EmbeddingError(
            f"{path}: {len(missing):,} of {len(ids):,} nodes have no place, such as {missing[0].item()!r}; "
            "give a map of the same nodes"
        )
    return np.asarray(table.vectors[rows], np.float32)


def fit_square(points: np.ndarray) -> np.ndarray:
    """Points moved and scaled, both axes alike, so that nearly all lie between −1 and 1; far ones come to the edge.

    >>> fit_square(np.array([[0.0, 0.0], [4.0, 2.0]])).tolist()
    [[-0.9523..., -0.4761...], [0.9523..., 0.4761...]]
    """
    low, high = np.percentile(points, [0.05, 99.95], axis=0) if len(points) > 1000 else (points.min(0), points.max(0))
    half = max(float((high - low).max()) / 2, 1e-12)
    return np.clip((points - (low + high) / 2) / (half * 1.05), -1, 1).astype(np.float32)
