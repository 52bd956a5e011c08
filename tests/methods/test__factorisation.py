import numpy as np
import pytest

from neural_brane import AANE, METHODS, NNMF, TADW, AttributedGraph, PropagatedAttributes, synthetic
from neural_brane.methods import aane, nnmf
from neural_brane.methods._factorisation import Factorisation

FACTORISATIONS = [name for name, method in METHODS.items() if issubclass(method, Factorisation)]
WORKED_ON_APART = [AANE(dim=70), NNMF(dim=70, epochs=5), TADW(dim=70, epochs=3), PropagatedAttributes(dim=70)]


@pytest.mark.parametrize("method", WORKED_ON_APART, ids=lambda method: method.title)
def test_threads_change_no_bit(method, monkeypatch):
    monkeypatch.setattr(aane, "BLOCK_EDGES", 500)
    monkeypatch.setattr(nnmf, "BLOCK_ROWS", 100)
    graph = synthetic(400, seed=1)
    one, two = (method.set_params(seed=1, threads=threads).fit_transform(graph).vectors for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_a_graph_without_attributes_gives_numbers(name, small_graph):
    bare = AttributedGraph.from_sparse(small_graph.adjacency)
    vectors = METHODS[name](dim=4, seed=0).fit_transform(bare).vectors
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_a_width_beyond_the_data_gives_numbers(name, small_graph):
    vectors = METHODS[name](dim=31, seed=0).fit_transform(small_graph).vectors
    assert vectors.shape == (12, 31)
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_a_drawn_seed_is_told_and_gives_the_same_again(name, small_graph):
    first = METHODS[name](dim=4).fit_transform(small_graph)
    told = first.provenance["parameters"]
    again = METHODS[name](**told).fit_transform(small_graph)
    assert told["seed"] is not None
    np.testing.assert_array_equal(first.vectors, again.vectors)
