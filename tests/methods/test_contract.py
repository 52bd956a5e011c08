"""What every method promises, whatever it does inside."""

import numpy as np
import pytest
from sklearn.base import clone

from neural_brane import METHODS, Embedding

QUICK = {
    "neural-brane": {"epochs": 1, "batches_per_epoch": 10},
    "deepwalk": {"walks_per_node": 2},
    "node2vec": {"walks_per_node": 2, "p": 0.5, "q": 2.0},
    "line": {"samples": 2000},
    "pte": {"samples": 2000},
    "deepwalk+nnmf": {"walks_per_node": 2, "nnmf_epochs": 20},
    "graphsage": {"walks_per_node": 2},
    "graph2gauss": {"epochs": 3, "hidden": 16},
}


def make(name, **parameters):
    return METHODS[name](dim=8, seed=1, **QUICK.get(name, {}) | parameters)


@pytest.fixture(params=METHODS)
def name(request):
    return request.param


def test_vectors_have_the_width_asked_for_and_the_nodes_ids(name, small_graph):
    embedding = make(name).fit_transform(small_graph)
    assert embedding.vectors.shape == (len(small_graph), 8)
    assert embedding.vectors.dtype == np.float32
    assert np.isfinite(embedding.vectors).all()
    assert embedding.ids.tolist() == small_graph.ids.tolist()


def test_the_same_seed_gives_the_same_bits(name, small_graph):
    first, again = (make(name).fit_transform(small_graph).vectors for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_parameters_are_kept_as_given_and_clone_copies_them(name, small_graph):
    method = make(name)
    before = method.get_params()
    assert method.fit(small_graph) is method
    assert method.get_params() == before
    assert clone(method).get_params() == before
    assert method.set_params(dim=4).fit_transform(small_graph).dim == 4


def test_saved_vectors_are_those_of_the_embedding(name, small_graph, tmp_path):
    method = make(name).fit(small_graph)
    method.save(tmp_path / "vectors.npz")
    saved = Embedding.load(tmp_path / "vectors.npz")
    np.testing.assert_array_equal(saved.vectors, method.embedding_.vectors)
    assert saved.provenance["method"] == name
    assert saved.provenance["data"]["digest"] == small_graph.digest()


def test_a_method_says_what_it_is(name):
    method = METHODS[name]
    assert method.title == name
    assert set(method.uses) <= {"links", "attributes"}
    assert isinstance(method.inductive, bool)
    assert method.growth
    assert method.paper
    assert "Parameters" in method.__doc__
    assert ">>>" in method.__doc__
