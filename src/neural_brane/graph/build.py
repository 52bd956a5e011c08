"""Check any input and convert it to the arrays of a graph; copy only arrays that must change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError, KindError
from neural_brane.graph.adjacency import Rules, assemble, compact
from neural_brane.graph.frames import is_frame, numeric_frame
from neural_brane.graph.ids import as_array, as_ids, encode, locate, repeated

KINDS = "biuf"  # kinds of dtypes that are numbers: booleans, integers and floats


def as_real(values: Any, what: str, expected: str) -> np.ndarray:
    """Return values as an array of real numbers; text, complex numbers and masked values raise an error."""
    array = as_array(values, what)
    try:
        # None becomes NaN, for which `to_single` raises an error that names its position.
        array = array.astype(np.float64) if array.dtype.kind in "OU" else array
    except (TypeError, ValueError) as error:
        kind = KindError if isinstance(error, TypeError) else GraphError
        raise kind(f"{what} cannot be read as numbers ({error}); give {expected}") from error
    if array.dtype.kind not in KINDS:
        raise GraphError(f"{what} have dtype {array.dtype}, which is not a real number; give {expected}")
    return array.astype(plain_type(array.dtype), copy=False)


def plain_type(dtype: np.dtype) -> np.dtype:
    """Return a dtype in the machine's byte order, with a width that SciPy's sparse matrices support."""
    if dtype.kind == "f" and dtype.itemsize not in (4, 8):
        return np.dtype(np.float32 if dtype.itemsize < 4 else np.float64)
    return dtype.newbyteorder("=")


def to_single(data: np.ndarray, where: Callable[[int], str]) -> np.ndarray:
    """Return numbers as float32; refuse the first that is not finite, overflows or becomes 0, named by `where`."""
    with np.errstate(over="ignore", under="ignore"):
        single = data.astype(np.float32, copy=False)
    if np.count_nonzero(single) < np.count_nonzero(data):
        at = int(np.flatnonzero((single == 0) & (data != 0))[0])
        raise GraphError(f"{where(at)} is {data[at]}, which becomes 0 in float32; multiply all by a large number")
    with np.errstate(over="ignore", invalid="ignore"):
        finite = len(single) == 0 or np.isfinite(single.sum(dtype=np.float64))
    if not finite:
        at = int(np.flatnonzero(~np.isfinite(single))[0])
        if np.isfinite(data[at]):
            raise GraphError(f"{where(at)} is {data[at]}, which overflows float32; divide all by a large number")
        raise GraphError(f"{where(at)} is {'NaN' if np.isnan(data[at]) else data[at]}; give finite numbers")
    return single


# Attributes by id: a list of names, or a dict from name to amount.
Bags = Mapping[Any, Iterable[Any] | Mapping[Any, float]]


def spell_shape(shape: tuple[int, ...]) -> str:
    """Return a shape as text for a message, such as 3 x 4."""
    return " x ".join(map(str, shape))


def place_edges(edges: Any, ids: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return edges (edges, 2) as positions of nodes, and the ids: the given ones, or else all ids of the edges."""
    array = as_array(edges, "edges", expected="pairs, two ids per edge")
    if array.size and (array.ndim != 2 or array.shape[1] != 2):
        raise GraphError(f"edges have shape {array.shape}; give (edges, 2), two ids per edge")
    ends = np.empty(0, np.int64)
    if array.size:
        ends = as_ids(array.ravel(), what="edges", where=lambda at: f"an end of edge {at // 2}")
    if ids is None:
        positions, ids = encode(ends)
    else:
        positions = locate(ids, ends)
    unknown = np.flatnonzero(positions < 0)
    if len(unknown):
        at = int(unknown[0])
        found = f"edge {at // 2} names node {ends[at].item()!r}, which is not among the {len(ids)} ids;"
        raise GraphError(f"{found} add it to ids, or leave out ids to use the nodes of the edges")
    return positions.reshape(-1, 2), ids


def node_ids(ids: Any) -> np.ndarray:
    """Return ids as an array; raise an error if one occurs twice."""
    names = as_ids(ids)
    check_names(names, "ids")
    return names


