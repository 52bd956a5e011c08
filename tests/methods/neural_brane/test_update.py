"""Updates of Neural-Brane on a grown graph: each part, with every recipe."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from neural_brane import AttributedGraph, NeuralBrane, load, synthetic
from neural_brane.graph.changes import find_changes
from neural_brane.linalg.weights import unit_rows
from neural_brane.methods.neural_brane.model import carry_model

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
    """A graph with three classes, which links and attributes separate."""
    return synthetic(600, classes=3, seed=1)


def mean_cosine(first, second):
    return (unit_rows(first) * unit_rows(second)).sum(axis=1).mean()


def nearest(vectors, count=10):
    """Return a matrix that is True for the nearest rows of each row."""
    cosines = unit_rows(vectors) @ unit_rows(vectors).T
    np.fill_diagonal(cosines, -1)
    near = np.zeros(cosines.shape, bool)
    np.put_along_axis(near, np.argsort(-cosines, axis=1)[:, :count], True, axis=1)
    return near


def agreement(first, second):
    """Return the share of the ten nearest nodes that two tables of vectors have in common."""
    return (nearest(first) & nearest(second)).sum() / (10 * len(first))


@pytest.fixture(scope="module", params=["stdlib", "synthetic"])
def grown(request):
    """Update a model five times; each time the graph grows by a fiftieth of its nodes.

    Return the whole graph, its nodes in order of arrival, the updated model, and the mean cosines with earlier vectors.
    """
    whole = load("stdlib") if request.param == "stdlib" else synthetic(600, classes=3, seed=1)
    whole = whole.subgraph(np.random.default_rng(0).permutation(whole.ids))
    counts = [round(share * len(whole)) for share in (0.9, 0.92, 0.94, 0.96, 0.98, 1)]
    model = NeuralBrane(seed=0, epochs=4).fit(whole.subgraph(np.arange(len(whole)) < counts[0]))
    cosines, transformed = [], None
    for known, count in pairwise(counts):
        before = model.embedding_.vectors
        if count == len(whole):
            transformed = model.transform(whole).vectors
        after = model.update(whole.subgraph(np.arange(len(whole)) < count)).embedding_.vectors
        cosines.append(mean_cosine(before, after[:known]))
    return whole, model, cosines, transformed


def test_known_nodes_stay_through_many_updates(grown):
    assert min(grown[2]) > 0.98


def test_after_many_updates_the_nearest_are_those_of_a_fresh_fit(grown):
    whole, model, _, _ = grown
    fresh, other = (NeuralBrane(seed=seed, epochs=4).fit(whole).embedding_.vectors for seed in (0, 1))
    assert agreement(model.embedding_.vectors, fresh) > agreement(other, fresh) - 0.05


def test_after_many_updates_new_nodes_are_placed_where_an_update_brings_them(grown):
    whole, model, _, transformed = grown
    new = np.arange(len(whole)) >= round(0.98 * len(whole))
    assert mean_cosine(transformed[new], model.embedding_.vectors[new]) > 0.9


def test_after_many_updates_reasons_add_up_to_the_vectors(grown):
    whole, model, _, _ = grown
    vectors, shares = model.embedding_.vectors, []
    for row in range(0, len(whole), 20):
        total = sum(model.reasons_.contributions(row, vectors[[row]]).parts.values())
        shares.append(float(total[0]) / (vectors[row] ** 2).sum())
    np.testing.assert_allclose(np.mean(shares), 1, atol=0.03)
    np.testing.assert_allclose(shares, 1, atol=0.25)


def test_a_graph_that_has_not_changed_leaves_vectors_where_they_are(graph):
    model = NeuralBrane(dim=24, epochs=4, seed=0).fit(graph)
    before = model.embedding_.vectors
    part = model.model_
    after = model.update(graph).embedding_.vectors
    assert (unit_rows(before) * unit_rows(after)).sum(axis=1).min() > 0.99
    for old, new in zip(part, model.model_, strict=True):
        np.testing.assert_array_equal(new, old)


def test_nodes_that_vanish_leave_the_others_where_they_are(graph):
    model = NeuralBrane(dim=24, epochs=4, seed=0).fit(graph)
    before = model.embedding_.vectors
    after = model.update(graph.subgraph(SEEN)).embedding_
    assert after.ids.tolist() == graph.ids[SEEN].tolist()
    assert mean_cosine(before[SEEN], after.vectors) > 0.98
    assert model.model_.neighbour_table.shape[0] == 560


@pytest.mark.parametrize("way", WAYS)
def test_new_nodes_are_told_apart_and_known_ones_stay(way, graph):
    model = NeuralBrane(dim=24, epochs=4, seed=0, **WAYS[way]).fit(graph.subgraph(SEEN))
    before = model.embedding_.vectors
    after = model.update(graph).embedding_.vectors
    assert mean_cosine(before, after[SEEN]) > 0.95
    regression = LogisticRegression(max_iter=1000).fit(after[SEEN], graph.labels[SEEN])
    assert regression.score(after[~SEEN], graph.labels[~SEEN]) > 0.8


def test_scores_of_new_nodes_rank_their_neighbours_first(graph):
    model = NeuralBrane(dim=24, epochs=4, seed=0).fit(graph.subgraph(SEEN)).update(graph)
    links = graph.adjacency[~SEEN].tocoo()
    near = np.stack([links.row + 560, links.col], axis=1)
    far = np.stack([near[:, 0], np.random.default_rng(0).integers(0, 560, len(near))], axis=1)
    assert (model.score(graph.ids[near]) > model.score(graph.ids[far])).mean() > 0.6


def test_the_widths_are_those_of_before(graph):
    small = NeuralBrane(dim=24, epochs=1, seed=0).fit(graph.subgraph(np.arange(600) < 20))
    assert small.settings_["spectral_dim"] == 10  # as chosen for 20 nodes; 600 nodes would give 18
    assert small.update(graph).settings_["spectral_dim"] == 10


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
    weight = model.model_.weight
    bare = AttributedGraph.from_sparse(
        sparse.csr_array((600, 600)), graph.attributes, ids=graph.ids, attribute_names=graph.attribute_names
    )
    np.testing.assert_array_equal(model.update(bare).model_.weight, weight)
    assert np.isfinite(model.embedding_.vectors).all()
