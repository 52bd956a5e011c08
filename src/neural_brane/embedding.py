"""Vectors with the ids of their nodes and their provenance: what made them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from neural_brane.errors import DependencyError, EmbeddingError
from neural_brane.files.vectors.formats import VectorFile, read_vectors
from neural_brane.files.vectors.npz import map_vectors
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import as_ids, describe_unknown, locate, repeated
from neural_brane.graph.lazy import pl
from neural_brane.insight.groups import Clusters, find_clusters
from neural_brane.kernels.threads import one_blas_thread
from neural_brane.progress import Reporter
from neural_brane.search.exact import describe, find_rows, mean_vector, nearest_nodes, similarities, unknown

if TYPE_CHECKING:
    import pandas as pd

    from neural_brane.search.index import Index


BLOCK_PAIRS = 65_536  # scored at a time


class Layer(NamedTuple):
    """A ReLU layer that a method learned over its vectors: h(u) = max(0, W v(u) + b); ⟨h(u), h(v)⟩ scores a link."""

    weight: np.ndarray  # (hidden, dim) float32
    bias: np.ndarray  # (hidden,) float32

    def score(self, vectors: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The score of pairs of rows (k, 2) of the vectors; (k,) float32."""
        found = [np.empty(0, np.float32)]
        with one_blas_thread():  # the order of sums, and so the last bits, would follow the threads
            for at in range(0, len(rows), BLOCK_PAIRS):
                block = rows[at : at + BLOCK_PAIRS]
                nodes, places = np.unique(block, return_inverse=True)
                hidden = np.maximum(vectors[nodes] @ self.weight.T + self.bias, 0)
                found.append(inner_products(hidden, places.reshape(block.shape)))
        return np.concatenate(found)


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
        raise EmbeddingError(describe_unknown(ids, asked.ravel()[rows < 0][0].item()))
    return rows.reshape(-1, 2)


