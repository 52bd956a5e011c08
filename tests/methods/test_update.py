"""The contract of methods that can be updated, and the errors of those that cannot."""

import os
import re

import numpy as np
import polars as pl
import pytest

from neural_brane import METHODS, AttributedGraph, load, load_model
from neural_brane.errors import GraphError, NotFittedError, ParameterError
from neural_brane.linalg.weights import unit_rows
from neural_brane.methods.spectral import Spectral

pytestmark = pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning")
UPDATING = ("neural-brane", "propagated-attributes")  # all other methods that update share the code of the second


def make(name, **parameters):
    """Return a method with parameters that train quickly."""
    device = {"device": "cpu"} if "device" in METHODS[name].parameters() else {}
    return METHODS[name](**METHODS[name].small | device | {"dim": 16, "seed": 1} | parameters)


def mean_cosine(first, second):
    """Return the mean cosine of corresponding rows of two tables, without rows of zeros."""
    rows = first.any(axis=1) & second.any(axis=1)
    return (unit_rows(first[rows]) * unit_rows(second[rows])).sum(axis=1).mean()


@pytest.fixture(params=UPDATING)
def name(request):
    return request.param


def test_methods_that_update_are_these_and_those_that_share_their_code():
    updating = {name for name in METHODS if METHODS[name].updates}
    assert updating == set(UPDATING) | {"attributes", "smoothed-attributes"}
    assert all(issubclass(METHODS[name], Spectral) for name in updating - {"neural-brane"})


@pytest.fixture(scope="module")
def after():
    return load("stdlib")


@pytest.fixture(scope="module")
def before(after):
    """Return an earlier graph: without ten of the nodes, with two more that are gone now, and in another order."""
    kept = np.arange(len(after)) % 55 != 0
    order = np.random.default_rng(0).permutation(after.ids[kept])
    old = after.subgraph(order)
    edges = np.argwhere(np.triu(old.adjacency.toarray()))
    pairs = [*old.ids[edges].tolist(), ("gone", old.ids[0].item()), ("gone", "gone too")]
    names = old.attribute_names
    bags = {node: names[old.attributes[[row]].indices].tolist() for row, node in enumerate(old.ids.tolist())}
    ids = [*old.ids.tolist(), "gone", "gone too"]
    return AttributedGraph.from_edges(pairs, attributes=bags | {"gone": ["a name of before"]}, ids=ids)


def test_tables_are_encoded_as_the_model_encoded_them():
    edges = pl.DataFrame({"from": ["a", "b", "c", "d"], "to": ["b", "c", "d", "a"]})
    nodes = pl.DataFrame({"name": ["a", "b", "c", "d"], "size": [1, 20, 300, 4000]})
    model = make("propagated-attributes", dim=2).fit((edges, nodes))
    names = model.graph_.attribute_names.tolist()
    more = pl.concat([nodes, pl.DataFrame({"name": ["e"], "size": [50_000]})])
    model.update((pl.concat([edges, pl.DataFrame({"from": ["e"], "to": ["a"]})]), more))
    assert model.graph_.attribute_names.tolist() == names
    assert model.graph_.attributes[[4]].toarray().tolist() == [[0, 0, 0, 1]]


def test_vectors_are_of_the_nodes_there_are_now_and_known_ones_stay_near(name, before, after):
    model = make(name).fit(before)
    old = model.embedding_
    assert model.update(after) is model
    new = model.embedding_
    assert new.ids.tolist() == after.ids.tolist()
    assert new.vectors.shape == (len(after), 16)
    assert np.isfinite(new.vectors).all()
    assert model.graph_ is after
    known = np.isin(after.ids, old.ids)
    assert np.count_nonzero(~known) == 11
    rows = [old.ids.tolist().index(node) for node in after.ids[known].tolist()]
    assert mean_cosine(old.vectors[rows], new.vectors[known]) > 0.95
    described = np.diff(after.attributes.indptr) > 0
    assert new.vectors[~known & described].any(axis=1).all()


def test_new_nodes_are_near_their_neighbours(name, before, after):
    vectors = unit_rows(make(name).fit(before).update(after).embedding_.vectors)
    new = np.flatnonzero(~np.isin(after.ids, before.ids))
    links = after.adjacency[new].tocoo()
    beside = (vectors[new[links.row]] * vectors[links.col]).sum(axis=1).mean()
    others = (vectors[new] @ vectors.T).mean()
    assert beside > others


