"""Search exactly: compare a query with every vector. Also parse the queries of every search and format its answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.files.vectors.parts import StoredColumn, StoredRows
from neural_brane.graph.ids import as_ids, describe_unknown, locate
from neural_brane.kernels.threads import map_threads, one_blas_thread

# A query is a node's id, a vector, or a list of either. An answer is a list of ids with their cosine.

SIMILAR_IDS = 1_000_000  # ids of a folder searched for one similar to an unknown id
Answer = list[tuple[Any, float]]  # ids with their cosine, best first


class Query(NamedTuple):
    """Rows of nodes, or vectors, to search for; `single` if the answer is one list and not a list of lists."""

    rows: np.ndarray | None  # (queries,) int64
    vectors: np.ndarray | None  # (queries, dim) float32
    single: bool

    def in_table(self, table: np.ndarray | StoredRows) -> np.ndarray:
        """Return the vectors to search for, (queries, dim); those of nodes are rows of the table."""
        return table[self.rows] if self.vectors is None else self.vectors


def parse_query(target: Any, ids: np.ndarray | StoredColumn, dim: int) -> Query:
    """Return the query; a flat list of strings, or of integers if ids are integers, is a list of ids."""
    if isinstance(target, str | int | np.integer):
        return Query(find_rows(ids, [target]), None, True)
    try:
        array = np.asarray(target)
    except ValueError:  # lists of different lengths
        array = np.empty((), object)
    if array.ndim == 1 and (array.dtype.kind in "UO" or (array.dtype.kind in "iu" and ids.dtype.kind == "i")):
        return Query(find_rows(ids, target), None, False)
    if array.ndim not in (1, 2) or array.dtype.kind not in "fiu":
        raise EmbeddingError(f"{target!r} is neither a node's id nor a vector of {dim} numbers")
    if array.shape[-1] != dim:
        raise EmbeddingError(f"the query has shape {array.shape}; give vectors of {dim} numbers")
    vectors = array.astype(np.float32).reshape(-1, dim)
    if not np.isfinite(vectors).all():
        raise EmbeddingError("the query vector contains NaN or infinity; give finite numbers")
    return Query(None, vectors, array.ndim == 1)


def find_rows(ids: np.ndarray | StoredColumn, nodes: Any) -> np.ndarray:
    """Return the rows of nodes by their ids, (nodes,) int64; raise EmbeddingError for an unknown id."""
    names = as_ids(nodes, error=EmbeddingError)
    if len(names) == 0:
        return np.empty(0, np.int64)
    if names.dtype.kind != ids.dtype.kind:
        raise unknown(ids, names[0].item())
    if isinstance(ids, StoredColumn):
        distinct, places = np.unique(names, return_inverse=True)
        rows = ids.find(distinct)[places]
    else:
        rows = np.flatnonzero(ids == names[0]) if len(names) == 1 else locate(ids, names)
    if len(rows) != len(names) or rows.min() < 0:
        raise unknown(ids, names[rows < 0][0].item() if len(rows) else names[0].item())
    return rows


def unknown(ids: np.ndarray | StoredColumn, node: Any) -> EmbeddingError:
    """Return the error for an unknown id; it suggests similar ids."""
    return EmbeddingError(describe_unknown(ids[:SIMILAR_IDS] if isinstance(ids, StoredColumn) else ids, node))


def check_count(k: Any) -> int:
    """Return the requested number of neighbours; refuse anything but a whole number from 1."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise EmbeddingError(f"k={k!r} makes no sense; give a whole number from 1, as in k=10")
    return int(k)


def as_answers(
    ids: np.ndarray | StoredColumn, rows: Sequence[np.ndarray] | np.ndarray, cosines: Iterable[np.ndarray], single: bool
) -> Any:
    """Return lists of ids with their cosine, one per query; if `single`, only the first list."""
    if isinstance(ids, StoredColumn):  # read the ids of all answers at once
        distinct = np.unique(np.concatenate([np.empty(0, np.int64), *rows]))
        distinct = distinct[distinct >= 0]
        ids, rows = ids[distinct], [np.where(one < 0, -1, np.searchsorted(distinct, one)) for one in rows]
    answers: list[Answer] = []
    for own, values in zip(rows, cosines, strict=True):
        known = own >= 0
        answers.append(list(zip(ids[own[known]].tolist(), values[known].tolist(), strict=True)))
    return answers[0] if single else answers


# Exact search compares a block of rows with all queries in float32, which is fast and rules out nearly all rows. It
# compares the rows that could still be among the best, given the error of float32, again in float64. So answers depend
# neither on the number of threads nor on the other queries of a call.

