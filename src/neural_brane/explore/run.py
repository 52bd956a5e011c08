"""A run: one file of vectors of the nodes, in the order of the first file, and its maps."""

from __future__ import annotations

import threading
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.embedding import Embedding, Layer
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.explore.layout import fit_square
from neural_brane.explore.lift import counts_by_group, outstanding
from neural_brane.explore.nodes import Nodes
from neural_brane.graph.ids import locate
from neural_brane.search.exact import Exact

BLOCK_ROWS = 65_536
CLUSTERS = 12  # as many as there are colours that can be told apart
SAMPLE = 20_000  # vectors from which clusters are found


class Run:
    """Vectors of all nodes, which stay on the disk where the file allows it.

    Parameters
    ----------
    name
        What the page calls it.
    vectors
        (nodes, dim) float32 in the order of the map's nodes.
    layer
        What scores pairs of them, if there is such a thing.
    path
        The file that they come from, beside which a map of them may be kept.
    """

    def __init__(self, name: str, vectors: np.ndarray, *, layer: Layer | None = None, path: Path | None = None):
        self.name, self.vectors, self.layer, self.path = name, vectors, layer, path
        self.points: dict[str, np.ndarray] = {}  # by layout
        self._search = Exact(vectors)
        self._lock = threading.Lock()  # the first search computes the vectors' lengths

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def lengths(self) -> np.ndarray:
        """(nodes,) the length of each vector."""
        blocks = (self.vectors[at : at + BLOCK_ROWS] for at in range(0, len(self.vectors), BLOCK_ROWS))
        return np.concatenate([np.empty(0, np.float32)] + [np.linalg.norm(block, axis=1) for block in blocks])

    def add_layout(self, name: str, points: np.ndarray) -> None:
        """Add a map of the nodes."""
        self.points[name] = fit_square(points)

    def points_of(self, layout: str) -> np.ndarray:
        """(nodes, 2) where the nodes stand, by the name of the map."""
        if layout not in self.points:
            raise ParameterError(f"there is no map {layout!r} of {self.name}; there is {', '.join(self.points)}")
        return self.points[layout]

    def nearest(self, row: int, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The `k` nodes nearest to one, and their cosines."""
        with self._lock:
            rows, cosines = self._search.nearest(self.vectors[[row]], k, np.array([row]))
        return rows[0], cosines[0]

    def scores(self, row: int, others: np.ndarray) -> list[float | None]:
        """How likely a link of a node with each of some others is, by the method's own score; None without one."""
        if self.layer is None:
            return [None] * len(others)
        used = np.concatenate([[row], others])
        pairs = np.stack([np.zeros(len(others), np.int64), 1 + np.arange(len(others))], axis=1)
        found: list[float | None] = self.layer.score(np.asarray(self.vectors[used]), pairs).tolist()
        return found

    def clusters(self, nodes: Nodes, *, seed: int = 0) -> tuple[list[str], np.ndarray]:
        """Clusters of the directions of the vectors, by k-means on a sample: their names and the one of each node."""
        from sklearn.cluster import KMeans

        from neural_brane.blas import one_blas_thread

        rng = np.random.default_rng(seed)
        total = len(self.vectors)
        rows = np.arange(total) if total <= SAMPLE else np.sort(rng.choice(total, SAMPLE, replace=False))
        sample = _directions(self.vectors[rows])
        count = min(CLUSTERS, len(np.unique(sample, axis=0)))
        with one_blas_thread():
            centres = KMeans(count, n_init=1, random_state=seed).fit(sample).cluster_centers_.astype(np.float32)
            starts = range(0, total, BLOCK_ROWS)
            codes = np.concatenate([_closest(self.vectors[at : at + BLOCK_ROWS], centres) for at in starts])
        sizes = np.bincount(codes, minlength=count)
        order = np.argsort(-sizes, kind="stable")
        rank = np.empty(count, np.int64)
        rank[order] = np.arange(count)
        codes = rank[codes]
        return _cluster_names(nodes, codes, count), codes

    def reasons(self, nodes: Nodes, row: int) -> dict[str, Any]:
        """Nothing: only a run of a model knows what shaped its vectors."""
        return {}


def _directions(block: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(block, axis=1)[:, None]
    return np.divide(block, lengths, out=np.zeros(block.shape, np.float32), where=lengths > 0)


def _closest(block: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """The nearest centre of each row's direction."""
    return np.argmax(_directions(block) @ centres.T - np.square(centres).sum(axis=1) / 2, axis=1)


def _cluster_names(nodes: Nodes, codes: np.ndarray, count: int) -> list[str]:
    counts = counts_by_group(codes, count, nodes.attributes).toarray()
    sizes = np.bincount(codes, minlength=count)
    names = []
    for at in range(count):
        best = outstanding(counts[at], int(sizes[at]), nodes.attribute_counts, len(nodes), 2)
        words = " · ".join(str(nodes.attribute_names[int(one)]) for one in best)
        names.append(f"{at + 1}: {words}" if words else f"cluster {at + 1}")
    return names


def open_runs(paths: list[Path]) -> tuple[np.ndarray, list[Run]]:
    """Open files of vectors of the same nodes: the ids of the first, and the runs in its order."""
    ids: np.ndarray | None = None
    runs = []
    for path, name in zip(paths, _short_names(paths), strict=True):
        found = open_vectors(path)
        vectors = found.vectors
        if ids is None:
            ids = found.ids
        elif not np.array_equal(ids, found.ids):
            vectors = vectors[_matched(paths[0], path, ids, found.ids)]
        runs.append(Run(name, vectors, layer=found.layer, path=path))
    if ids is None:
        raise ParameterError("no file of vectors; give one, as in 'brane explore vectors.npz'")
    return ids, runs


def open_vectors(path: Path) -> Embedding:
    """The vectors of a file; those of an .npz file stay in it where it allows that."""
    try:
        found = Embedding.load(path, mmap=path.suffix == ".npz")
    except EmbeddingError as refused:
        if "cannot be mapped" not in str(refused):
            raise
        found = Embedding.load(path)
    if not len(found) or not found.dim:
        raise EmbeddingError(f"{path}: holds no vectors; there is nothing to look at")
    for at in range(0, len(found), BLOCK_ROWS):
        finite = np.isfinite(found.vectors[at : at + BLOCK_ROWS]).all(axis=1)
        if not finite.all():
            row = at + int(np.argmin(finite)) + 1
            raise EmbeddingError(f"{path}: vector {row} holds NaN or infinity; give finite numbers, or remove it")
    return found


def _matched(first: Path, path: Path, ids: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The rows of one file in the order of another; files of different nodes are refused."""
    rows = locate(others, ids)
    missing, extra = ids[rows < 0], len(others) - int((rows >= 0).sum())
    if len(missing) or extra:
        such = f", such as {missing[0].item()!r}" if len(missing) else ""
        raise EmbeddingError(
            f"{path} and {first} are not of the same nodes: {len(missing):,} of {first} are missing from {path}{such}, "
            f"and {extra:,} are only there; give vectors of one graph"
        )
    return rows


def _short_names(paths: list[Path]) -> list[str]:
    """The names of files without their folders; with them where two are alike."""
    names = [path.stem for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]
