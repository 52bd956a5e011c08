"""Exact search: compare a query with every vector. Also the questions that any search takes, and its answers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np

from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.files.vectors.parts import StoredColumn, StoredRows
from neural_brane.graph.ids import as_ids, describe_unknown, locate
from neural_brane.kernels.threads import one_blas_thread

# Questions name nodes by id or give vectors, one or several; answers are lists of ids with their cosine.

LOOKED_AT = 1_000_000  # ids in parts among which those are looked for that look like an unknown one
Answer = list[tuple[Any, float]]  # ids with their cosine, best first


class Question(NamedTuple):
    """Rows of nodes, or vectors, to search for; `single` if the answer is one list and not a list of lists."""

    rows: np.ndarray | None  # (asked,) int64
    vectors: np.ndarray | None  # (asked, dim) float32
    single: bool

    def queries(self, table: np.ndarray | StoredRows) -> np.ndarray:
        """The vectors that are asked about; those of nodes are found in the table."""
        return table[self.rows] if self.vectors is None else self.vectors


def understand(asked: Any, ids: np.ndarray | StoredColumn, dim: int) -> Question:
    """Tell ids from vectors: a flat list of strings, or of integers where ids are integers, is a list of ids."""
    if isinstance(asked, str | int | np.integer):
        return Question(find_rows(ids, [asked]), None, True)
    try:
        array = np.asarray(asked)
    except ValueError:  # lists of different lengths
        array = np.empty((), object)
    if array.ndim == 1 and (array.dtype.kind in "UO" or (array.dtype.kind in "iu" and ids.dtype.kind == "i")):
        return Question(find_rows(ids, asked), None, False)
    if array.ndim not in (1, 2) or array.dtype.kind not in "fiu":
        raise EmbeddingError(f"{asked!r} is neither a node's id nor a vector of {dim} numbers")
    if array.shape[-1] != dim:
        raise EmbeddingError(f"a vector of {dim} numbers is needed, not shape {array.shape}")
    vectors = array.astype(np.float32).reshape(-1, dim)
    if not np.isfinite(vectors).all():
        raise EmbeddingError("the vector holds NaN or infinity, and so has no direction; give finite numbers")
    return Question(None, vectors, array.ndim == 1)


def find_rows(ids: np.ndarray | StoredColumn, wanted: Any) -> np.ndarray:
    """The rows of nodes, by their ids; an unknown id is refused."""
    asked = as_ids(wanted, error=EmbeddingError)
    if len(asked) == 0:
        return np.empty(0, np.int64)
    if asked.dtype.kind != ids.dtype.kind:
        raise unknown(ids, asked[0].item())
    if isinstance(ids, StoredColumn):
        distinct, places = np.unique(asked, return_inverse=True)
        rows = ids.find(distinct)[places]
    else:
        rows = np.flatnonzero(ids == asked[0]) if len(asked) == 1 else locate(ids, asked)
    if len(rows) != len(asked) or rows.min() < 0:
        raise unknown(ids, asked[rows < 0][0].item() if len(rows) else asked[0].item())
    return rows


def unknown(ids: np.ndarray | StoredColumn, node: Any) -> EmbeddingError:
    """The error for an unknown id, with ids that look like it (of parts, among the first)."""
    return EmbeddingError(describe_unknown(ids[:LOOKED_AT] if isinstance(ids, StoredColumn) else ids, node))


def check_count(k: Any) -> int:
    """The number of neighbours that is asked for, refused where it makes no sense."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise EmbeddingError(f"k={k!r} makes no sense; give a whole number from 1, as in k=10")
    return int(k)


def as_answers(
    ids: np.ndarray | StoredColumn, rows: Sequence[np.ndarray] | np.ndarray, cosines: Iterable[np.ndarray], single: bool
) -> Any:
    """Rows and cosines as lists of ids with their cosine: one list for one question, else a list of lists."""
    if isinstance(ids, StoredColumn):  # read once, for all questions
        found = np.unique(np.concatenate([np.empty(0, np.int64), *rows]))
        found = found[found >= 0]
        ids, rows = ids[found], [np.where(one < 0, -1, np.searchsorted(found, one)) for one in rows]
    answers: list[Answer] = []
    for own, values in zip(rows, cosines, strict=True):
        known = own >= 0
        answers.append(list(zip(ids[own[known]].tolist(), values[known].tolist(), strict=True)))
    return answers[0] if single else answers


