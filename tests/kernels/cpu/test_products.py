"""Compare products of small matrices with NumPy, and products of sparse matrices with SciPy."""

import numpy as np
import pytest
from scipy import sparse

from neural_brane.kernels.cpu.lanes import COLUMNS, DEPTH, LANES, ROWS, Scaled, multiply, multiply_rows
from neural_brane.kernels.model import LANE

ROWS_OF_A = (1, ROWS - 1, ROWS, 3 * ROWS + 2)
DEPTHS = (1, DEPTH, 2 * DEPTH + 3)
LANES_OF_B = (1, LANES, 2 * LANES + 1)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("lanes", LANES_OF_B)
@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("rows", ROWS_OF_A)
def test_products_are_numpys(rows, depth, lanes, transposed):
    rng = np.random.default_rng(rows * depth * lanes)
    shape = (depth, rows) if transposed else (rows, depth)
    a, b = rng.standard_normal(shape, np.float32), rng.standard_normal((depth, lanes * LANE), np.float32)
    a = a.T if transposed else a
    c = np.full((rows, lanes * LANE), np.nan, np.float32)
    multiply(a, b, c, False)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5, atol=1e-4)


def test_a_part_of_a_padded_matrix_is_multiplied_alone():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((7, 32), np.float32), rng.standard_normal((20, LANE), np.float32)
    c = np.empty((7, LANE), np.float32)
    multiply(a[:, :20], b, c, False)
    np.testing.assert_allclose(c, a[:, :20] @ b, rtol=1e-5, atol=1e-5)


def test_a_product_is_added_to_what_is_there():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((7, 2 * DEPTH), np.float32), rng.standard_normal((2 * DEPTH, LANE), np.float32)
    c = np.ones((7, LANE), np.float32)
    multiply(a, b, c, True)
    np.testing.assert_allclose(c, 1 + a @ b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("density", [0, 0.02, 0.5])
@pytest.mark.parametrize("diagonal", [False, True])
def test_rows_are_those_of_scipys_product(density, diagonal):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((50, 50), density=density, rng=rng, format="csr", dtype=np.float32)
    rows, columns, own = rng.uniform(0.5, 2, (3, 50)).astype(np.float32)
    parts = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)
    scaled = Scaled(*parts, rows, columns, own if diagonal else own[:0])
    table = rng.standard_normal((50, 2 * COLUMNS), np.float32)
    product = np.full((50, 2 * COLUMNS), np.nan, np.float32)
    for first, last in ((10, 50), (3, 10)):
        multiply_rows(scaled, table, first, product[first:last])
    expected = (rows[:, None] * matrix.toarray() * columns + diagonal * np.diag(own)) @ table
    np.testing.assert_allclose(product[3:], expected[3:], atol=1e-5)
    assert np.isnan(product[:3]).all()  # rows outside the requested range
