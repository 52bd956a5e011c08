"""What every method promises, whatever it does inside."""

import os

import numpy as np
import pytest
from sklearn.base import clone

from neural_brane import METHODS, AttributedGraph, Embedding, load
from neural_brane.errors import ParameterError
from neural_brane.evaluate.link import SIMILARITIES

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
    return METHODS[name](**{"dim": 8, "seed": 1} | QUICK.get(name, {}) | parameters)


def need(name):
    """Skip the test where the method's optional part is not installed."""
    if extra := METHODS[name].extra:
        pytest.importorskip(extra, reason=f"{name} needs {extra}: pip install 'neural-brane[{extra}]'")


@pytest.fixture(params=METHODS)
def name(request):
    need(request.param)
    return request.param


@pytest.fixture(params=[name for name in METHODS if METHODS[name].inductive])
def inductive(request):
    need(request.param)
    return request.param


@pytest.fixture
def newcomers():
    """zoe and yan, whom no method has seen, and ann again; the attributes in another order."""
    bags = {"zoe": ["tea", "chess"], "yan": ["rugby", "beer"], "ann": ["opera", "chess"]}
    return AttributedGraph.from_edges([("zoe", "ann"), ("zoe", "yan")], attributes=bags)


def test_vectors_have_the_width_asked_for_and_the_nodes_ids(name, small_graph):
    embedding = make(name).fit_transform(small_graph)
    assert embedding.vectors.shape == (len(small_graph), 8)
    assert embedding.vectors.dtype == np.float32
    assert np.isfinite(embedding.vectors).all()
    assert embedding.ids.tolist() == small_graph.ids.tolist()


def test_the_same_seed_gives_the_same_bits(name, small_graph):
    first, again = (make(name).fit_transform(small_graph).vectors for _ in range(2))
    np.testing.assert_array_equal(first, again)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a second thread needs a second core")
def test_the_number_of_threads_changes_no_bit(name):
    """On a graph large enough for the work to be shared out."""
    graph = load("stdlib")
    one, two = (make(name, dim=40, threads=count).fit_transform(graph).vectors for count in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_parameters_are_kept_as_given_and_clone_copies_them(name, small_graph):
    method = make(name)
    before = method.get_params()
    assert method.fit(small_graph) is method
    assert method.get_params() == before
    assert clone(method).get_params() == before
    assert method.set_params(dim=4).fit_transform(small_graph).dim == 4


def test_saved_vectors_are_those_of_the_embedding(name, small_graph, tmp_path):
    method = make(name).fit(small_graph)
    method.embedding_.save(tmp_path / "vectors.npz")
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
    assert method.similarity in SIMILARITIES
    assert method.paper
    assert "Parameters" in method.__doc__
    assert ">>>" in method.__doc__


@pytest.mark.parametrize("method", METHODS)
def test_inductive_methods_are_those_that_transform(method):
    assert METHODS[method].inductive == hasattr(METHODS[method], "transform")


def test_transform_of_what_was_learned_from_gives_the_learned_vectors(inductive, small_graph):
    method = make(inductive).fit(small_graph)
    again = method.transform(small_graph)
    np.testing.assert_allclose(again.vectors, method.embedding_.vectors, rtol=1e-5, atol=1e-6)
    assert again.ids.tolist() == small_graph.ids.tolist()


def test_nodes_never_seen_get_vectors(inductive, small_graph, newcomers):
    method = make(inductive).fit(small_graph)
    embedding, again = method.transform(newcomers), make(inductive).fit(small_graph).transform(newcomers)
    assert embedding.vectors.shape == (3, 8)
    assert embedding.ids.tolist() == ["zoe", "ann", "yan"]
    assert np.isfinite(embedding.vectors).all()
    assert embedding["zoe"].any()
    np.testing.assert_array_equal(embedding.vectors, again.vectors)
    assert embedding.provenance["data"]["digest"] == small_graph.digest()
    assert embedding.provenance["transformed"]["digest"] == newcomers.digest()


def test_transform_before_learning_is_refused(inductive, newcomers):
    with pytest.raises(ParameterError, match="has not learned yet; call fit"):
        make(inductive).transform(newcomers)
