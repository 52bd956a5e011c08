import pytest

from neural_brane.experiments.tune import grid
from neural_brane.methods import METHODS


@pytest.mark.parametrize("name", METHODS)
def test_a_grid_holds_parameters_of_its_method_only(name):
    found, defaults = grid(METHODS[name]), METHODS[name]().get_params()
    assert defaults.keys() >= found.keys()
    assert all(len(set(values)) == len(values) > 0 for values in found.values())
    assert all(defaults[parameter] in [*values, None] for parameter, values in found.items())


def test_the_grid_of_the_paper_is_for_those_who_have_the_parameter():
    found = grid(METHODS["neural-brane"])
    assert found["learning_rate"] == [0.01, 0.05, 0.1, 0.5]
    assert 5e-5 in found["l2"]
    assert grid(METHODS["attributes"]) == {}
    assert grid(METHODS["deepwalk+nnmf"])["walk_length"] == [20, 40, 60, 80]
    assert grid(METHODS["node2vec"]) == {"learning_rate": [0.025], "p": [0.25, 1.0, 4.0], "q": [0.25, 0.5, 1.0, 4.0]}
    assert min(grid(METHODS["graphsage"])["learning_rate"]) == 1e-6
    assert "walk_length" not in grid(METHODS["graphsage"])
