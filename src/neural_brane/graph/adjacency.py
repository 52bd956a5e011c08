"""Build a symmetric sparse matrix from edges: drop directions, merge repeats, keep or drop self-loops."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import ParameterError

# Edges to a symmetric sparse matrix: directions are dropped, repeats merged, self-loops kept or dropped.

Duplicates = Literal["max", "sum"]
SelfLoops = Literal["keep", "drop"]

LARGE = 2_000_000  # edges from which compiled code is faster than it takes to load
ENTRIES_PER_STRIP = 4_000_000  # keeps the temporary copies of is_symmetric to about 70 MB


def check_rules(duplicates: str, self_loops: str) -> None:
    """Refuse a rule for repeated edges or self-loops that does not exist."""
    if duplicates not in ("max", "sum"):
        raise ParameterError(f"duplicates is {duplicates!r}; give 'max' (keep the heaviest) or 'sum'")
    if self_loops not in ("keep", "drop"):
        raise ParameterError(f"self_loops is {self_loops!r}; give 'keep' or 'drop'")


class Rules(NamedTuple):
    """The rules that merge edges: repeats by their largest weight or their sum, self-loops kept or dropped."""

    duplicates: Duplicates = "max"
    self_loops: SelfLoops = "keep"


USUAL = Rules()


def assemble(
    ends: np.ndarray, weights: np.ndarray | None, nodes: int, rules: Rules = USUAL, *, large: int = LARGE
) -> sparse.csr_array:
    """Make the (nodes, nodes) symmetric matrix of edges, whose `ends` (edges, 2) are positions of nodes.

    Edges may stand in any direction and order. One that is stated several times, in whichever direction, gets
    the largest of its weights or their sum, as the rules say. Without weights, each weighs 1. From `large` edges on,
    compiled code does the same in less time and memory; it copies no ends that are int32.
    """
    check_rules(*rules)
    if len(ends) >= large and nodes <= np.iinfo(np.int32).max:
        from neural_brane.graph.scatter import scatter_edges

        whole = np.ascontiguousarray(ends, dtype=np.int32)
        return scatter_edges(whole, weights, nodes, add=rules.duplicates == "sum", loops=rules.self_loops == "keep")
    return _assemble_by_sorting(ends, weights, nodes, rules)


def _assemble_by_sorting(ends: np.ndarray, weights: np.ndarray | None, nodes: int, rules: Rules) -> sparse.csr_array:
    """Define what `assemble` gives, in plain NumPy."""
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
    matrix = sparse.coo_array(
        (
            np.concatenate([weights, weights[mirrored]]),
            (np.concatenate([low, high[mirrored]]), np.concatenate([high, low[mirrored]])),
        ),
        shape=(nodes, nodes),
    )
    return compact(matrix.tocsr())


def merge(keys: np.ndarray, weights: np.ndarray, duplicates: Duplicates) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys, sorted, each with the largest of its weights or their sum, as float32."""
    if len(keys) == 0:
        return keys, weights.astype(np.float32)
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], weights[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    if len(first) < len(keys):
        combine = np.maximum if duplicates == "max" else np.add
        keys, weights = keys[first], combine.reduceat(weights, first, dtype=np.float64)
    with np.errstate(over="ignore"):  # a sum beyond float32 is refused where a graph is checked
        return keys, weights.astype(np.float32)


def compact(matrix: sparse.csr_array) -> sparse.csr_array:
    """Store a CSR matrix as float32, with int32 indices where they fit; shares every array that needs no change."""
    small = max(matrix.nnz, *matrix.shape) <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64
    parts = (
        matrix.data.astype(np.float32, copy=False),
        matrix.indices.astype(kind, copy=False),
        matrix.indptr.astype(kind, copy=False),
    )
    return sparse.csr_array(parts, shape=matrix.shape)


def is_symmetric(matrix: sparse.csr_array, *, entries_per_strip: int = ENTRIES_PER_STRIP) -> bool:
    """Tell whether a square CSR matrix, sorted and without repeats, equals its transpose; strips keep copies small."""
    nodes = matrix.shape[0]
    strips = 1 + matrix.nnz // entries_per_strip
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


def symmetrise(matrix: sparse.csr_array, rules: Rules = USUAL) -> sparse.csr_array:
    """Merge the two directions of every edge of a square CSR matrix, sorted and without repeats, if they differ."""
    symmetric = is_symmetric(matrix)
    if symmetric and (rules.self_loops == "keep" or not matrix.diagonal().any()):
        return matrix
    entries = matrix.tocoo()
    if symmetric:  # each edge is stated twice, and the two must not be added up
        rules = rules._replace(duplicates="max")
    return assemble(np.stack(entries.coords, axis=1), entries.data, matrix.shape[0], rules)
