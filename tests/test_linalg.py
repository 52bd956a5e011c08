import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer

from neural_brane.linalg import (
    by_slabs,
    eigenvector_reports,
    inverse_frequency,
    leading_eigenvectors,
    transition,
    weigh,
)


@pytest.fixture
def matrix():
    return sparse.random_array((90, 70), density=0.1, rng=np.random.default_rng(0), format="csr")


def squares(matrix):
    return lambda table: matrix @ (matrix.T @ table)


def test_weights_are_scikit_learns_tfidf(small_graph):
    ours = weigh(small_graph.attributes, inverse_frequency(small_graph.attributes))
    theirs = TfidfTransformer().fit_transform(small_graph.attributes)
    np.testing.assert_allclose(ours.toarray(), theirs.toarray(), rtol=1e-6)
    assert small_graph.attributes.data.max() == 2  # the graph's own numbers are as they were


def test_rows_of_a_transition_sum_to_one(small_graph):
    nodes = len(small_graph)
    alone = small_graph.ids.tolist().index("kim")
    plain = transition(small_graph.adjacency).sum(axis=1)
    np.testing.assert_allclose(np.delete(plain, alone), 1)
    assert plain[alone] == 0
    looped = transition(small_graph.adjacency, self_loops=True)
    np.testing.assert_allclose(looped.sum(axis=1), np.ones(nodes))
    assert looped[alone, alone] == 1
    heavier = transition(small_graph.adjacency * 1000, self_loops=True)  # the unit of weights does not matter
    np.testing.assert_allclose(heavier.toarray(), looped.toarray(), rtol=1e-6)


def test_leading_directions_are_those_of_the_exact_svd(matrix):
    values, vectors = leading_eigenvectors(squares(matrix), 90, 20, seed=0)
    left, exact, _ = np.linalg.svd(matrix.toarray())
    np.testing.assert_allclose(np.sqrt(values), exact[:20], rtol=0.005)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(20), atol=1e-10)
    assert abs(vectors[:, 0] @ left[:, 0]) == pytest.approx(1, abs=1e-6)
    assert (np.abs(vectors.max(axis=0)) >= np.abs(vectors.min(axis=0))).all()  # of two signs, always the same


def test_directions_beyond_the_rank_are_zero(matrix):
    low = matrix[:, :5]
    values, vectors = leading_eigenvectors(squares(low), 90, 12, seed=0)
    np.testing.assert_allclose((vectors * values) @ vectors.T, (low @ low.T).toarray(), atol=1e-10)
    assert not vectors[:, 5:].any()
    assert not values[5:].any()
    _, wide = leading_eigenvectors(squares(matrix[:3]), 3, 7, seed=0)
    assert wide.shape == (3, 7)
    assert not leading_eigenvectors(squares(matrix * 0), 90, 4, seed=0)[1].any()


def test_threads_change_no_bit_and_every_slab_reports(matrix):
    counts = []
    one, two = (
        leading_eigenvectors(squares(matrix), 90, 60, seed=3, threads=threads, report=lambda: counts.append(1))[1]
        for threads in (1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert len(counts) == 2 * eigenvector_reports(90, 60)
    table = np.random.default_rng(1).random((70, 75))
    np.testing.assert_allclose(by_slabs(lambda part: matrix @ part, table, threads=2), matrix @ table, rtol=1e-12)