BLOCK_ROWS = 8192  # rows compared at a time; they fit the cache
BLOCK_QUERIES = 128  # queries compared at a time
BLOCK_PAIRS = 16_384  # pairs compared in float64 at a time
SHORTEST, LONGEST = 1e-30, 1e30  # float32 divides by lengths between these with full precision


class Best(NamedTuple):
    """The best rows of each query so far, best first; row -1 and cosine -inf if there are fewer than k."""

    rows: np.ndarray  # (queries, k) int64
    cosines: np.ndarray  # (queries, k) float32


def nearest_rows(
    vectors: np.ndarray | StoredRows,
    queries: np.ndarray,
    k: int,
    exclude: np.ndarray | None = None,
    *,
    center: np.ndarray | None = None,
    threads: int | None = None,
) -> Best:
    """Return the `k` rows of `vectors` with the highest cosine to each query, best first, and these cosines.

    Rows with equal cosines are returned in order. The cosine of a zero vector is 0. A row that contains NaN or infinity
    is never returned.

    Parameters
    ----------
    vectors : array or `vectors` of a folder of parts, shape (nodes, dim)
        The vectors to search. A memory-mapped array or a folder is read block by block.
    queries : ndarray, shape (queries, dim)
        The vectors to compare them with.
    k : int
        The number of rows per query; all rows if there are fewer.
    exclude : ndarray of int, shape (queries,), optional
        A row that each query must not return, such as its own; -1 for none.
    center : ndarray, shape (dim,), optional
        A vector to subtract from vectors and queries, such as their mean.
    threads : int, optional
        CPU cores to use, all by default. The number does not change the result.

    Returns
    -------
    rows : ndarray of int64, shape (queries, k)
        Row numbers; -1 at the end if a query has fewer rows than others because of `exclude`.
    cosines : ndarray of float32, shape (queries, k)
        The cosines of these rows.

    Examples
    --------
    >>> rows, cosines = nearest_rows(np.array([[1, 0], [3, 3], [0, 1]]), np.array([[2, 0]]), 2)
    >>> rows.tolist(), cosines.round(2).tolist()
    ([[0, 1]], [[1.0, 0.7099999785423279]])
    """
    return Exact(vectors, center=center, threads=threads).nearest(queries, k, exclude)


