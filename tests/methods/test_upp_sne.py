import numpy as np
import pytest
from scipy import sparse

from neural_brane import UPPSNE, AttributedGraph, classify, load
from neural_brane.errors import GraphError, ParameterError
from neural_brane.methods.upp_sne import places_of, unit


@pytest.mark.parametrize("dim", [1, 6, 7])
def test_vectors_are_the_fourier_features_of_attributes(dim, small_graph):
    method = UPPSNE(dim=dim, walks_per_node=3, seed=0).fit(small_graph)
    attributes = small_graph.attributes.toarray()
    lengths = np.linalg.norm(attributes, axis=1, keepdims=True)
    angles = attributes / np.where(lengths > 0, lengths, 1) @ method.maps_
    expected = np.hstack([np.cos(angles), np.sin(angles)])[:, :dim]
    np.testing.assert_allclose(method.embedding_.vectors, expected, atol=1e-6)


def test_training_lowers_the_loss_and_tells_classes_apart():
    graph = load("stdlib")
    method = UPPSNE(dim=32, walks_per_node=60, learning_rate=0.01, seed=0).fit(graph)
    assert np.mean(method.loss_history_[-2:]) < 0.9 * method.loss_history_[0]
    before = UPPSNE(dim=32, walks_per_node=1, learning_rate=1e-9, seed=0).fit(graph)
    scores = [classify(one.embedding_.vectors, graph.labels, train=[0.5]).scores[0] for one in (method, before)]
    assert scores[0].micro.mean > scores[1].micro.mean + 0.05


def test_new_nodes_are_embedded_by_their_attributes(small_graph):
    method = UPPSNE(dim=6, walks_per_node=3, seed=0).fit(small_graph)
    ann = small_graph.ids.tolist().index("ann")
    names = small_graph.attribute_names[small_graph.attributes[[ann]].indices].tolist()
    np.testing.assert_allclose(method.transform({"zoe": names})["zoe"], method.embedding_["ann"], atol=1e-6)


def test_without_attributes_each_node_is_its_own(small_graph):
    bare = AttributedGraph.from_sparse(small_graph.adjacency, sparse.csr_array((len(small_graph), 0), dtype=np.float32))
    method = UPPSNE(dim=6, walks_per_node=3, seed=0).fit(bare)
    assert method.maps_.shape == (len(bare), 3)
    assert len(np.unique(method.embedding_.vectors, axis=0)) == len(bare)
    with pytest.raises(ParameterError, match="learned from a graph without attributes"):
        method.transform(small_graph)


def test_rows_of_attributes_have_length_one():
    rows = unit(sparse.csr_array(np.array([[3, 4], [0, 0], [0, -2]], np.float32))).toarray()
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [0, -1]])


def test_places_are_before_the_end_of_their_walk():
    walks = np.array([[1, 2, 3, -1], [4, -1, -1, -1], [1, 2, 3, 4]] * 100)
    places = places_of(walks, 0, 0)
    assert (walks[np.arange(300), places] >= 0).all()
    assert {tuple(set(places[at::3])) for at in range(3)} == {(0, 1, 2), (0,), (0, 1, 2, 3)}


def test_self_loops_alone_are_refused():
    loops = sparse.eye_array(4, dtype=np.float32, format="csr")
    with pytest.raises(GraphError, match=r"graph 'graph'.*link"):
        UPPSNE().fit((loops, loops))


def test_a_small_graph_has_more_walks():
    assert UPPSNE()._walks(1000) == 150_000
    assert UPPSNE()._walks(100_000) == 4_000_000
    assert UPPSNE(walks_per_node=3)._walks(1000) == 3000
