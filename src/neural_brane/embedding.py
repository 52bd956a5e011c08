"""Vectors with the ids of their nodes and their provenance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from neural_brane.errors import DependencyError, EmbeddingError
from neural_brane.files.vectors.formats import VectorFile, read_vectors
from neural_brane.files.vectors.npz import map_vectors
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import as_ids, describe_unknown, locate, repeated
from neural_brane.graph.lazy import pl
from neural_brane.insight.groups import Clusters, find_clusters
from neural_brane.progress import Reporter
from neural_brane.search.exact import describe, find_rows, mean_vector, nearest_nodes, similarities, unknown

if TYPE_CHECKING:
    import pandas as pd

    from neural_brane.search.index import Index


def find_pairs(ids: np.ndarray, pairs: Sequence[tuple[Any, Any]] | np.ndarray) -> np.ndarray:
    """Return pairs of ids as pairs of row numbers (k, 2); raise an error if an id is unknown."""
    given = np.asarray(pairs)
    if given.ndim != 2 or given.shape[1] != 2:
        raise EmbeddingError(f"pairs have shape {given.shape}, expected (k, 2); give pairs of ids, as in [(u, v), …]")
    rows = locate(ids, given.ravel())
    if (rows < 0).any():
        raise EmbeddingError(describe_unknown(ids, given.ravel()[rows < 0][0].item()))
    return rows.reshape(-1, 2)


PREVIEW = 5  # rows and columns of the table that a notebook shows
BLOCK_ROWS = 8192  # rows written at a time, a few megabytes


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """One vector per node, found by the node's id.

    Parameters
    ----------
    vectors : array of shape (nodes, dim)
        The vectors, stored as float32.
    ids : array of shape (nodes,)
        Unique integers or strings, in the order of the vectors.
    provenance : dict
        The facts needed to make the vectors again: method, parameters, data and version. JSON must be able to hold it.
    made_from : array of shape (nodes,), optional
        The source of each vector, if some nodes were not in the training graph: "known", "attributes", "links",
        "attributes and links" or "nothing". Files in the formats .npz, .safetensors, .h5ad and .parquet keep it.

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
    made_from: np.ndarray | None = None
    _rows: dict[Any, int] = field(default_factory=dict, init=False, repr=False)  # filled at the first lookup

    def __post_init__(self) -> None:
        vectors = np.asarray(self.vectors)
        if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
            raise EmbeddingError(
                f"vectors are {vectors.dtype} of shape {vectors.shape}; give a table of numbers with one row per node"
            )
        ids = as_ids(self.ids, error=EmbeddingError)
        if len(ids) != len(vectors):
            raise EmbeddingError(f"there are {len(vectors)} vectors and {len(ids)} ids; give one id per vector")
        if (twice := repeated(ids)) is not None:
            raise EmbeddingError(f"id {twice!r} has several vectors; give each node one vector")
        object.__setattr__(self, "vectors", np.ascontiguousarray(vectors, dtype=np.float32))
        object.__setattr__(self, "ids", ids)

    @property
    def dim(self) -> int:
        """The number of columns of the vectors."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.ids.tolist())

    def __contains__(self, node: object) -> bool:
        return node in self._rows_by_id()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if dtype is not None and np.dtype(dtype) != self.vectors.dtype:
            if copy is False:
                raise ValueError(f"the vectors are float32 and must be copied to become {np.dtype(dtype)}")
            return self.vectors.astype(dtype)
        return self.vectors.copy() if copy else self.vectors

    def __getitem__(self, nodes: Any) -> Any:
        """Return the vector of one id, or an Embedding of the nodes that a list of ids, a slice or a mask selects.

        >>> e = Embedding(np.eye(3), ["ast", "dis", "json"])
        >>> e[["json", "ast"]].ids.tolist(), e[:2].ids.tolist(), e[[True, False, True]].ids.tolist()
        (['json', 'ast'], ['ast', 'dis'], ['ast', 'json'])
        """
        if isinstance(nodes, slice):
            return self._select(nodes)
        if isinstance(nodes, str) or np.ndim(nodes) == 0:
            return self.vectors[self.row(nodes)]
        given = np.asarray(nodes)
        if given.dtype.kind != "b":
            rows = find_rows(self.ids, nodes)
            if (twice := repeated(self.ids[rows])) is not None:
                raise EmbeddingError(f"id {twice!r} is given twice; give each node once, or take rows of .vectors")
            return self._select(rows)
        if given.shape != (len(self),):
            raise EmbeddingError(f"the mask has shape {given.shape}; give one value for each of {len(self)} nodes")
        return self._select(np.flatnonzero(given))

    def row(self, node: Any) -> int:
        """Return the row number of a node's vector, by the node's id."""
        try:
            return self._rows_by_id()[node]
        except (KeyError, TypeError):
            raise unknown(self.ids, node) from None

    def similarity(self, one: Any, other: Any, *, matrix: bool = False, center: bool = False) -> Any:
        """Return the cosine of two nodes as a float, or an array of cosines for lists of nodes.

        Parameters
        ----------
        one, other : id, list of ids, or vectors
            The nodes to compare. Two lists of the same length are compared pair by pair; the result has shape (k,).
        matrix : bool
            Compare every node of `one` with every node of `other`; the result has shape (len(one), len(other)).
        center : bool
            Subtract the mean of all vectors first. This shows differences if all vectors point nearly the same way.

        Examples
        --------
        >>> e = Embedding([[1, 0], [2, 0], [0, 1]], [10, 20, 30])
        >>> e.similarity(10, 20), e.similarity(10, [20, 30]).tolist()
        (1.0, [1.0, 0.0])
        >>> e.similarity([10, 30], [20, 30], matrix=True).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return similarities(self, one, other, matrix=matrix, center=center)

    def nearest(self, target: Any, k: int = 10, *, center: bool = False) -> Any:
        """Return the `k` nodes with the largest cosine to a node or a vector, best first, as a list of (id, cosine).

        For several targets it returns a list of such lists. The cosine of a zero vector is 0. Every vector is compared;
        `index` makes an index that answers faster.

        Parameters
        ----------
        target : id, vector, list of ids, or table of vectors
            A node is never in its own result. A flat list of integers is a list of ids if the ids are integers.
        k : int
            The number of nodes; if there are fewer, all are returned.
        center : bool
            Subtract the mean of all vectors first.

        Examples
        --------
        >>> e = Embedding([[1, 0], [2, 0], [0, 1]], [10, 20, 30])
        >>> e.nearest(10, k=2)
        [(20, 1.0), (30, 0.0)]
        >>> e.nearest([10, 30], k=1)
        [[(20, 1.0)], [(10, 0.0)]]
        """
        return nearest_nodes(self, target, k, center=center)

    def index(self, **options: Any) -> Index:
        """Return an index that finds nearly all of the nearest nodes without comparing every vector; it needs faiss.

        Options: `recall` (0.98), the share of the ten nearest nodes that it finds; `seed` (0) of its k-means; `threads`
        (all cores); `lists`, the number of lists that vectors are put in (about twice the square root of their number);
        `progress`, a function that is called with the progress.
        """
        from neural_brane.search.index import build_index

        return build_index(self, **options)

    def centered(self) -> Self:
        """Return the vectors minus their mean.

        >>> Embedding([[1, 0], [3, 2]], ["a", "b"]).centered().vectors.tolist()
        [[-1.0, -1.0], [1.0, 1.0]]
        """
        provenance = self.provenance | {"centered": True}
        return type(self)(self.vectors - mean_vector(self.vectors), self.ids, provenance, made_from=self.made_from)

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas data frame with the columns d0, d1 and so on, and the ids as its index."""
        try:
            import pandas as pd
        except ImportError as error:
            raise DependencyError("pandas is not installed; run: pip install pandas, or use to_polars") from error
        columns = [f"d{at}" for at in range(self.dim)]
        return pd.DataFrame(self.vectors, index=pd.Index(self.ids, name="id"), columns=columns)

    def to_polars(self) -> pl.DataFrame:
        """Return a polars data frame with the columns id, d0, d1 and so on.

        >>> Embedding([[1, 2]], ["a"]).to_polars().row(0)
        ('a', 1.0, 2.0)
        """
        return pl.DataFrame({"id": self.ids} | {f"d{at}": column for at, column in enumerate(self.vectors.T)})

    @classmethod
    def from_pandas(cls, frame: pd.DataFrame) -> Self:
        """Return the vectors of a pandas data frame of numbers whose index holds the ids."""
        return cls(frame.to_numpy(), np.asarray(frame.index))

    @classmethod
    def from_polars(cls, frame: pl.DataFrame, id: str = "id") -> Self:
        """Return the vectors of a polars data frame of numbers whose column `id` holds the ids."""
        if id not in frame.columns:
            first = ", ".join(frame.columns[:5])
            raise EmbeddingError(f"the frame has no column '{id}' for ids; set id to one of its columns ({first})")
        return cls(frame.drop(id).to_numpy(), frame[id].to_numpy())

    def clusters(
        self,
        k: int | None = None,
        *,
        graph: AttributedGraph | None = None,
        seed: int = 0,
        progress: Reporter | None = None,
    ) -> Clusters:
        """Return clusters of nodes whose vectors point nearly the same way.

        Parameters
        ----------
        k : int, optional
            The number of clusters; by default a number up to 20 is chosen.
        graph : AttributedGraph, optional
            A graph whose attributes name the clusters; its nodes are matched by id.
        seed : int
            The seed of k-means.
        progress : callable, optional
            A function that is called with the progress.

        Examples
        --------
        >>> e = Embedding([[1, 0], [2, 0], [0, 1], [0, 3]], ["a", "b", "c", "d"])
        >>> e.clusters(2).assignments.tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])
        True
        """
        return find_clusters(self.vectors, self.ids, k, graph=graph, seed=seed, progress=progress)

    def save(self, path: str | Path) -> None:
        """Write the vectors to a file; its suffix chooses the format, and .npz keeps everything.

        'brane formats' and `neural_brane.files.vectors.formats.FORMATS` list the formats and what each keeps.
        """
        blocks = [self.vectors[at : at + BLOCK_ROWS] for at in range(0, len(self), BLOCK_ROWS)]
        file = VectorFile(path)
        file.write(self.ids, blocks, dim=self.dim, provenance=self.provenance, made_from=self.made_from)

    @classmethod
    def load(cls, path: str | Path, ids: str | Path | None = None, *, mmap: bool = False, check: bool = True) -> Self:
        """Return the vectors in a file that `save` or another program wrote, with everything else that it keeps.

        Parameters
        ----------
        path : str or Path
            A file in one of the formats that 'brane formats' lists, or a folder of parts.
        ids : str or Path, optional
            A file with one id per line, for an .npy file.
        mmap : bool
            Map the vectors of an .npz file: they stay in the file, and only the rows that are used are read.
        check : bool
            Compare a mapped file with its checksums, which reads it once. Without it a file of a million vectors opens
            at once, but damage goes unnoticed.
        """
        if not mmap and not check:
            raise EmbeddingError("check=False needs mmap=True; a file that is read as a whole is always checked")
        if mmap and ids is not None:
            raise EmbeddingError(f"{path}: mmap=True reads .npz files, which contain their ids; leave out {ids}")
        table = map_vectors(path, check=check) if mmap else read_vectors(path, ids=ids)
        if mmap and not check:
            return cls._unchecked(*table)
        try:
            return cls(*table)
        except EmbeddingError as error:
            raise EmbeddingError(f"{path}: {error}") from None

    def _select(self, rows: slice | np.ndarray) -> Self:
        """Return an embedding of some rows; the vectors of a slice are not copied."""
        made_from = None if self.made_from is None else self.made_from[rows]
        return self._unchecked(self.vectors[rows], self.ids[rows], dict(self.provenance), made_from)

    @classmethod
    def _unchecked(cls, *values: Any) -> Self:
        """Return an embedding with these values of its fields, in their order, without checking them."""
        made = object.__new__(cls)
        for name, value in zip((*cls.__slots__[:-1], "_rows"), (*values, {}), strict=True):
            object.__setattr__(made, name, value)
        return made

    def __repr__(self) -> str:
        return f"Embedding({describe(self)})"

    def _repr_html_(self) -> str:
        """Return an HTML table of the first nodes; text from files is escaped."""
        titles = "".join(f"<th>d{at}</th>" for at in range(min(PREVIEW, self.dim)))
        rows = "".join(
            f"<tr><th>{escape(str(node))}</th>"
            + "".join(f"<td>{number:.4g}</td>" for number in vector[:PREVIEW])
            + "</tr>"
            for node, vector in zip(self.ids[:PREVIEW].tolist(), self.vectors[:PREVIEW], strict=True)
        )
        caption = escape(describe(self, ids=False))
        return f"<table><caption>{caption}</caption><tr><th>id</th>{titles}</tr>{rows}</table>"

    def _rows_by_id(self) -> dict[Any, int]:
        if not self._rows:
            self._rows.update((node, row) for row, node in enumerate(self.ids.tolist()))
        return self._rows
