"""Suggested links are new, the likeliest first, and come with what both nodes share."""

import json

import numpy as np
import pytest

from neural_brane import TADW, Attributes, NeuralBrane, PropagatedAttributes
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.reasons.ranking import common_neighbours


@pytest.fixture
def model(small_graph):
    return NeuralBrane(dim=8, seed=0, epochs=2, batches_per_epoch=5).fit(small_graph)


def test_neither_the_node_nor_its_neighbours_nor_the_excluded_are_suggested(model):
    found = model.suggest("ann", k=50, exclude=["kim", "leo"])
    assert {one.id for one in found} == {"dan", "eve", "fay", "gus", "hal", "ian", "joy"}
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_scores_of_one_kind_are_the_models(model, small_graph):
    for one in model.suggest("ann", k=4, by="score"):
        assert one.score == pytest.approx(model.score([("ann", one.id)])[0], rel=1e-4)
    cosines = dict(model.embedding_.nearest("ann", k=11))
    for one in model.suggest("ann", k=4, by="similarity"):
        assert one.score == pytest.approx(cosines[one.id], abs=1e-5)
    assert model.suggest("ann", k=1, by="neighbours")[0].id in ("fay", "dan")


def test_all_three_are_added_once_each_has_mean_0_and_deviation_1(model, small_graph):
    pairs = [("ann", other) for other in small_graph.ids.tolist()]
    own = model.score(pairs).astype(float)
    vectors = model.embedding_.vectors.astype(float)
    cosine = vectors @ vectors[0] / np.linalg.norm(vectors, axis=1) / np.linalg.norm(vectors[0])
    parts = [own, cosine, common_neighbours(small_graph.adjacency, 0)]
    total = sum(w * (one - one.mean()) / one.std() for w, one in zip((1, 0.5, 1), parts, strict=True))
    found = {one.id: one.score for one in model.suggest("ann", k=50)}
    for other, score in zip(small_graph.ids.tolist(), total, strict=True):
        assert other not in found or found[other] == pytest.approx(score, abs=1e-4)


def test_common_neighbours_count_less_the_more_they_know(small_graph):
    found = common_neighbours(small_graph.adjacency, 0)
    degrees = np.maximum(np.diff(small_graph.adjacency.indptr), 1)  # kim knows nobody
    dense = (small_graph.adjacency.toarray() > 0).astype(float)
    np.testing.assert_allclose(found, dense[0] @ np.diag(1 / degrees) @ dense)


def test_a_node_without_neighbours_has_suggestions_too(model):
    assert len(model.suggest("kim", k=3)) == 3
    assert [one.score for one in model.suggest("kim", k=3, by="neighbours")] == [0, 0, 0]


def test_reasons_are_those_of_the_explanation(model):
    one = model.suggest("ann", k=1)[0]
    told = model.explain("ann", one.id, top=3)
    assert (one.reasons.attributes, one.reasons.neighbours) == (told.attributes, told.neighbours)
    assert json.loads(json.dumps(one.as_dict()))["id"] == one.id


def test_methods_that_cannot_explain_tell_what_both_have(small_graph):
    found = {one.id: one.reasons for one in TADW(dim=2, seed=0).fit(small_graph).suggest("ann", k=20)}
    assert {name for name, _ in found["dan"].attributes} == {"opera"}
    assert [name for name, _ in found["dan"].neighbours] == ["cat"]
    assert str(found["hal"]) == "nothing in common"


def test_what_makes_no_sense_is_refused(small_graph):
    model = Attributes(dim=2, seed=0).fit(small_graph)
    with pytest.raises(EmbeddingError, match="no node 'zoe' here"):
        model.suggest("zoe")
    with pytest.raises(ParameterError, match="k=0 makes no sense"):
        model.suggest("ann", k=0)
    with pytest.raises(ParameterError, match="by='magic' makes no sense"):
        model.suggest("ann", by="magic")
    with pytest.raises(ParameterError, match="by='score' needs a method that scores pairs"):
        model.suggest("ann", by="score")


def test_planted_mates_are_suggested(planted):
    known = planted(6, 60)
    model = PropagatedAttributes(dim=32, seed=0).fit(known.graph)
    hits = [known.groups[one.id] == known.groups[node] for node in range(0, 360, 30) for one in model.suggest(node)]
    assert np.mean(hits) >= 0.8  # by chance it is 1 / 6
