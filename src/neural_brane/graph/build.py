"""Any input into the arrays of a graph: checked, converted, and copied only where it must change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph.adjacency import compact
from neural_brane.graph.ids import as_ids, encode, locate, repeated

Bags = Mapping[Any, Iterable[Any] | Mapping[Any, float]]  # from an id to its attributes, as names or name: value


def spell_shape(shape: tuple[int, ...]) -> str:
    """Write a shape for a message: 3 x 4."""
    return " x ".join(map(str, shape))


def place_edges(edges: Any, ids: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return edges (edges, 2) as positions of their ends among the ids, and the ids.

    Without ids, the nodes are those that the edges name.
    """
    ends = _flat_ends(edges)
    if ids is None:
        positions, ids = encode(ends)
    else:
        positions = locate(ids, ends)
    unknown = np.flatnonzero(positions < 0)
    if len(unknown):
        at = int(unknown[0])
        raise GraphError(
            f"edge {at // 2} names node {ends[at].item()!r}, which is not among the {len(ids)} ids; "
            "add it there, or leave ids out to take the nodes from the edges"
        )
    return positions.reshape(-1, 2), ids


def _flat_ends(edges: Any) -> np.ndarray:
    """Return the ends of all edges in one flat array: two of the first edge, two of the second, ..."""
    try:
        array = np.asarray(edges)
    except ValueError as error:
        raise GraphError(f"edges are not pairs ({error}); give two ids per edge") from error
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise GraphError(f"edges have shape {array.shape}; give (edges, 2), two ids per edge")
    return as_ids(array.ravel(), what="edges")


def node_ids(ids: Any) -> np.ndarray:
    """Return ids as an array; refuse ids of which one occurs twice."""
    names = as_ids(ids)
    check_names(names, "ids")
    return names


def edge_weights(weights: Any, edges: int) -> np.ndarray:
    """Return one float32 weight per edge, checked."""
    if weights is None:
        return np.ones(edges, dtype=np.float32)
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise GraphError(f"weights are not numbers ({error}); give one number above 0 per edge") from error
    if array.shape != (edges,):
        raise GraphError(f"weights have shape {array.shape} for {edges} edges; give one number per edge")
    with np.errstate(over="ignore", under="ignore"):
        single = array.astype(np.float32)
    bad = np.flatnonzero(~((single > 0) & np.isfinite(single)))
    if len(bad):
        raise GraphError(f"the weight of edge {bad[0]} is {array[bad[0]]}; give finite numbers above 0")
    return single


def weight_matrix(adjacency: Any) -> sparse.csr_array:
    """Return a square matrix of weights above zero as sorted CSR without repeats or zeros."""
    matrix = canonical(adjacency, "adjacency")
    if matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"adjacency is {spell_shape(matrix.shape)}; give a square matrix, one row per node")
    if matrix.nnz and not matrix.data.min() > 0:
        row, column = (int(where[np.argmin(matrix.data)]) for where in matrix.tocoo().coords)
        raise GraphError(
            f"adjacency[{row}, {column}] is {matrix.data.min()}; weights must be above 0: "
            "shift or drop the negative ones"
        )
    return matrix


def canonical(matrix: Any, what: str) -> sparse.csr_array:
    """Return a matrix as sorted float32 CSR without repeats, zeros or NaN; copies only what it must change."""
    try:
        csr = compact(sparse.csr_array(matrix))
    except (TypeError, ValueError) as error:
        raise GraphError(f"{what} is not a matrix of numbers ({error}); give a sparse matrix") from error
    zeros = csr.nnz - np.count_nonzero(csr.data)
    if zeros or not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
        csr.eliminate_zeros()
    if csr.nnz and not np.isfinite(csr.data.sum(dtype=np.float64)):
        bad = np.flatnonzero(~np.isfinite(csr.data))[0]
        row = np.searchsorted(csr.indptr, bad, side="right") - 1
        raise GraphError(f"{what}[{row}, {csr.indices[bad]}] is {csr.data[bad]}; give finite numbers")
    return csr


