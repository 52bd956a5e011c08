import numpy as np
import pytest
from scipy import sparse

from neural_brane import AttributedGraph, GraphSAGE, load
from neural_brane.errors import GraphError
from neural_brane.methods import graphsage

torch = pytest.importorskip("torch", reason="graphsage needs torch: pip install 'neural-brane[torch]'")

GOLDEN = 18.444


def batch_of(method, graph, pairs, negatives):
    batches = graphsage.PairBatches(method, graph, walks=None, rng=np.random.default_rng(0))
    return batches.gather(pairs, negatives)


def test_training_and_embedding_are_one_network(small_graph):
    """If samples contain whole neighbourhoods, the final vectors equal those of training."""
    method = GraphSAGE(dim=7, epochs=1, seed=0).fit(small_graph)
    nodes = np.array([1, 4, 8, 10])
    weights = graphsage.SAGEWeights(*map(torch.from_numpy, method.weights_))
    batch = batch_of(method, small_graph, np.stack([nodes, nodes]), nodes)
    vectors = graphsage._forward(weights, batch, "cpu").numpy()
    np.testing.assert_allclose(vectors, method.embedding_.vectors[nodes], rtol=1e-4, atol=1e-6)


def test_vectors_are_the_formula(small_graph):
    method = GraphSAGE(dim=6, epochs=1, seed=0).fit(small_graph)
    weights = method.weights_
    attributes, links = small_graph.attributes.toarray(), small_graph.adjacency.toarray() > 0
    means = links / np.maximum(links.sum(axis=1, keepdims=True), 1)
    hidden = np.maximum(np.hstack([attributes @ weights.own_1, means @ attributes @ weights.around_1]), 0)
    expected = np.hstack([hidden @ weights.own_2, means @ hidden @ weights.around_2])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(method.embedding_.vectors, expected, rtol=1e-4, atol=1e-6)


def test_the_loss_is_the_formula(small_graph):
    method = GraphSAGE(dim=6, epochs=1, seed=0).fit(small_graph)
    z = method.embedding_.vectors.astype(float)
    pairs, negatives = np.array([[0, 1, 7], [2, 5, 8]]), np.array([3, 9])
    batch = batch_of(method, small_graph, pairs, negatives)
    weights = graphsage.SAGEWeights(*map(torch.from_numpy, method.weights_))
    near = np.sum(z[pairs[0]] * z[pairs[1]], axis=1)
    far = z[pairs[0]] @ z[negatives].T
    expected = np.mean(np.log1p(np.exp(-near)) + np.log1p(np.exp(far)).sum(axis=1))
    assert graphsage._loss(weights, batch, "cpu").item() == pytest.approx(expected, rel=1e-5)


def test_training_draws_neighbours_together():
    graph = load("stdlib")
    start, end = (
        GraphSAGE(dim=16, walks_per_node=count, learning_rate=rate, seed=0).fit(graph)
        for count, rate in ((1, 1e-12), (10, 0.01))
    )
    assert end.loss_history_[-1] < start.loss_history_[-1] - 0.5
    rows, columns = graph.adjacency.nonzero()

    def margin(z):
        return np.mean(np.sum(z[rows] * z[columns], axis=1)) - np.mean(z @ z.T)

    assert margin(end.embedding_.vectors) > margin(start.embedding_.vectors) + 0.1


def test_vectors_have_length_one_or_are_zero():
    edges, attributes = [("a", "b"), ("b", "c")], {"a": ["x"], "b": ["y"], "c": ["x"], "d": ["x"]}
    graph = AttributedGraph.from_edges(edges, attributes=attributes, ids=["a", "b", "c", "d", "e"])
    lengths = np.linalg.norm(GraphSAGE(dim=8, epochs=1, seed=0).fit_transform(graph).vectors, axis=1)
    np.testing.assert_allclose(lengths, [1, 1, 1, 1, 0], rtol=1e-5)


def test_width_one_is_a_node_alone(small_graph):
    assert GraphSAGE(dim=1, epochs=1, seed=0).fit_transform(small_graph).vectors.shape == (12, 1)


def test_self_loops_alone_are_refused():
    with pytest.raises(GraphError, match=r"graph 'graph'.*link"):
        GraphSAGE().fit((sparse.eye_array(3, format="csr"), sparse.eye_array(3, format="csr")))


def test_golden_loss():
    """A change of this is a change of what everybody's seed gives: it belongs in the changelog."""
    method = GraphSAGE(dim=16, walks_per_node=2, learning_rate=0.01, seed=0, device="cpu").fit(load("stdlib"))
    assert method.loss_history_ == pytest.approx([GOLDEN], rel=1e-2)
