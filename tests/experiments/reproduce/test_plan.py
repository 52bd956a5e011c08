import sys
from dataclasses import replace

import numpy as np
import pytest

from neural_brane import load
from neural_brane.errors import ParameterError
from neural_brane.evaluate import random_splits
from neural_brane.experiments.reproduce.plan import (
    COLUMNS,
    FULL,
    LINKED,
    OUTPUTS,
    choose_columns,
    choose_datasets,
    plan,
    quick,
)
from neural_brane.experiments.tune import Tuned, hide_test_labels
from neural_brane.methods import METHODS

# These methods are not in the paper's tables.
ELSEWHERE = {
    "lane", "tridnr", "hne", "ep", "upp-sne", "grarep", "sdne", "dngr", "fastrp", "prone", "pane", "dgi", "cca-ssg",
    "graphmae",
}  # fmt: skip


def trainings_of(series):
    return [training for one in series for training in one.trainings]


def test_every_method_of_the_papers_tables_has_a_column():
    assert {column.method for column in COLUMNS} == set(METHODS) - ELSEWHERE


def test_methods_whose_package_is_missing_are_left_out_unless_they_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # makes Python treat the package as not installed
    assert {column.method for column in choose_columns([])} == set(METHODS) - ELSEWHERE - {"graphsage", "graph2gauss"}
    assert [column.method for column in choose_columns(["graphsage"])] == ["graphsage"]


def test_a_training_that_serves_several_outputs_is_computed_once(store):
    series = plan(OUTPUTS, COLUMNS, FULL.datasets, FULL, runs=10)
    distinct = store.distinct(trainings_of(series))
    # Numbers are per dataset; the table already has dimension 150 and max pooling.
    table, few, dimension, pooling = 14 * 10, 2 * 3, 5 * 10, 10
    links, links_only = 7 * 3, 3 * 10
    assert len(distinct) == 4 * (table + few + dimension + pooling + links) + links_only
    assert len(distinct) < len(trainings_of(series))


def test_the_six_maps_are_of_the_first_run():
    series = plan(["map"], COLUMNS, FULL.datasets, FULL, runs=10)
    assert [(one.column.method, one.dataset) for one in series] == [
        (method, dataset) for dataset in ("caltech36", "reed98") for method in ("tadw", "aane", "neural-brane")
    ]
    assert all(one.scoring["map"] and one.seed == 0 for one in trainings_of(series))


def test_a_training_is_mapped_whatever_is_asked_for():
    tadw = choose_columns(["tadw"])
    (table,) = plan(["classification"], tadw, ["reed98"], FULL, runs=2)
    (picture,) = plan(["map"], tadw, ["reed98"], FULL, runs=2)
    assert table.trainings[0] == picture.trainings[0]
    assert not table.trainings[1].scoring["map"]


def test_tuned_parameters_are_used_and_recipes_are_not_tuned(monkeypatch):
    found = {"citeseer": {name: Tuned({"l2": 0.5}, 0.6, 3) for name in ("tadw", "neural-brane")}}
    monkeypatch.setattr("neural_brane.experiments.reproduce.plan.tuned", lambda: found)
    series = plan(["classification"], choose_columns(["tadw", "neural-brane"]), ["citeseer"], FULL, runs=1)
    parameters = [one.trainings[0].parameters for one in series]
    assert parameters[0] == {"dim": 150, "l2": 0.5}
    assert [one["recipe"] for one in parameters[1:]] == ["released", "default", "paper"]
    assert not any("l2" in one for one in parameters[1:])
    assert [one.tuned for one in series] == [True, False, False, False]


def test_a_quick_plan_is_small_and_has_every_output_and_method():
    scale = quick("stdlib")
    series = plan(OUTPUTS, COLUMNS, scale.datasets, scale, runs=scale.runs)
    assert {one.output for one in series} == set(OUTPUTS)
    assert all(one.parameters["dim"] <= 16 for one in trainings_of(series))
    scored = [one.scoring["classes"] for one in trainings_of(series) if "classes" in one.scoring]
    assert {one["splits"] for one in scored} == {2}


