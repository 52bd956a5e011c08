import signal
import subprocess
import sys

import numpy as np
import pytest

from neural_brane import compare
from neural_brane.errors import ParameterError
from neural_brane.evaluate.labelled import Repeats
from neural_brane.experiments.compare import USUAL, open_store, prepare, run
from neural_brane.experiments.compute import OUT_OF_TIME, FinishedCall
from neural_brane.experiments.store import Store
from neural_brane.methods import METHODS

QUICK = {"runs": 2, "dim": 8}
METHODS_COMPARED = ["attributes", "propagated-attributes"]


@pytest.fixture(scope="module")
def finished(graph, tmp_path_factory):
    """Return a comparison of two methods, and the folder of its trainings."""
    folder = tmp_path_factory.mktemp("finished")
    return compare(graph, METHODS_COMPARED, **QUICK, jobs=2, folder=folder), folder


def test_methods_are_trained_scored_and_ranked(finished, graph):
    found, folder = finished
    assert list(found.standings) == ["classify", "cluster", "retrieve", "link"]
    for standings in found.standings.values():
        assert {one.method for one in standings} == set(METHODS_COMPARED)
        assert standings[0].score.mean >= standings[1].score.mean
        for one in standings:
            assert len(one.score.values) == 2
            assert one.seconds.mean > 0
            assert one.peak_mb > 10
    assert found.best("classify").method == "propagated-attributes"
    assert found.graph["digest"] == graph.digest()
    assert found.parameters["attributes"] == {"dim": 8, "device": "cpu"}
    assert "numpy" in found.machines[0]["packages"]
    assert found.advice.startswith("Take propagated-attributes for classes (Macro-F1 ")
    assert len(list((folder / "trainings").iterdir())) == 2 * 2 * 2  # methods, runs, with and without held-out edges


def test_what_is_finished_is_not_trained_again(finished, graph):
    found, folder = finished
    reports = []
    again = compare(graph, METHODS_COMPARED, **QUICK, folder=folder, progress=reports.append)
    assert reports == []
    assert again == found