def test_the_same_seed_gives_the_same_bits_and_fit_can_begin_from_another_model(name, before, after):
    model = make(name).fit(before)
    old = model.embedding_.vectors.copy()
    first = make(name).fit(after, init=model).embedding_
    np.testing.assert_array_equal(model.embedding_.vectors, old)  # the model that it started from is unchanged
    again = model.update(after).embedding_
    np.testing.assert_array_equal(first.vectors, again.vectors)
    assert first.provenance == again.provenance


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a second thread needs a second core")
def test_the_number_of_threads_changes_no_bit(name, before, after):
    one, two = (make(name, dim=40, threads=count).fit(before).update(after).embedding_.vectors for count in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_the_provenance_tells_what_was_updated_and_how_often(name, before, after):
    model = make(name).fit(before)
    assert "updated" not in model.provenance()
    told = model.update(after).provenance()
    assert told["data"]["digest"] == after.digest()
    assert told["updated"]["times"] == 1
    assert told["updated"]["before"]["digest"] == told["updated"]["first"]["digest"] == before.digest()
    told = model.update(before).provenance()
    assert told["updated"]["times"] == 2
    assert [told["updated"][which]["digest"] for which in ("first", "before")] == [before.digest(), after.digest()]


def test_a_method_is_of_use_after_an_update(name, before, after):
    model = make(name).fit(before).update(after)
    if METHODS[name].inductive:
        again = model.transform(after)
        np.testing.assert_array_equal(again.vectors, model.embedding_.vectors)
        newcomer = AttributedGraph.from_edges([("zoe", "json")], attributes={"zoe": ["json"]})
        assert model.transform(newcomer)["zoe"].any()
    vectors = model.embedding_.vectors
    for _ in range(3):  # several updates on the same graph
        vectors, earlier = model.update(after).embedding_.vectors, vectors
        assert mean_cosine(vectors, earlier) > 0.95


def test_a_model_that_was_saved_goes_on_to_the_same_bits(name, before, after, tmp_path):
    model = make(name).fit(before)
    model.save(tmp_path / "m.brane")
    again = load_model(tmp_path / "m.brane")
    for graph in (after, before):  # the second update continues the first, with other random numbers
        model.update(graph)
        again.update(graph).save(tmp_path / "again.brane")
        again = load_model(tmp_path / "again.brane")
        np.testing.assert_array_equal(again.embedding_.vectors, model.embedding_.vectors)
        assert again.provenance() == model.provenance()
    assert again.provenance()["updated"]["times"] == 2


def test_nodes_that_vanish_leave_the_others_where_they_are(name, after):
    model = make(name).fit(after)
    old = model.embedding_.vectors
    kept = np.arange(len(after)) % 55 != 0
    left = model.update(after.subgraph(kept)).embedding_
    assert left.ids.tolist() == after.ids[kept].tolist()
    assert mean_cosine(old[kept], left.vectors) > 0.95


def stop(progress):
    """Stop a training from its progress report."""
    raise KeyboardInterrupt


def test_an_update_is_whole_or_not_at_all(name, before, after):
    model = make(name).fit(before)
    old = model.embedding_.vectors.copy()
    refused = AttributedGraph.from_edges([("x", "y"), ("y", "z"), ("z", "w")])
    with pytest.raises(GraphError, match=r"no node.*graph"):
        model.update(refused)
    if name == "neural-brane":  # the other method takes one step and reports no progress
        with pytest.raises(KeyboardInterrupt):
            model.set_params(progress=stop).update(after)
        model.set_params(progress=None)
    np.testing.assert_array_equal(model.embedding_.vectors, old)
    assert model.graph_ is before
    np.testing.assert_array_equal(
        model.update(after).embedding_.vectors, make(name).fit(before).update(after).embedding_.vectors
    )


def test_what_cannot_be_gone_on_from_is_refused(name, before, after):
    with pytest.raises(NotFittedError, match="not fitted"):
        make(name).update(after)
    with pytest.raises(NotFittedError, match="not fitted"):
        make(name).fit(after, init=make(name))
    with pytest.raises(ParameterError, match=r"init=.* makes no sense; give a fitted"):
        make(name).fit(after, init="a model")
    model = make(name).fit(before)
    with pytest.raises(ParameterError, match=r"dim=8.*training.*dim=16"):
        make(name, dim=8).fit(after, init=model)
    if "checkpoint" in METHODS[name].parameters():
        with pytest.raises(ParameterError, match="checkpoint='c' makes no sense for an update"):
            model.set_params(checkpoint="c").update(after)


@pytest.mark.parametrize("name", [name for name in METHODS if not METHODS[name].updates])
def test_other_methods_say_why_they_do_not_update(name, fitted, small_graph):
    with pytest.raises(ParameterError, match=rf"^{re.escape(name)} .*update.*fit"):
        fitted(name).update(small_graph)
