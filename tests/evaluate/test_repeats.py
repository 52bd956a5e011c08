import pytest

from neural_brane.evaluate import Repeats


def test_mean_and_deviation_are_those_of_the_sample():
    score = Repeats((0.4, 0.6))
    assert score.mean == pytest.approx(0.5)
    assert score.sd == pytest.approx(0.02**0.5)
    assert score.as_dict("splits") == {"mean": score.mean, "sd": score.sd, "splits": [0.4, 0.6]}


def test_one_value_has_no_deviation():
    assert (Repeats((0.4,)).mean, Repeats((0.4,)).sd) == (0.4, 0.0)
