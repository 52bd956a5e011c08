"""Directions that were found in a graph, followed into what has become of it."""

import numpy as np

from neural_brane.blas import one_blas_thread
from neural_brane.graph.changes import carry
from neural_brane.linalg import tables_on
from neural_brane.linalg.eigenvectors import NEGLIGIBLE
from neural_brane.methods._spectral import Decomposition, HopProduct, Hops


def follow(
    found: Decomposition,
    hops: Hops,
    places: np.ndarray,
    *,
    threads: int | None = 1,
    device: str = "cpu",
) -> Decomposition:
    """The directions that were found, in a graph that has changed since: its nodes were at these `places`, or nowhere.

    Every row that M has now is projected on V = MᵀU / √values, of the known nodes' U: one step of the power method,
    in which nodes stay where they were and new ones join them. Then columns are made orthogonal, each moving as little
    as can be (Löwdin's way), so that many such steps do not lead all of them to the first direction.
    """
    tables = tables_on(device, threads)
    known = carry(found.vectors, places)
    shares = known * _inverse(np.einsum("ij,ij->j", known, known, dtype=np.float64)).astype(np.float32)
    with one_blas_thread():
        moved = tables.by_slabs(HopProduct(hops, tables).image, tables.table(shares), reuse=True)
        gram = tables.gram(moved)
        lengths = np.sqrt(np.diag(gram))
        scale = _inverse(lengths)
        squares, axes = np.linalg.eigh(gram * scale * scale[:, None])
        kept = squares > NEGLIGIBLE * squares[-1]
        apart = (axes * _inverse(np.sqrt(np.where(kept, squares, 0)))) @ axes.T
        vectors = tables.array(tables.rotate(moved, scale[:, None] * apart * lengths))
    return Decomposition(np.ascontiguousarray(vectors), lengths**2)


def _inverse(values: np.ndarray) -> np.ndarray:
    return np.divide(1, values, out=np.zeros_like(values), where=values > 0)
