"""Labels given to `fit`: which are accepted, and where they appear afterwards."""

import sys

import numpy as np
import pytest

from neural_brane import Attributes, load_model
from neural_brane.errors import CheckpointError, GraphError, ParameterError
from neural_brane.methods.base import Vectors
from neural_brane.methods.factorisation import Factorisation


class Told(Factorisation):
    """A method whose vectors are the classes given to it."""

    title = "told"
    uses = ("links",)
    uses_labels = True
    growth = "time: nodes"
    paper = "None"

    def _factorise(self, graph, seed):
        known = np.zeros(len(graph), int) if self._known is None else np.unique(self._known, return_inverse=True)[1]
        table = np.zeros((len(graph), self.dim))
        for _ in self._stages.stage("table").steps(2, {"table": table}):
            table[:] = 1 + known[:, None]
        return Vectors(table)


@pytest.fixture
def told(monkeypatch):
    """Register a method that learns only from labels."""
    import neural_brane.methods as methods

    monkeypatch.setattr(methods, "_find", lambda folders: {"told": ("told", "Told")})
    monkeypatch.setattr(methods, "import_module", lambda name: sys.modules[__name__])
    return Told


KNOWN = {"ann": "town", "eve": "club", "kim": "town"}


def test_labels_by_id_and_in_order_are_the_same(small_graph):
    by_id = Told(dim=2, seed=0).fit_transform(small_graph, labels=KNOWN)
    in_order = [KNOWN.get(name, "") for name in small_graph.ids.tolist()]
    np.testing.assert_array_equal(
        by_id.vectors, Told(dim=2, seed=0).fit_transform(small_graph, labels=in_order).vectors
    )
    assert by_id["ann"].tolist() == by_id["kim"].tolist() != by_id["eve"].tolist()


def test_the_graphs_own_labels_are_not_learned_from(small_graph):
    assert small_graph.labels is not None
    assert set(Told(dim=2, seed=0).fit_transform(small_graph).vectors.ravel().tolist()) == {1.0}


@pytest.mark.parametrize("nothing", [{}, [""] * 12, [None] * 12])
def test_labels_of_nobody_are_no_labels(small_graph, nothing):
    embedding = Told(dim=2, seed=0).fit_transform(small_graph, labels=nothing)
    assert embedding.provenance["labels"] == 0


def test_unknown_ids_and_a_wrong_length_are_refused(small_graph):
    with pytest.raises(GraphError, match=r"labels.*'nobody'"):
        Told().fit(small_graph, labels={"nobody": "town"})
    with pytest.raises(GraphError, match=r"labels.*2.*12"):
        Told().fit(small_graph, labels=["town", "club"])


def test_a_method_that_learns_from_no_labels_refuses_them(small_graph):
    with pytest.raises(ParameterError, match=r"labels.*attributes"):
        Attributes(dim=2).fit(small_graph, labels=KNOWN)


def test_y_is_not_taken_for_labels_and_not_silently_ignored(small_graph):
    with pytest.raises(ParameterError, match=r"y was given to told.*fit\(graph, labels=known\)"):
        Told().fit(small_graph, small_graph.labels)
    Attributes(dim=2, seed=0).fit(small_graph, small_graph.labels)  # as a pipeline passes it on


def test_the_provenance_tells_how_many_and_never_which(small_graph):
    first = Told(dim=2, seed=0).fit(small_graph, labels=KNOWN).provenance()
    others = dict(zip(("bob", "cat", "dan"), KNOWN.values(), strict=True))
    assert first["labels"] == 3
    assert first == Told(dim=2, seed=0).fit(small_graph, labels=others).provenance()
    assert "labels" not in Attributes(dim=2, seed=0).fit(small_graph).provenance()


def test_the_fitted_method_keeps_no_labels(small_graph):
    method = Told(dim=2, seed=0).fit(small_graph, labels=KNOWN)
    assert method._known is None
    assert method._require_fitted().method._known is None


def test_a_model_file_knows_how_many(small_graph, tmp_path, told):
    method = told(dim=2, seed=0).fit(small_graph, labels=KNOWN)
    method.save(tmp_path / "m.brane")
    opened = load_model(tmp_path / "m.brane")
    assert opened.provenance() == method.provenance()
    np.testing.assert_array_equal(opened.embedding_.vectors, method.embedding_.vectors)


def test_a_checkpoint_of_other_labels_is_refused(small_graph, tmp_path):
    path = tmp_path / "run.checkpoint"
    Told(dim=2, seed=0, checkpoint=path).fit(small_graph, labels=KNOWN)
    with pytest.raises(CheckpointError, match=r"labels.*'none'"):
        Told(dim=2, seed=0, checkpoint=path).fit(small_graph)
    with pytest.raises(CheckpointError, match=r"labels was '3 known .*, now '3 known "):
        Told(dim=2, seed=0, checkpoint=path).fit(small_graph, labels=KNOWN | {"ann": "club"})
    Told(dim=2, seed=0, checkpoint=path).fit(small_graph, labels=KNOWN)