class Exact:
    """Exact search for many calls on the same vectors: the first search computes their lengths, later ones reuse them.

    The parameters are those of `nearest_rows`. The vectors must not change.

    Examples
    --------
    >>> search = Exact(np.eye(3))
    >>> search.nearest(np.array([[1, 2, 0]]), k=2).rows.tolist()
    [[1, 0]]
    """

    def __init__(
        self, vectors: np.ndarray | StoredRows, *, center: np.ndarray | None = None, threads: int | None = None
    ):
        self.vectors = vectors if isinstance(vectors, StoredRows) else np.asarray(vectors)  # no copy of a memory map
        self.center = None if center is None else np.asarray(center, dtype=np.float32)
        self.threads = threads
        self._inverse: np.ndarray | None = None  # (nodes,) 1 / length, float32
        # The error of a float32 sum is at most one rounding, 2⁻²⁴, per term. A squared length is such a sum too.
        self._margin = np.float32((self.vectors.shape[1] + 16) * 2.0**-23)

    def nearest(self, queries: np.ndarray, k: int, exclude: np.ndarray | None = None) -> Best:
        """Return the `k` nearest rows of each query and their cosines, as `nearest_rows` does."""
        queries = self._shift(np.asarray(queries))
        if queries.ndim != 2 or queries.shape[1] != self.vectors.shape[1]:
            raise ParameterError(f"queries have shape {queries.shape}; give shape (queries, {self.vectors.shape[1]})")
        excluded = np.full(len(queries), -1) if exclude is None else np.asarray(exclude)
        if excluded.shape != (len(queries),):
            raise ParameterError(f"exclude has shape {excluded.shape}; give one row for each of {len(queries)} queries")
        count = min(k, len(self.vectors))
        best = _empty(len(queries), count)
        for at in range(0, len(queries), BLOCK_QUERIES):
            span = slice(at, at + BLOCK_QUERIES)
            best.rows[span], best.cosines[span] = self._search(queries[span], count, excluded[span])
        filled = int((best.rows >= 0).sum(axis=1).max(initial=0))
        return Best(best.rows[:, :filled], best.cosines[:, :filled])

    def _search(self, queries: np.ndarray, k: int, exclude: np.ndarray) -> Best:
        """Return the best rows for at most BLOCK_QUERIES queries; each thread searches some blocks."""
        starts = range(0, len(self.vectors), BLOCK_ROWS)
        workers = max(1, min(self.threads or os.cpu_count() or 1, len(starts) // 2))
        inverse = np.empty(len(self.vectors), np.float32) if self._inverse is None else self._inverse
        unit = _unit(queries)

        def search(worker: int) -> Best:
            best = _empty(len(queries), k)
            for start in starts[len(starts) * worker // workers : len(starts) * (worker + 1) // workers]:
                best = self._search_block(start, inverse, unit, best, exclude)
            return best

        if workers == 1:
            best = search(0)
        else:
            with one_blas_thread():  # or each worker would start BLAS threads
                bests = list(map_threads(search, range(workers), workers))
            rows = np.concatenate([one.rows for one in bests], axis=1)
            cosines = np.concatenate([one.cosines for one in bests], axis=1)
            query = np.repeat(np.arange(len(rows)), rows.shape[1])
            best = _with_candidates(_empty(len(rows), k), query, rows.ravel(), cosines.ravel())
        self._inverse = inverse
        return best

    def _search_block(self, start: int, inverse: np.ndarray, unit: np.ndarray, best: Best, exclude: np.ndarray) -> Best:
        """Return the best rows after searching one more block of rows."""
        block = self._shift(self.vectors[start : start + BLOCK_ROWS])
        span = slice(start, start + len(block))
        if self._inverse is None:
            inverse[span] = _inverse_lengths(block)
        with np.errstate(all="ignore"):  # rows with results that are not finite are compared again in float64
            single = unit.astype(np.float32)
            rough = single @ block.T if len(unit) > 1 else (block @ single[0])[None]
            rough *= inverse[span]
        inside = np.flatnonzero((exclude >= start) & (exclude < span.stop))
        rough[inside, exclude[inside] - start] = -np.inf
        k = best.rows.shape[1]
        floor = best.cosines[:, -1:] - self._margin
        if k < len(block) and np.isneginf(floor).any():
            known = np.nan_to_num(rough, nan=-np.inf)  # partition would count NaN among the best
            floor = np.maximum(floor, np.partition(known, -k, axis=1)[:, -k, None] - 2 * self._margin)
        query, rows = np.nonzero(~(rough < floor))  # true for NaN
        kept = rows + start != exclude[query]
        query, rows = query[kept], rows[kept]
        if not len(rows):
            return best
        return _with_candidates(best, query, rows + start, _cosines(block, rows, unit, query))

    def _shift(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors minus the centre, always computed in float32."""
        single = np.require(vectors, np.float32, ["C", "A"])  # the layout that BLAS needs
        return single if self.center is None else single - self.center


def cosines_of_pairs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the cosine of each row with the same row of the other table, (rows,) float32; 0 for zero vectors."""
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", one, one)) * np.sqrt(np.einsum("ij,ij->i", other, other))
    products = np.einsum("ij,ij->i", one, other)
    with np.errstate(invalid="ignore"):  # infinity / infinity is NaN, which is never among the best
        cosines = np.divide(products, lengths, out=np.zeros_like(lengths), where=lengths != 0)
    return np.clip(cosines, -1, 1).astype(np.float32)


def compare(one: np.ndarray, other: np.ndarray, *, matrix: bool) -> np.ndarray:
    """Return the cosines of two tables: of all pairs of rows if `matrix`, else row by row; a single row is repeated."""
    if matrix:
        with one_blas_thread():  # with more threads the order of sums, and so the last bits, would vary
            return np.clip(_unit(one) @ _unit(other).T, -1, 1).astype(np.float32)
    if len(one) != len(other) and 1 not in (len(one), len(other)):
        advice = "give lists of equal length, or matrix=True to compare all pairs"
        raise ParameterError(f"{len(one)} nodes cannot be compared with {len(other)} nodes pair by pair; {advice}")
    pairs = np.arange(0 if 0 in (len(one), len(other)) else max(len(one), len(other)))
    return _cosines(one, pairs % max(len(one), 1), other, pairs % max(len(other), 1))


def mean_vector(vectors: np.ndarray | StoredRows) -> np.ndarray:
    """Return the mean of all rows, (dim,) float32, summed in float64."""
    total = np.zeros(vectors.shape[1])
    for start in range(0, len(vectors), BLOCK_ROWS):
        total += vectors[start : start + BLOCK_ROWS].sum(axis=0, dtype=np.float64)
    return (total / max(len(vectors), 1)).astype(np.float32)


def _cosines(block: np.ndarray, rows: np.ndarray, unit: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Return the cosines of pairs: of each number in `rows` of a block with the same place's query, (pairs,)."""
    spans = [slice(at, at + BLOCK_PAIRS) for at in range(0, len(rows), BLOCK_PAIRS)]
    found = [cosines_of_pairs(block[rows[span]], unit[query[span]]) for span in spans]
    return np.concatenate([np.empty(0, np.float32), *found])


def _unit(queries: np.ndarray) -> np.ndarray:
    """Return the queries scaled to length 1, float64; zero vectors stay zero."""
    double = queries.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", double, double))[:, None]
    return np.divide(double, lengths, out=double, where=lengths != 0)


def _inverse_lengths(block: np.ndarray) -> np.ndarray:
    """Return 1 / length of each row, 0 for zeros; NaN if float32 is too inexact, so that float64 compares the row."""
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
        inverse = 1 / lengths
    usual = (lengths > SHORTEST) & (lengths < LONGEST)
    if not usual.all():
        odd = np.flatnonzero(~usual)
        inverse[odd] = np.where(block[odd].any(axis=1), np.nan, 0)
    return inverse


def _empty(queries: int, k: int) -> Best:
    return Best(np.full((queries, k), -1), np.full((queries, k), -np.inf, np.float32))


def _with_candidates(best: Best, query: np.ndarray, rows: np.ndarray, cosines: np.ndarray) -> Best:
    """Return the best rows among those found before and the candidates, each with a query number and a cosine."""
    queries, k = best.rows.shape
    query = np.concatenate([np.repeat(np.arange(queries), k), query])
    rows = np.concatenate([best.rows.ravel(), rows])
    cosines = np.concatenate([best.cosines.ravel(), cosines])
    order = np.lexsort((rows, -cosines, query))
    first = np.searchsorted(query[order], np.arange(queries))
    chosen = order[first[:, None] + np.arange(k)]
    return Best(rows[chosen], cosines[chosen])


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return vectors scaled to length 1, contiguous float32; zero vectors stay zero."""
    return _unit(vectors).astype(np.float32)


# `Embedding` and `EmbeddingParts` share these functions: one has vectors in memory, the other in a folder.


class HasVectors(Protocol):
    """Vectors with the ids of their nodes: an `Embedding`, or the parts of a folder."""

    @property
    def vectors(self) -> np.ndarray | StoredRows:
        """The vectors, (nodes, dim) float32."""

    @property
    def ids(self) -> np.ndarray | StoredColumn:
        """The ids, (nodes,)."""

    @property
    def provenance(self) -> dict[str, Any]:
        """The method, parameters, data and version that made the vectors."""


def describe(source: HasVectors, *, ids: bool = True) -> str:
    """Return one line with the method, the graph and the shape of the vectors, and by default the first ids."""
    data = source.provenance.get("data")
    graph = data.get("name") if isinstance(data, dict) else None
    made = f"{source.provenance.get('method', 'vectors')}{f' of {graph}' if graph else ''}"
    nodes, dim = source.vectors.shape
    first = ", ".join(map(repr, source.ids[:3].tolist())) + (", …" if nodes > 3 else "")
    return f"{made}: {nodes:,} × {dim}" + (f"; ids {first}" if ids else "")


def nearest_nodes(source: HasVectors, target: Any, k: Any, *, center: bool) -> Any:
    """Return the `k` nodes nearest to ids or vectors, with their cosine, as `Embedding.nearest` does."""
    count, vectors = check_count(k), source.vectors
    query = parse_query(target, source.ids, vectors.shape[1])
    mean = mean_vector(vectors) if center else None
    best = nearest_rows(vectors, query.in_table(vectors), count, query.rows, center=mean)
    return as_answers(source.ids, best.rows, best.cosines, query.single)


def similarities(source: HasVectors, one: Any, other: Any, *, matrix: bool, center: bool) -> Any:
    """Return the cosines of ids or vectors, as `Embedding.similarity` does."""
    vectors = source.vectors
    queries = [parse_query(target, source.ids, vectors.shape[1]) for target in (one, other)]
    mean = mean_vector(vectors) if center else np.zeros(vectors.shape[1], np.float32)
    tables = [query.in_table(vectors) - mean for query in queries]
    cosines = compare(*tables, matrix=matrix)
    return float(cosines.item()) if queries[0].single and queries[1].single and not matrix else cosines
