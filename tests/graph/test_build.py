"""Unusual arrays work; values that would give a wrong graph are refused with their position."""

import numpy as np
import pytest
from scipy import sparse

from neural_brane import AttributedGraph
from neural_brane.errors import GraphError

WEIGHTS = np.array([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
EDGES = [(0, 1), (1, 2)]
FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


@pytest.mark.parametrize("container", [sparse.coo_matrix, sparse.coo_array])
@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("kind", ["i1", "u8", "f4", "f8", "g"])
def test_sparse_matrices_of_every_format(container, layout, kind):
    graph = AttributedGraph.from_sparse(
        container(WEIGHTS.astype(kind)).asformat(layout), container(WEIGHTS.astype(kind)).asformat(layout)
    )
    assert graph.adjacency.toarray().tolist() == graph.attributes.toarray().tolist() == WEIGHTS.tolist()


@pytest.mark.parametrize(
    "change",
    [
        lambda array: array.astype(">f8"),
        lambda array: array.astype(np.float16),
        lambda array: array.astype(np.longdouble),
        lambda array: array.astype(object),
        lambda array: np.asfortranarray(array),
        lambda array: np.repeat(array, 2, axis=1)[:, ::2],
        lambda array: sparse.csr_matrix(array).todense(),  # numpy.matrix
        lambda array: array.tolist(),
    ],
    ids=["big-endian", "half", "long", "objects", "Fortran", "strided", "matrix", "list"],
)
def test_dense_arrays_of_every_layout(change):
    graph = AttributedGraph.from_sparse(change(WEIGHTS), change(WEIGHTS))
    assert graph.adjacency.toarray().tolist() == graph.attributes.toarray().tolist() == WEIGHTS.tolist()


def test_memory_maps_that_cannot_be_written(tmp_path):
    repeated = sparse.coo_array(([1.0, 1.0, 3.0], ([0, 0, 1], [1, 1, 2])), shape=(3, 3)).tocsr()
    for part in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{part}.npy", getattr(repeated, part))
    parts = [np.load(tmp_path / f"{part}.npy", mmap_mode="r") for part in ("data", "indices", "indptr")]
    graph = AttributedGraph.from_sparse(sparse.csr_array(tuple(parts), shape=(3, 3)))
    assert graph.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 3], [0, 3, 0]]
    edges = np.load(tmp_path / "indices.npy", mmap_mode="r")[:2].reshape(1, 2)
    assert AttributedGraph.from_edges(edges).edges == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda matrix: matrix * 1e-300, r"\[0, 1\].* is 2e-300.*float32"),
        (lambda matrix: matrix * 1e300, r"\[0, 1\].* is 2e\+300.*float32"),
        (lambda matrix: matrix * 1j, "complex128"),
        (lambda matrix: matrix * np.nan, r"\[0, .\].* is NaN"),
    ],
)
@pytest.mark.parametrize("container", [np.array, sparse.csr_array])
def test_values_that_float32_cannot_represent_are_refused(change, message, container):
    bad = change(container(WEIGHTS.astype(float)))
    with pytest.raises(GraphError, match=f"adjacency.*{message}"):
        AttributedGraph.from_sparse(bad)
    with pytest.raises(GraphError, match=f"attributes.*{message}"):
        AttributedGraph.from_sparse(WEIGHTS, bad)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ma.masked_equal(WEIGHTS, 0), "adjacency: 5 entries are masked"),
        (np.ones(3), r"adjacency is float64 with shape \(3,\); give a two-dimensional matrix"),
        (sparse.coo_array(np.ones(3)), r"adjacency is float64 with shape \(3,\)"),
        (np.ones((2, 2, 2)), r"adjacency is float64 with shape \(2, 2, 2\)"),
    ],
)
def test_arrays_that_are_not_matrices_are_refused(matrix, message):
    with pytest.raises(GraphError, match=message):
        AttributedGraph.from_sparse(matrix)


def test_a_damaged_sparse_matrix_is_refused():
    matrix = sparse.csr_array(WEIGHTS)
    matrix.indices[0] = 77
    with pytest.raises(GraphError, match=r"adjacency.*matrix"):
        AttributedGraph.from_sparse(matrix)


def test_repeats_that_add_up_to_infinity_are_refused():
    largest = float(np.finfo(np.float32).max)
    with pytest.raises(GraphError, match=r"adjacency\[0, 1\] is 6\.8.*float32"):
        AttributedGraph.from_sparse(sparse.coo_array(([largest, largest], ([0, 0], [1, 1])), shape=(2, 2)))
    with pytest.raises(GraphError, match=r"adjacency.*infinity"):
        AttributedGraph.from_edges([(0, 1), (1, 0)], [largest, largest], duplicates="sum")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 1e-300], "weight of edge 1 is 1e-300.*float32"),
        ([1, 1j], "weights.*complex128"),
        (np.array([1, 1j]), "weights.*complex128"),
        (np.ma.array([1.0, 2.0], mask=[False, True]), "weights: 1 entries are masked"),
        ([1, None], "the weight of edge 1 is NaN"),
        ([1, -np.inf], "the weight of edge 1 is -inf"),
        ([1, -2], "the weight of edge 1 is -2"),
    ],
)
def test_invalid_weights_are_refused(weights, message):
    with pytest.raises(GraphError, match=message):
        AttributedGraph.from_edges(EDGES, weights)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "b"), ("b", None)], r"an end of edge 1 is missing \(None\)"),
        ([("a", "b"), ("b", float("nan"))], r"an end of edge 1 is missing \(nan\)"),
        ([(0, 1), (1, float("nan"))], r"an end of edge 1 is missing \(nan\)"),
        ([("a", True)], "an end of edge 0 is True, a bool"),
        (np.ma.array([[0, 1]], mask=[[False, True]]), "edges: 1 entries are masked"),
    ],
)
def test_invalid_ends_of_edges_are_refused(edges, message):
    with pytest.raises(GraphError, match=message):
        AttributedGraph.from_edges(edges)


@pytest.mark.parametrize(
    ("bag", "message"),
    [
        ({"age": float("nan")}, r"\(attribute 'age' of node 1\) is NaN"),
        ({"age": None}, r"\(attribute 'age' of node 1\) is NaN"),
        ({"age": np.inf}, r"\(attribute 'age' of node 1\) is inf"),
        ({"age": 1e-300}, r"\(attribute 'age' of node 1\) is 1e-300"),
        ({"age": "old"}, "attribute values cannot be read as numbers"),
        ({None: 1}, r"an attribute of node 1 is missing \(None\)"),
        (["chess", float("nan")], r"an attribute of node 1 is missing \(nan\)"),
    ],
)
def test_invalid_amounts_of_attributes_are_refused(bag, message):
    with pytest.raises(GraphError, match=message):
        AttributedGraph.from_edges(EDGES, attributes={1: bag})


def test_large_unsigned_ids_stay_apart():
    large = 2**63
    graph = AttributedGraph.from_edges(np.array([[large, large + 1], [large + 1, 5]], dtype=np.uint64))
    assert graph.ids.tolist() == [str(large), str(large + 1), "5"]
