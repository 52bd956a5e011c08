import tomllib

import pytest

from neural_brane.datasets.registry import registry
from neural_brane.errors import ParameterError
from neural_brane.methods import METHODS, tuning


def test_tuned_values_are_parameters_of_known_methods_and_datasets():
    assert tuning.tuned()
    for dataset, methods in tuning.tuned().items():
        assert dataset in registry()
        for name, chosen in methods.items():
            assert METHODS[name]().get_params().keys() >= chosen.parameters.keys()
            assert 0 < chosen.validation < 1
            assert chosen.candidates >= 1


@pytest.mark.parametrize("name", METHODS)
def test_a_grid_holds_parameters_of_its_method_only(name):
    found = tuning.grid(METHODS[name])
    assert METHODS[name]().get_params().keys() >= found.keys()
    assert all(len(set(values)) == len(values) > 0 for values in found.values())
    defaults = METHODS[name]().get_params()
    assert all(defaults[parameter] in [*values, None] for parameter, values in found.items())


def test_the_grid_of_the_paper_is_for_those_who_have_the_parameter():
    found = tuning.grid(METHODS["neural-brane"])
    assert found["learning_rate"] == [0.01, 0.05, 0.1, 0.5]
    assert 5e-5 in found["l2"]
    assert tuning.grid(METHODS["attributes"]) == {}
    assert tuning.grid(METHODS["deepwalk+nnmf"])["walk_length"] == [20, 40, 60, 80]
    assert min(tuning.grid(METHODS["graphsage"])["learning_rate"]) == 1e-6
    assert "walk_length" not in tuning.grid(METHODS["graphsage"])


def test_what_is_written_is_what_is_read(monkeypatch):
    chosen = tuning.Tuned({"learning_rate": 1e-5, "sizes": (25, 10), "bias": True, "kind": "slow"}, 0.6789, 16)
    text = chosen.as_toml("deepwalk+nnmf", "arnetminer-15753")
    monkeypatch.setattr(tuning, "_read", lambda name: tomllib.loads(text))
    assert tuning.tuned.__wrapped__() == {"arnetminer-15753": {"deepwalk+nnmf": chosen}}


def test_tuned_values_that_are_not_kept_are_an_error(monkeypatch):
    monkeypatch.setattr(tuning, "tuned", lambda: {"cora": {"tadw": tuning.Tuned({"l2": 0.1}, 0.5, 3)}})
    assert tuning.tuned_parameters("tadw", "cora") == {"l2": 0.1}
    with pytest.raises(ParameterError, match="'tadw' are kept for 'reed98', only for cora"):
        tuning.tuned_parameters("tadw", "reed98")
    with pytest.raises(ParameterError, match="find some with 'brane tune aane'"):
        tuning.tuned_parameters("aane", "cora")