# Exact search looks at all rows for those that point most nearly the same way as a query.
#
# It compares a block of rows with all queries in float32, which is quick and leaves out nearly all rows. Rows that
# could still be among the best, given the error of float32, are compared again in float64. So answers depend neither on
# the number of threads nor on which queries are asked together.

BLOCK_ROWS = 8192  # compared at a time: they fit the cache
BLOCK_QUERIES = 128  # asked at a time
BLOCK_PAIRS = 16_384  # compared in float64 at a time
SHORTEST, LONGEST = 1e-30, 1e30  # lengths between which float32 divides with its full precision


class Best(NamedTuple):
    """The best rows of each query so far, best first; row -1 and cosine -inf where there are fewer."""

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
    """The `k` rows of `vectors` with the highest cosine with each query, best first, and these cosines.

    Equal cosines are in the order of rows. A vector of zeros has cosine 0 with any other, one with NaN or infinity has
    none and is never found.

    Parameters
    ----------
    vectors
        (nodes, dim) array; one that is memory-mapped is read block by block and never copied as a whole, as are the
        `vectors` of a folder of parts.
    queries
        (queries, dim) array.
    k
        How many rows; of fewer nodes, all are given.
    exclude
        (queries,) a row that each query leaves out, such as its own; -1 for none.
    center
        (dim,) vector to subtract from vectors and queries, such as their mean.
    threads
        Cores to use, all of them by default; they change no bit.

    Returns
    -------
    rows, cosines
        (queries, k) int64 and float32. Row -1 where a query has fewer than others, because it leaves one out.

    Examples
    --------
    >>> rows, cosines = nearest_rows(np.array([[1, 0], [3, 3], [0, 1]]), np.array([[2, 0]]), 2)
    >>> rows.tolist(), cosines.round(2).tolist()
    ([[0, 1]], [[1.0, 0.7099999785423279]])
    """
    return Exact(vectors, center=center, threads=threads).nearest(queries, k, exclude)


