"""What every method promises, whatever it does inside."""

import inspect
import json
import os
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

from neural_brane import METHODS, AttributedGraph, Embedding, load, methods
from neural_brane.cli.app import app
from neural_brane.errors import IgnoredAmountsWarning, NotFittedError, ParameterError, ZeroVectorWarning
from neural_brane.evaluate.link import SIMILARITIES
from neural_brane.methods import parameters as kinds
from neural_brane.methods.identity import SMALL

# The small graph has five attributes, fewer than most tests ask for; a test below looks for the warning.
pytestmark = pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning")

# For every kind of parameter, values that none of its kind may have.
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
    """A method at a size that takes moments."""
    small = {key: value for key, value in SMALL.items() if key in METHODS[name].parameters()}
    return METHODS[name](**small | {"dim": 8, "seed": 1} | parameters)


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


def test_columns_of_zeros_are_told(name, small_graph):
    method = make(name, dim=31).fit(small_graph)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        zero = np.count_nonzero(~method.embedding_.vectors.any(axis=0))
    messages = [f"{zero} of the 31 columns of these vectors are zero"] if zero else []
    columns = [one for one in told if one.category is not ZeroVectorWarning]
    assert [str(one.message).partition(":")[0] for one in columns] == messages


def test_vectors_of_zeros_are_told(name, small_graph):
    method = make(name).fit(small_graph)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        vectors = method.embedding_.vectors
    zero = small_graph.ids[~vectors.any(axis=1)].tolist()
    start = f"{len(zero)} of the 12 nodes of graph 'small' have the vector zero ({', '.join(map(repr, zero))}): "
    messages = [str(one.message) for one in told if one.category is ZeroVectorWarning]
    assert [message.startswith(start) for message in messages] == [True] * bool(zero)


@pytest.mark.parametrize(
    ("name", "settings"),
    [(name, {}) for name in METHODS] + [("neural-brane", {"recipe": recipe}) for recipe in ("paper", "released")],
)
def test_amounts_that_are_ignored_are_told(name, settings, small_graph):
    """Whether vectors depend on amounts is measured, and the warning must say so."""
    need(name)
    amounts = small_graph.attributes.copy()
    amounts.data[:] = 1 + np.arange(amounts.nnz) % 4
    ones = amounts.copy()
    ones.data[:] = 1
    plain = make(name, **settings).fit_transform(replace(small_graph, attributes=ones)).vectors
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        weighed = make(name, **settings).fit_transform(replace(small_graph, attributes=amounts)).vectors
    ignored = "attributes" in METHODS[name].uses and np.array_equal(plain, weighed)
    messages = [str(one.message) for one in told if one.category is IgnoredAmountsWarning]
    assert len(messages) == ignored
    assert all("5 of the 5 attributes of graph 'small' differ in amount" in message for message in messages)


