import numpy as np
import pytest
from scipy import sparse

from neural_brane.kernels.cpu.products import COLUMNS, Scaled, multiply_rows


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
    assert np.isnan(product[:3]).all()  # rows that were not asked for
