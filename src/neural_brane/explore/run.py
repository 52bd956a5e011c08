"""A run: one file of vectors of the nodes, in the order of the first file, and its maps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from neural_brane.embedding import Embedding, Layer
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.explore.layout import directions, fit_square
from neural_brane.explore.nodes import Nodes
from neural_brane.files.vectors.parts import finite_blocks
from neural_brane.graph.ids import locate
from neural_brane.insight.groups import choose_k, name_groups, partition
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.search.exact import Exact

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder

BLOCK_ROWS = 65_536
SAMPLE = 20_000  # rows from which groups are found
MODEL = ".brane"  # the suffix of a file of a model
NAMING = 2  # attributes that name a cluster
REASONS = 8  # attributes, neighbours and suggested links in a card


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
    model
        The fitted method that made them, which can say why, if it is known.
    """

    def __init__(
        self,
        name: str,
        vectors: np.ndarray,
        *,
        layer: Layer | None = None,
        path: Path | None = None,
        model: Embedder | None = None,
    ):
        self.name, self.vectors, self.layer, self.path, self.model = name, vectors, layer, path, model
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

    def nearest(self, rows: np.ndarray, k: int) -> dict[str, np.ndarray]:
        """The `k` nodes nearest to each of some, their cosines and, if there is a layer, its scores of a link."""
        with self._lock:
            found = self._search.nearest(self.vectors[rows], k, rows)
        width = found.rows.shape[1]
        answer = {
            "start": (np.arange(len(rows) + 1) * width).astype(np.uint32),
            "rows": found.rows.ravel().astype(np.uint32),
            "cosines": found.cosines.ravel(),
        }
        if self.layer is not None:
            pairs = np.stack([np.repeat(rows, width), found.rows.ravel()], axis=1)
            answer["scores"] = self.layer.score(self.vectors, pairs)
        return answer

    def clusters(self, nodes: Nodes) -> tuple[list[str], np.ndarray]:
        """Clusters of the directions of the vectors: their names, and the cluster of each node."""
        codes = divide(self.vectors, prepare=directions)
        words = name_groups(nodes.attributes, codes, int(codes.max()) + 1, NAMING)
        names = [" · ".join(nodes.attribute_names[one.attribute] for one in several) for several in words]
        return [f"{at + 1}: {name}" if name else f"cluster {at + 1}" for at, name in enumerate(names)], codes

    def reasons(self, nodes: Nodes, row: int) -> dict[str, Any]:
        """What shaped a node's vector and which links are likely; nothing where no model says so."""
        return {} if self.model is None else reasons(self.model, nodes, row)


def divide(
    table: np.ndarray, k: int | None = None, *, prepare: Callable[[np.ndarray], np.ndarray] = np.asarray, seed: int = 0
) -> np.ndarray:
    """The group of every row: k-means finds the middles of a sample of them, and each row joins the nearest middle.

    k: how many groups there are at most; None has the number chosen. prepare: applied to rows as they are read.
    """
    total = len(table)
    rng = np.random.default_rng(seed)
    rows = np.arange(total) if total <= SAMPLE else np.sort(rng.choice(total, SAMPLE, replace=False))
    sample = prepare(table[rows])
    k = choose_k(sample, seed) if k is None else min(k, len(np.unique(sample, axis=0)))
    found = partition(sample, k, seed)
    middles = np.stack([sample[found == group].mean(axis=0) for group in range(k)])
    codes = []
    with one_blas_thread():
        for at in range(0, total, BLOCK_ROWS):
            block = prepare(table[at : at + BLOCK_ROWS])
            codes.append(np.argmax(block @ middles.T - np.square(middles).sum(axis=1) / 2, axis=1))
    return np.unique(np.concatenate(codes), return_inverse=True)[1]


def reasons(model: Embedder, nodes: Nodes, row: int) -> dict[str, Any]:
    """What a model says of one node; a method that cannot say one of the two leaves it out."""
    node = nodes.ids[row].item()
    found: dict[str, Any] = {}
    with suppress(ParameterError):
        told = model.explain(node, top=REASONS)
        found["attributes"] = [[str(name), float(share)] for name, share in told.attributes]
        found["neighbours"] = [[nodes.rows[other], float(share)] for other, share in told.neighbours]
    with suppress(ParameterError):
        found["suggested"] = [
            {"row": nodes.rows[one.id], "score": float(one.score), "why": str(one.reasons)}
            for one in model.suggest(node, REASONS)
        ]
    return found


Source: TypeAlias = "Path | Embedder"  # a file of vectors or of a model, or a model that was just fitted


def open_runs(sources: Sequence[Source]) -> tuple[np.ndarray, list[Run]]:
    """Open vectors of the same nodes: the ids of the first, and the runs in its order."""
    if not sources:
        raise ParameterError("no file of vectors; give one, as in 'brane explore vectors.npz'")
    runs: list[Run] = []
    names = _short_names(sources)
    for source, name in zip(sources, names, strict=True):
        path = source if isinstance(source, Path) else None
        model = source if not isinstance(source, Path) else open_model(source) if source.suffix == MODEL else None
        found = model.embedding_ if model is not None else open_vectors(Path(str(path)))
        if not runs:
            ids = found.ids
        vectors = found.vectors
        if not np.array_equal(ids, found.ids):
            vectors = vectors[_matched(str(sources[0]), str(source), ids, found.ids)]
        runs.append(Run(name, vectors, layer=found.layer, path=path, model=model))
    return ids, runs


def open_model(path: Path) -> Embedder:
    """The fitted method of a file; methods are loaded only where there is one, because they take time and memory."""
    from neural_brane.files.models import load_model

    return load_model(path)


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
    for _ in finite_blocks(path, found.vectors):
        pass
    return found


def _matched(first: str, path: str, ids: np.ndarray, others: np.ndarray) -> np.ndarray:
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


def _short_names(sources: Sequence[Source]) -> list[str]:
    """The names of files without their folders, with them where two are alike; those of methods."""
    names = [one.stem if isinstance(one, Path) else one.title for one in sources]
    return names if len(set(names)) == len(names) else [str(one) for one in sources]
