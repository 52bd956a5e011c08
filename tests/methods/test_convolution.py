import numpy as np
import pytest
from scipy import sparse

from neural_brane import DGI, AttributedGraph, synthetic
from neural_brane.linalg.weights import without_self_loops
from neural_brane.methods import convolution
from neural_brane.methods import descent as backend

torch = pytest.importorskip("torch", reason="convolutions need torch: pip install 'neural-brane[torch]'")


def test_averages_are_kipf_and_wellings(small_graph):
    """The formula on dense matrices, for links without weights."""
    links = without_self_loops(small_graph.adjacency)
    links.data[:] = 1
    looped = links.toarray() + np.eye(len(small_graph))
    scales = np.diag(looped.sum(axis=1) ** -0.5)
    np.testing.assert_allclose(convolution.normalised(links).toarray(), scales @ looped @ scales, rtol=1e-6)


def test_averages_do_not_depend_on_the_unit_of_weights(small_graph):
    links = without_self_loops(small_graph.adjacency)
    first, again = (convolution.normalised(links * unit).toarray() for unit in (1, 1000))
    np.testing.assert_allclose(first, again, rtol=1e-6)
    np.testing.assert_array_equal(first, first.T)
    alone = small_graph.ids.tolist().index("kim")
    assert first[alone, alone] == 1


def test_shares_sum_to_one(small_graph):
    sums = convolution.shares(small_graph.attributes).sum(axis=1)
    described = np.diff(small_graph.attributes.indptr) > 0
    np.testing.assert_allclose(sums, described, rtol=1e-6)


@pytest.mark.parametrize("symmetric", [True, False])
def test_products_and_their_gradients_are_those_of_the_dense_matrix(symmetric):
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((9, 9 if symmetric else 5), density=0.4, rng=rng, dtype=np.float32, format="csr")
    matrix = (matrix + matrix.T).tocsr() if symmetric else matrix
    table = torch.from_numpy(rng.random((matrix.shape[1], 3), np.float32)).requires_grad_()
    slope = rng.random((9, 3), np.float32)
    product = backend.BothWays(matrix, "cpu", symmetric=symmetric) @ table
    product.backward(torch.from_numpy(slope))
    np.testing.assert_allclose(product.detach(), matrix.toarray() @ table.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(table.grad, matrix.toarray().T @ slope, rtol=1e-5)


def test_parts_are_walks_and_the_edges_among_their_nodes():
    graph = synthetic(500, seed=1)
    pieces = convolution.Pieces(graph, 100, "cpu")
    assert pieces.per_epoch == 5
    nodes = convolution.walk_nodes(pieces.links, 100, np.random.default_rng(3))
    piece = pieces.draw(np.random.default_rng(3))
    assert 50 < len(nodes) <= 100
    assert len(piece) == len(nodes)
    np.testing.assert_array_equal(piece.links.toarray(), pieces.links.toarray()[np.ix_(nodes, nodes)])
    np.testing.assert_array_equal(piece.entries.toarray(), pieces.attributes.toarray()[nodes])
    uniform = np.random.default_rng(0).choice(500, len(nodes), replace=False)
    assert piece.links.nnz > 1.2 * pieces.links[uniform][:, uniform].nnz  # because walks contain neighbours


def test_small_graphs_are_convolved_whole():
    pieces = convolution.Pieces(synthetic(50), 50, "cpu")
    assert pieces.draw(np.random.default_rng(0)) is pieces.draw(np.random.default_rng(1))
    assert len(pieces.whole) == 50


def test_parts_take_as_many_steps_as_the_graph_has_nodes():
    method = DGI(dim=4, epochs=3, nodes_per_step=60, seed=0, device="cpu")
    seen = []
    method.set_params(progress=seen.append).fit(synthetic(200))
    assert (seen[-1].done, seen[-1].total, len(method.loss_history_)) == (12, 12, 3)


def test_training_in_parts_learns_what_the_whole_teaches():
    """Both give vectors that separate classes about as well, by the nearest mean of a class on held-out nodes."""
    graph = synthetic(600, seed=2)
    right = []
    for most in (600, 200):
        vectors = DGI(dim=16, epochs=40, nodes_per_step=most, seed=0, device="cpu").fit_transform(graph).vectors
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        classes = np.unique(graph.labels)
        means = np.stack([unit[::2][graph.labels[::2] == label].mean(axis=0) for label in classes])
        right.append(np.mean(classes[np.argmax(unit[1::2] @ means.T, axis=1)] == graph.labels[1::2]))
    assert min(right) > 2 / len(classes)
    assert right[1] > right[0] - 0.1


def test_a_graph_of_self_loops_is_its_own_average():
    graph = AttributedGraph.from_sparse(sparse.eye_array(4, format="csr"), sparse.eye_array(4, format="csr"))
    np.testing.assert_array_equal(convolution.normalised(without_self_loops(graph.adjacency)).toarray(), np.eye(4))
    assert np.isfinite(DGI(dim=3, epochs=2, seed=0, device="cpu").fit_transform(graph).vectors).all()
