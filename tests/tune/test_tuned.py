import pytest

from neural_brane.datasets.registry import registry
from neural_brane.errors import ParameterError
from neural_brane.methods import METHODS
from neural_brane.tune import tuned as module
from neural_brane.tune.tuned import Tuned, parse, tuned, tuned_parameters


def test_tuned_values_are_parameters_of_known_methods_and_datasets():
    assert tuned()
    for dataset, methods in tuned().items():
        assert dataset in registry()
        for name, chosen in methods.items():
            assert METHODS[name]().get_params().keys() >= chosen.parameters.keys()
            assert 0 < chosen.validation < 1
            assert chosen.candidates >= 1


def test_what_is_written_is_what_is_read():
    chosen = Tuned({"learning_rate": 1e-5, "sizes": (25, 10), "bias": True, "kind": "slow"}, 0.6789, 16)
    assert parse(chosen.as_toml("deepwalk+nnmf", "arnetminer-15753")) == {"arnetminer-15753": {"deepwalk+nnmf": chosen}}


def test_tuned_values_that_are_not_kept_are_an_error(monkeypatch):
    monkeypatch.setattr(module, "tuned", lambda: {"cora": {"tadw": Tuned({"l2": 0.1}, 0.5, 3)}})
    assert tuned_parameters("tadw", "cora") == {"l2": 0.1}
    with pytest.raises(ParameterError, match="'tadw' are kept for 'reed98', only for cora"):
        tuned_parameters("tadw", "reed98")
    with pytest.raises(ParameterError, match="find some with 'brane tune aane'"):
        tuned_parameters("aane", "cora")
