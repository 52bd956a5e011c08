"""Graphs as .npz files: our own layout, the fastest format to load, and SciPy's file of one sparse matrix.

Our keys are `adj_data`, `adj_indices`, `adj_indptr`, `adj_shape` and the same four with `attr_`: two matrices in CSR
form, as SciPy stores them. Optional keys are `labels`, `ids`, `attribute_names` and `encoder` (JSON in UTF-8 bytes: the
rule that turned columns into attributes). `neural_brane.files.npz` adds checksums.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.files.npz import Npz, open_npz, write_npz
from neural_brane.files.reading import check_count
from neural_brane.files.storage import atomic, check_space
from neural_brane.graph import AttributedGraph
from neural_brane.graph.adjacency import DEFAULT_RULES, Rules
from neural_brane.graph.encoder import Encoder

Layout = Literal["graph", "scipy"]
PARTS = ("data", "indices", "indptr", "shape")
KEYS = "adj_data, adj_indices, adj_indptr, adj_shape, and the same four with attr_"
SHAPED = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}


def read_matrix(path: Path, take: Callable[[str], np.ndarray], members: Any) -> Any:
    """Return the sparse matrix of an archive; `take` reads a member by name and refuses damaged data."""
    word = take("format")
    layout = word.item() if word.ndim == 0 else ""
    layout = layout.decode("ascii", "replace") if isinstance(layout, bytes) else str(layout)
    sizes = take("shape")
    if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or sizes.min() < 0:
        raise GraphError(f"{path}: found shape {sizes.tolist()}, expected two numbers, rows and columns; save it again")
    shape = (int(sizes[0]), int(sizes[1]))
    try:
        if layout in SHAPED:
            matrix = SHAPED[layout]((take("data"), take("indices"), take("indptr")), shape=shape)
            matrix.check_format(full_check=True)
            return matrix
        if layout == "coo":
            ends = take("coords") if "coords" in members else (take("row"), take("col"))
            return sparse.coo_array((take("data"), tuple(ends)), shape=shape)
        if layout == "dia":
            return sparse.dia_array((take("data"), take("offsets")), shape=shape)
    except GraphError:
        raise
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise GraphError(f"{path}: the arrays do not form a sparse matrix ({error}); save it again") from None
    raise GraphError(f"{path}: the sparse matrix has format {layout!r}; save it as csr, csc, coo, bsr or dia")


def write_graph_npz(
    graph: AttributedGraph, path: str | Path, *, compress: bool = False, layout: Layout = "graph"
) -> None:
    """Write a graph to an .npz file; with layout="scipy", `scipy.sparse.load_npz` can read the adjacency."""
    arrays: dict[str, np.ndarray] = {"ids": graph.ids, "attribute_names": graph.attribute_names}
    matrices = {"adj": graph.adjacency, "attr": graph.attributes}
    if layout == "scipy":
        adjacency = matrices.pop("adj")
        arrays |= {name: getattr(adjacency, name) for name in ("indices", "indptr")}
        arrays |= {"format": np.array(b"csr"), "shape": np.array(adjacency.shape), "data": adjacency.data}
        arrays["_is_array"] = np.array(True)
    for prefix, matrix in matrices.items():
        arrays |= {f"{prefix}_{part}": np.asarray(getattr(matrix, part)) for part in PARTS}
    if graph.labels is not None:
        arrays["labels"] = graph.labels
    if graph.encoder is not None:
        arrays["encoder"] = np.frombuffer(json.dumps(graph.encoder.as_dict()).encode(), np.uint8)
    check_space(path, 0 if compress else sum(array.nbytes for array in arrays.values()), GraphError)
    with atomic(path) as draft:
        write_npz(draft, arrays, compress=compress)


def read_graph_npz(path: Path, rules: Rules = DEFAULT_RULES) -> AttributedGraph:
    """Read a graph from an .npz file."""
    try:
        with open_npz(path, GraphError, f"the arrays {KEYS}") as archive:
            if "format" in archive and "shape" in archive and "adj_data" not in archive:  # saved by SciPy
                adjacency = read_matrix(path, lambda key: _read_array(path, archive, key), archive)
            else:
                adjacency = _read_matrix(path, archive, "adj")
            attributes = _read_matrix(path, archive, "attr") if "attr_data" in archive else None
            names: Any = {key: archive[key] for key in ("labels", "ids", "attribute_names") if key in archive}
            encoder = archive["encoder"].tobytes() if "encoder" in archive else None
    except FileNotFoundError:
        raise GraphError(f"{path}: there is no such file; give the path of an .npz file") from None
    try:
        graph = AttributedGraph.from_sparse(adjacency, attributes, **names, **rules._asdict(), name=path.stem)
        return graph if encoder is None else graph.encoded(Encoder.from_dict(json.loads(encoder)))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise GraphError(f"{path}: array 'encoder' is not JSON ({error}); write the graph again") from None
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from error


def _read_array(path: Path, archive: Npz, key: str) -> np.ndarray:
    """Read an array that every graph file must contain."""
    if key not in archive and "vectors" in archive:
        raise GraphError(f"{path}: found vectors, expected a graph; give the graph from which they were learned")
    if key not in archive:
        raise GraphError(f"{path}: array '{key}' is missing; found {', '.join(archive.names)}; a graph needs {KEYS}")
    return archive[key]


def _read_matrix(path: Path, archive: Npz, prefix: str) -> sparse.csr_array:
    """Read a CSR matrix and check that its arrays agree with each other."""
    data, indices, indptr, shape = (_read_array(path, archive, f"{prefix}_{part}") for part in PARTS)

    def require(valid: bool, found: str, expected: str) -> None:
        if not valid:
            raise GraphError(f"{path}: {found}; expected {expected}: save the matrix in SciPy's CSR format")

    plain = shape.shape == (2,) and shape.dtype.kind in "iu" and bool((shape >= 0).all())
    require(plain, f"{prefix}_shape is {shape.tolist()}", "two whole numbers, rows and columns")
    rows, columns = map(int, shape)
    check_count(columns, rows + len(indices), f"{path}: {prefix}_shape[1]", "correct the number of columns", GraphError)
    for part, array, kinds in (("data", data, "biuf"), ("indices", indices, "iu"), ("indptr", indptr, "iu")):
        found = f"{prefix}_{part} is {array.dtype} with shape {array.shape}"
        require(array.ndim == 1 and array.dtype.kind in kinds, found, "a flat array of numbers")
    require(len(indptr) == rows + 1, f"{prefix}_indptr has {len(indptr)} entries", f"rows + 1, {rows + 1}")
    require(
        len(data) == len(indices) == indptr[-1],
        f"{prefix}_data has {len(data)} entries, _indices {len(indices)}, and _indptr ends at {indptr[-1]}",
        "three equal numbers",
    )
    rising = indptr[0] == 0 and bool((indptr[1:] >= indptr[:-1]).all())
    require(rising, f"{prefix}_indptr decreases or does not begin with 0", "0 and then increasing numbers")
    inside = len(indices) == 0 or (indices.min() >= 0 and indices.max() < columns)
    require(bool(inside), f"{prefix}_indices are outside the {columns} columns", f"0 to {columns - 1}")
    return sparse.csr_array((data, indices, indptr), shape=(rows, columns))
