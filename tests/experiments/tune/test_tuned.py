from pathlib import Path

import pytest

from neural_brane import load
from neural_brane.errors import ParameterError
from neural_brane.experiments import tune as module
from neural_brane.experiments.tune import RUNS, Tuned, hide_test_labels, parse, tuned, tuned_parameters
from neural_brane.files.datasets import registry
from neural_brane.methods import METHODS


def test_tuned_values_are_parameters_of_known_methods_and_datasets():
    assert tuned()
    for dataset, methods in tuned().items():
        assert dataset in registry()
        for name, chosen in methods.items():
            assert METHODS[name]().get_params().keys() >= chosen.parameters.keys()
            assert 0 < chosen.validation < 1
            assert chosen.candidates >= 1


@pytest.mark.usefixtures("real_data")
@pytest.mark.filterwarnings("ignore:'arnetminer-15753' is loaded without")
def test_tuned_values_were_found_on_the_tuning_part_of_today():
    entries = [one for methods in tuned().values() for one in methods.values()]
    if not any(one.seen for one in entries):
        page = (Path(__file__).parents[3] / "docs" / "reproduce.md").read_text(encoding="utf-8")
        assert "older than the tuning part" in page, "run scripts/tune_all.py"
        return
    assert all(one.runs == RUNS for one in entries)
    for dataset, methods in tuned().items():
        today = hide_test_labels(load(dataset)).digest()
        assert {name: one.seen for name, one in methods.items()} == dict.fromkeys(methods, today)


def test_what_is_written_is_what_is_read():
    chosen = Tuned({"learning_rate": 1e-5, "sizes": (25, 10), "bias": True, "kind": "slow"}, 0.6789, 16, 3, "0123abcd")
    assert parse(chosen.as_toml("deepwalk+nnmf", "arnetminer-15753")) == {"arnetminer-15753": {"deepwalk+nnmf": chosen}}


def test_tuned_values_that_are_not_kept_are_an_error(monkeypatch):
    monkeypatch.setattr(module, "tuned", lambda: {"cora": {"tadw": Tuned({"l2": 0.1}, 0.5, 3)}})
    assert tuned_parameters("tadw", "cora") == {"l2": 0.1}
    with pytest.raises(ParameterError, match=r"'tadw'.*'reed98'.*cora"):
        tuned_parameters("tadw", "reed98")
    with pytest.raises(ParameterError, match="'brane tune aane'"):
        tuned_parameters("aane", "cora")
