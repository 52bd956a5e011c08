import pytest

from neural_brane import load
from neural_brane.errors import ParameterError
from neural_brane.experiments.store import key
from neural_brane.methods.neural_brane.model import RECIPES


def key_of(training, digest="aa", fingerprint="ff"):
    return key(training.identity(digest, fingerprint))


@pytest.mark.parametrize(
    "other",
    [{"dim": 5}, {"seed": 1}, {"method": "tadw"}, {"scoring": {"clusters": {"starts": 4}}}],
    ids=lambda other: next(iter(other)),
)
def test_what_makes_another_training(training, other):
    assert key_of(training()) != key_of(training(**other))


def test_data_and_code_make_another_training(training):
    assert key_of(training(), digest="bb") != key_of(training())
    assert key_of(training(), fingerprint="00") != key_of(training())


def test_scores_of_an_earlier_way_are_not_used_again(training, monkeypatch):
    new = key_of(training())
    monkeypatch.setattr("neural_brane.experiments.store.SCORES", 1)
    assert key_of(training()) != new


def test_a_default_spelt_out_and_the_parameters_of_a_run_make_no_other_training(training):
    same = key_of(training("neural-brane"))
    assert key_of(training("neural-brane", pooling="max")) == same
    assert key_of(training("neural-brane", l2=RECIPES["default"]["l2"])) == same
    assert key_of(training("neural-brane", progress=print)) == same


def test_what_a_recipe_stands_for_makes_another_training_when_it_changes(training, monkeypatch):
    same = key_of(training("neural-brane"))
    monkeypatch.setitem(RECIPES["default"], "l2", 0.5)
    assert key_of(training("neural-brane")) != same


def test_parameters_that_the_method_refuses_are_told_by_the_training_alone(training):
    refused = training("neural-brane", recipe="magic")
    assert refused.deciding_parameters() == {"dim": 4, "recipe": "magic"}
    with pytest.raises(ParameterError, match="recipe='magic'"):
        refused.model().fit(load("stdlib"))


def test_a_model_has_the_trainings_seed_and_threads(training):
    model = training("tadw", seed=7).model(threads=2)
    assert (model.seed, model.threads, model.dim) == (7, 2, 4)