def test_a_comparison_that_was_killed_goes_on(finished, graph, tmp_path):
    code = (
        "import os, signal; from neural_brane import compare, synthetic\n"
        "graph = synthetic(90, degree=8, attributes=30, attributes_per_node=5, classes=2, seed=1)\n"
        "def die(progress):\n    if progress.done >= 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"compare(graph, {METHODS_COMPARED}, runs=2, dim=8, folder={str(tmp_path)!r}, progress=die)\n"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    kept = len(list((tmp_path / "trainings").glob("*.json")))
    assert 3 <= kept < 8
    reports = []
    found = compare(graph, METHODS_COMPARED, **QUICK, jobs=2, folder=tmp_path, progress=reports.append)
    assert (reports[-1].done, reports[-1].total) == (8 - kept, 8 - kept)
    assert [one.score for one in found.standings["link"]] == [one.score for one in finished[0].standings["link"]]


def test_scores_by_other_labels_are_not_taken_for_these(finished, graph):
    def missing(labels):
        other = graph.relabelled(labels)
        with open_store(other, finished[1]) as store:
            return len(store.missing(prepare(other, METHODS_COMPARED, None, **QUICK).trainings))

    assert missing(graph.labels) == 0
    assert missing(np.roll(graph.labels, 1)) == 8


def test_a_method_that_fails_is_told_once_and_the_others_go_on(graph):
    diverging = {"learning_rate": 1e30, "epochs": 1, "batches_per_epoch": 20}
    reports = []
    found = compare(
        graph, {"neural-brane": diverging, "attributes": {}}, ["link"], **QUICK, jobs=2, progress=reports.append
    )
    good, bad = found.standings["link"]
    assert (good.method, good.failure) == ("attributes", "")
    assert (bad.method, bad.measures) == ("neural-brane", {})
    assert "training diverged in epoch 1" in bad.failure
    assert (reports[-1].done, reports[-1].total) == (4, 4)  # the skipped second run of the failed method counts as done


def test_a_training_that_takes_too_long_fails(graph):
    found = compare(graph, ["attributes"], ["link"], runs=2, dim=8, time_limit=0.001)
    assert found.best("link") is None
    assert found.standings["link"][0].failure == OUT_OF_TIME
    assert found.advice.startswith("No method could be trained")
    assert OUT_OF_TIME in found.advice


def test_run_k_of_every_method_has_the_same_splits_and_held_out_edges(graph):
    order = prepare(graph, USUAL, None, runs=3, dim=8)
    assert [one.method for one in order.series[::2]] == [name for name in METHODS if METHODS[name].shortlisted]
    assert len(order.trainings) == 7 * 2 * 3
    ways = {(one.seed, str(one.scoring)) for one in order.trainings}
    assert len(ways) == 2 * 3
    assert all("seed" not in options for one in order.trainings for options in one.scoring.values())


@pytest.fixture
def filled(graph, tmp_path):
    """Return a plan and a store of invented trainings: the cosine of method k scores 0.7 + k / 100 + run / 1000."""
    order = prepare(graph, ["attributes", "aane", "tadw"], ["link"], runs=3, dim=8)
    store = Store(tmp_path, digest=str, fingerprint=lambda method, parameters: "")
    for place, series in enumerate(order.series):
        for number, training in enumerate(series.trainings):
            record = {"auc_of_cosines": 0.7 + place / 100 + number / 1000, "seconds": 1.0, "peak_mb": 9.0}
            store.put(training, record | {"machine": {"processor": "Abacus"}})
    return order, store


def test_links_are_ranked_by_the_better_of_cosine_and_scorer(filled):
    order, store = filled
    assert [one.method for one in run(order, store).standings["link"]] == ["tadw", "aane", "attributes"]
    for training in order.series[0].trainings:
        store.put(training, store.get(training) | {"scorer_auc": 0.8})
    first, *others = run(order, store).standings["link"]
    assert (first.method, first.ranked_by) == ("attributes", "scorer_auc")
    assert first.measures["auc_of_cosines"] == Repeats((0.7, 0.701, 0.702))
    assert all("scorer_auc" not in one.measures and one.ranked_by == "auc_of_cosines" for one in others)


def test_a_run_that_failed_makes_its_method_fail(filled, monkeypatch):
    order, store = filled
    store.path(order.series[2].trainings[1]).unlink()
    monkeypatch.setattr("neural_brane.experiments.compute.run", out_of_memory)
    last = run(order, store).standings["link"][-1]
    assert (last.method, last.failure) == ("tadw", "run 1: out of memory")


def out_of_memory(work, trainings, **rest):
    return [FinishedCall(training, failure="out of memory") for training in trainings]


def test_all_stands_for_every_method_that_can_be_trained_and_the_others_are_named(graph, monkeypatch):
    def compared(methods):
        return list(dict.fromkeys(one.method for one in prepare(graph, methods, None, **QUICK).series))

    assert compared("all") == compared(["all", "tadw"]) == list(METHODS)
    monkeypatch.setitem(sys.modules, "torch", None)  # makes Python treat the package as not installed
    on_torch = [name for name in METHODS if METHODS[name].extra == "torch"]
    assert set(compared(["all"])) == set(METHODS) - set(on_torch)
    (note,) = prepare(graph, ["all"], None, **QUICK).notes
    assert note.startswith(f"left out: {', '.join(on_torch)};")
    assert "pip install 'neural-brane[torch]'" in note
    assert "graphsage" in compared(["all", "graphsage"])
    assert prepare(graph, ["graphsage"], None, **QUICK).notes == ()


def test_parameters_may_differ_by_method(graph):
    order = prepare(graph, {"neural-brane": {"epochs": 2}, "attributes": {"dim": 4}}, ["link"], **QUICK)
    assert [one.trainings[0].parameters for one in order.series] == [
        {"dim": 8, "device": "cpu", "epochs": 2},
        {"dim": 4, "device": "cpu"},
    ]


@pytest.mark.parametrize(
    ("methods", "options", "message"),
    [
        (["magic"], {}, "method 'magic'"),
        (["all", "magic"], {}, "method 'magic'"),
        ([], {}, "no method"),
        ({}, {}, "no method"),
        (["attributes"], {"runs": 0}, "runs=0"),
        (["attributes"], {"dim": 0}, "dim=0"),
        ({"attributes": {"colour": "red"}}, {}, "parameter 'colour'"),
        ({"attributes": {"seed": 3}}, {}, "seed=3"),
        (["attributes"], {"time_limit": 0}, "time_limit=0"),
    ],
)
def test_mistakes_are_told_before_anything_is_trained(graph, methods, options, message):
    with pytest.raises(ParameterError, match=message):
        compare(graph, methods, ["link"], **QUICK | options)