def edge_weights(weights: Any, edges: int) -> np.ndarray:
    """Return one float32 weight per edge; raise an error if one is not a finite number above 0."""
    if weights is None:
        return np.ones(edges, dtype=np.float32)
    array = as_real(weights, "weights", "one number above 0 per edge")
    if array.shape != (edges,):
        raise GraphError(f"weights have shape {array.shape} for {edges} edges; give one number per edge")
    single = to_single(array, lambda at: f"the weight of edge {at}")
    bad = np.flatnonzero(~(single > 0))
    if len(bad):
        raise GraphError(f"the weight of edge {bad[0]} is {array[bad[0]]}; give finite numbers above 0")
    return single


class EdgeArrays(NamedTuple):
    """Edges between positions of nodes, and their weights as another library stores them, or None if all are 1."""

    ends: np.ndarray  # (edges, 2)
    weights: Any

    @classmethod
    def between(cls, nodes: Iterable[Any], edges: Iterable[tuple[Any, Any, Any]]) -> EdgeArrays:
        """Return edges (node, node, weight) as edges between the positions of the nodes."""
        place = {node: at for at, node in enumerate(nodes)}
        placed = [(place[u], place[v], weight) for u, v, weight in edges]
        ends = np.array([edge[:2] for edge in placed], dtype=np.int64).reshape(-1, 2)
        return cls(ends, [weight for _, _, weight in placed])

    def assemble(self, nodes: int, rules: Rules) -> sparse.csr_array:
        """Return the adjacency (nodes, nodes)."""
        return assemble(self.ends, edge_weights(self.weights, len(self.ends)), nodes, rules)


def weight_matrix(adjacency: Any) -> sparse.csr_array:
    """Return a square matrix of weights as sorted float32 CSR without repeats or zeros; all must be above 0."""
    matrix = canonical(adjacency, "adjacency")
    if matrix.shape[0] != matrix.shape[1]:
        raise GraphError(f"adjacency is {spell_shape(matrix.shape)}; give a square matrix, one row per node")
    if matrix.nnz and not matrix.data.min() > 0:
        row, column = (int(where[np.argmin(matrix.data)]) for where in matrix.tocoo().coords)
        advice = "shift or drop the negative ones"
        raise GraphError(f"adjacency[{row}, {column}] is {matrix.data.min()}, but weights must be above 0; {advice}")
    return matrix


def canonical(matrix: Any, what: str, named: Callable[[int, int], str] = lambda row, column: "") -> sparse.csr_array:
    """Return a matrix as sorted float32 CSR without repeats, zeros or NaN; `named` describes an entry for messages."""
    expected = "a two-dimensional matrix of real numbers, sparse or not"
    if not sparse.issparse(matrix):
        matrix = as_real(matrix, what, expected)
    if matrix.dtype.kind not in KINDS or matrix.ndim != 2:
        raise GraphError(f"{what} is {matrix.dtype} with shape {matrix.shape}; give {expected}")
    try:
        csr = sparse.csr_array(matrix.astype(plain_type(matrix.dtype), copy=False))
        csr.check_format(full_check=True)
    except (TypeError, ValueError) as error:
        raise GraphError(f"{what} cannot be read as a matrix ({error}); give {expected}") from error

    def where(at: int) -> str:
        row, column = int(np.searchsorted(csr.indptr, at, side="right")) - 1, int(csr.indices[at])
        return f"{what}[{row}, {column}]{named(row, column)}"

    parts = to_single(csr.data, where), csr.indices, csr.indptr
    csr = compact(sparse.csr_array(parts, shape=csr.shape))
    zeros = csr.nnz - np.count_nonzero(csr.data)
    if zeros or not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
        csr.eliminate_zeros()
        to_single(csr.data, where)  # the sum of repeats may overflow
    return csr


