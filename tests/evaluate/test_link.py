import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import average_precision_score, roc_auc_score

from neural_brane import load
from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate import hold_out_edges, predict_links
from neural_brane.evaluate.link import edge_pairs
from neural_brane.graph import AttributedGraph
from neural_brane.methods import METHODS


@pytest.fixture(scope="module")
def graph():
    return load("stdlib")


@pytest.fixture(scope="module")
def held_out(graph):
    return hold_out_edges(graph, seed=1)


@pytest.fixture(scope="module")
def halves():
    """Sixty nodes in two halves, with edges only within each half."""
    low = np.random.default_rng(1).integers(30, size=(150, 2))
    edges = np.concatenate([low, low[:75] + 30])
    return AttributedGraph.from_edges(edges[edges[:, 0] != edges[:, 1]], nodes=60)


def memorise(graph):
    """Return vectors that contain only the edges of a graph: one column per edge, 1 for its two nodes."""
    ends = edge_pairs(graph)
    columns = np.repeat(np.arange(len(ends)), 2)
    return sparse.coo_array((np.ones(ends.size), (ends.ravel(), columns)), (len(graph), len(ends))).toarray()


def test_vectors_that_memorise_the_training_graph_learn_nothing_of_a_held_out_edge(halves):
    held_out = hold_out_edges(halves, share=0.2)
    assert predict_links(memorise(held_out.graph), held_out).auc == 0.5
    assert predict_links(memorise(halves), held_out).auc == 1.0  # the score if the edges had leaked


def test_a_method_trained_on_all_edges_is_refused(graph, held_out):
    method = METHODS["attributes"](dim=4, seed=0)
    assert predict_links(method.fit_transform(held_out.graph), held_out).verified
    with pytest.raises(EmbeddingError, match="held-out edges"):
        predict_links(method.fit_transform(graph), held_out)


@pytest.mark.parametrize("similarity", ["dot", "cosine", "distance"])
def test_scores_are_those_of_scikit_learn(similarity, held_out):
    vectors = np.random.default_rng(0).normal(size=(len(held_out.graph), 3)).astype(np.float32)
    pairs = [(*pair, 1) for pair in held_out.positives] + [(*pair, 0) for pair in held_out.negatives]
    dots = [float(vectors[u] @ vectors[v]) for u, v, _ in pairs]
    lengths = np.linalg.norm(vectors.astype(float), axis=1)
    scores = {
        "dot": dots,
        "cosine": [dot / lengths[u] / lengths[v] for dot, (u, v, _) in zip(dots, pairs, strict=True)],
        "distance": [-np.linalg.norm(vectors[u] - vectors[v]) for u, v, _ in pairs],
    }[similarity]
    truth = [true for *_, true in pairs]
    result = predict_links(vectors, held_out, similarity=similarity)
    assert result.auc == pytest.approx(roc_auc_score(truth, scores), abs=1e-4)
    assert result.average_precision == pytest.approx(average_precision_score(truth, scores), abs=1e-4)


def test_all_evidence_uses_the_vectors_and_the_graph(held_out):
    noise = np.random.default_rng(0).normal(size=(554, 8))
    telling = METHODS["propagated-attributes"](dim=32, seed=0).fit_transform(held_out.graph)
    by_noise, by_both = (predict_links(vectors, held_out, similarity="cosine") for vectors in (noise, telling))
    assert by_noise.auc < 0.6
    assert by_noise.scorer_auc > 0.85
    assert by_both.scorer_auc > max(by_noise.scorer_auc, by_both.auc) + 0.01


def test_a_pair_is_scored_by_a_regression_that_has_not_seen_it():
    """Random vectors and graphs have nothing to learn, but a regression would remember pairs that it has seen."""
    rng, aucs = np.random.default_rng(0), []
    for seed in range(8):
        ends = rng.integers(200, size=(2_000, 2))
        found = hold_out_edges(AttributedGraph.from_edges(ends[ends[:, 0] != ends[:, 1]], nodes=200), share=0.02)
        aucs.append(predict_links(rng.normal(size=(200, 2)), found, seed=seed).scorer_auc)
    assert np.mean(aucs) < 0.58


def test_too_few_pairs_have_no_score_by_all_evidence():
    graph = AttributedGraph.from_edges([(node, node + 1) for node in range(20)], nodes=21)
    found = predict_links(np.eye(21), hold_out_edges(graph, share=0.15))
    assert (found.scorer_auc, found.scorer_average_precision) == (None, None)


def test_vectors_are_matched_by_id(held_out):
    vectors = np.random.default_rng(0).normal(size=(len(held_out.graph), 3)).astype(np.float32)
    there = Embedding(vectors[::-1], held_out.graph.ids[::-1])
    by_id, by_row = predict_links(there, held_out), predict_links(vectors, held_out)
    assert by_id == by_row
    assert not by_id.verified


def test_missing_and_extra_nodes_are_counted(held_out):
    ids = np.append(held_out.graph.ids[5:], ["stranger", "another"])
    vectors = Embedding(np.random.default_rng(0).normal(size=(len(ids), 3)), ids)
    with pytest.raises(EmbeddingError, match=r"5.*554 nodes"):
        predict_links(vectors, held_out)
    result = predict_links(vectors, held_out, allow_missing=True)
    assert (result.missing, result.extra) == (5, 2)


def test_a_golden_value_and_json(held_out):
    vectors = METHODS["attributes"](dim=16, seed=0).fit_transform(held_out.graph)
    seen = []
    result = predict_links(vectors, held_out, similarity="cosine", progress=seen.append)
    assert (result.auc, result.scorer_auc) == pytest.approx((0.8236, 0.9466), abs=0.01)
    assert result == predict_links(vectors, held_out, similarity="cosine")
    assert json.loads(json.dumps(result.as_dict()))["positives"] == len(held_out.positives)
    assert (seen[-1].done, seen[-1].total, seen[-1].unit) == (2, 2, "scorings")


def test_invalid_input_is_described(held_out):
    vectors = np.ones((len(held_out.graph), 2))
    with pytest.raises(ParameterError, match=r"similarity='sharp'.*cosine, dot, distance"):
        predict_links(vectors, held_out, similarity="sharp")
    with pytest.raises(EmbeddingError, match=r"vectors.*553.*554 nodes"):
        predict_links(vectors[1:], held_out)
    with pytest.raises(EmbeddingError, match=r"554.*554 vectors"):
        predict_links(vectors * np.nan, held_out)
