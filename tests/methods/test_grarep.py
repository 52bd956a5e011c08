import numpy as np
import pytest
from scipy import sparse

from neural_brane import GraRep, synthetic
from neural_brane.linalg.weights import transition
from neural_brane.methods import grarep
from neural_brane.methods.grarep import largest_of_rows


def textbook(graph, *, dim, steps, shift):
    """Dense GraRep: return every matrix and the parts of the vectors."""
    weighed = graph.adjacency.toarray().astype(float)
    walk = weighed / weighed.sum(axis=1, keepdims=True)
    matrices, parts = [], []
    for step, columns in enumerate(np.array_split(np.arange(dim), steps), start=1):
        power = np.linalg.matrix_power(walk, step)
        with np.errstate(divide="ignore"):
            logs = np.log(power / power.sum(axis=0)) - np.log(shift / len(walk))
        matrices.append(np.maximum(logs, 0))
        left, values, _ = np.linalg.svd(matrices[-1])
        part = left[:, : len(columns)] * np.sqrt(values[: len(columns)])
        parts.append(part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-300))
    return matrices, parts


def matrix_of(method, graph, step, rows=7):
    walk = transition(graph.adjacency)
    arrived = np.ones(len(graph))
    for _ in range(step):
        arrived = walk.T @ arrived
    blocks = [slice(at, at + rows) for at in range(0, len(graph), rows)]
    return method._matrix(walk, step, arrived, blocks, lambda: None).toarray()


@pytest.fixture
def graph():
    """30 nodes that all have neighbours, with weights."""
    graph = synthetic(30, seed=2)
    rows = np.repeat(np.arange(30), np.diff(graph.adjacency.indptr))
    graph.adjacency.data[:] = 1 + (graph.adjacency.indices + rows) % 3
    assert np.diff(graph.adjacency.indptr).all()
    return graph


@pytest.mark.parametrize("shift", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("step", [1, 2, 4])
def test_matrices_are_those_of_the_formulas(graph, step, shift):
    expected = textbook(graph, dim=8, steps=step, shift=shift)[0][-1]
    np.testing.assert_allclose(matrix_of(GraRep(shift=shift, threads=1), graph, step), expected, atol=1e-6)


def test_parts_have_the_inner_products_of_the_dense_ones(graph):
    """Inner products are compared, because signs and rotations within equal singular values are arbitrary."""
    vectors = GraRep(dim=22, steps=3, seed=1).fit_transform(graph).vectors
    parts = textbook(graph, dim=22, steps=3, shift=1.0)[1]
    assert [part.shape[1] for part in parts] == [8, 7, 7]
    for part, columns in zip(parts, np.split(np.arange(22), [8, 15]), strict=True):
        own = vectors[:, columns]
        np.testing.assert_allclose(own @ own.T, part @ part.T, atol=1e-5)


def test_long_rows_keep_their_largest_numbers():
    dense = np.random.default_rng(0).random((6, 9)) * (np.arange(9) % 4 > 0)
    kept = largest_of_rows(sparse.csr_array(dense), 3).toarray()
    for row, full in zip(kept, dense, strict=True):
        np.testing.assert_array_equal(row, np.where(full >= np.sort(full)[-3], full, 0))


def test_long_rows_go_on_with_their_largest_chances(graph):
    """Dense matrices give the same if rows keep their largest probabilities before each step and numbers at the end."""

    def keep(rows, most):
        return np.where(rows >= np.sort(rows, axis=1)[:, -most, None], rows, 0)

    weighed = graph.adjacency.toarray().astype(float)
    walk = weighed / weighed.sum(axis=1, keepdims=True)
    chances = walk
    for _ in range(2):
        chances = keep(chances, 5) @ walk
    arrived = np.linalg.matrix_power(walk, 3).sum(axis=0)
    with np.errstate(divide="ignore"):
        expected = keep(np.maximum(np.log(chances / arrived * len(graph)), 0), 5)
    found = matrix_of(GraRep(row_entries=5, threads=1), graph, 3)
    assert (np.count_nonzero(found, axis=1) <= 5).all()
    np.testing.assert_allclose(found[found > 0], expected[found > 0], atol=1e-6)
    tied = np.count_nonzero(expected, axis=1) > 5  # ties: the first ones are kept
    np.testing.assert_allclose(found[~tied], expected[~tied], atol=1e-6)
    assert tied.mean() < 0.5


def test_few_numbers_in_a_row_change_vectors_and_many_do_not(graph):
    whole, bounded, short = (
        GraRep(dim=8, steps=2, row_entries=most, seed=0).fit_transform(graph).vectors for most in (None, 30, 3)
    )
    np.testing.assert_array_equal(whole, bounded)
    assert np.abs(whole - short).max() > 0.01


def test_the_size_of_blocks_changes_nothing(graph, monkeypatch):
    whole = GraRep(dim=8, seed=0).fit_transform(graph).vectors
    monkeypatch.setattr(grarep, "BLOCK_NUMBERS", 100)
    np.testing.assert_array_equal(GraRep(dim=8, seed=0, threads=1).fit_transform(graph).vectors, whole)


def test_a_width_below_the_number_of_steps_leaves_out_the_longest_walks(graph):
    assert GraRep(dim=2, steps=4, seed=0).fit_transform(graph).vectors.all(axis=1).all()
