import numpy as np
import pytest
from scipy import sparse

from neural_brane.linalg.eigenvectors import REPORTS, leading_eigenvectors
from neural_brane.linalg.tables import Tables


class Plain:
    """A sparse matrix as an operator."""

    def __init__(self, matrix, tables):
        self.size = matrix.shape[0]
        self.matrix, self.columns = tables.matrix(matrix), tables.matrix(matrix.T.tocsr())

    def image(self, table):
        return self.matrix @ (self.columns @ table)

    def gram(self, table):
        return self.columns.gram(table)


def leading(matrix, rank, tables, **options):
    return leading_eigenvectors(Plain(matrix, tables), rank, tables=tables, seed=0, **options)


def test_leading_directions_are_those_of_the_exact_svd(matrix, tables):
    values, vectors = leading(matrix, 20, tables)
    left, exact, _ = np.linalg.svd(matrix.toarray())
    np.testing.assert_allclose(np.sqrt(values), exact[:20], rtol=0.005)
    np.testing.assert_allclose(vectors.T @ vectors, np.diag(values), atol=1e-5)
    cosines = np.linalg.svd(left[:, :10].T @ (vectors / np.sqrt(values)), compute_uv=False)
    np.testing.assert_allclose(cosines, 1, atol=0.001)
    assert (np.abs(vectors.max(axis=0)) >= np.abs(vectors.min(axis=0))).all()  # the sign is fixed
    assert vectors.dtype == np.float32


def test_directions_beyond_the_rank_are_zero(matrix, tables):
    low = matrix[:, :5]
    values, vectors = leading(low, 12, tables)
    np.testing.assert_allclose(vectors @ vectors.T, (low @ low.T).toarray(), atol=1e-5)
    assert not vectors[:, 5:].any()
    assert not values[5:].any()


@pytest.mark.parametrize("rows", [1, 3, 10])
def test_a_width_beyond_the_data_gives_numbers(rows, matrix, tables):
    values, vectors = leading(matrix[:rows], 150, tables)
    assert vectors.shape == (rows, 150)
    np.testing.assert_allclose(vectors @ vectors.T, (matrix[:rows] @ matrix[:rows].T).toarray(), atol=1e-5)
    assert not vectors[:, rows:].any()
    assert not values[rows:].any()


def test_nothing_has_no_directions(matrix, tables):
    for nothing in (matrix * 0, matrix[:, :0]):
        values, vectors = leading(nothing, 4, tables)
        assert vectors.shape == (90, 4)
        assert not vectors.any()
        assert not values.any()


@pytest.mark.parametrize("smallest", [1e-2, 1e-5])
def test_small_eigenvalues_are_found_as_far_as_single_precision_goes(smallest, tables):
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((size, 12)))[0] for size in (80, 50))
    exact = np.geomspace(1, smallest, 12)
    values, vectors = leading(sparse.csr_array(left * np.sqrt(exact) @ right.T), 12, tables)
    np.testing.assert_allclose(values, exact, rtol=0.01)
    np.testing.assert_allclose(vectors.T @ vectors, np.diag(values), atol=1e-5)


def test_threads_change_no_bit_and_every_iteration_reports(matrix):
    counts = []
    one, two = (leading(matrix, 60, Tables(threads), report=lambda: counts.append(1))[1] for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
    assert len(counts) == 2 * REPORTS
