from dataclasses import replace

import numpy as np
import pytest

from neural_brane import load
from neural_brane.errors import GraphError, ParameterError
from neural_brane.trainings import compute as computing
from neural_brane.tune.search import SPLITS, candidates, hide_test_labels, tune

GRID = {"dim": [2, 8]}


@pytest.fixture(scope="module")
def graph():
    return load("stdlib")


@pytest.fixture(scope="module")
def found(graph):
    """The whole search on the grid, best first."""
    return timeless(tune("attributes", graph, GRID))


@pytest.fixture
def trained(monkeypatch):
    """The parameters of every training that is computed from now on."""
    seen, compute = [], computing.compute

    def note(training, graph, threads):
        seen.append(training.parameters)
        return compute(training, graph, threads)

    monkeypatch.setattr(computing, "compute", note)
    return seen


def timeless(results):
    return [replace(one, seconds=0.0) for one in results]


def test_every_point_is_scored_and_the_best_comes_first(graph):
    results = tune("attributes", graph, {"dim": [2, 8, 4]})
    assert [one.parameters for one in results] == [{"dim": 8}, {"dim": 4}, {"dim": 2}]
    scores = [one.score for one in results]
    assert scores == sorted(scores, reverse=True)
    assert all(len(one.macro) == SPLITS and 0 < one.score < 1 for one in results)


def test_of_equal_scores_the_first_of_the_grid_comes_first(graph):
    grid = {"dim": [4], "weights": [(3.0, 3.0, 3.0), (1.0, 1.0, 1.0), (3.0, 3.0, 3.0)]}
    results = tune("propagated-attributes", graph, grid)
    assert len(results) == 3
    equal = [one.parameters for one in results if one.score == results[0].score]
    assert len(equal) > 1
    assert equal == [point for point in candidates(grid) if point in equal]


def test_labels_of_the_test_part_change_nothing(graph, found):
    hidden = hide_test_labels(graph)
    test = (hidden.labels == "") & (graph.labels != "")
    assert test.sum() == round(0.3 * (graph.labels != "").sum())
    labels = graph.labels.copy()
    labels[test] = np.random.default_rng(0).permutation(labels[test])
    assert (labels != graph.labels).any()
    assert timeless(tune("attributes", graph.relabelled(labels), GRID)) == found


def test_labels_of_the_training_part_do_change_scores(graph, found):
    shown = hide_test_labels(graph).labels != ""
    labels = graph.labels.copy()
    labels[shown] = np.random.default_rng(0).permutation(labels[shown])
    assert tune("attributes", graph.relabelled(labels), GRID)[0].score < found[0].score


def test_a_class_with_one_training_node_is_left_out(graph):
    labels = graph.labels.copy()
    labels[np.flatnonzero(hide_test_labels(graph).labels != "")[0]] = "lonely"
    hidden = hide_test_labels(graph.relabelled(labels))
    assert "lonely" not in hidden.labels
    assert tune("attributes", graph.relabelled(labels), {"dim": [4]})[0].macro


def test_a_stopped_search_goes_on_and_ends_the_same(graph, found, tmp_path, monkeypatch, trained):
    note = computing.compute

    def stop(training, graph, threads):
        if training.parameters == {"dim": 8}:
            raise KeyboardInterrupt
        return note(training, graph, threads)

    with monkeypatch.context() as patch:
        patch.setattr(computing, "compute", stop)
        with pytest.raises(KeyboardInterrupt):
            tune("attributes", graph, GRID, folder=tmp_path)
    assert trained == [{"dim": 2}]
    assert timeless(tune("attributes", graph, GRID, folder=tmp_path)) == found
    assert trained == [{"dim": 2}, {"dim": 8}]


def test_only_what_is_new_is_trained(graph, tmp_path, trained):
    tune("attributes", graph, {"dim": [2]}, folder=tmp_path)
    tune("attributes", graph, GRID, folder=tmp_path)
    assert trained == [{"dim": 2}, {"dim": 8}]
    tune("attributes", graph, GRID, folder=tmp_path, fixed={"threads": 1})
    assert len(trained) == 2  # the number of threads changes no vector
    tune("attributes", graph, {"dim": [2]}, folder=tmp_path, seed=1)
    assert len(trained) == 3
    tune("attributes", graph, {"dim": [2], "seed": [0, 1, 2]}, folder=tmp_path)
    assert len(trained) == 4


def test_progress_counts_what_was_kept(graph, tmp_path):
    reports = []
    tune("attributes", graph, {"dim": [2]}, folder=tmp_path)
    tune("attributes", graph, GRID, folder=tmp_path, progress=reports.append)
    assert (reports[-1].done, reports[-1].total, reports[-1].unit) == (2, 2, "trainings")


def test_processes_find_the_same(graph, found):
    assert timeless(tune("attributes", graph, GRID, jobs=2)) == found


def test_a_setting_that_fails_is_last_and_says_why(graph):
    results = tune("attributes", graph, {"dim": [-1, 4]})
    assert [one.parameters["dim"] for one in results] == [4, -1]
    assert "dim=-1 makes no sense" in results[1].failure
    assert results[1].macro == ()


def test_what_cannot_be_tuned(graph):
    with pytest.raises(GraphError, match="'stdlib' has no labels to tune on"):
        tune("attributes", graph.relabelled(None), GRID)
    with pytest.raises(ParameterError, match="jobs=0"):
        tune("attributes", graph, GRID, jobs=0)
