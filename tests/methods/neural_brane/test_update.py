"""Neural-Brane on a graph that has grown: each of its parts, in all its recipes."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from neural_brane import AttributedGraph, NeuralBrane, synthetic
from neural_brane.graph.changes import find_changes
from neural_brane.linalg import unit_rows
from neural_brane.methods.neural_brane.updating import carry_model

SEEN = np.arange(600) < 560
WAYS = {
    "default": {},
    "spectral part alone": {"spectral_dim": 24},
    "learned part alone": {"spectral_dim": 0},
    "paper": {"recipe": "paper", "batches_per_epoch": 600, "weight_std": 0.1},
    "released": {"recipe": "released", "batches_per_epoch": 300},
    "hidden": {"spectral_dim": 0, "output": "hidden"},
    "mean pooling": {"spectral_dim": 0, "pooling": "mean"},
}


@pytest.fixture(scope="module")
def graph():
    """Three classes, told by links and by attributes."""
    return synthetic(600, classes=3, seed=1)


@pytest.mark.parametrize("way", WAYS)
def test_new_nodes_are_told_apart_and_known_ones_stay(way, graph):
    model = NeuralBrane(dim=24, epochs=4, seed=0, **WAYS[way]).fit(graph.subgraph(SEEN))
    before = model.embedding_.vectors
    after = model.update(graph).embedding_.vectors
    assert (unit_rows(before) * unit_rows(after[SEEN])).sum(axis=1).mean() > 0.95
    regression = LogisticRegression(max_iter=1000).fit(after[SEEN], graph.labels[SEEN])
    assert regression.score(after[~SEEN], graph.labels[~SEEN]) > 0.8


def test_scores_of_new_nodes_rank_their_neighbours_first(graph):
    model = NeuralBrane(dim=24, epochs=4, seed=0).fit(graph.subgraph(SEEN)).update(graph)
    links = graph.adjacency[~SEEN].tocoo()
    near = np.stack([links.row + 560, links.col], axis=1)
    far = np.stack([near[:, 0], np.random.default_rng(0).integers(0, 560, len(near))], axis=1)
    assert (model.score(graph.ids[near]) > model.score(graph.ids[far])).mean() > 0.7


def test_the_layer_and_the_widths_are_those_of_before(graph):
    small = NeuralBrane(dim=24, epochs=1, seed=0).fit(graph.subgraph(np.arange(600) < 20))
    assert small.settings_["spectral_dim"] == 10  # of 20 nodes; 600 would have 18
    assert small.update(graph).settings_["spectral_dim"] == 10
    assert small.layer_.weight.shape == (24, 24)


def test_rows_are_carried_and_new_ones_begin_as_means_of_their_neighbours(graph):
    old = graph.subgraph(SEEN)
    model = NeuralBrane(dim=24, epochs=1, seed=0).fit(old)
    changes = find_changes(old, graph)
    settings = model.settings_ | {"dim": 6}
    carried = carry_model(model.model_, changes, settings, seed=0)
    np.testing.assert_array_equal(carried.attribute_table, model.model_.attribute_table)
    np.testing.assert_array_equal(carried.neighbour_table[:560], model.model_.neighbour_table)
    at = 560 + int(np.argmax(np.diff(graph.adjacency.indptr)[560:]))
    neighbours = graph.adjacency[[at]].indices
    expected = model.model_.neighbour_table[neighbours[neighbours < 560]].mean(axis=0)
    np.testing.assert_allclose(carried.neighbour_table[at], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning")
def test_a_graph_that_has_lost_its_links_keeps_what_was_learned(graph):
    old = graph.subgraph(SEEN)
    model = NeuralBrane(dim=24, epochs=1, seed=0).fit(old)
    layer = model.layer_
    bare = AttributedGraph.from_sparse(
        sparse.csr_array((600, 600)), graph.attributes, ids=graph.ids, attribute_names=graph.attribute_names
    )
    assert model.update(bare).layer_ is layer
    assert np.isfinite(model.embedding_.vectors).all()
