"""Arrange the matrix M of a graph as factors, and find leading eigenvectors of MMᵀ by products with M and Mᵀ."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.kernels.threads import SLAB_COLUMNS, one_blas_thread
from neural_brane.linalg.tables import Table, Tables

# The matrix M whose leading directions are the spectral vectors. Its factors are never multiplied out.


class Hops(NamedTuple):
    """The factors of M = [w₀X, w₁ÂX, w₂Â²X, …], where X = [attributes ‖ links] and Â averages over neighbours.

    Links and Â are the adjacency A with scaled rows and columns. They are stored as A and the scales. If M is centred,
    products subtract the mean of each of its columns, which is never done to the entries: they would no longer be
    sparse.
    """

    attributes: sparse.csr_array | None  # weighed; X is the identity if there are no attributes and no links
    weights: Sequence[float] = (1.0,)
    adjacency: sparse.csr_array | None = None  # A; None if M does not need it
    links: tuple[np.ndarray, np.ndarray] | None = None  # scales of A's rows and columns
    averages: tuple[np.ndarray, np.ndarray] | None = None  # scale of A's rows, and Â's diagonal
    centred: bool = False


def factor_hops(source: Any, weights: Sequence[float], *, link_weight: float = 0.0, centred: bool = False) -> Hops:
    """Return the factors of M for a graph.

    source: a graph or some of its rows, with `name`, `adjacency`, `linked` (whether there is an edge), and the fields
    of `Hops` as methods `bags()`, `averages()` and `links()`. A `link_weight` above 0 adds the links to X, a column per
    node with that weight. If there are no links in X and no attribute distinguishes nodes, X is the identity and w₀
    becomes 0.
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
            why = "links are not used" if source.linked else "it has no edges"
            raise GraphError(
                f"no attribute of graph '{source.name}' distinguishes its nodes, and {why}; add attributes"
                + (", or choose a method that uses links" if source.linked else "")
            )
        weights = (0.0, *weights[1:])
    return Hops(bags, weights, source.adjacency if links or averages else None, links, averages, centred)


# Leading eigenvectors of MMᵀ. The algorithm needs only products with M and Mᵀ.

OVERSAMPLING = 10  # additional vectors, as advised by Halko, Martinsson and Tropp
ITERATIONS = 6
REPORTS = ITERATIONS + 1  # calls of `report` by `leading_eigenvectors`
INDEPENDENT = 1e-3  # least share of a column's length that is orthogonal to the columns before it
NEGLIGIBLE = 1e-6  # share of the largest eigenvalue below which single precision cannot tell a value from zero


class Operator(Protocol):
    """A matrix M of `size` rows, given by its products; a product never overwrites its argument.

    If the columns of M have mean zero, so have the columns of an image, and `gram` needs a table of this kind.
    """

    size: int

    def image(self, table: Table) -> Table:
        """Return M(Mᵀ table)."""

    def gram(self, table: Table) -> np.ndarray:
        """Return the inner products of the columns of Mᵀ table, float64."""


def leading_eigenvectors(
    operator: Operator, rank: int, *, tables: Tables, seed: int, report: Callable[[], Any] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues (rank,) of MMᵀ, and eigenvectors times root eigenvalues (size, rank) float32.

    These are the squared singular values of M, and its left singular vectors times the singular values. Columns beyond
    M's rank are zero. The algorithm is randomised subspace iteration. Tables are float32; the small matrices of inner
    products are decomposed on the CPU in float64.
    """
    width = -(-min(operator.size, rank + OVERSAMPLING) // SLAB_COLUMNS) * SLAB_COLUMNS  # whole slabs cost no more
    report = report or (lambda: None)
    with one_blas_thread():
        basis = tables.normal(operator.size, width, seed)
        for _ in range(ITERATIONS):
            basis = tables.by_slabs(operator.image, basis, reuse=True)
            basis = tables.rotate(basis, whiten(tables.gram(basis)))
            report()
        whitened = whiten(tables.gram(basis))  # the basis is orthonormal only to single precision
        values, axes = np.linalg.eigh(whitened.T @ operator.gram(basis) @ whitened)
        values, rotation = values[::-1], (whitened @ axes)[:, ::-1]
        kept = min(int(np.count_nonzero(values > NEGLIGIBLE * values[0])), rank)
        scaled = np.zeros((width, rank))
        scaled[:, :kept] = rotation[:, :kept] * np.sqrt(values[:kept])
        vectors = tables.array(tables.rotate(basis, scaled))
    report()
    least, most = tables.extremes(vectors)
    vectors *= np.where(-least > most, np.float32(-1), np.float32(1))  # fixes the sign
    return np.append(values[:kept], np.zeros(rank - kept)), vectors


def whiten(gram: np.ndarray) -> np.ndarray:
    """Return a matrix that makes columns with the inner products `gram` orthonormal; dependent columns become zero.

    Columns are first scaled to length one, so that short ones count as much as long ones. Independent columns, the
    usual case, need only a Cholesky factor; eigenvectors take ten times as long.
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
