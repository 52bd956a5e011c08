"""No method returns NaN, infinity or vectors that have grown without bound."""

import re
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from neural_brane import METHODS, SmoothedAttributes
from neural_brane.errors import GraphError, ParameterError
from neural_brane.methods.base import MODERATE
from neural_brane.methods.training import LARGEST

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
BOUNDED = {"cca-ssg", "dgi", "dngr", "graphsage", "sdne", "upp-sne"}  # at any learning rate
every = pytest.mark.parametrize("name", METHODS)


def make(name, **parameters):
    if extra := METHODS[name].extra:
        pytest.importorskip(extra, reason=f"{name} needs {extra}: pip install 'neural-brane[{extra}]'")
    return METHODS[name](**METHODS[name].small | {"dim": 8, "seed": 1} | parameters)


def scaled(graph, part, factor):
    matrix = getattr(graph, part).copy()
    matrix.data = np.full_like(matrix.data, factor)
    return replace(graph, **{part: matrix})


@every
@pytest.mark.parametrize("part", ["adjacency", "attributes"])
@pytest.mark.parametrize("factor", [1e38, 1e-40])
def test_weights_that_would_overflow_are_refused_by_all_methods_that_use_them(name, part, factor, small_graph):
    graph = scaled(small_graph, part, factor)
    if ("links" if part == "adjacency" else "attributes") in METHODS[name].uses:
        found = re.escape(f"{np.float32(factor):g}")
        with pytest.raises(GraphError, match=f"the weights of the (links|attributes) of graph 'small' reach .*{found}"):
            make(name).fit(graph)
    else:
        vectors = make(name).fit_transform(graph).vectors
        np.testing.assert_array_equal(vectors, make(name).fit_transform(small_graph).vectors)


@every
@pytest.mark.parametrize("factor", [1e-37, *MODERATE])
def test_vectors_of_the_most_extreme_weights_are_finite(name, factor, small_graph):
    assert abs(make(name).fit_transform(scaled(small_graph, "adjacency", factor)).vectors).max() <= LARGEST


@pytest.mark.parametrize("factor", MODERATE)
def test_averages_do_not_depend_on_the_unit_of_the_weights(factor, small_graph):
    ones, many = (
        SmoothedAttributes(dim=4, seed=0).fit_transform(scaled(small_graph, "adjacency", weight)).vectors
        for weight in (1.0, factor)
    )
    np.testing.assert_allclose(many, ones, atol=1e-4)


def test_new_nodes_with_such_weights_are_refused_too(small_graph):
    model = SmoothedAttributes(dim=4, seed=0).fit(small_graph)
    with pytest.raises(GraphError, match=r"links.*1e\+38"):
        model.transform(scaled(small_graph, "adjacency", 1e38))


@pytest.mark.parametrize("name", [name for name in METHODS if hasattr(METHODS[name], "learning_rate")])
def test_vectors_that_grow_without_bound_are_an_error(name, small_graph):
    """Vectors that a method scales or squashes stay bounded, however wrong they are."""
    diverged = pytest.raises(ParameterError, match=r"training diverged .*lower learning_rate=1e\+09")
    with nullcontext() if name in BOUNDED else diverged:
        assert abs(make(name, learning_rate=1e9).fit_transform(small_graph).vectors).max() <= LARGEST


@pytest.mark.parametrize("name", ["ep", "hne", "graph2gauss"])
def test_a_diverged_training_leaves_the_earlier_one(name, small_graph):
    method = make(name).fit(small_graph)
    before = method.embedding_
    with pytest.raises(ParameterError, match=r"training diverged .*lower learning_rate=1e\+09"):
        method.set_params(learning_rate=1e9).fit(small_graph)
    assert method.embedding_ is before
