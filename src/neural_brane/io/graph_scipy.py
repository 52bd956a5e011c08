"""SciPy's .npz of one sparse matrix, as `scipy.sparse.save_npz` writes it: an adjacency.

SciPy reads the members it knows and leaves others alone. So ours are written beside them, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError

SHAPED = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}


def is_scipys(members: Any) -> bool:
    """Tell whether an archive holds a sparse matrix of SciPy, and no graph of ours."""
    return "format" in members and "shape" in members and "adj_data" not in members


def read_matrix(path: Path, take: Callable[[str], np.ndarray], members: Any) -> Any:
    """The matrix of an archive with these members; `take` reads one by its name, and refuses what is damaged."""
    word = take("format")
    layout = word.item() if word.ndim == 0 else ""
    layout = layout.decode("ascii", "replace") if isinstance(layout, bytes) else str(layout)
    sizes = take("shape")
    if sizes.shape != (2,) or sizes.dtype.kind not in "iu" or sizes.min() < 0:
        raise GraphError(f"{path}: the shape is {sizes.tolist()}; expected rows and columns")
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
        raise GraphError(f"{path}: its arrays do not make a sparse matrix ({error}); save it again") from None
    raise GraphError(f"{path}: holds a sparse matrix of the format {layout!r}; save it as csr, csc, coo, bsr or dia")


def members_of(matrix: sparse.csr_array) -> dict[str, np.ndarray]:
    """The members that SciPy gives a CSR matrix."""
    return {
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "format": np.array(b"csr"),
        "shape": np.array(matrix.shape),
        "data": matrix.data,
        "_is_array": np.array(True),
    }
