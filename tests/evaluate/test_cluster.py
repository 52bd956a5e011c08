import json

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from neural_brane import load
from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate import Clustering, cluster
from neural_brane.evaluate.cluster import purity
from neural_brane.methods import METHODS


@pytest.fixture(scope="module")
def clouds():
    """Three clouds that touch."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["databases", "agents", "learning"], 50)
    return (rng.normal(size=(150, 4)) + 2 * np.repeat([0, 1, 2], 50)[:, None]).astype(np.float32), labels


def test_the_start_with_the_smallest_inertia_is_scored(clouds):
    vectors, labels = clouds
    noise = np.random.default_rng(2).normal(size=(150, 6))
    for table in (vectors.astype(np.float64), noise):
        result = cluster(table, labels, starts=4, seed=4)
        seeds = [int(np.random.SeedSequence((4, start)).generate_state(1)[0]) for start in range(4)]
        runs = [KMeans(3, n_init=1, random_state=seed).fit(table) for seed in seeds]
        found = min(runs, key=lambda run: run.inertia_).labels_
        assert result.nmi == pytest.approx(normalized_mutual_info_score(labels, found))
        assert result.ari == pytest.approx(adjusted_rand_score(labels, found))
        assert result.purity == purity(np.unique(labels, return_inverse=True)[1], found)
    assert len({round(run.inertia_, 3) for run in runs}) > 1  # the starts on noise differ
    assert 0.3 < cluster(vectors, labels).nmi < cluster(vectors, labels).purity < 1


def test_purity_counts_the_most_common_class_of_each_cluster():
    assert purity(np.array([0, 0, 1, 1, 2]), np.array([0, 0, 0, 1, 1])) == 3 / 5
    assert purity(np.array([0, 1]), np.array([1, 0])) == 1.0


def test_the_seed_decides_the_scores(clouds):
    noise = np.random.default_rng(1).normal(size=(150, 4))
    assert cluster(noise, clouds[1]) == cluster(noise, clouds[1])
    assert cluster(noise, clouds[1]).nmi != cluster(noise, clouds[1], seed=1).nmi
    assert abs(cluster(noise, clouds[1]).ari) < 0.1


def test_unlabelled_nodes_are_left_out_and_an_embedding_is_its_vectors(clouds):
    vectors, labels = clouds
    more = Embedding(np.vstack([vectors, 99 * np.ones((20, 4), np.float32)]), range(170))
    result = cluster(more, np.append(labels, [""] * 20), starts=2)
    assert (result.labelled, result.unlabelled) == (150, 20)
    assert result.nmi == cluster(vectors, labels, starts=2).nmi


def test_a_class_of_one_is_a_cluster_like_any_other(clouds):
    vectors, labels = clouds
    assert len(cluster(vectors, np.append(labels[:-1], "alone"), starts=1).classes) == 4


def test_progress_counts_every_start(clouds):
    seen = []
    cluster(*clouds, starts=3, progress=seen.append)
    assert (seen[-1].done, seen[-1].total, seen[-1].unit) == (3, 3, "starts of k-means")


def test_the_record_is_json():
    result = Clustering(0.5, 0.75, 0.25, 9, 1, ("a", "b"), 10, 7)
    assert json.loads(json.dumps(result.as_dict())) == {
        "nmi": 0.5, "purity": 0.75, "ari": 0.25, "labelled": 9, "unlabelled": 1, "classes": ["a", "b"], "starts": 10,
        "seed": 7,
    }  # fmt: skip


def test_a_golden_value():
    graph = load("stdlib")
    vectors = METHODS["attributes"](dim=16, seed=0).fit_transform(graph)
    assert cluster(vectors, graph.labels, starts=5).nmi == pytest.approx(0.390, abs=0.02)


def test_invalid_input_is_described(clouds):
    vectors, labels = clouds
    with pytest.raises(EmbeddingError, match=r"1.*labels"):
        cluster(vectors, ["x"] * 150)
    with pytest.raises(EmbeddingError, match=r"1.*150 vectors"):
        cluster(np.where(np.arange(150)[:, None] == 3, np.nan, vectors), labels)
    with pytest.raises(EmbeddingError, match=r"vectors.*3"):
        cluster(np.ones((150, 4)), labels)
    with pytest.raises(ParameterError, match="starts=0"):
        cluster(vectors, labels, starts=0)
