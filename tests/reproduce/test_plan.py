import sys
from dataclasses import replace

import pytest

from neural_brane.errors import ParameterError
from neural_brane.methods import METHODS
from neural_brane.reproduce.plan import (
    COLUMNS,
    FULL,
    OUTPUTS,
    choose_columns,
    choose_datasets,
    plan,
    quick,
)
from neural_brane.tune.tuned import Tuned


def trainings_of(series):
    return [training for one in series for training in one.trainings]


def test_every_method_has_a_column():
    assert {column.method for column in COLUMNS} == set(METHODS)


def test_methods_whose_package_is_missing_are_left_out_unless_they_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # what Python keeps for a package that is not installed
    assert {column.method for column in choose_columns([])} == set(METHODS) - {"graphsage", "graph2gauss"}
    assert [column.method for column in choose_columns(["graphsage"])] == ["graphsage"]


def test_a_training_that_serves_several_outputs_is_computed_once(store):
    series = plan(OUTPUTS, COLUMNS, FULL.datasets, FULL, runs=10)
    distinct = store.distinct(trainings_of(series))
    # Of each dataset; the dimension 150 and max pooling are the table's.
    table, few, dimension, pooling = 14 * 10, 2 * 3, 5 * 10, 10
    assert len(distinct) == 4 * (table + few + dimension + pooling)
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
    monkeypatch.setattr("neural_brane.reproduce.plan.tuned", lambda: found)
    series = plan(["classification"], choose_columns(["tadw", "neural-brane"]), ["citeseer"], FULL, runs=1)
    parameters = [one.trainings[0].parameters for one in series]
    assert parameters[0] == {"dim": 150, "l2": 0.5}
    assert [one["recipe"] for one in parameters[1:]] == ["released", "default", "paper"]
    assert not any("l2" in one for one in parameters[1:])


def test_a_quick_plan_is_small_and_has_every_output_and_method():
    scale = quick("stdlib")
    series = plan(OUTPUTS, COLUMNS, scale.datasets, scale, runs=scale.runs)
    assert {one.output for one in series} == set(OUTPUTS)
    assert all(one.parameters["dim"] <= 16 for one in trainings_of(series))
    assert all(one.scoring["classes"]["splits"] == 2 for one in trainings_of(series))


def test_names_that_are_not_known():
    with pytest.raises(ParameterError, match=r"no method 'tadv' \(did you mean 'tadw'\?\)"):
        choose_columns(["tadv"])
    with pytest.raises(ParameterError, match=r"no dataset 'citeser' \(did you mean 'citeseer'\?\)"):
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
