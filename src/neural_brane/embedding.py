"""Vectors, the ids of their nodes, and their provenance: what made them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from neural_brane.blas import one_blas_thread
from neural_brane.errors import EmbeddingError
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import as_ids, locate, repeated
from neural_brane.groups import Clusters, find_clusters
from neural_brane.io.vectors import VectorFile, read_vectors

BLOCK_ROWS = 8192  # rows written at a time: a few MB, whatever the number of nodes
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
        unknown = asked.ravel()[rows < 0][0].item()
        raise EmbeddingError(f"no node {unknown!r} here; give ids of nodes that have a vector")
    return rows.reshape(-1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """One vector per node, found by the node's id.

    Parameters
    ----------
    vectors
        (nodes, dim) array, kept as float32.
    ids
        (nodes,) unique integers or strings, in the order of the vectors.
    provenance
        What made them: method, parameters, data, version; a dict that JSON can hold.
    layer
        What scores pairs of them, where the method has learned such a thing; .npz files keep it.
    made_from
        Where a method made vectors for nodes that it had not learned from: "known", "attributes", "links",
        "attributes and links" or "nothing" for each node. Files do not keep it.

    Examples
    --------
    >>> e = Embedding(np.eye(3, dtype=np.float32), np.array(["ast", "dis", "json"]))
    >>> e["json"].tolist(), len(e), e.dim
    ([0.0, 0.0, 1.0], 3, 3)
    """

    vectors: np.ndarray
    ids: np.ndarray
    provenance: dict[str, Any] = field(default_factory=dict)
    layer: Layer | None = None
    made_from: np.ndarray | None = None
    _rows: dict[Any, int] = field(default_factory=dict, init=False, repr=False)  # filled at the first lookup

    def __post_init__(self) -> None:
        vectors = np.asarray(self.vectors)
        if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
            raise EmbeddingError(
                f"vectors must be a table of numbers, one row per node, not {vectors.dtype} {vectors.shape}"
            )
        ids = as_ids(self.ids, error=EmbeddingError)
        if len(ids) != len(vectors):
            raise EmbeddingError(f"{len(vectors)} vectors and {len(ids)} ids: give one id per vector")
        if (twice := repeated(ids)) is not None:
            raise EmbeddingError(f"id {twice!r} stands for several vectors; give each node one vector")
        object.__setattr__(self, "vectors", np.ascontiguousarray(vectors, dtype=np.float32))
        object.__setattr__(self, "ids", ids)

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids.tolist())

    def __contains__(self, node: object) -> bool:
        return node in self._index()

    def __getitem__(self, node: Any) -> np.ndarray:
        return self.vectors[self.row(node)]

    def row(self, node: Any) -> int:
        """The row of a node's vector, by the node's id."""
        try:
            return self._index()[node]
        except (KeyError, TypeError):
            kind = "integers" if self.ids.dtype.kind == "i" else "strings"
            known = ", ".join(map(repr, self.ids[:3].tolist()))
            raise EmbeddingError(f"no node {node!r} here; ids are {kind}, such as {known}") from None

    def nearest(self, target: Any, k: int = 10) -> list[tuple[Any, float]]:
        """The `k` nodes whose vectors point most nearly the same way, with their cosine, best first.

        `target` is a node's id (that node is then left out) or a vector of `dim` numbers. A vector of
        zeros has no direction: its cosine with anything is 0. Where there are fewer than `k` nodes, all are given.

        >>> e = Embedding([[1, 0], [2, 0], [0, 1]], [10, 20, 30])
        >>> e.nearest(10, k=2)
        [(20, 1.0), (30, 0.0)]
        """
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise EmbeddingError(f"k={k!r} makes no sense; give a whole number from 1, as in k=10")
        by_id = isinstance(target, str | int | np.integer)
        query = self[target] if by_id else self._as_vector(target)
        lengths = np.sqrt(np.einsum("ij,ij->i", self.vectors, self.vectors)) * np.linalg.norm(query)
        cosines = np.divide(self.vectors @ query, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        if by_id:
            cosines[self.row(target)] = -np.inf
        order = np.argsort(-cosines, kind="stable")[: min(k, len(self) - by_id)]
        return list(zip(self.ids[order].tolist(), cosines[order].tolist(), strict=True))

    def _as_vector(self, target: Any) -> np.ndarray:
        """What was given as a vector; refused where it is none of this width, or has no direction to compare."""
        try:
            query = np.asarray(target, dtype=np.float32)
        except (TypeError, ValueError):
            raise EmbeddingError(f"{target!r} is neither a node's id nor a vector of {self.dim} numbers") from None
        if query.shape != (self.dim,):
            raise EmbeddingError(f"a vector of {self.dim} numbers is needed, not shape {query.shape}")
        if not np.isfinite(query).all():
            raise EmbeddingError("the vector holds NaN or infinity, and so has no direction; give finite numbers")
        return query

    def score(self, pairs: Sequence[tuple[Any, Any]] | np.ndarray) -> np.ndarray:
        """How likely each pair of nodes, given by their ids, is to be linked: by the method's own score.

        >>> layer = Layer(np.eye(2, dtype=np.float32), np.zeros(2, np.float32))
        >>> e = Embedding([[1, 0], [2, 0], [0, 1]], [10, 20, 30], layer=layer)
        >>> e.score([(10, 20), (10, 30)]).tolist()
        [2.0, 0.0]
        """
        if self.layer is None:
            raise EmbeddingError(
                "these vectors came without a layer that scores pairs; neural-brane learns one, and .npz files keep it"
            )
        return self.layer.score(self.vectors, find_pairs(self.ids, pairs))

    def clusters(self, k: int | None = None, *, graph: AttributedGraph | None = None, seed: int = 0) -> Clusters:
        """Groups of nodes whose vectors point the same way, named by the attributes that a `graph` has for them.

        >>> e = Embedding([[1, 0], [2, 0], [0, 1], [0, 3]], ["a", "b", "c", "d"])
        >>> e.clusters(2).assignments.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
        True
        """
        return find_clusters(self.vectors, self.ids, k, graph=graph, seed=seed)

    def save(self, path: str | Path) -> None:
        """Write to `path`: .npz (keeps everything), .txt or .w2v (word2vec text), .tsv, .csv or .parquet."""
        blocks = [self.vectors[at : at + BLOCK_ROWS] for at in range(0, len(self), BLOCK_ROWS)]
        VectorFile(path).write(self.ids, blocks, dim=self.dim, provenance=self.provenance, layer=self.layer)

    @classmethod
    def load(cls, path: str | Path, ids: str | Path | None = None) -> Self:
        """Read what `save` wrote, or vectors that another program wrote.

        `neural_brane.io.vectors` lists the formats. `ids` is a file with one id per line, for an .npy file alone.
        """
        table = read_vectors(path, ids=ids)
        try:
            return cls(*table[:3], layer=Layer(*table.layer) if table.layer else None)
        except EmbeddingError as error:
            raise EmbeddingError(f"{path}: {error}") from None

    def _index(self) -> dict[Any, int]:
        if not self._rows:
            self._rows.update((node, row) for row, node in enumerate(self.ids.tolist()))
        return self._rows
