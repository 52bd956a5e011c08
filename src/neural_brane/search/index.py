"""An index by faiss: nearly all of the nearest nodes, without looking at every vector.

Vectors at length 1 lie in lists, each around a centre that k-means has found; a query is compared with the lists whose
centres are nearest (IVF-Flat, inner product). How many lists that are is measured when the index is built: as few as
find the asked share of what exact search finds. IVF-Flat is built several times faster than a graph of neighbours
(HNSW), and its lists can be memory-mapped.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.errors import DependencyError, ParameterError
from neural_brane.io.vector_parts import StoredRows
from neural_brane.progress import Meter, Reporter
from neural_brane.search.exact import nearest_rows, unit_rows
from neural_brane.search.questions import as_answers, check_count, understand

BLOCK_ROWS = 65_536  # added at a time
PER_CENTRE = 64  # vectors that k-means sees for each of its centres; faiss asks for 39 at least
SAMPLE = 200  # nodes that recall is measured on
NEAREST = 10  # and how many of the nearest are compared


class Index:
    """What `Embedding.index()` builds and `load_index` opens: finds nodes by their ids or near a vector.

    Attributes
    ----------
    ids
        The nodes' ids, in the order of the vectors.
    provenance
        What made the vectors.
    recall
        The share of the ten nearest that the index found on a sample of nodes, when it was built.
    """

    def __init__(
        self, lists: Any, ids: np.ndarray, provenance: dict[str, Any], recall: float, threads: int | None = None
    ):
        self.lists, self.ids, self.provenance, self.recall, self.threads = lists, ids, provenance, recall, threads
        lists.make_direct_map()  # where each row lies, so that a node's own vector can be had

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return (
            f"Index({len(self):,} × {self.dim}; {self.lists.nprobe} of {self.lists.nlist} lists, recall {self.recall})"
        )

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return int(self.lists.d)

    def nearest(self, target: Any, k: int = 10) -> Any:
        """The `k` nearest nodes with their cosine, as `Embedding.nearest` gives them; nearly always the same ones."""
        wanted = check_count(k)
        question = understand(target, self.ids, self.dim)
        rows = question.rows if question.rows is not None else np.empty(0, np.int64)
        queries = question.vectors if question.vectors is not None else self.vectors_of(rows)
        found, cosines = self._search(unit_rows(queries), min(wanted + (question.rows is not None), len(self)))
        kept = found != (-1 if question.rows is None else question.rows[:, None])
        best = [(row[keep][:wanted], own[keep][:wanted]) for row, own, keep in zip(found, cosines, kept, strict=True)]
        return as_answers(self.ids, [row for row, _ in best], [own for _, own in best], question.single)

    def save(self, path: str | Path) -> None:
        """Write the index with its ids to one file, which `load_index` opens by memory map."""
        from neural_brane.search.index_file import write_index

        write_index(path, self)

    def _search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows and cosines, best first, equal ones by row; row -1 where the lists held too few."""
        with _threads(self.threads):
            cosines, rows = self.lists.search(queries, k)
        rows = np.where((rows >= 0) & (rows < len(self)), rows, -1)
        cosines = np.where(rows < 0, -np.inf, np.clip(cosines, -1, 1)).astype(np.float32)
        order = np.lexsort((rows, -cosines), axis=1)
        return np.take_along_axis(rows, order, axis=1), np.take_along_axis(cosines, order, axis=1)

    def vectors_of(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of some rows, at length 1."""
        return np.array([self.lists.reconstruct(int(row)) for row in rows], np.float32).reshape(-1, self.dim)


def build_index(
    vectors: np.ndarray | StoredRows,
    ids: np.ndarray,
    provenance: dict[str, Any],
    *,
    recall: float = 0.98,
    lists: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Reporter | None = None,
) -> Index:
    """Build an index over vectors, by default of about twice as many lists as the root of their number.

    Parameters
    ----------
    vectors, ids, provenance
        Of an embedding.
    recall
        The share of the ten nearest that shall be found: a sample of nodes tells how many lists that takes.
    lists
        How many lists.
    seed
        Of k-means and of the sample; the same seed and number of threads give the same index.
    threads
        Cores to use, all of them by default.
    progress
        A function that is told how far it is.
    """
    faiss = import_faiss()
    if not 0 < recall <= 1:
        raise ParameterError(f"recall={recall!r} makes no sense; give a share above 0 and up to 1, as in recall=0.98")
    if not len(vectors) or not vectors.shape[1]:
        raise ParameterError("there are no vectors to build an index over; give an embedding with nodes")
    usual = max(1, min(round(2 * math.sqrt(len(vectors))), len(vectors) // 39))
    count = usual if lists is None else lists
    if not 1 <= count <= len(vectors):
        raise ParameterError(f"lists={lists!r} makes no sense; give a number from 1 to {len(vectors)}, the nodes")
    random = np.random.default_rng(seed)
    made = faiss.IndexIVFFlat(faiss.IndexFlatIP(vectors.shape[1]), vectors.shape[1], count, faiss.METRIC_INNER_PRODUCT)
    made.cp.seed, made.cp.min_points_per_centroid = int(random.integers(1 << 30)), 1
    seen = np.sort(random.permutation(len(vectors))[: PER_CENTRE * count])
    with _threads(threads):
        meter = Meter(progress, len(seen) + len(vectors), "vectors")
        made.train(unit_rows(vectors[seen]))
        meter.advance(len(seen))
        for start in range(0, len(vectors), BLOCK_ROWS):
            made.add(unit_rows(vectors[start : start + BLOCK_ROWS]))
            meter.advance(len(vectors[start : start + BLOCK_ROWS]))
    index = Index(made, ids, provenance, 1.0, threads)
    sample = np.sort(random.permutation(len(vectors))[:SAMPLE])
    exact = nearest_rows(vectors, vectors[sample], NEAREST, threads=threads).rows
    index.recall = _choose_probes(index, vectors[sample], exact, recall)
    return index


def _choose_probes(index: Index, queries: np.ndarray, exact: np.ndarray, wanted: float) -> float:
    """Look into as few lists as find the wanted share of what exact search finds; returns the share that is found."""
    unit = unit_rows(queries)
    probes, share = 1, 0.0
    while True:
        index.lists.nprobe = min(probes, index.lists.nlist)
        found, _ = index._search(unit, exact.shape[1])
        share = float(np.mean([np.isin(one, other).mean() for one, other in zip(exact, found, strict=True)]))
        if share >= wanted or probes >= index.lists.nlist:
            return round(share, 4)
        probes = max(probes + 1, probes * 5 // 4)


def import_faiss() -> Any:
    """The faiss module, or an error that says how to get it."""
    try:
        import faiss
    except ImportError as error:
        raise DependencyError(
            "an index needs faiss, which is not installed; run: pip install 'neural-brane[search]', or search exactly "
            "with embedding.nearest"
        ) from error
    return faiss


@contextmanager
def _threads(threads: int | None) -> Iterator[None]:
    """Let faiss use so many threads: their number belongs to the whole process, so it is put back."""
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads or os.cpu_count() or 1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
