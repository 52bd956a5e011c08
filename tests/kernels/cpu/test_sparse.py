import numpy as np
import pytest
from scipy import sparse

from neural_brane.kernels.cpu.sparse import COLUMNS, multiply_rows


@pytest.mark.parametrize("density", [0, 0.02, 0.5])
def test_rows_are_those_of_scipys_product(density):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((50, 30), density=density, rng=rng, format="csr", dtype=np.float32)
    table = rng.standard_normal((30, 2 * COLUMNS), np.float32)
    product = np.full((50, 2 * COLUMNS), np.nan, np.float32)
    indptr = matrix.indptr.astype(np.int64)
    for first, last in ((10, 50), (3, 10)):
        multiply_rows(indptr, matrix.indices.astype(np.int32), matrix.data, table, first, last, product)
    np.testing.assert_allclose(product[3:], (matrix @ table)[3:], atol=1e-5)
    assert np.isnan(product[:3]).all()  # rows that were not asked for
