import numpy as np
import pytest
from scipy import sparse

from neural_brane import EP, AttributedGraph, classify, load
from neural_brane.errors import GraphError
from neural_brane.methods.ep import draw


def test_vectors_are_the_means_of_rows(small_graph):
    method = EP(dim=7, epochs=2, seed=0).fit(small_graph)
    attributes = small_graph.attributes.toarray()
    links = small_graph.adjacency.toarray() * (1 - np.eye(len(small_graph)))
    around = links @ attributes
    bags = np.where(attributes.any(axis=1, keepdims=True), attributes, around)
    half = bags @ method.attributes_ / np.maximum(bags.sum(axis=1, keepdims=True), 1)
    assert (half.shape[1], method.nodes_.shape[1]) == (4, 3)
    np.testing.assert_allclose(method.embedding_.vectors, np.hstack([half, method.nodes_]), atol=1e-5)


def test_a_node_without_attributes_is_made_of_its_neighbours():
    links = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]
    graph = AttributedGraph.from_edges(links, attributes={"b": ["x"], "c": ["y", "z"], "d": ["x", "y"]})
    method = EP(dim=6, epochs=3, seed=0).fit(graph)
    rows = dict(zip(graph.attribute_names.tolist(), method.attributes_, strict=True))
    np.testing.assert_allclose(method.embedding_["a"][:3], (rows["x"] + rows["y"] + rows["z"]) / 3, atol=1e-5)


def test_training_lowers_the_loss_and_tells_classes_apart():
    graph = load("stdlib")
    method = EP(dim=32, margin=2, epochs=60, learning_rate=0.01, seed=0).fit(graph)
    assert method.loss_history_[-1] < 0.6 * method.loss_history_[0]
    before = EP(dim=32, epochs=1, learning_rate=1e-9, seed=0).fit(graph)
    scores = [classify(one.embedding_.vectors, graph.labels, train=[0.5]).scores[0] for one in (method, before)]
    assert scores[0].micro.mean > scores[1].micro.mean + 0.02


def test_without_attributes_the_whole_vector_is_of_nodes(small_graph):
    bare = AttributedGraph.from_sparse(small_graph.adjacency, sparse.csr_array((len(small_graph), 0), dtype=np.float32))
    method = EP(dim=5, epochs=2, seed=0).fit(bare)
    np.testing.assert_array_equal(method.embedding_.vectors, method.nodes_)
    assert method.nodes_.shape == (len(bare), 5)


def test_new_nodes_are_made_of_attributes_and_neighbours(small_graph):
    method = EP(dim=6, epochs=2, seed=0).fit(small_graph)
    new = AttributedGraph.from_edges([("zoe", "ann"), ("zoe", "bob"), ("yan", "zoe")], attributes={"zoe": ["tea"]})
    embedding = method.transform(new)
    row = method.attributes_[small_graph.attribute_names.tolist().index("tea")]
    known = [method.embedding_[one][3:] for one in ("ann", "bob")]
    np.testing.assert_allclose(embedding["zoe"], np.concatenate([row, np.mean(known, axis=0)]), atol=1e-5)
    np.testing.assert_allclose(embedding["yan"], np.concatenate([row, np.zeros(3)]), atol=1e-5)


def test_a_drawn_node_is_any_other():
    nodes, others = np.array([1, 4, 6]), np.array([1, 2, 4, 6])
    drawn = [draw(nodes, others, np.random.default_rng(seed)) for seed in range(300)]
    pairs = np.array([np.stack(pair, axis=1) for pair in drawn]).reshape(-1, 2)
    assert {tuple(pair) for pair in pairs.tolist()} == {(a, b) for a in (1, 4, 6) for b in (1, 2, 4, 6) if a != b}


def test_self_loops_alone_are_refused():
    loops = sparse.eye_array(4, dtype=np.float32, format="csr")
    with pytest.raises(GraphError, match=r"graph 'graph'.*link"):
        EP().fit((loops, loops))
