"""Suggested links are new, the likeliest first, and come with what both nodes share."""

import json

import numpy as np
import pytest

from neural_brane import TADW, AttributedGraph, Attributes, Embedding, NeuralBrane, PropagatedAttributes
from neural_brane.embedding import Layer
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.insight.links import LinkScorer, LinkWeights, common_neighbours


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


def test_the_score_adds_two_numbers_of_mean_0_and_deviation_1(model, small_graph):
    weights = LinkScorer(model.embedding_, small_graph, "cosine").weigh()
    own = {one.id: one.score for one in model.suggest("ann", k=50, by=weights.vectors)}
    common = dict(zip(small_graph.ids.tolist(), common_neighbours(small_graph.adjacency, 0).tolist(), strict=True))
    parts = [np.array([part[other] for other in own]) for part in (own, common)]
    total = sum(w * (one - one.mean()) / one.std() for w, one in zip((1, weights.neighbours), parts, strict=True))
    found = {one.id: one.score for one in model.suggest("ann", k=50)}
    assert found == {other: pytest.approx(score, abs=1e-4) for other, score in zip(own, total.tolist(), strict=True)}


def in_groups(scale):
    """Return a graph of eight groups without links between them, and vectors that show the groups through noise."""
    rng, groups = np.random.default_rng(0), np.repeat(np.arange(8), 20)
    mates = [(one, int(other)) for one in range(160) for other in rng.choice(np.flatnonzero(groups == groups[one]), 4)]
    graph = AttributedGraph.from_edges([pair for pair in mates if pair[0] != pair[1]], ids=range(160))
    return graph, np.eye(8)[groups] + scale * rng.normal(size=(160, 8))


def test_the_score_that_finds_more_links_weighs_more():
    noisy, telling = (
        LinkScorer(Embedding(vectors, graph.ids), graph, "cosine").weigh()
        for graph, vectors in map(in_groups, (9, 0.01))
    )
    assert noisy.neighbours > 3
    assert telling.neighbours < 2


def test_the_better_score_by_vectors_is_taken():
    graph, vectors = in_groups(0.01)
    for size, better in ((0, "similarity"), (1, "score")):  # size 0: the layer scores all pairs the same
        layer = Layer(size * np.eye(8, dtype=np.float32), np.zeros(8, np.float32))
        lengths = np.where(np.arange(160) % 2, 1, 9)[:, None] if better == "score" else 1
        similarity = "cosine" if better == "similarity" else "distance"
        embedding = Embedding(vectors * lengths, graph.ids, layer=layer)
        assert LinkScorer(embedding, graph, similarity).weigh().vectors == better


def test_a_graph_without_links_has_weights_too():
    graph = AttributedGraph.from_edges(np.empty((0, 2), int), attributes={0: ["red"]}, ids=range(3))
    assert LinkScorer(Embedding(np.eye(3), graph.ids), graph, "cosine").weigh() == LinkWeights("similarity", 1.0)


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
    why = model.explain("ann", one.id, top=3)
    assert (one.reasons.attributes, one.reasons.neighbours) == (why.attributes, why.neighbours)
    assert json.loads(json.dumps(one.as_dict()))["id"] == one.id


def test_methods_that_cannot_explain_name_what_both_nodes_have(small_graph):
    found = {one.id: one.reasons for one in TADW(dim=2, seed=0).fit(small_graph).suggest("ann", k=20)}
    assert {name for name, _ in found["dan"].attributes} == {"opera"}
    assert [name for name, _ in found["dan"].neighbours] == ["cat"]
    assert str(found["hal"]) == "nothing in common"


def test_what_makes_no_sense_is_refused(small_graph):
    model = Attributes(dim=2, seed=0).fit(small_graph)
    with pytest.raises(EmbeddingError, match="node 'zoe'"):
        model.suggest("zoe")
    with pytest.raises(ParameterError, match="k=0"):
        model.suggest("ann", k=0)
    with pytest.raises(ParameterError, match="by='magic'"):
        model.suggest("ann", by="magic")
    with pytest.raises(ParameterError, match=r"by='score'.*method"):
        model.suggest("ann", by="score")


def test_planted_mates_are_suggested(planted):
    known = planted(6, 60)
    model = PropagatedAttributes(dim=32, seed=0).fit(known.graph)
    hits = [known.groups[one.id] == known.groups[node] for node in range(0, 360, 30) for one in model.suggest(node)]
    assert np.mean(hits) >= 0.8  # by chance it is 1 / 6