def test_a_graph_without_attributes_has_the_methods_on_links_alone():
    series = plan(OUTPUTS, COLUMNS, ["arnetminer-15753"], FULL, runs=10)
    assert [(one.output, one.column.name, len(one.trainings)) for one in series] == [
        (output, name, 10)
        for output in ("classification", "clustering")
        for name in ("deepwalk", "line", "node2vec")
    ]  # fmt: skip


def test_links_are_held_out_of_three_trainings_that_score_nothing_else():
    series = plan(["links"], COLUMNS, ["reed98"], FULL, runs=10)
    assert [one.column.name for one in series] == [column.name for column in COLUMNS if column.name in LINKED]
    assert {len(one.trainings) for one in series} == {3}
    assert all(one.scoring == {"links": {"share": 0.1}} for one in trainings_of(series))
    assert len(plan(["links"], COLUMNS, ["reed98"], FULL, runs=2)[0].trainings) == 2


def nodes_in_test_sets(training, graph):
    """Return the nodes that a training's splits test, over all shares and splits."""
    labelled = np.flatnonzero(graph.labels != "")
    options = {"seed": training.seed} | training.scoring["classes"]
    shares = options.pop("train")
    assert (options.pop("C"), options.pop("as_they_are")) == (1.0, True)  # as in the paper
    return {
        int(node)
        for share in shares
        for _, rows in random_splits(graph.labels[labelled], share, **options)
        for node in labelled[rows]
    }


@pytest.mark.filterwarnings("ignore:'arnetminer-15753' is loaded without")
@pytest.mark.parametrize("dataset", [*FULL.datasets, "stdlib"])
def test_no_node_that_tuning_has_seen_is_ever_tested(dataset, request):
    if dataset != "stdlib":
        request.getfixturevalue("real_data")
    graph = load(dataset)
    seen = set(np.flatnonzero(hide_test_labels(graph).labels != "").tolist())
    series = plan(["classification"], choose_columns(["deepwalk"]), [dataset], FULL, runs=FULL.runs)
    everything = [nodes_in_test_sets(training, graph) for training in trainings_of(series)]
    assert len(everything) == 10
    assert seen.isdisjoint(set.union(*everything))
    assert set.union(*everything) | seen >= set(range(len(graph))) - set(np.flatnonzero(graph.labels == "").tolist())


@pytest.mark.parametrize("change", [{"TUNING_SEED": 1}, {"TUNING": 0.25}])
def test_another_tuning_part_would_be_tested(change, monkeypatch):
    graph = load("stdlib")
    (series,) = plan(["classification"], choose_columns(["deepwalk"]), ["stdlib"], FULL, runs=1)
    nodes = nodes_in_test_sets(series.trainings[0], graph)
    for name, value in change.items():
        module = "evaluate.labelled" if name == "TUNING_SEED" else "experiments.tune"
        monkeypatch.setattr(f"neural_brane.{module}.{name}", value)
    assert not nodes.isdisjoint(np.flatnonzero(hide_test_labels(graph).labels != "").tolist())


def test_names_that_are_not_known():
    with pytest.raises(ParameterError, match="method 'tadv'"):
        choose_columns(["tadv"])
    with pytest.raises(ParameterError, match=r"dataset 'citeser' \(did you mean 'citeseer'\?\)"):
        choose_datasets(["citeser"], FULL)


def test_one_recipe_can_be_chosen():
    assert [column.name for column in choose_columns(["neural-brane-default"])] == ["neural-brane-default"]
    assert len(choose_columns(["neural-brane"])) == 3


def test_a_gpu_is_for_the_methods_that_have_a_device():
    (gpu,) = plan(["classification"], choose_columns(["graphsage"]), ["stdlib"], replace(FULL, device="cuda"), runs=1)
    (cpu,) = plan(["classification"], choose_columns(["graphsage"]), ["stdlib"], FULL, runs=1)
    assert (gpu.trainings[0].parameters["device"], cpu.trainings[0].parameters["device"]) == ("cuda", "cpu")
    (without,) = plan(["classification"], choose_columns(["tadw"]), ["stdlib"], replace(FULL, device="cuda"), runs=1)
    assert "device" not in without.trainings[0].parameters
