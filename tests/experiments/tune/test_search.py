from dataclasses import replace

import numpy as np
import pytest

from neural_brane import load
from neural_brane.errors import GraphError, ParameterError
from neural_brane.evaluate.labelled import tuning_part
from neural_brane.experiments import compute as computing
from neural_brane.experiments.tune import RUNS, candidates, hide_test_labels, tune

GRID = {"dim": [2, 8]}


@pytest.fixture(scope="module")
def graph():
    return load("stdlib")


@pytest.fixture(scope="module")
def found(graph):
    """Return the candidates of the whole search, best first."""
    return timeless(tune("attributes", graph, GRID, runs=1))


@pytest.fixture
def trained(monkeypatch):
    """Return a list that receives the parameters of every training from now on."""
    seen, compute = [], computing.compute

    def note(training, graph, **options):
        seen.append(training.parameters)
        return compute(training, graph, **options)

    monkeypatch.setattr(computing, "compute", note)
    return seen


def timeless(results):
    return [replace(one, seconds=0.0) for one in results]


def test_every_point_is_scored_and_the_best_comes_first(graph):
    results = tune("attributes", graph, {"dim": [2, 8, 4]}, runs=1)
    assert [one.parameters for one in results] == [{"dim": 8}, {"dim": 4}, {"dim": 2}]
    scores = [one.score for one in results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < one.score < 1 for one in results)


def test_every_candidate_is_trained_three_times_and_the_mean_decides(graph, trained):
    noisy = {"dim": 4, "walks_per_node": 1, "walk_length": 5}
    grid = {"window": [1, 3]}
    results = tune("deepwalk", graph, grid, fixed=noisy, seed=5)
    assert len(trained) == 2 * RUNS == 6
    assert all(len(set(one.macro)) == 3 and one.sd > 0 for one in results)
    assert results[0].score == np.mean(results[0].macro) >= results[1].score
    alone = [tune("deepwalk", graph, grid, fixed=noisy, seed=seed, runs=1) for seed in (5, 6, 7)]
    of = {one.parameters["window"]: one.macro for one in results}
    for window, macro in of.items():
        assert macro == tuple(one.score for some in alone for one in some if one.parameters["window"] == window)


def test_a_run_that_fails_fails_its_candidate(graph, monkeypatch):
    compute = computing.compute

    def fail(training, graph, **options):
        if training.parameters == {"dim": 8} and training.seed == 1:
            raise ParameterError("no luck")
        return compute(training, graph, **options)

    monkeypatch.setattr(computing, "compute", fail)
    results = tune("attributes", graph, GRID, runs=2)
    assert [(one.parameters["dim"], one.failure) for one in results] == [(2, ""), (8, "no luck")]


def test_of_equal_scores_the_first_of_the_grid_comes_first(graph):
    grid = {"dim": [4], "weights": [(3.0, 3.0, 3.0), (1.0, 1.0, 1.0), (3.0, 3.0, 3.0)]}
    results = tune("propagated-attributes", graph, grid, runs=1)
    assert len(results) == 3
    equal = [one.parameters for one in results if one.score == results[0].score]
    assert len(equal) > 1
    assert equal == [point for point in candidates(grid) if point in equal]


def test_labels_of_the_test_part_change_nothing(graph, found):
    test = np.ones(len(graph), dtype=bool)
    test[tuning_part(len(graph), 0.2)] = False
    assert (hide_test_labels(graph).labels[test] == "").all()
    labels = graph.labels.copy()
    labels[test] = np.random.default_rng(0).permutation(labels[test])
    assert (labels != graph.labels).any()
    assert timeless(tune("attributes", graph.relabelled(labels), GRID, runs=1)) == found


def test_labels_of_the_tuning_part_do_change_scores(graph, found):
    shown = hide_test_labels(graph).labels != ""
    labels = graph.labels.copy()
    labels[shown] = np.random.default_rng(0).permutation(labels[shown])
    assert tune("attributes", graph.relabelled(labels), GRID, runs=1)[0].score < found[0].score


def test_a_class_with_one_tuning_node_is_left_out(graph):
    labels = graph.labels.copy()
    labels[np.flatnonzero(hide_test_labels(graph).labels != "")[0]] = "lonely"
    hidden = hide_test_labels(graph.relabelled(labels))
    assert "lonely" not in hidden.labels
    assert tune("attributes", graph.relabelled(labels), {"dim": [4]}, runs=1)[0].macro


def test_a_stopped_search_goes_on_and_ends_the_same(graph, found, tmp_path, monkeypatch, trained):
    note = computing.compute

    def stop(training, graph, **options):
        if training.parameters == {"dim": 8}:
            raise KeyboardInterrupt
        return note(training, graph, **options)

    with monkeypatch.context() as patch:
        patch.setattr(computing, "compute", stop)
        with pytest.raises(KeyboardInterrupt):
            tune("attributes", graph, GRID, runs=1, folder=tmp_path)
    assert trained == [{"dim": 2}]
    assert timeless(tune("attributes", graph, GRID, runs=1, folder=tmp_path)) == found
    assert trained == [{"dim": 2}, {"dim": 8}]


def test_only_what_is_new_is_trained(graph, tmp_path, trained):
    tune("attributes", graph, {"dim": [2]}, runs=1, folder=tmp_path)
    tune("attributes", graph, GRID, runs=1, folder=tmp_path)
    assert trained == [{"dim": 2}, {"dim": 8}]
    tune("attributes", graph, GRID, runs=1, folder=tmp_path, fixed={"threads": 1})
    assert len(trained) == 2  # the number of threads changes no vector
    tune("attributes", graph, {"dim": [2]}, runs=1, folder=tmp_path, seed=1)
    assert len(trained) == 3
    tune("attributes", graph, {"dim": [2], "seed": [0, 1, 2]}, runs=1, folder=tmp_path)
    assert len(trained) == 4


def test_progress_counts_what_was_kept(graph, tmp_path):
    reports = []
    tune("attributes", graph, {"dim": [2]}, runs=1, folder=tmp_path)
    tune("attributes", graph, GRID, runs=1, folder=tmp_path, progress=reports.append)
    assert (reports[-1].done, reports[-1].total, reports[-1].unit) == (2, 2, "trainings")


def test_processes_find_the_same(graph, found):
    assert timeless(tune("attributes", graph, GRID, runs=1, jobs=2)) == found


def test_a_setting_that_fails_is_last_and_says_why(graph):
    results = tune("attributes", graph, {"dim": [-1, 4]}, runs=1)
    assert [one.parameters["dim"] for one in results] == [4, -1]
    assert "dim=-1" in results[1].failure
    assert results[1].macro == ()


def test_what_cannot_be_tuned(graph):
    with pytest.raises(GraphError, match=r"'stdlib'.*labels"):
        tune("attributes", graph.relabelled(None), GRID)
    with pytest.raises(ParameterError, match="jobs=0"):
        tune("attributes", graph, GRID, jobs=0)
    with pytest.raises(ParameterError, match="runs=0"):
        tune("attributes", graph, GRID, runs=0)
