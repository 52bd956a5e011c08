"""Edges to a symmetric sparse matrix: how directions, repeats and self-loops are settled."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np
from scipy import sparse

from neural_brane.errors import ParameterError

Duplicates = Literal["max", "sum"]
SelfLoops = Literal["keep", "drop"]

ENTRIES_PER_STRIP = 4_000_000  # bounds the temporary copies of is_symmetric to about 70 MB


def check_rules(duplicates: str, self_loops: str) -> None:
    """Refuse rules that do not exist."""
    if duplicates not in ("max", "sum"):
        raise ParameterError(f"duplicates is {duplicates!r}; give 'max' (keep the heaviest) or 'sum'")
    if self_loops not in ("keep", "drop"):
        raise ParameterError(f"self_loops is {self_loops!r}; give 'keep' or 'drop'")


def assemble(
    rows: np.ndarray,
    columns: np.ndarray,
    weights: np.ndarray,
    nodes: int,
    *,
    duplicates: Duplicates = "max",
    self_loops: SelfLoops = "keep",
) -> sparse.csr_array:
    """Make the (nodes, nodes) symmetric matrix of edges given as positions, in any direction and order.

    An edge stated several times, in whichever direction, keeps its largest weight or the sum of them.
    """
    check_rules(duplicates, self_loops)
    low = np.minimum(rows, columns).astype(np.int64)
    high = np.maximum(rows, columns)
    if self_loops == "drop":
        proper = low != high
        low, high, weights = low[proper], high[proper], weights[proper]
    low *= nodes
    low += high
    low, weights = merge(low, weights, duplicates)
    low, high = np.divmod(low, max(nodes, 1))
    mirrored = low != high
    matrix = sparse.coo_array(
        (
            np.concatenate([weights, weights[mirrored]]),
            (np.concatenate([low, high[mirrored]]), np.concatenate([high, low[mirrored]])),
        ),
        shape=(nodes, nodes),
    )
    return compact(matrix.tocsr())


def merge(keys: np.ndarray, weights: np.ndarray, duplicates: Duplicates) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys, sorted, each with the largest or the sum of its weights, as float32."""
    if len(keys) == 0:
        return keys, weights.astype(np.float32)
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    if len(first) < len(keys):
        merge = np.maximum if duplicates == "max" else np.add
        keys, weights = keys[first], merge.reduceat(weights, first, dtype=np.float64)
    return keys, weights.astype(np.float32)


def compact(matrix: sparse.csr_array) -> sparse.csr_array:
    """Store a CSR matrix as float32 with int32 indices where they fit; no copy when it already is so."""
    small = max(matrix.nnz, *matrix.shape) <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64
    parts = (
        matrix.data.astype(np.float32, copy=False),
        matrix.indices.astype(kind, copy=False),
        matrix.indptr.astype(kind, copy=False),
    )
    return sparse.csr_array(parts, shape=matrix.shape)


def is_symmetric(matrix: sparse.csr_array) -> bool:
    """Tell whether a square CSR matrix, sorted and without repeats, equals its transpose.

    Compares strips of rows with the same strip of columns, so the copies stay small for any matrix.
    """
    nodes = matrix.shape[0]
    strips = 1 + matrix.nnz // ENTRIES_PER_STRIP
    cuts = np.linspace(0, nodes, strips + 1).astype(int)
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
