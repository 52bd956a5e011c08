"""Build a symmetric sparse matrix from edges: ignore directions, merge repeats, keep or drop self-loops."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import ParameterError

Duplicates = Literal["max", "sum"]
SelfLoops = Literal["keep", "drop"]

LARGE = 2_000_000  # from this many edges, compiled code saves more time than loading it takes
ENTRIES_PER_STRIP = 4_000_000  # keeps the temporary copies of is_symmetric to about 70 MB


def check_rules(duplicates: str, self_loops: str) -> None:
    """Raise an error if a rule for repeated edges or self-loops does not exist."""
    if duplicates not in ("max", "sum"):
        raise ParameterError(f"duplicates is {duplicates!r}; give 'max' (keep the heaviest) or 'sum'")
    if self_loops not in ("keep", "drop"):
        raise ParameterError(f"self_loops is {self_loops!r}; give 'keep' or 'drop'")


class Rules(NamedTuple):
    """The rules for merging edges: repeats get the largest weight or the sum; self-loops are kept or dropped."""

    duplicates: Duplicates = "max"
    self_loops: SelfLoops = "keep"


DEFAULT_RULES = Rules()


def assemble(
    ends: np.ndarray,
    weights: np.ndarray | None,
    nodes: int,
    rules: Rules = DEFAULT_RULES,
    *,
    spend: bool = False,
    large: int = LARGE,
) -> sparse.csr_array:
    """Return the symmetric matrix (nodes, nodes) of edges, given as pairs of node positions `ends` (edges, 2).

    Repeated edges, in either direction, get the largest weight or their sum, by the rules; without `weights` all are 1.
    Compiled code serves `large` edges and more. If `spend` is true, the matrix may take the memory of `ends`.
    """
    check_rules(*rules)
    if len(ends) >= large and nodes <= np.iinfo(np.int32).max:
        from neural_brane.graph.scatter import scatter_edges

        whole = np.ascontiguousarray(ends, dtype=np.int32)
        return scatter_edges(whole, weights, nodes, rules, spend=spend or whole is not ends)
    return _assemble_by_sorting(ends, weights, nodes, rules)


def _assemble_by_sorting(ends: np.ndarray, weights: np.ndarray | None, nodes: int, rules: Rules) -> sparse.csr_array:
    """Return the matrix of `assemble`, computed in plain NumPy."""
    weights = np.ones(len(ends), dtype=np.float32) if weights is None else weights
    low, high = np.minimum(ends[:, 0], ends[:, 1]).astype(np.int64), np.maximum(ends[:, 0], ends[:, 1])
    if rules.self_loops == "drop":
        proper = low != high
        low, high, weights = low[proper], high[proper], weights[proper]
    low *= nodes
    low += high
    low, weights = merge(low, weights, rules.duplicates)
    low, high = np.divmod(low, max(nodes, 1))
    mirrored = low != high
    places = np.concatenate([low, high[mirrored]]), np.concatenate([high, low[mirrored]])
    both = np.concatenate([weights, weights[mirrored]])
    return compact(sparse.coo_array((both, places), shape=(nodes, nodes)).tocsr())


def merge(keys: np.ndarray, weights: np.ndarray, duplicates: Duplicates) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys, sorted, with the largest weight or the sum of weights of each as float32."""
    if len(keys) == 0:
        return keys, weights.astype(np.float32)
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    if len(first) < len(keys):
        combine = np.maximum if duplicates == "max" else np.add
        keys, weights = keys[first], combine.reduceat(weights, first, dtype=np.float64)
    with np.errstate(over="ignore"):  # the check of the graph finds sums beyond float32
        return keys, weights.astype(np.float32)


def compact(matrix: sparse.csr_array) -> sparse.csr_array:
    """Return a CSR matrix as float32, with int32 indices if they fit; copy only arrays that must change."""
    small = max(matrix.nnz, *matrix.shape) <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64
    indices, indptr = (array.astype(kind, copy=False) for array in (matrix.indices, matrix.indptr))
    return sparse.csr_array((matrix.data.astype(np.float32, copy=False), indices, indptr), shape=matrix.shape)


def is_symmetric(matrix: sparse.csr_array, *, entries_per_strip: int = ENTRIES_PER_STRIP) -> bool:
    """Return whether a square, sorted CSR matrix without repeats is symmetric; compare in strips to save memory."""
    nodes = matrix.shape[0]
    cuts = np.linspace(0, nodes, 2 + matrix.nnz // entries_per_strip).astype(int)
    for start, stop in pairwise(cuts):
        first, last = matrix.indptr[start], matrix.indptr[stop]
        mirror = matrix[:, start:stop].T.tocsr()
        if not (
            np.array_equal(matrix.indptr[start : stop + 1] - first, mirror.indptr)
            and np.array_equal(matrix.indices[first:last], mirror.indices)
            and np.array_equal(matrix.data[first:last], mirror.data)
        ):
            return False
    return True


def symmetrise(matrix: sparse.csr_array, rules: Rules = DEFAULT_RULES) -> sparse.csr_array:
    """Return a square, sorted CSR matrix without repeats as a symmetric one: merge the two directions of each edge."""
    symmetric = is_symmetric(matrix)
    if symmetric and (rules.self_loops == "keep" or not matrix.diagonal().any()):
        return matrix
    entries = matrix.tocoo()
    if symmetric:  # each edge occurs twice, and the two must not be added up
        rules = rules._replace(duplicates="max")
    return assemble(np.stack(entries.coords, axis=1), entries.data, matrix.shape[0], rules)
