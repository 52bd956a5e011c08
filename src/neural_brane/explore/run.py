"""A run: vectors of the nodes, their maps, and what is computed from them: nearest nodes, clusters, reasons."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.embedding import Layer
from neural_brane.errors import ParameterError
from neural_brane.explore.layout import directions, fit_square
from neural_brane.explore.nodes import Nodes
from neural_brane.insight.groups import choose_k, name_groups, partition
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.search.exact import Exact

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder

BLOCK_ROWS = 65_536  # read at a time
SAMPLE = 20_000  # rows from which groups are found
NAMING = 2  # attributes that name a cluster
REASONS = 8  # attributes, neighbours and suggested links in a card


@dataclass(eq=False)
class Run:
    """Vectors of all nodes, which stay on the disk where the file allows it.

    Parameters
    ----------
    name
        What the page calls it.
    vectors
        (nodes, dim) float32 in the order of the map's nodes.
    layer
        Scores links by the vectors, where the method has learned such a layer.
    path
        The file that they come from, beside which a map of them may be kept.
    model
        The fitted method that made them, if it is known; it can explain them.
    """

    name: str
    vectors: np.ndarray
    _: KW_ONLY
    layer: Layer | None = None
    path: Path | None = None
    model: Embedder | None = None

    def __post_init__(self) -> None:
        self.points: dict[str, np.ndarray] = {}  # by layout
        self._search = Exact(self.vectors)
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
        """Reasons for a node's vector, and likely links, as far as the model can give them; empty without one."""
        found: dict[str, Any] = {}
        if self.model is None:
            return found
        node = nodes.ids[row].item()
        with suppress(ParameterError):
            explained = self.model.explain(node, top=REASONS)
            found["attributes"] = [[str(name), float(share)] for name, share in explained.attributes]
            found["neighbours"] = [[nodes.rows[other], float(share)] for other, share in explained.neighbours]
        with suppress(ParameterError):
            found["suggested"] = [
                {"row": nodes.rows[one.id], "score": float(one.score), "why": str(one.reasons)}
                for one in self.model.suggest(node, REASONS)
            ]
        return found


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