def test_the_same_seed_gives_the_same_bits(name, small_graph):
    first, again = (make(name).fit_transform(small_graph).vectors for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_the_graphs_labels_are_never_learned_from(name, small_graph):
    noise = np.random.default_rng(0).permutation(small_graph.labels)
    labelled, relabelled = (make(name).fit_transform(graph) for graph in (small_graph, small_graph.relabelled(noise)))
    np.testing.assert_array_equal(labelled.vectors, relabelled.vectors)


def test_a_drawn_seed_is_kept_and_gives_the_same_again(name, small_graph):
    first = make(name, seed=None).fit_transform(small_graph)
    told = first.provenance["parameters"]
    again = METHODS[name](**told).fit_transform(small_graph)
    np.testing.assert_array_equal(first.vectors, again.vectors)


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


@pytest.mark.parametrize("title", METHODS)
def test_every_parameter_says_what_it_is_and_can_be_typed(title):
    for parameter in METHODS[title].parameters().values():
        assert parameter.about.endswith(".")
        if not isinstance(parameter.kind, kinds.Function):
            value = parameter.parse(parameter.example())
            assert parameter.default is None or value == parameter.default


@pytest.mark.parametrize("title", METHODS)
def test_senseless_parameters_are_refused_by_name(title, small_graph):
    for name, parameter in METHODS[title].parameters().items():
        any_number = parameter.kind == kinds.Number()  # below 0 too
        for value in SENSELESS[type(parameter.kind)][1 if any_number else 0 :]:
            with pytest.raises(ParameterError, match=rf"^{name}=.* makes no sense; give "):
                make(title, **{name: value}).fit(small_graph)
        if parameter.default is not None:
            with pytest.raises(ParameterError, match=rf"^{name}=None makes no sense"):
                make(title, **{name: None}).fit(small_graph)


def test_random_state_is_another_name_of_the_seed(name, small_graph):
    method = METHODS[name](random_state=3)
    assert method.seed == method.random_state == method.get_params()["random_state"] == 3
    assert "random_state" not in method.get_params(deep=False)  # a copy is made with the seed
    assert clone(method).set_params(random_state=4).seed == 4
    with pytest.raises(ParameterError, match="seed=1 and random_state=2 are one thing"):
        METHODS[name](seed=1, random_state=2)
    drawn = [make(name, seed=np.random.RandomState(0)).fit(small_graph).seed_ for _ in range(2)]
    assert drawn == [np.random.RandomState(0).randint(2**31)] * 2


def test_numpys_numbers_are_numbers(name, small_graph):
    """Of every whole number and number that is set, NumPy's own kinds give the same bits."""
    plain = make(name)
    kind_of = {int: np.int64, float: np.float64, bool: np.bool_}
    given = {key: kind_of.get(type(value), lambda same: same)(value) for key, value in plain.get_params().items()}
    embedding = METHODS[name](**given).fit_transform(small_graph)
    np.testing.assert_array_equal(embedding.vectors, plain.fit_transform(small_graph).vectors)
    assert json.dumps(embedding.provenance)


def stopped_by(error):
    """A progress report that stops a training."""

    def report(progress):
        raise error

    return report


REFITS = {
    "refused": ({"dim": -1}, ParameterError),
    "failed half way": ({"progress": stopped_by(RuntimeError("half way"))}, RuntimeError),
    "interrupted": ({"progress": stopped_by(KeyboardInterrupt())}, KeyboardInterrupt),
}


@pytest.mark.parametrize("refit", REFITS)
@pytest.mark.parametrize("read_before", [True, False])
def test_a_fit_is_whole_or_not_at_all(name, refit, read_before, small_graph):
    expected = make(name).fit_transform(small_graph)
    method = make(name).fit(small_graph)
    if read_before:
        assert method.embedding_ is method.embedding_
    changes, error = REFITS[refit]
    with pytest.raises(error):
        method.set_params(**changes).fit(load("stdlib"))
    np.testing.assert_array_equal(method.embedding_.vectors, expected.vectors)
    assert method.embedding_.ids.tolist() == small_graph.ids.tolist()
    assert method.embedding_.provenance == expected.provenance


@pytest.mark.parametrize("refit", REFITS)
def test_a_first_fit_that_does_not_end_leaves_the_method_unfitted(name, refit, small_graph):
    changes, error = REFITS[refit]
    method = make(name, **changes)
    with pytest.raises(error):
        method.fit(small_graph)
    with pytest.raises(NotFittedError, match="has not learned yet; call fit"):
        _ = method.embedding_
    assert not hasattr(method, "embedding_")
    assert not hasattr(method, "graph_")


def test_blocks_are_the_embedding_piece_by_piece(name, small_graph):
    method = make(name).fit(small_graph)
    np.testing.assert_array_equal(np.vstack(list(method.blocks())), method.embedding_.vectors)


def test_saved_vectors_are_those_of_the_embedding(name, small_graph, tmp_path):
    embedding = make(name).fit_transform(small_graph)
    embedding.save(tmp_path / "vectors.npz")
    saved = Embedding.load(tmp_path / "vectors.npz")
    np.testing.assert_array_equal(saved.vectors, embedding.vectors)
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
    sections = [inspect.getdoc(method).index(f"\n{part}\n---") for part in ("Parameters", "Examples")]
    assert sections == sorted(sections)


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
    with pytest.raises(NotFittedError, match="has not learned yet; call fit"):
        make(inductive).transform(newcomers)


TOY = '''
import numpy as np
from neural_brane.methods.base import Embedder
from neural_brane.methods.base import Vectors
from neural_brane.methods.parameters import whole

class Toy(Embedder):
    """Degrees, over and over.

    Examples
    --------
    >>> 1
    1
    """

    title = "toy"
    uses = ("links",)
    growth = "time: edges"
    paper = "None"

    power: int = whole("What degrees are raised to.", default=2, least=0)

    def _learn(self, graph, seed):
        degree = np.diff(graph.adjacency.indptr).astype(np.float32) ** self.power
        return Vectors(np.repeat(degree[:, None], self.dim, axis=1))
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A method declared in one file, with one parameter, and registered by one line."""
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    monkeypatch.setitem(methods.REGISTERED, "toy", "toy.Toy")
    return tmp_path


def test_one_file_and_one_line_make_a_method(toy, small_graph, capsys):
    assert list(METHODS)[-1] == "toy"  # the list that this file runs over
    method = METHODS["toy"](dim=3, power=1)
    assert method.get_params(deep=False) == {
        "dim": 3, "power": 1, "seed": None, "threads": None, "progress": None,
    }  # fmt: skip
    assert method.fit_transform(small_graph)["cat"].tolist() == [3, 3, 3]
    with pytest.raises(ParameterError, match="power=-1 makes no sense; give a whole number from 0"):
        METHODS["toy"](power=-1).fit(small_graph)
    assert "power : a whole number from 0, default 2\n        What degrees are raised to." in METHODS["toy"].__doc__

    run = CliRunner().invoke
    assert any(line.split()[:1] == ["toy"] for line in run(app, ["methods"]).stdout.splitlines())
    assert "What degrees are raised to." in run(app, ["methods", "toy"]).stdout
    vectors = toy / "v.npz"
    result = run(app, ["embed", "stdlib", "--method", "toy", "--set", "power=0", "--dim", "2", "-o", str(vectors)])
    assert result.exit_code == 0, result.stderr
    assert Embedding.load(vectors).provenance["parameters"] == {
        "dim": 2,
        "power": 0,
        "seed": pytest.approx(2**62, rel=1),
    }
