import numpy as np
import pytest
from scipy import sparse

from neural_brane.linalg.tables import OnTorch, Tables, tables_on


@pytest.fixture
def table():
    return np.random.default_rng(1).standard_normal((70, 45), np.float32)


def test_products_are_numpys(tables, matrix, table):
    found = tables.array(tables.matrix(matrix) @ tables.table(table))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, matrix @ table, atol=1e-5)
    slabs = tables.by_slabs(lambda slab: tables.matrix(matrix) @ slab, tables.table(table))
    np.testing.assert_allclose(tables.array(slabs), found, atol=1e-6)
    rotation = np.random.default_rng(2).standard_normal((45, 7))
    np.testing.assert_allclose(tables.array(tables.rotate(tables.table(table), rotation)), table @ rotation, atol=1e-4)


def test_a_scaled_matrix_shares_its_entries(tables, table):
    square = sparse.random_array((70, 70), density=0.1, rng=np.random.default_rng(3), format="csr", dtype=np.float32)
    rows, columns, diagonal = np.random.default_rng(4).uniform(0.5, 2, (3, 70))
    dense = rows[:, None] * square.toarray() * columns + np.diag(diagonal)
    scaled = tables.matrix(square).scaled(rows=rows, columns=columns, diagonal=diagonal)
    product = tables.array(scaled @ tables.table(table))
    np.testing.assert_allclose(product, dense @ table, atol=1e-4)
    np.testing.assert_allclose(scaled.gram(tables.table(table)), product.T.astype(float) @ product, atol=1e-4)
    plain = tables.matrix(square)
    np.testing.assert_allclose(tables.array(plain @ tables.table(table)), square @ table, atol=1e-5)


def test_a_product_may_be_written_over_its_table():
    square = sparse.random_array((70, 70), density=0.1, rng=np.random.default_rng(3), format="csr", dtype=np.float32)
    tables, table = Tables(), np.random.default_rng(1).standard_normal((70, 64), np.float32)
    expected = square @ table
    assert tables.by_slabs(lambda slab: tables.matrix(square) @ slab, table, reuse=True) is table
    np.testing.assert_allclose(table, expected, atol=1e-5)
    rotation = np.random.default_rng(2).standard_normal((64, 64))
    assert tables.rotate(table, rotation) is table
    np.testing.assert_allclose(table, expected @ rotation, atol=1e-4)


def test_inner_products_are_summed_in_double_precision(tables):
    table = np.full((3 * 10**5, 2), 0.1, np.float32)  # float32 sums would lose the fifth digit
    gram = tables.gram(tables.table(table))
    assert gram.dtype == np.float64
    np.testing.assert_allclose(gram, len(table) * np.float64(np.float32(0.1)) ** 2, rtol=1e-10)


def test_threads_change_no_bit():
    """On a matrix and a table of several blocks."""
    matrix = sparse.random_array((20_000, 500), density=0.02, rng=np.random.default_rng(0), format="csr")
    table = np.random.default_rng(1).standard_normal((500, 40), np.float32)
    products = [Tables(threads).matrix(matrix) @ table for threads in (1, 2)]
    np.testing.assert_array_equal(*products)
    np.testing.assert_array_equal(*(Tables(threads).gram(products[0]) for threads in (1, 2)))
    rotation = np.random.default_rng(2).standard_normal((40, 9))
    np.testing.assert_array_equal(*(Tables(threads).rotate(products[0], rotation) for threads in (1, 2)))


def test_the_device_decides_which_tables():
    pytest.importorskip("torch")
    assert type(tables_on("cpu", 2)) is Tables
    assert isinstance(tables_on("cuda"), OnTorch)