def attribute_matrix(attributes: Any, names: Any, ids: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
    """Return the matrix of attributes, one row per id, and the name of each column."""
    if attributes is None:
        return sparse.csr_array((len(ids), 0), dtype=np.float32), as_ids([])
    if isinstance(attributes, Mapping):
        return _matrix_of_bags(attributes, ids)
    matrix = canonical(attributes, "attributes")
    if matrix.shape[0] != len(ids):
        raise GraphError(f"attributes are {spell_shape(matrix.shape)} for {len(ids)} nodes; give one row per node")
    return matrix, np.arange(matrix.shape[1]) if names is None else as_ids(names, what="attribute_names")


def _matrix_of_bags(bags: Bags, ids: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
    """Turn a dict from id to attributes into a matrix and the names of its columns."""
    rows = locate(ids, as_ids(list(bags)))
    if (rows < 0).any():
        stranger = list(bags)[int(np.argmin(rows))]
        raise GraphError(f"attributes name node {stranger!r}, which the graph lacks; add it to ids or drop it")
    entries: list[tuple[int, Any, float]] = []
    for row, (node, bag) in zip(rows.tolist(), bags.items(), strict=True):
        if isinstance(bag, str) or not isinstance(bag, Iterable):
            raise GraphError(f"the attributes of node {node!r} are {bag!r}; give a list of names")
        # A name listed twice counts once: attributes are a set.
        pairs = bag.items() if isinstance(bag, Mapping) else dict.fromkeys(bag, 1.0).items()
        entries.extend((row, name, value) for name, value in pairs)
    columns, names = encode(as_ids([name for _, name, _ in entries], what="attribute names"))
    values = [value for _, _, value in entries]
    shape = (len(ids), len(names))
    return canonical(sparse.coo_array((values, ([row for row, _, _ in entries], columns)), shape), "attributes"), names


def node_labels(labels: Any, ids: np.ndarray) -> np.ndarray | None:
    """Return one string per id, "" where there is none."""
    if labels is None:
        return None
    if isinstance(labels, Mapping):
        places = locate(ids, as_ids(list(labels)))
        if (places < 0).any():
            stranger = list(labels)[int(np.argmin(places))]
            raise GraphError(f"labels name node {stranger!r}, which the graph lacks; add it to ids or drop it")
        given = dict(zip(places.tolist(), labels.values(), strict=True))
        labels = [given.get(place) for place in range(len(ids))]
    array = np.asarray(labels)
    if array.dtype == object:
        array = np.array(["" if value is None else str(value) for value in array.flat])
    if array.shape != (len(ids),):
        raise GraphError(f"labels have shape {array.shape} for {len(ids)} nodes; give one label per node")
    return array.astype(str)


def check_adjacency(matrix: Any, nodes: int) -> None:
    """Refuse an adjacency that is not in the form of a graph's; its symmetry is not checked."""
    check_matrix(matrix, (nodes, nodes), "adjacency")
    if matrix.nnz and not matrix.data.min() > 0:
        raise GraphError(f"edge weights reach down to {matrix.data.min()}; all must be above 0")


def check_content(adjacency: sparse.csr_array, attributes: sparse.csr_array, name: str) -> None:
    """Refuse a graph that has neither edges nor attributes."""
    if adjacency.nnz == 0 and attributes.nnz == 0:
        raise GraphError(
            f"graph '{name}' has {adjacency.shape[0]} nodes, no edges and no attributes; give at least one edge, or "
            "nodes attributes"
        )


def check_matrix(matrix: Any, shape: tuple[int, int], what: str) -> None:
    """Refuse a matrix that is not finite float32 CSR, sorted, without repeats or zeros, of the shape expected."""
    if not isinstance(matrix, sparse.csr_array) or matrix.dtype != np.float32:
        found = f"{type(matrix).__name__} of {getattr(matrix, 'dtype', 'no dtype')}"
        raise GraphError(
            f"{what} is {found}, not csr_array of float32; use AttributedGraph.from_sparse, which converts"
        )
    if matrix.shape != shape:
        raise GraphError(
            f"{what} is {spell_shape(matrix.shape)}, and its names say {spell_shape(shape)}; make them agree"
        )
    if not matrix.has_canonical_format or (matrix.data == 0).any():
        raise GraphError(f"{what} is unsorted, repeats entries or stores zeros; use AttributedGraph.from_sparse")
    if matrix.nnz and not np.isfinite(matrix.data.sum(dtype=np.float64)):
        raise GraphError(f"{what} holds NaN or infinity; give finite numbers")


def check_names(names: np.ndarray, what: str) -> None:
    """Refuse names that are not a flat array of distinct integers or strings."""
    if names.ndim != 1 or not (names.dtype == np.int64 or names.dtype.kind == "U"):
        raise GraphError(f"{what} are {names.dtype} of shape {names.shape}; give int64 or strings, one each")
    if (twice := repeated(names)) is not None:
        raise GraphError(f"{what} list {twice!r} twice; each must be distinct")


def check_labels(labels: np.ndarray | None, nodes: int) -> None:
    """Refuse labels that are not one string per node."""
    if labels is not None and (labels.shape != (nodes,) or labels.dtype.kind != "U"):
        raise GraphError(
            f"labels are {labels.dtype} of shape {labels.shape}; give one string per node ({nodes}), "
            "'' where there is none"
        )