FEW = 5  # nodes, and numbers of a vector, that a notebook shows
BLOCK_ROWS = 8192  # rows written at a time: a few MB, whatever the number of nodes


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
        Scores pairs of vectors, where the method has learned such a layer; .npz, .safetensors and .h5ad files keep it.
    made_from
        For each node "known", "attributes", "links", "attributes and links" or "nothing", where a method made vectors
        for nodes that it had not learned from; .npz, .safetensors, .h5ad and .parquet files keep it.

    Examples
    --------
    >>> e = Embedding(np.eye(3, dtype=np.float32), np.array(["ast", "dis", "json"]))
    >>> e["json"].tolist(), len(e), e.dim
    ([0.0, 0.0, 1.0], 3, 3)
    >>> np.asarray(e).shape, e
    ((3, 3), Embedding(vectors: 3 × 3; ids 'ast', 'dis', 'json'))
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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) != self.vectors.dtype:
            if copy is False:
                raise ValueError(f"vectors are float32: as {np.dtype(dtype)} they must be copied")
            return self.vectors.astype(dtype)
        return self.vectors.copy() if copy else self.vectors

    def __getitem__(self, nodes: Any) -> Any:
        """A node's vector by its id; of a list of ids, a slice or a boolean mask, an Embedding of these nodes.

        >>> e = Embedding(np.eye(3), ["ast", "dis", "json"])
        >>> e[["json", "ast"]].ids.tolist(), e[:2].ids.tolist(), e[[True, False, True]].ids.tolist()
        (['json', 'ast'], ['ast', 'dis'], ['ast', 'json'])
        """
        if isinstance(nodes, slice):
            return self._part(nodes)
        if isinstance(nodes, str) or np.ndim(nodes) == 0:
            return self.vectors[self.row(nodes)]
        asked = np.asarray(nodes)
        if asked.dtype.kind != "b":
            rows = find_rows(self.ids, nodes)
            if (twice := repeated(self.ids[rows])) is not None:
                raise EmbeddingError(f"id {twice!r} is asked for twice; give each node once, or take rows of .vectors")
            return self._part(rows)
        if asked.shape != (len(self),):
            raise EmbeddingError(f"the mask has shape {asked.shape}; give one for each of {len(self)} nodes")
        return self._part(np.flatnonzero(asked))

    def row(self, node: Any) -> int:
        """The row of a node's vector, by the node's id."""
        try:
            return self._index()[node]
        except (KeyError, TypeError):
            raise unknown(self.ids, node) from None

    def similarity(self, one: Any, other: Any, *, matrix: bool = False, center: bool = False) -> Any:
        """The cosine of two nodes, or of the nodes of two lists, pair by pair; with `matrix`, of each with each.

        Either may be an id, a list of ids, or vectors. `center` subtracts the mean of all vectors first: where all
        vectors point much the same way, differences then show.

        >>> e = Embedding([[1, 0], [2, 0], [0, 1]], [10, 20, 30])
        >>> e.similarity(10, 20), e.similarity(10, [20, 30]).tolist()
        (1.0, [1.0, 0.0])
        >>> e.similarity([10, 30], [20, 30], matrix=True).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return similarities(self, one, other, matrix=matrix, center=center)

    def nearest(self, target: Any, k: int = 10, *, center: bool = False) -> Any:
        """The `k` nodes whose vectors point most nearly the same way, with their cosine, best first.

        `target` is a node's id (that node is then left out) or a vector of `dim` numbers; for a list of ids, or a
        table of vectors, there is a list of such lists. A flat list of integers is a list of ids where ids are
        integers. A vector of zeros has no direction: its cosine with anything is 0. Where there are fewer than `k`
        nodes, all are given. `center` subtracts the mean of all vectors first. Every vector is looked at; `index`
        makes what answers faster.

        >>> e = Embedding([[1, 0], [2, 0], [0, 1]], [10, 20, 30])
        >>> e.nearest(10, k=2)
        [(20, 1.0), (30, 0.0)]
        >>> e.nearest([10, 30], k=1)
        [[(20, 1.0)], [(10, 0.0)]]
        """
        return nearest_nodes(self, target, k, center=center)

    def index(self, **options: Any) -> Index:
        """An index that finds nearly all of the nearest nodes without looking at every vector; needs faiss.

        `recall` (0.98) is the share of the ten nearest to be found, `seed` (0) is of its k-means, `threads` the
        cores to use (all), `lists` how many lists vectors are put in (about twice the root of their number), `progress`
        a function that is called with the progress.
        """
        from neural_brane.search.index import build_index

        return build_index(self, **options)

    def centered(self) -> Self:
        """These vectors less their mean; without the layer, which knows the vectors as they were.

        >>> Embedding([[1, 0], [3, 2]], ["a", "b"]).centered().vectors.tolist()
        [[-1.0, -1.0], [1.0, 1.0]]
        """
        provenance = self.provenance | {"centered": True}
        return type(self)(self.vectors - mean_vector(self.vectors), self.ids, provenance, made_from=self.made_from)

    def to_pandas(self) -> pd.DataFrame:
        """A pandas data frame: columns d0, d1, …, and the ids as its index."""
        try:
            import pandas as pd
        except ImportError as error:
            raise DependencyError("pandas is not installed; run: pip install pandas, or use to_polars") from error
        columns = [f"d{at}" for at in range(self.dim)]
        return pd.DataFrame(self.vectors, index=pd.Index(self.ids, name="id"), columns=columns)

    def to_polars(self) -> pl.DataFrame:
        """A polars data frame: columns id, d0, d1, …

        >>> Embedding([[1, 2]], ["a"]).to_polars().row(0)
        ('a', 1.0, 2.0)
        """
        return pl.DataFrame({"id": self.ids} | {f"d{at}": column for at, column in enumerate(self.vectors.T)})

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame) -> Self:
        """The vectors of a pandas data frame of numbers; its index holds the ids."""
        return cls(frame.to_numpy(), np.asarray(frame.index))

    @classmethod
    def from_polars(cls, frame: pl.DataFrame, id: str = "id") -> Self:
        """The vectors of a polars data frame of numbers; the column `id` holds the ids."""
        if id not in frame.columns:
            known = ", ".join(frame.columns[:5])
            raise EmbeddingError(f"the frame has no column '{id}' for ids; give id=, one of {known}")
        return cls(frame.drop(id).to_numpy(), frame[id].to_numpy())

    def score(self, pairs: Sequence[tuple[Any, Any]] | np.ndarray) -> np.ndarray:
        """Score links between pairs of nodes, given by their ids, by the method's own score.

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

    def clusters(
        self,
        k: int | None = None,
        *,
        graph: AttributedGraph | None = None,
        seed: int = 0,
        progress: Reporter | None = None,
    ) -> Clusters:
        """Groups of nodes whose vectors point the same way, named by the attributes that a `graph` has for them.

        >>> e = Embedding([[1, 0], [2, 0], [0, 1], [0, 3]], ["a", "b", "c", "d"])
        >>> e.clusters(2).assignments.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
        True
        """
        return find_clusters(self.vectors, self.ids, k, graph=graph, seed=seed, progress=progress)

    def save(self, path: str | Path) -> None:
        """Write to `path`, in the format that its suffix says; .npz keeps everything.

        `neural_brane.files.vectors.formats` lists the formats, with what each of them keeps.
        """
        blocks = [self.vectors[at : at + BLOCK_ROWS] for at in range(0, len(self), BLOCK_ROWS)]
        known: dict[str, Any] = {"provenance": self.provenance, "layer": self.layer, "made_from": self.made_from}
        VectorFile(path).write(self.ids, blocks, dim=self.dim, **known)

    @classmethod
    def load(cls, path: str | Path, ids: str | Path | None = None, *, mmap: bool = False, check: bool = True) -> Self:
        """Read what `save` wrote, or vectors that another program wrote.

        `neural_brane.files.vectors.formats` lists the formats. `ids` is a file with one id per line, for .npy files.
        With `mmap` the vectors of an .npz file stay in it, and only those that are looked at are read; then
        `check=False` leaves out the comparison with the file's checksums, which reads all of it once: a million
        vectors are there in moments, and damage goes unnoticed.
        """
        if not mmap and not check:
            raise EmbeddingError("check=False goes with mmap=True; a file that is read as a whole is always checked")
        if mmap and ids is not None:
            raise EmbeddingError(f"{path}: mmap=True is for .npz files, which hold their own ids; leave out {ids}")
        table = map_vectors(path, check=check) if mmap else read_vectors(path, ids=ids)
        layer = Layer(*table.layer) if table.layer else None
        if mmap and not check:
            return cls._trusted(*table[:3], layer, table.made_from)
        try:
            return cls(*table[:3], layer=layer, made_from=table.made_from)
        except EmbeddingError as error:
            raise EmbeddingError(f"{path}: {error}") from None

    def _part(self, rows: slice | np.ndarray) -> Self:
        """An embedding of some of the nodes; of a slice, the vectors are not copied."""
        made_from = None if self.made_from is None else self.made_from[rows]
        return self._trusted(self.vectors[rows], self.ids[rows], dict(self.provenance), self.layer, made_from)

    @classmethod
    def _trusted(cls, *parts: Any) -> Self:
        """An embedding of parts, in the order of the fields, that need no check."""
        made = object.__new__(cls)
        for name, part in zip((*cls.__slots__[:-1], "_rows"), (*parts, {}), strict=True):
            object.__setattr__(made, name, part)
        return made

    def __repr__(self) -> str:
        return f"Embedding({describe(self)})"

    def _repr_html_(self) -> str:
        """A table of the first nodes; whatever comes from a file is escaped."""
        titles = "".join(f"<th>d{at}</th>" for at in range(min(FEW, self.dim)))
        rows = "".join(
            f"<tr><th>{escape(str(node))}</th>" + "".join(f"<td>{number:.4g}</td>" for number in vector[:FEW]) + "</tr>"
            for node, vector in zip(self.ids[:FEW].tolist(), self.vectors[:FEW], strict=True)
        )
        caption = escape(describe(self, ids=False))
        return f"<table><caption>{caption}</caption><tr><th>id</th>{titles}</tr>{rows}</table>"

    def _index(self) -> dict[Any, int]:
        if not self._rows:
            self._rows.update((node, row) for row, node in enumerate(self.ids.tolist()))
        return self._rows
