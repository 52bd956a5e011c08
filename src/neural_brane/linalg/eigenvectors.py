"""Leading eigenvectors of MMᵀ by products with M and Mᵀ alone, and the matrix of hops that is never multiplied out."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.kernels.threads import SLAB_COLUMNS, one_blas_thread
from neural_brane.linalg.tables import Table, Tables

# The matrix whose leading directions are the spectral vectors, in parts that are never multiplied out.


class Hops(NamedTuple):
    """What the matrix M = [w₀X, w₁ÂX, w₂Â²X, …] is made of: X = [attributes ‖ links], Â averages over neighbours.

    Links are the adjacency A itself between two scalings, and so is Â: none of them is ever formed.
    """

    attributes: sparse.csr_array | None  # weighed; with neither these nor links, X is the identity
    weights: Sequence[float] = (1.0,)
    adjacency: sparse.csr_array | None = None  # A; None where it has no part in M
    links: tuple[np.ndarray, np.ndarray] | None = None  # scales of A's rows and columns
    averages: tuple[np.ndarray, np.ndarray] | None = None  # scale of A's rows, and what stands on Â's diagonal


def arrange_hops(source: Any, weights: Sequence[float], *, link_weight: float = 0.0) -> Hops:
    """The matrix of a graph; an attribute's weight is its rarity.

    source: a graph or some of its rows, with `name`, `adjacency`, `linked` (whether there is an edge), and what makes
    `Hops`: `bags()`, `averages()` and `links()`. With a `link_weight` the node's links are attributes as well: X has a
    column for every node, with that weight. Where neither these nor a known attribute tells nodes apart, links take
    their place: X is the identity, and w₀ counts no longer.
    """
    weights = np.trim_zeros(weights, "b")
    bags = source.bags()
    averages = source.averages() if len(weights) > 1 else None
    links = None
    if link_weight and source.linked:
        rows, columns = source.links()
        links = link_weight * rows, columns
    if bags is None and links is None:
        if averages is None or not source.linked:
            raise GraphError(
                f"graph '{source.name}' has no attribute that tells its nodes apart, and "
                f"{'links are not used' if source.linked else 'no links either'}; give nodes attributes, or choose a "
                "method that uses the links there are"
            )
        weights = (0.0, *weights[1:])
    return Hops(bags, weights, source.adjacency if links or averages else None, links, averages)


# Leading eigenvectors of MMᵀ, by products with M and Mᵀ alone.

OVERSAMPLING = 10  # vectors computed beyond those wanted, as Halko, Martinsson and Tropp advise
ITERATIONS = 6
REPORTS = ITERATIONS + 1  # how often `leading_eigenvectors` calls its report
INDEPENDENT = 1e-3  # of a column's length, beside what depends on those before it
NEGLIGIBLE = 1e-6  # of the largest eigenvalue: products in single precision do not tell a smaller one from zero


class Operator(Protocol):
    """A matrix M of `size` rows that is only ever multiplied with; no product is written over its argument."""

    size: int

    def image(self, table: Table) -> Table:
        """M(Mᵀ table)."""

    def gram(self, table: Table) -> np.ndarray:
        """The inner products of the columns of Mᵀ table, float64."""


def leading_eigenvectors(
    operator: Operator, rank: int, *, tables: Tables, seed: int, report: Callable[[], Any] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues (rank,) of MMᵀ, and their eigenvectors times their roots (size, rank) in float32.

    In other words the squared singular values of M, and its left singular vectors times the singular values. Columns
    beyond M's rank are zero. Randomised subspace iteration on tables of single precision; what is small, the inner
    products of the columns, is decomposed on the CPU in double precision.
    """
    width = -(-min(operator.size, rank + OVERSAMPLING) // SLAB_COLUMNS) * SLAB_COLUMNS  # part of a slab is no cheaper
    report = report or (lambda: None)
    with one_blas_thread():
        basis = tables.normal(operator.size, width, seed)
        for _ in range(ITERATIONS):
            basis = tables.by_slabs(operator.image, basis, reuse=True)
            basis = tables.rotate(basis, whiten(tables.gram(basis)))
            report()
        whitened = whiten(tables.gram(basis))  # the basis is orthonormal only as far as single precision goes
        values, axes = np.linalg.eigh(whitened.T @ operator.gram(basis) @ whitened)
        values, rotation = values[::-1], (whitened @ axes)[:, ::-1]
        kept = min(int(np.count_nonzero(values > NEGLIGIBLE * values[0])), rank)
        scaled = np.zeros((width, rank))
        scaled[:, :kept] = rotation[:, :kept] * np.sqrt(values[:kept])
        vectors = tables.array(tables.rotate(basis, scaled))
    report()
    least, most = tables.extremes(vectors)
    vectors *= np.where(-least > most, np.float32(-1), np.float32(1))  # one of two signs
    return np.append(values[:kept], np.zeros(rank - kept)), vectors


def whiten(gram: np.ndarray) -> np.ndarray:
    """What makes columns with these inner products orthonormal; those that depend on others become zero.

    Columns are scaled to length one first, so that short ones count as much as long ones. Where all are independent,
    as they mostly are, Cholesky's factor does; eigenvectors take ten times as long.
    """
    lengths = np.sqrt(np.diag(gram))
    scale = np.divide(1, lengths, out=np.zeros(len(gram)), where=lengths > 0)
    unit = gram * scale * scale[:, None]
    try:
        factor = np.linalg.cholesky(unit)
        if np.diag(factor).min() > INDEPENDENT:
            return scale[:, None] * np.linalg.inv(factor).T
    except np.linalg.LinAlgError:
        pass
    squares, axes = np.linalg.eigh(unit)
    kept = squares > NEGLIGIBLE**2 * squares[-1]
    return scale[:, None] * axes * np.divide(1, np.sqrt(np.abs(squares)), out=np.zeros(len(gram)), where=kept)
