"""The contract of all methods.

The base class fulfils most of it for all methods; two methods are enough to test that. The rest is tested with every
method.
"""

import inspect
import json
import os
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from neural_brane import METHODS, AttributedGraph, Embedding, load
from neural_brane.errors import IgnoredAmountsWarning, NotFittedError, ParameterError, ZeroVectorWarning
from neural_brane.evaluate.link import SIMILARITIES
from neural_brane.methods import parameters as kinds
from neural_brane.methods.base import Embedder

# The small graph has five attributes, fewer than most tests ask for; a test below looks for the warning.
pytestmark = pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning")

PROVING = ("attributes", "neural-brane")  # one method without training steps, and one with several stages
# Values that no parameter of each kind accepts.
SENSELESS = {
    kinds.Whole: (-1, 1.5, True, "3", np.inf),
    kinds.Seed: (-1, 1.5, True, "3", np.inf),
    kinds.Number: (-1.0, np.nan, np.inf, True, "0.1"),
    kinds.Numbers: ((), (0, 0), (1, -1), (1, np.nan), "12", 3),
    kinds.Choice: ("nonsense", 17, True),
    kinds.Flag: (1, "yes"),
    kinds.File: (3, True),
    kinds.Function: (3, "print"),
}


def make(name, **parameters):
    """Return a method with parameters that train quickly."""
    if extra := METHODS[name].extra:
        pytest.importorskip(extra, reason=f"{name} needs {extra}: pip install 'neural-brane[{extra}]'")
    return METHODS[name](**METHODS[name].small | {"dim": 8, "seed": 1} | parameters)


every = pytest.mark.parametrize("name", METHODS)
proving = pytest.mark.parametrize("name", PROVING)
inductive = pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].inductive])


# These tests run over every method.


@every
def test_vectors_have_the_width_asked_for_and_the_nodes_ids(name, fitted, small_graph):
    embedding = fitted(name).embedding_
    assert embedding.vectors.shape == (len(small_graph), 8)
    assert embedding.vectors.dtype == np.float32
    assert np.isfinite(embedding.vectors).all()
    assert embedding.ids.tolist() == small_graph.ids.tolist()
    np.testing.assert_array_equal(np.vstack(list(fitted(name).blocks())), embedding.vectors)


@every
def test_the_same_seed_gives_the_same_bits_and_the_graphs_labels_change_none(name, fitted, small_graph):
    noise = np.random.default_rng(0).permutation(small_graph.labels)
    again = make(name).fit_transform(small_graph.relabelled(noise))
    np.testing.assert_array_equal(again.vectors, fitted(name).embedding_.vectors)


