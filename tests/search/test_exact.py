import numpy as np
import pytest

from neural_brane.errors import ParameterError
from neural_brane.search.exact import BLOCK_QUERIES, BLOCK_ROWS, Exact, cosines_of_pairs, nearest_rows


def by_definition(vectors, queries, k, exclude=None):
    """The nearest rows in float64, all at once."""
    vectors, queries = np.asarray(vectors, np.float64), np.asarray(queries, np.float64)
    lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(vectors, axis=1)
    cosines = np.divide(queries @ vectors.T, lengths, out=np.zeros_like(lengths), where=lengths > 0).astype(np.float32)
    if exclude is not None:
        cosines[np.arange(len(queries)), exclude] = -np.inf
    rows = np.argsort(-cosines, axis=1, kind="stable")[:, : min(k, len(vectors))]
    return rows, np.take_along_axis(cosines, rows, axis=1)


def table(rows, dim=12, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)


@pytest.mark.parametrize("rows", [1, 7, BLOCK_ROWS, 3 * BLOCK_ROWS + 5])
@pytest.mark.parametrize("count", [1, 3, BLOCK_QUERIES + 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_nearest_are_those_of_the_definition(rows, count, threads):
    vectors, queries = table(rows), table(count, seed=1)
    found = nearest_rows(vectors, queries, 10, threads=threads)
    expected, cosines = by_definition(vectors, queries, 10)
    np.testing.assert_array_equal(found.rows, expected)
    np.testing.assert_allclose(found.cosines, cosines, atol=2e-7)
    assert found.cosines.dtype == np.float32


def test_threads_blocks_and_company_change_no_bit():
    vectors = np.repeat(table(BLOCK_ROWS), 5, axis=0)  # every vector five times: ties everywhere
    queries = vectors[:: BLOCK_ROWS // 3]
    together = nearest_rows(vectors, queries, 7, threads=1)
    for threads in (2, 3, 8):
        again = nearest_rows(vectors, queries, 7, threads=threads)
        assert (again.rows == together.rows).all()
        assert again.cosines.tobytes() == together.cosines.tobytes()
    for at, query in enumerate(queries):
        alone = nearest_rows(vectors, query[None], 7)
        assert alone.rows[0].tolist() == together.rows[at].tolist()
        assert alone.cosines.tobytes() == together.cosines[at : at + 1].tobytes()


def test_equal_cosines_are_in_the_order_of_rows():
    vectors = np.ones((2 * BLOCK_ROWS, 3), np.float32) * np.arange(1, 2 * BLOCK_ROWS + 1)[:, None]
    assert nearest_rows(vectors, np.ones((1, 3)), 5, threads=2).rows.tolist() == [[0, 1, 2, 3, 4]]
    assert nearest_rows(vectors, np.zeros((2, 3)), 3).cosines.tolist() == [[0, 0, 0]] * 2


def test_a_row_can_be_left_out_by_each_query():
    vectors = table(50)
    exclude = np.array([3, 49, -1])
    found = nearest_rows(vectors, vectors[[3, 49, 7]], 4, exclude)
    assert 3 not in found.rows[0]
    assert 49 not in found.rows[1]
    assert found.rows[2][0] == 7
    everything = nearest_rows(vectors, vectors[[3, 49, 7]], 99, exclude)
    assert everything.rows.shape == (3, 50)
    assert everything.rows[:, -1].tolist()[:2] == [-1, -1]
    assert nearest_rows(vectors, vectors[:1], 99, [0]).rows.shape == (1, 49)


def test_vectors_of_zeros_of_any_length_and_beyond_float32s_precision():
    vectors = table(30)
    vectors[4] = 0
    scaled = vectors * np.float32(10.0) ** np.linspace(-38, 36, 30, dtype=np.float32)[:, None]
    found = nearest_rows(scaled, vectors[:3], 30)
    assert found.rows.tolist() == by_definition(scaled, vectors[:3], 30)[0].tolist()
    assert found.cosines[found.rows == 4].tolist() == [0, 0, 0]


def test_vectors_without_a_direction_are_never_found():
    vectors = table(6)
    vectors[2, 0], vectors[3, 1] = np.nan, np.inf
    assert sorted(nearest_rows(vectors, vectors[:1], 6).rows[0].tolist()) == [0, 1, 4, 5]


def test_centred_search_is_search_among_centred_vectors():
    vectors = table(100) + 5
    mean = vectors.mean(axis=0)
    found = nearest_rows(vectors, vectors[:9], 5, center=mean)
    assert found.rows.tolist() == nearest_rows(vectors - mean, vectors[:9] - mean, 5).rows.tolist()
    assert found.rows.tolist() != nearest_rows(vectors, vectors[:9], 5).rows.tolist()


def test_a_mapped_table_is_searched_as_it_lies(tmp_path):
    vectors = table(2 * BLOCK_ROWS + 1)
    for name, stored in (("plain", vectors), ("columns", np.asfortranarray(vectors)), ("wide", vectors.astype(">f8"))):
        np.save(tmp_path / f"{name}.npy", stored)
        mapped = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
        search = Exact(mapped)
        assert np.shares_memory(search.vectors, mapped)
        for _ in range(2):  # the second search knows the lengths
            assert search.nearest(vectors[:3], 4).rows.tolist() == nearest_rows(vectors, vectors[:3], 4).rows.tolist()


def test_nothing_to_ask_or_to_find():
    assert nearest_rows(table(5), np.empty((0, 12)), 3).rows.shape == (0, 0)
    assert nearest_rows(np.empty((0, 12)), table(2), 3).rows.shape == (2, 0)


def test_queries_of_another_shape_are_refused():
    with pytest.raises(ParameterError, match=r"queries.*1.*3.*12"):
        nearest_rows(table(5), np.ones((1, 3)), 2)
    with pytest.raises(ParameterError, match=r"exclude.*shape"):
        nearest_rows(table(5), table(1), 2, [0, 1])


def test_cosines_of_pairs():
    one, other = table(20), table(20, seed=1)
    expected = (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    np.testing.assert_allclose(cosines_of_pairs(one, other), expected, rtol=1e-5)
    assert cosines_of_pairs(np.zeros((1, 3)), np.ones((1, 3))).tolist() == [0]
