import json

import numpy as np
import pytest
from scipy import sparse

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate import retrieve
from neural_brane.evaluate.retrieve import find_hits
from neural_brane.graph.labels import MultiLabels
from neural_brane.progress import Meter


@pytest.fixture(scope="module")
def clouds():
    """Three clouds of different sizes that touch."""
    rng = np.random.default_rng(0)
    side = np.repeat([0, 1, 2], [10, 20, 30])
    return (rng.normal(size=(60, 4)) + 2 * np.eye(4)[side]).astype(np.float32), np.array(["a", "b", "c"])[side]


def brute(vectors, alike, k, queries):
    """Return precision, recall and average precision, computed from fully sorted lists."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (unit @ unit.T).astype(float)
    scores = []
    for query in queries:
        others = [row for row in np.argsort(-cosines[query], kind="stable") if row != query]
        hits = [bool(alike[query, row]) for row in others]
        relevant, first = sum(hits), hits[:k]
        average = sum(sum(first[: at + 1]) / (at + 1) for at in range(k) if first[at]) / min(k, relevant)
        scores.append(
            (sum(first) / k, sum(first) / relevant, average, relevant / len(others), min(k, relevant) / relevant)
        )
    return np.mean(scores, axis=0)


def figures(score):
    return [score.precision, score.recall, score.average_precision, score.chance_precision, score.most_recall]


def test_scores_equal_those_of_fully_sorted_lists(clouds):
    vectors, labels = clouds
    result = retrieve(vectors, labels, k=[1, 7, 59])
    alike = labels[:, None] == labels
    for k in (1, 7, 59):
        np.testing.assert_allclose(figures(result.at(k)), brute(vectors.astype(float), alike, k, range(60)))
    assert result.at(59).recall == 1
    assert result.at(7).chance_recall == pytest.approx(7 / 59)
    assert result.at(1).precision > 1.5 * result.at(1).chance_precision


def test_nodes_that_share_one_of_several_labels_are_hits(clouds):
    vectors, _ = clouds
    has = np.random.default_rng(3).random((60, 5)) < 0.25
    has[~has.any(axis=1), 0] = True
    alike = has.astype(int) @ has.T > 0
    result = retrieve(vectors, sparse.csr_array(has), k=5)
    np.testing.assert_allclose(figures(result.at(5)), brute(vectors.astype(float), alike, 5, range(60)))
    assert result.several
    lists = [[f"{label}" for label in np.flatnonzero(row)] for row in has]
    assert retrieve(vectors, lists, k=5) == result


def test_scores_of_a_small_example():
    vectors = np.array([[1, 0.0], [1, 0.05], [1, 0.2], [0, 1.0], [0.1, 1]])
    found = retrieve(vectors, ["x", "x", "y", "y", "y"], k=1).at(1)
    assert found.precision == pytest.approx(4 / 5)  # the node nearest to the third node has another class
    assert found.recall == pytest.approx((1 + 1 + 0 + 1 / 2 + 1 / 2) / 5)
    assert found.chance_precision == pytest.approx((2 * 1 / 4 + 3 * 2 / 4) / 5)


def test_random_vectors_are_at_chance():
    labels = np.repeat(["a", "b", "c", "d"], 100)
    found = retrieve(np.random.default_rng(0).normal(size=(400, 16)), labels).at(10)
    assert found.precision == pytest.approx(found.chance_precision, abs=0.03)
    assert found.recall == pytest.approx(found.chance_recall, abs=0.01)


def test_a_sample_of_queries_depends_on_the_seed_alone(clouds):
    vectors, labels = clouds
    some = retrieve(vectors, labels, k=3, queries=20, seed=1)
    assert some == retrieve(vectors, labels, k=3, queries=20, seed=1)
    assert some.scores != retrieve(vectors, labels, k=3, queries=20, seed=2).scores
    assert some.queries == 20
    assert retrieve(vectors, labels, k=3, queries=None) == retrieve(vectors, labels, k=3)


def test_small_blocks_change_nothing_and_every_query_is_counted(clouds):
    vectors, labels = clouds
    known, seen = MultiLabels.from_labels([[one] for one in labels]), []
    whole = find_hits(vectors, known, np.arange(60), 3, Meter(None, 60, "queries"))
    parts = find_hits(vectors, known, np.arange(60), 3, Meter(seen.append, 60, "queries"), block_entries=500)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (seen[-1].done, seen[-1].unit) == (60, "queries")


def test_nodes_that_are_left_out_are_counted(clouds):
    vectors, labels = clouds
    more = Embedding(np.vstack([vectors, vectors[:3]]), range(63))
    result = retrieve(more, np.append(labels, ["", "", "alone"]), k=2)
    assert (result.labelled, result.unlabelled, result.alone, result.queries) == (61, 2, 1, 60)
    written = json.loads(json.dumps(result.as_dict()))
    assert (written["similarity"], written["scores"][0]["k"]) == ("cosine", 2)
    assert [score.k for score in retrieve(vectors, labels).scores] == [1, 10]


def test_invalid_input_is_described(clouds):
    vectors, labels = clouds
    with pytest.raises(ParameterError, match=r"k=60.*60.*nodes.*59"):
        retrieve(vectors, labels, k=60)
    with pytest.raises(ParameterError, match="k=0 "):
        retrieve(vectors, labels, k=0)
    with pytest.raises(ParameterError, match="queries=0"):
        retrieve(vectors, labels, queries=0)
    with pytest.raises(EmbeddingError, match=r"1.*labels"):
        retrieve(vectors, ["x"] * 60)
    with pytest.raises(EmbeddingError, match=r"no query.*class"):
        retrieve(vectors, [str(node) for node in range(60)])