class Exact:
    """Exact search among vectors that do not change: their lengths are computed once, by the first search.

    Parameters are those of `nearest_rows`.

    >>> search = Exact(np.eye(3))
    >>> search.nearest(np.array([[1, 2, 0]]), k=2).rows.tolist()
    [[1, 0]]
    """

    def __init__(
        self, vectors: np.ndarray | StoredRows, *, center: np.ndarray | None = None, threads: int | None = None
    ):
        # Of a memory-mapped array a view; parts stay what they are.
        self.vectors = vectors if isinstance(vectors, StoredRows) else np.asarray(vectors)
        self.center = None if center is None else np.asarray(center, dtype=np.float32)
        self.threads = threads
        self._inverse: np.ndarray | None = None  # one over the lengths, float32
        # A sum of float32 errs by at most one rounding, 2⁻²⁴, per term; a length's square is such a sum too.
        self._margin = np.float32((self.vectors.shape[1] + 16) * 2.0**-23)

    def nearest(self, queries: np.ndarray, k: int, exclude: np.ndarray | None = None) -> Best:
        """The `k` nearest rows of each query, as `nearest_rows` gives them."""
        queries = self._shift(np.asarray(queries))
        if queries.ndim != 2 or queries.shape[1] != self.vectors.shape[1]:
            raise ParameterError(
                f"queries have shape {queries.shape}; give a table (queries, {self.vectors.shape[1]}), "
                "as wide as the vectors"
            )
        left_out = np.full(len(queries), -1) if exclude is None else np.asarray(exclude)
        if left_out.shape != (len(queries),):
            raise ParameterError(f"exclude has shape {left_out.shape}; give one row for each of {len(queries)} queries")
        wanted = min(k, len(self.vectors))
        best = _nothing(len(queries), wanted)
        for at in range(0, len(queries), BLOCK_QUERIES):
            span = slice(at, at + BLOCK_QUERIES)
            best.rows[span], best.cosines[span] = self._ask(queries[span], wanted, left_out[span])
        filled = int((best.rows >= 0).sum(axis=1).max(initial=0))
        return Best(best.rows[:, :filled], best.cosines[:, :filled])

    def _ask(self, queries: np.ndarray, k: int, exclude: np.ndarray) -> Best:
        """Search all blocks, some on each thread, for at most BLOCK_QUERIES queries."""
        starts = range(0, len(self.vectors), BLOCK_ROWS)
        workers = max(1, min(self.threads or os.cpu_count() or 1, len(starts) // 2))
        inverse = np.empty(len(self.vectors), np.float32) if self._inverse is None else self._inverse
        unit = _unit(queries)

        def search(worker: int) -> Best:
            best = _nothing(len(queries), k)
            for start in starts[len(starts) * worker // workers : len(starts) * (worker + 1) // workers]:
                best = self._search_block(start, inverse, unit, best, exclude)
            return best

        if workers == 1:
            best = search(0)
        else:
            with one_blas_thread(), ThreadPoolExecutor(workers) as pool:  # each of ours would start as many of BLAS
                parts = list(pool.map(search, range(workers)))
            rows = np.concatenate([part.rows for part in parts], axis=1)
            cosines = np.concatenate([part.cosines for part in parts], axis=1)
            asked = np.repeat(np.arange(len(rows)), rows.shape[1])
            best = _with_candidates(_nothing(len(rows), k), asked, rows.ravel(), cosines.ravel())
        self._inverse = inverse
        return best

    def _search_block(self, start: int, inverse: np.ndarray, unit: np.ndarray, best: Best, exclude: np.ndarray) -> Best:
        """Update the best rows by one more block of rows."""
        block = self._shift(self.vectors[start : start + BLOCK_ROWS])
        span = slice(start, start + len(block))
        if self._inverse is None:
            inverse[span] = _inverse_lengths(block)
        with np.errstate(all="ignore"):  # what is not finite here is looked at again in float64
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
        asked, rows = np.nonzero(~(rough < floor))  # NaN stays in
        kept = rows + start != exclude[asked]
        asked, rows = asked[kept], rows[kept]
        if not len(rows):
            return best
        return _with_candidates(best, asked, rows + start, _cosines(block, rows, unit, asked))

    def _shift(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors as float32, with the centre subtracted: by definition in float32, whichever way they are compared."""
        single = np.require(vectors, np.float32, ["C", "A"])  # BLAS takes no others
        return single if self.center is None else single - self.center


def cosines_of_pairs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The cosine of each row with the row of the other table at its place; float32, 0 where a vector is zero.

    >>> cosines_of_pairs(np.array([[1, 0], [1, 1]]), np.array([[0, 2], [3, 3]])).tolist()
    [0.0, 1.0]
    """
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", one, one)) * np.sqrt(np.einsum("ij,ij->i", other, other))
    products = np.einsum("ij,ij->i", one, other)
    with np.errstate(invalid="ignore"):  # infinity by infinity is NaN, which is never among the best
        cosines = np.divide(products, lengths, out=np.zeros_like(lengths), where=lengths != 0)
    return np.clip(cosines, -1, 1).astype(np.float32)


def compare(one: np.ndarray, other: np.ndarray, *, matrix: bool) -> np.ndarray:
    """The cosines of two tables, row by row (where one has a single row, with all of the other) or each with each."""
    if matrix:
        with one_blas_thread():  # the order of sums, and so the last bits, would follow the threads
            return np.clip(_unit(one) @ _unit(other).T, -1, 1).astype(np.float32)
    if len(one) != len(other) and 1 not in (len(one), len(other)):
        raise ParameterError(
            f"{len(one)} nodes cannot be compared with {len(other)} pair by pair; give as many, or matrix=True"
        )
    pairs = np.arange(0 if 0 in (len(one), len(other)) else max(len(one), len(other)))
    return _cosines(one, pairs % max(len(one), 1), other, pairs % max(len(other), 1))


def mean_vector(vectors: np.ndarray | StoredRows) -> np.ndarray:
    """The mean of all rows, block by block in float64; given as float32."""
    total = np.zeros(vectors.shape[1])
    for start in range(0, len(vectors), BLOCK_ROWS):
        total += vectors[start : start + BLOCK_ROWS].sum(axis=0, dtype=np.float64)
    return (total / max(len(vectors), 1)).astype(np.float32)


def _cosines(block: np.ndarray, rows: np.ndarray, unit: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """The cosines of rows of a block with the queries that they are candidates for."""
    spans = [slice(at, at + BLOCK_PAIRS) for at in range(0, len(rows), BLOCK_PAIRS)]
    return np.concatenate(
        [np.empty(0, np.float32)] + [cosines_of_pairs(block[rows[span]], unit[asked[span]]) for span in spans]
    )


def _unit(queries: np.ndarray) -> np.ndarray:
    """Queries at length 1, in float64; zeros stay zeros."""
    double = queries.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", double, double))[:, None]
    return np.divide(double, lengths, out=double, where=lengths != 0)


def _inverse_lengths(block: np.ndarray) -> np.ndarray:
    """One over the length of each row, 0 for zeros; NaN where float32 cannot tell, which makes the row a candidate."""
    with np.errstate(all="ignore"):
        lengths = np.sqrt(np.einsum("ij,ij->i", block, block))
        inverse = 1 / lengths
    usual = (lengths > SHORTEST) & (lengths < LONGEST)
    if not usual.all():
        odd = np.flatnonzero(~usual)
        inverse[odd] = np.where(block[odd].any(axis=1), np.nan, 0)
    return inverse


def _nothing(queries: int, k: int) -> Best:
    return Best(np.full((queries, k), -1), np.full((queries, k), -np.inf, np.float32))


def _with_candidates(best: Best, asked: np.ndarray, rows: np.ndarray, cosines: np.ndarray) -> Best:
    """The best of what was found before and of candidates: each a query, a row and their cosine."""
    queries, k = best.rows.shape
    asked = np.concatenate([np.repeat(np.arange(queries), k), asked])
    rows = np.concatenate([best.rows.ravel(), rows])
    cosines = np.concatenate([best.cosines.ravel(), cosines])
    order = np.lexsort((rows, -cosines, asked))
    first = np.searchsorted(asked[order], np.arange(queries))
    chosen = order[first[:, None] + np.arange(k)]
    return Best(rows[chosen], cosines[chosen])


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Vectors at length 1, as float32 in one piece; zeros stay zeros."""
    return _unit(vectors).astype(np.float32)


# What `Embedding` and `EmbeddingParts` answer by exact search: vectors in memory or parts in a folder.


class HasVectors(Protocol):
    """Vectors with the ids of their nodes: an `Embedding`, or the parts of a folder."""

    @property
    def vectors(self) -> np.ndarray | StoredRows:
        """(nodes, dim) float32."""

    @property
    def ids(self) -> np.ndarray | StoredColumn:
        """(nodes,) their ids."""

    @property
    def provenance(self) -> dict[str, Any]:
        """What made the vectors."""


def describe(source: HasVectors, *, ids: bool = True) -> str:
    """One line on what made the vectors, how many there are and, unless left out, the first ids."""
    data = source.provenance.get("data")
    graph = data.get("name") if isinstance(data, dict) else None
    made = f"{source.provenance.get('method', 'vectors')}{f' of {graph}' if graph else ''}"
    nodes, dim = source.vectors.shape
    first = ", ".join(map(repr, source.ids[:3].tolist())) + (", …" if nodes > 3 else "")
    return f"{made}: {nodes:,} × {dim}" + (f"; ids {first}" if ids else "")


def nearest_nodes(source: HasVectors, target: Any, k: Any, *, center: bool) -> Any:
    """The `k` nodes nearest to ids or vectors, with their cosine, as `Embedding.nearest` gives them."""
    wanted, vectors = check_count(k), source.vectors
    question = understand(target, source.ids, vectors.shape[1])
    mean = mean_vector(vectors) if center else None
    found = nearest_rows(vectors, question.queries(vectors), wanted, question.rows, center=mean)
    return as_answers(source.ids, found.rows, found.cosines, question.single)


def similarities(source: HasVectors, one: Any, other: Any, *, matrix: bool, center: bool) -> Any:
    """The cosines of ids or vectors, as `Embedding.similarity` gives them."""
    vectors = source.vectors
    asked = [understand(target, source.ids, vectors.shape[1]) for target in (one, other)]
    mean = mean_vector(vectors) if center else np.zeros(vectors.shape[1], np.float32)
    tables = [question.queries(vectors) - mean for question in asked]
    cosines = compare(*tables, matrix=matrix)
    return float(cosines.item()) if asked[0].single and asked[1].single and not matrix else cosines