def attribute_matrix(attributes: Any, names: Any, ids: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
    """Return the matrix of attributes, one row per id, and the name of each column."""
    if attributes is None:
        return sparse.csr_array((len(ids), 0), dtype=np.float32), as_ids([])
    if isinstance(attributes, Mapping) and not sparse.issparse(attributes):  # SciPy's dok matrices are dicts too
        return _matrix_of_bags(attributes, ids)
    if is_frame(attributes):
        attributes, columns = numeric_frame(attributes, ids)
        names = columns if names is None else names
    given = None if names is None else as_ids(names, what="attribute_names")
    matrix = canonical(attributes, "attributes", _naming(ids, given))
    if matrix.shape[0] != len(ids):
        raise GraphError(f"attributes are {spell_shape(matrix.shape)} for {len(ids)} nodes; give one row per node")
    return matrix, np.arange(matrix.shape[1]) if given is None else given


def _naming(ids: np.ndarray, names: np.ndarray | None) -> Callable[[int, int], str]:
    """Return a function that describes an entry of the attributes by its node and attribute, for messages."""

    def named(row: int, column: int) -> str:
        known = row < len(ids) and (names is None or column < len(names))
        attribute = column if names is None or not known else names[column].item()
        return f" (attribute {attribute!r} of node {ids[row].item()!r})" if known else ""

    return named


def _matrix_of_bags(bags: Bags, ids: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
    """Return a dict from id to attributes as a matrix (nodes, attributes) and the names of its columns."""
    rows = locate(ids, as_ids(list(bags)))
    if (rows < 0).any():
        unknown = list(bags)[int(np.argmin(rows))]
        raise GraphError(f"attributes name node {unknown!r}, which is not in the graph; add it to ids or drop it")
    entries: list[tuple[int, Any, float]] = []
    for row, (node, bag) in zip(rows.tolist(), bags.items(), strict=True):
        if isinstance(bag, str) or not isinstance(bag, Iterable):
            raise GraphError(f"the attributes of node {node!r} are {bag!r}; give a list of names")
        # A name that is listed twice counts once, because attributes are a set.
        pairs = bag.items() if isinstance(bag, Mapping) else dict.fromkeys(bag, 1.0).items()
        entries.extend((row, name, value) for name, value in pairs)
    listed = as_ids(
        [name for _, name, _ in entries],
        what="attribute names",
        where=lambda at: f"an attribute of node {ids[entries[at][0]].item()!r}",
    )
    columns, names = encode(listed)
    values = as_real([value for _, _, value in entries], "attribute values", "a number for each attribute")
    matrix = sparse.coo_array((values, ([row for row, _, _ in entries], columns)), (len(ids), len(names)))
    return canonical(matrix, "attributes", _naming(ids, names)), names


def check_adjacency(matrix: Any, nodes: int) -> None:
    """Raise an error if an adjacency has not the form that a graph needs; do not check its symmetry."""
    check_matrix(matrix, (nodes, nodes), "adjacency")
    if matrix.nnz and not matrix.data.min() > 0:
        raise GraphError(f"the smallest edge weight is {matrix.data.min()}; all must be above 0")


def check_content(adjacency: sparse.csr_array, attributes: sparse.csr_array, name: str) -> None:
    """Raise an error if a graph has neither edges nor attributes."""
    if adjacency.nnz == 0 and attributes.nnz == 0:
        advice = "give at least one edge or attribute"
        raise GraphError(f"graph '{name}' has {adjacency.shape[0]} nodes, no edges and no attributes; {advice}")


def check_matrix(matrix: Any, shape: tuple[int, int], what: str) -> None:
    """Raise an error if a matrix is not finite float32 CSR, sorted, without repeats or zeros, of the expected shape."""
    if not isinstance(matrix, sparse.csr_array) or matrix.dtype != np.float32:
        found = f"{type(matrix).__name__} of {getattr(matrix, 'dtype', 'no dtype')}"
        raise GraphError(f"{what} is {found}, not csr_array of float32; convert it with AttributedGraph.from_sparse")
    if matrix.shape != shape:
        raise GraphError(f"{what} is {spell_shape(matrix.shape)}, but ids and names need {spell_shape(shape)}")
    if not matrix.has_canonical_format or (matrix.data == 0).any():
        raise GraphError(f"{what} is unsorted, or has repeats or zeros; convert it with AttributedGraph.from_sparse")
    if matrix.nnz and not np.isfinite(matrix.data.sum(dtype=np.float64)):
        raise GraphError(f"{what} contains NaN or infinity; give finite numbers")


def check_names(names: np.ndarray, what: str) -> None:
    """Raise an error if names are not a flat array of distinct integers or strings."""
    if names.ndim != 1 or not (names.dtype == np.int64 or names.dtype.kind == "U"):
        raise GraphError(f"{what} are {names.dtype} of shape {names.shape}; give a flat array of int64 or strings")
    if (twice := repeated(names)) is not None:
        raise GraphError(f"{what} contain {twice!r} twice; all must be distinct")
