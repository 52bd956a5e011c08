import pytest

from neural_brane import NeuralBrane, PropagatedAttributes
from neural_brane.cli.options import parse_grid, parse_settings, split_names
from neural_brane.errors import ParameterError


def test_settings_are_parsed_by_their_declarations():
    assert parse_settings(NeuralBrane, ["batches-per-epoch=5", "seed = 3", "bias=true"]) == {
        "batches_per_epoch": 5, "seed": 3, "bias": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["dim=1", "dim=2"], "dim=2: dim is given twice; leave one out"),
        (["dim"], "'dim' sets nothing; write name=value, as in dim=150"),
        (["sead=1"], r"method 'neural-brane' has no parameter 'sead' \(did you mean 'seed'\?\)"),
    ],
)
def test_mistakes_are_told(texts, message):
    with pytest.raises(ParameterError, match=message):
        parse_settings(NeuralBrane, texts)


def test_a_grid_is_a_list_of_values():
    grid = parse_grid(PropagatedAttributes, ["dim=1,2", "weights=1,2;3,4"])
    assert grid == {"dim": [1, 2], "weights": [(1.0, 2.0), (3.0, 4.0)]}


def test_names_come_by_commas_and_by_repeating_the_option():
    assert split_names(["tadw, line", "pte,"]) == ["tadw", "line", "pte"]
    assert split_names(None) == []