@every
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="a second thread needs a second core")
def test_the_number_of_threads_changes_no_bit(name):
    """The graph is large enough for the work to be divided."""
    graph = load("stdlib")
    one, two = (make(name, dim=40, threads=count).fit_transform(graph).vectors for count in (1, 2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("name", "settings"),
    [(name, {}) for name in METHODS] + [("neural-brane", {"recipe": recipe}) for recipe in ("paper", "released")],
)
def test_a_warning_names_amounts_that_are_ignored(name, settings, small_graph):
    """The test measures whether vectors depend on amounts; the warning must agree."""
    amounts = small_graph.attributes.copy()
    amounts.data[:] = 1 + np.arange(amounts.nnz) % 4
    ones = amounts.copy()
    ones.data[:] = 1
    plain = make(name, **settings).fit_transform(replace(small_graph, attributes=ones)).vectors
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        weighed = make(name, **settings).fit_transform(replace(small_graph, attributes=amounts)).vectors
    ignored = "attributes" in METHODS[name].uses and np.array_equal(plain, weighed)
    messages = [str(one.message) for one in found if one.category is IgnoredAmountsWarning]
    assert len(messages) == ignored
    assert all("5 of the 5 attributes of graph 'small' differ in amount" in message for message in messages)


@every
def test_every_method_has_the_learned_attributes_that_it_declares(name, fitted):
    declared = {one for base in METHODS[name].__mro__ for one in vars(base).get("learns", {})}
    assert declared > set(Embedder.learns)
    assert all(hasattr(fitted(name), one) for one in declared)


@every
def test_every_parameter_has_a_name_a_purpose_and_a_range(name):
    for title, parameter in METHODS[name].parameters().items():
        assert parameter.about.endswith(".")
        if not isinstance(parameter.kind, kinds.Function):
            value = parameter.parse(parameter.example())
            assert parameter.default is None or value == parameter.default
        any_number = parameter.kind == kinds.Number()  # accepts negative numbers, too
        for value in SENSELESS[type(parameter.kind)][1 if any_number else 0 :]:
            with pytest.raises(ParameterError, match=rf"^{title}=.* makes no sense; give "):
                parameter.check(value)


@every
def test_a_method_says_what_it_is(name):
    method = METHODS[name]
    assert method.title == name
    assert method.__name__ in inspect.getdoc(method)
    assert set(method.uses) <= {"links", "attributes"}
    assert method.inductive == hasattr(method, "transform")
    assert method.growth.startswith("time: ")
    assert "; memory: " in method.growth
    assert method.similarity in SIMILARITIES
    assert method.paper
    for settings in (method.grid, method.small, method.trial):
        assert settings.keys() <= method.parameters().keys() | {"learning_rate", "l2"}
    sections = [inspect.getdoc(method).index(f"\n{part}\n---") for part in ("Parameters", "Examples")]
    assert sections == sorted(sections)


@inductive
def test_transform_of_what_was_learned_from_gives_the_learned_vectors(name, fitted, small_graph):
    again = fitted(name).transform(small_graph)
    np.testing.assert_allclose(again.vectors, fitted(name).embedding_.vectors, rtol=1e-5, atol=1e-6)
    assert again.ids.tolist() == small_graph.ids.tolist()


@inductive
def test_nodes_never_seen_get_vectors(name, fitted, small_graph):
    """zoe and yan are new and ann is known; the attributes have another order."""
    bags = {"zoe": ["tea", "chess"], "yan": ["rugby", "beer"], "ann": ["opera", "chess"]}
    newcomers = AttributedGraph.from_edges([("zoe", "ann"), ("zoe", "yan")], attributes=bags)
    embedding, again = (fitted(name).transform(newcomers) for _ in range(2))
    assert embedding.vectors.shape == (3, 8)
    assert embedding.ids.tolist() == ["zoe", "ann", "yan"]
    assert np.isfinite(embedding.vectors).all()
    assert embedding["zoe"].any()
    np.testing.assert_array_equal(embedding.vectors, again.vectors)
    assert embedding.provenance["data"]["digest"] == small_graph.digest()
    assert embedding.provenance["transformed"]["digest"] == newcomers.digest()


# These tests prove promises of the base class with two methods.


@pytest.mark.parametrize("name", [*PROVING, "fastrp"])  # for the last one some nodes have the vector zero
def test_warnings_name_columns_and_vectors_of_zeros(name, small_graph):
    method = make(name, dim=31).fit(small_graph)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        vectors = method.embedding_.vectors
    columns = np.count_nonzero(~vectors.any(axis=0))
    lost = small_graph.ids[~vectors.any(axis=1)].tolist()
    expected = [f"{len(lost)} of the 12 nodes of graph 'small' have the vector zero ({', '.join(map(repr, lost))})"]
    assert [str(one.message).split(":")[0] for one in found if one.category is ZeroVectorWarning] == expected[
        : len(lost)
    ]
    others = [str(one.message) for one in found if one.category is not ZeroVectorWarning]
    assert [message.partition(":")[0] for message in others] == (
        [f"{columns} of the 31 columns of these vectors are zero"] if columns else []
    )


@proving
def test_a_drawn_seed_is_kept_and_gives_the_same_again(name, small_graph):
    first = make(name, seed=None).fit_transform(small_graph)
    again = METHODS[name](**first.provenance["parameters"]).fit_transform(small_graph)
    np.testing.assert_array_equal(first.vectors, again.vectors)


@proving
def test_parameters_are_kept_as_given_and_clone_copies_them(name, small_graph):
    method = make(name)
    before = method.get_params()
    assert method.fit(small_graph) is method
    assert method.get_params() == before
    assert clone(method).get_params() == before
    assert method.set_params(dim=4).fit_transform(small_graph).dim == 4


@proving
def test_fit_refuses_a_senseless_parameter(name, small_graph):
    with pytest.raises(ParameterError, match=r"^dim=-1 makes no sense; give "):
        make(name, dim=-1).fit(small_graph)
    with pytest.raises(ParameterError, match=r"^dim=None makes no sense"):
        make(name, dim=None).fit(small_graph)


@proving
def test_random_state_is_another_name_of_the_seed(name, small_graph):
    method = METHODS[name](random_state=3)
    assert method.seed == method.random_state == method.get_params()["random_state"] == 3
    assert "random_state" not in method.get_params(deep=False)  # a copy is constructed with the seed
    assert clone(method).set_params(random_state=4).seed == 4
    with pytest.raises(ParameterError, match="seed=1 and random_state=2"):
        METHODS[name](seed=1, random_state=2)
    drawn = [make(name, seed=np.random.RandomState(0)).fit(small_graph).seed_ for _ in range(2)]
    assert drawn == [np.random.RandomState(0).randint(2**31)] * 2


@proving
def test_numpys_numbers_are_numbers(name, fitted, small_graph):
    """NumPy's number types give the same bits as Python's for every numeric parameter."""
    kind_of = {int: np.int64, float: np.float64, bool: np.bool_}
    given = {key: kind_of.get(type(one), lambda same: same)(one) for key, one in make(name).get_params().items()}
    embedding = METHODS[name](**given).fit_transform(small_graph)
    np.testing.assert_array_equal(embedding.vectors, fitted(name).embedding_.vectors)
    assert json.dumps(embedding.provenance)


def stopped_by(error):
    """Stop a training from its progress report."""

    def report(progress):
        raise error

    return report


REFITS = {
    "refused": ({"dim": -1}, ParameterError),
    "failed half way": ({"progress": stopped_by(RuntimeError("half way"))}, RuntimeError),
    "interrupted": ({"progress": stopped_by(KeyboardInterrupt())}, KeyboardInterrupt),
}


@proving
@pytest.mark.parametrize("refit", REFITS)
@pytest.mark.parametrize("read_before", [True, False])
def test_a_fit_is_whole_or_not_at_all(name, refit, read_before, fitted, small_graph):
    expected, method = fitted(name).embedding_, make(name).fit(small_graph)
    if read_before:
        assert method.embedding_ is method.embedding_
    changes, error = REFITS[refit]
    with pytest.raises(error):
        method.set_params(**changes).fit(load("stdlib"))
    np.testing.assert_array_equal(method.embedding_.vectors, expected.vectors)
    assert method.embedding_.ids.tolist() == small_graph.ids.tolist()
    assert method.embedding_.provenance == expected.provenance


@proving
@pytest.mark.parametrize("refit", REFITS)
def test_a_first_fit_that_does_not_end_leaves_the_method_unfitted(name, refit, small_graph):
    changes, error = REFITS[refit]
    method = make(name, **changes)
    with pytest.raises(error):
        method.fit(small_graph)
    with pytest.raises(NotFittedError, match="call fit"):
        _ = method.embedding_
    with pytest.raises(NotFittedError, match="call fit"):
        method.transform(small_graph)
    assert not hasattr(method, "embedding_")
    assert not hasattr(method, "graph_")


@proving
def test_saved_vectors_are_those_of_the_embedding(name, fitted, small_graph, tmp_path):
    embedding = fitted(name).embedding_
    embedding.save(tmp_path / "vectors.npz")
    saved = Embedding.load(tmp_path / "vectors.npz")
    np.testing.assert_array_equal(saved.vectors, embedding.vectors)
    assert saved.provenance["method"] == name
    assert saved.provenance["data"]["digest"] == small_graph.digest()
