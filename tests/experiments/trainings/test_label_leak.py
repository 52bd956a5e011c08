"""Test that no method sees the label of a node that it is tested on, in comparisons and in searches."""

import numpy as np
import pytest

from neural_brane import METHODS, classify, synthetic
from neural_brane.evaluate.labelled import random_splits
from neural_brane.experiments.compare import prepare
from neural_brane.experiments.compute import compute
from neural_brane.experiments.store import Training
from neural_brane.experiments.tune import SCORING, hide_test_labels

LEARNERS = [name for name in METHODS if METHODS[name].uses_labels]
SMALL = {"lane": {"epochs": 2}, "tridnr": {"walks_per_node": 1}}
SPLITS, SHARE = 2, 0.5


@pytest.fixture(scope="module")
def graph():
    return synthetic(90, degree=8, attributes=30, attributes_per_node=5, classes=2, seed=1)


@pytest.fixture
def seen(monkeypatch):
    """Return a list that receives the labels and the vectors of every call of `fit_transform`."""
    calls = []

    def spy(kind):
        original = kind.fit_transform

        def fit_transform(self, graph, y=None, *, labels=None):
            embedding = original(self, graph, y, labels=labels)
            calls.append((labels, embedding.vectors))
            return embedding

        monkeypatch.setattr(kind, "fit_transform", fit_transform)

    for name in LEARNERS:
        spy(METHODS[name])
    return calls


def with_noise(graph, part):
    """Return the graph with labels outside a part replaced by random new names."""
    noise = np.random.default_rng(7).choice(["noise a", "noise b", "noise c"], len(graph))
    return graph.relabelled(np.where(np.isin(np.arange(len(graph)), part), graph.labels, noise))


def parts_of(graph, seed):
    return list(random_splits(np.zeros(len(graph)), SHARE, splits=SPLITS, seed=seed))


@pytest.mark.parametrize("name", LEARNERS)
def test_vectors_are_the_same_bits_whatever_the_labels_outside_the_training_part(name, graph, seen):
    """Compare the vectors of every split of a comparison."""
    order = prepare(graph, {name: SMALL[name]}, ["classify", "cluster"], runs=1, dim=8)
    (training,) = order.trainings
    training.scoring["classes"]["splits"] = SPLITS
    compute(training, graph)
    truly = list(seen)
    assert [labels is None for labels, _ in truly] == [True, False, False]
    for split, (rows, held_out) in enumerate(parts_of(graph, training.seed), 1):
        seen.clear()
        compute(training, with_noise(graph, rows))
        labels, vectors = seen[split]
        np.testing.assert_array_equal(vectors, truly[split][1])
        assert (labels[held_out] == "").all()
        np.testing.assert_array_equal(labels[rows], graph.labels[rows])
        np.testing.assert_array_equal(seen[0][1], truly[0][1])  # vectors for clusters, learned without labels
    assert not np.array_equal(truly[1][1], truly[2][1])  # other labels do change vectors


@pytest.mark.parametrize("name", LEARNERS)
def test_training_labels_do_change_vectors(name, graph):
    """Show that the test above can fail."""
    learn = [METHODS[name](dim=8, seed=0, **SMALL[name]).fit_transform(graph, labels=labels).vectors
             for labels in (None, graph.labels, np.roll(graph.labels, 1))]  # fmt: skip
    assert not np.array_equal(learn[0], learn[1])
    assert not np.array_equal(learn[1], learn[2])


@pytest.mark.parametrize("name", LEARNERS)
def test_a_search_sees_no_label_beyond_the_training_parts_of_its_own(name, graph, seen):
    hidden = hide_test_labels(graph)
    compute(Training(name, SMALL[name] | {"dim": 8}, graph.name, 0, SCORING), hidden)
    given = [labels for labels, _ in seen if labels is not None]
    assert len(given) == SCORING["classes"]["splits"]
    for labels in given:
        assert (labels[hidden.labels == ""] == "").all()
        assert 0 < np.count_nonzero(labels != "") < np.count_nonzero(hidden.labels != "")


def test_classify_calls_a_function_once_per_split_and_scores_it_there_alone(graph):
    rows, calls = np.eye(90), []

    def learn(known):
        calls.append(known)
        return rows

    classify(learn, graph.labels, train=[SHARE], splits=SPLITS, seed=0)
    assert len(calls) == SPLITS
    for known, (part, held_out) in zip(calls, parts_of(graph, 0), strict=True):
        np.testing.assert_array_equal(known[part], graph.labels[part])
        assert not (known[held_out] != "").any()
