import json
from dataclasses import replace

import numpy as np
import pytest

from neural_brane import load
from neural_brane.errors import GraphError, ParameterError
from neural_brane.tune import search as module
from neural_brane.tune.search import hide_test_labels, tune

GRID = {"dim": [2, 8]}


@pytest.fixture(scope="module")
def graph():
    return load("stdlib")


def timeless(results):
    return [replace(one, seconds=0.0) for one in results]


def test_every_point_is_scored_and_the_best_comes_first(graph):
    results = tune("attributes", graph, {"dim": [2, 8, 4]})
    assert [one.parameters for one in results] == [{"dim": 8}, {"dim": 4}, {"dim": 2}]
    scores = [one.score for one in results]
    assert scores == sorted(scores, reverse=True)
    assert all(len(one.macro) == module.DIVISIONS and 0 < one.score < 1 for one in results)


def test_labels_of_the_test_part_change_nothing(graph):
    hidden = hide_test_labels(graph)
    test = (hidden.labels == "") & (graph.labels != "")
    assert test.sum() == round(0.3 * (graph.labels != "").sum())
    labels = graph.labels.copy()
    labels[test] = np.random.default_rng(0).permutation(labels[test])
    assert (labels != graph.labels).any()
    permuted = replace(graph, labels=labels)
    assert timeless(tune("attributes", permuted, GRID)) == timeless(tune("attributes", graph, GRID))


def test_labels_of_the_training_part_do_change_scores(graph):
    shown = hide_test_labels(graph).labels != ""
    labels = graph.labels.copy()
    labels[shown] = np.random.default_rng(0).permutation(labels[shown])
    shuffled = tune("attributes", replace(graph, labels=labels), GRID)
    assert shuffled[0].score < tune("attributes", graph, GRID)[0].score


def test_a_class_with_one_training_node_is_left_out(graph):
    labels = graph.labels.copy()
    labels[np.flatnonzero(hide_test_labels(graph).labels != "")[0]] = "lonely"
    hidden = hide_test_labels(replace(graph, labels=labels))
    assert "lonely" not in hidden.labels
    assert tune("attributes", replace(graph, labels=labels), {"dim": [4]})[0].macro


def test_a_stopped_search_goes_on_and_ends_the_same(graph, tmp_path, monkeypatch):
    path = tmp_path / "found.json"
    whole = tune("attributes", graph, GRID)

    def stop(results):
        if len(results) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune("attributes", graph, GRID, path=path, found=stop)
    trained = []
    score = module.score
    monkeypatch.setattr(module, "score", lambda *arguments: trained.append(arguments[-1]) or score(*arguments))
    assert timeless(tune("attributes", graph, GRID, path=path)) == timeless(whole)
    assert trained == [{"dim": 8}]
    assert timeless(tune("attributes", graph, {"dim": [8]}, path=path)) == timeless(whole[:1])
    assert len(trained) == 1


def test_processes_find_the_same(graph):
    assert timeless(tune("attributes", graph, GRID, jobs=2)) == timeless(tune("attributes", graph, GRID))


def test_a_file_of_another_search_is_refused(graph, tmp_path):
    path = tmp_path / "found.json"
    tune("attributes", graph, {"dim": [2]}, path=path)
    with pytest.raises(ParameterError, match=r"found.json is of another search \(seed was 0, now 1\); remove it"):
        tune("attributes", graph, {"dim": [2]}, path=path, seed=1)
    path.write_text(json.dumps({"identity": {}}))
    with pytest.raises(ParameterError, match=r"found.json holds no finished candidates \('candidates'\)"):
        tune("attributes", graph, {"dim": [2]}, path=path)


def test_a_setting_that_fails_is_last_and_says_why(graph):
    results = tune("attributes", graph, {"dim": [-1, 4]})
    assert [one.parameters["dim"] for one in results] == [4, -1]
    assert "dim=-1 makes no sense" in results[1].failure
    assert results[1].macro == ()


def test_what_cannot_be_tuned(graph):
    with pytest.raises(GraphError, match="'stdlib' has no labels to tune on"):
        tune("attributes", replace(graph, labels=None), GRID)
    with pytest.raises(ParameterError, match="jobs=0"):
        tune("attributes", graph, GRID, jobs=0)
