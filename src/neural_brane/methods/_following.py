"""Directions that were found in a graph, followed into what has become of it."""

import numpy as np

from neural_brane.blas import one_blas_thread
from neural_brane.graph.changes import carry
from neural_brane.linalg import map_threads, tables_on
from neural_brane.linalg.eigenvectors import NEGLIGIBLE
from neural_brane.linalg.tables import BLOCK_ROWS
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

    One step of subspace iteration, from the vectors U of the nodes that stay: the rows that M has now are projected on
    an orthonormal basis of the columns of MᵀU, and then turned as a whole to where they were (orthogonal Procrustes).
    So nothing moves where nothing changed, however often this is done, and new nodes join the others.
    """
    tables = tables_on(device, threads)
    shares = carry(found.vectors, places)
    squares = np.einsum("ij,ij->j", shares, shares, dtype=np.float64)
    shares *= _inverse(squares).astype(np.float32)  # about of one length each in MᵀU
    with one_blas_thread():
        moved = tables.by_slabs(HopProduct(hops, tables).image, tables.table(shares))
        among = _products(shares, tables.array(moved), threads)  # the inner products of MᵀU's columns
        vectors = np.ascontiguousarray(tables.array(tables.rotate(moved, _turn(among, squares))))
    return Decomposition(vectors, np.einsum("ij,ij->j", vectors, vectors, dtype=np.float64))


def _turn(among: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """What makes columns with these inner products orthonormal and turns them to where U was.

    Of M V R, where V is orthonormal, the rotation R that is nearest to U is the polar factor of (M V)ᵀU; and (M V)ᵀU is
    made of the inner products alone.
    """
    values, axes = np.linalg.eigh((among + among.T) / 2)
    basis = axes * _inverse(np.sqrt(np.where(values > NEGLIGIBLE * values[-1], values, 0)))
    left, _, right = np.linalg.svd(basis.T @ among * squares)
    turn: np.ndarray = basis @ left @ right
    return turn


def _products(first: np.ndarray, second: np.ndarray, threads: int | None) -> np.ndarray:
    """The inner products of the columns of two tables, float64; blocks of rows are added up in their order."""
    blocks = [slice(at, at + BLOCK_ROWS) for at in range(0, len(first), BLOCK_ROWS)]
    shares = map_threads(
        lambda rows: first[rows].astype(np.float64).T @ second[rows].astype(np.float64), blocks, threads
    )
    total: np.ndarray = sum(shares, np.zeros((first.shape[1], second.shape[1])))
    return total


def _inverse(values: np.ndarray) -> np.ndarray:
    return np.divide(1, values, out=np.zeros_like(values), where=values > 0)
