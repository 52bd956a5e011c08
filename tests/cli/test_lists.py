import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.experiments.tune import Tuned
from neural_brane.files import datasets
from neural_brane.files.graphs.formats import FORMATS as GRAPHS
from neural_brane.files.vectors.formats import FORMATS as VECTORS
from neural_brane.methods import METHODS


def lines(*command):
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.stderr
    return {line.split()[0]: line for line in result.stdout.splitlines() if line.split()}


def test_datasets_are_listed_with_counts_and_state():
    found = lines("datasets")
    for record in datasets.list_datasets():
        assert record.state in found[record.name]
    assert "3,312" in found["citeseer"]
    assert "in the package" in found["stdlib"]


def test_formats_are_listed_by_suffix():
    words = " ".join(lines("formats").values()).replace(",", " ").split()
    assert {*VECTORS, *(suffix for one in GRAPHS for suffix in one.suffixes)} <= set(words)


def test_methods_are_listed_with_what_they_use():
    found = lines("methods")
    for name, kind in METHODS.items():
        assert kind.growth in found[name]
        assert ", ".join(kind.uses) in found[name]


@pytest.mark.parametrize("name", ["neural-brane", "lane"])
def test_one_method_is_printed_in_full(name, monkeypatch):
    monkeypatch.setattr("neural_brane.experiments.tune.tuned", lambda: {"cora": {name: Tuned({"dim": 9}, 0.25, 4)}})
    found = lines("methods", name)
    assert METHODS[name].growth in found["growth"]
    for parameter, declared in METHODS[name].parameters().items():
        if parameter != "progress":  # a function cannot be typed
            assert declared.expects() in found[parameter]
            assert declared.about in found[parameter]
    assert found["cora"].split() == ["cora", "0.2500", "dim=9"]


def test_what_a_recipe_decides_is_printed_as_its_value():
    found = lines("methods", "neural-brane")
    assert [found[name].split()[1] for name in ("attribute_dim", "l2", "tolerance")] == ["28", "5e-05", "0.02"]


def test_a_method_without_tuned_values_says_how_to_find_some(monkeypatch):
    monkeypatch.setattr("neural_brane.experiments.tune.tuned", dict)
    assert "'brane tune attributes DATASET'" in lines("methods", "attributes")["No"]


def test_an_unknown_method_is_an_error():
    result = CliRunner().invoke(app, ["methods", "atributes"])
    assert (result.exit_code, "did you mean 'attributes'?" in result.stderr) == (2, True)
