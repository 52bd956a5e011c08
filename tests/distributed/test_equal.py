"""One, two and four ranks train the same model as one process in 20 steps, with every recipe."""

import numpy as np
import pytest

from neural_brane.kernels import cpu
from neural_brane.kernels.model import bags_of
from neural_brane.methods.neural_brane.parts import kernel_settings
from neural_brane.methods.neural_brane.training import initial_model
from neural_brane.sampling.triplets import TripletSampler

FIELDS = ("attribute_table", "neighbour_table", "weight", "bias", "losses")
NAMES = ("max", "sum", "mean", "large", "released", "paper", "shrinking", "uneven", "no attributes", "attributes alone")


@pytest.fixture(scope="module")
def alone(engine_cases):
    """Every case trained in one process."""
    return {name: train_alone(engine_cases, name) for name in engine_cases.CASES}


def train_alone(cases, name):
    settings, graph = cases.settings_of(name), cases.graph()
    batch = settings["batch_size"]
    model = initial_model(graph, settings, cases.SEED)
    options = {option: settings[option] for option in ("negative_power", "allow_self_negative")}
    triplets = TripletSampler(graph.adjacency, seed=cases.SEED, **options).draw(0, cases.STEPS * batch)
    bags = bags_of(graph.attributes), bags_of(graph.adjacency)
    losses = cpu.Trainer(model, *bags, kernel_settings(settings), batch)(triplets.reshape(-1, batch, 3))
    return model._asdict() | {"losses": losses}


def test_every_case_is_compared(engine_cases):
    assert tuple(engine_cases.CASES) == NAMES


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_ranks_train_the_model_of_one_process(trained, alone, name, ranks):
    found = np.load(trained(ranks))
    for field in FIELDS:
        np.testing.assert_allclose(found[f"local/{name}/{field}"], alone[name][field], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_training_moves_the_trained_parameters_only(engine_cases, alone, name):
    settings = engine_cases.settings_of(name)
    first = initial_model(engine_cases.graph(), settings, engine_cases.SEED)
    moved = {field for field, array in first._asdict().items() if not np.allclose(array, alone[name][field], atol=1e-3)}
    still = {"bias"} if not settings["bias"] else set()
    still |= {"attribute_table"} if settings["attribute_dim"] == 0 else set()
    still |= {"neighbour_table"} if settings["attribute_dim"] == settings["dim"] else set()
    assert moved == set(first._fields) - still


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("name", ["max", "large"])
def test_dividing_the_rows_among_ranks_changes_no_bit(trained, name, ranks):
    found = np.load(trained(ranks))
    for field in FIELDS:
        np.testing.assert_array_equal(found[f"ranged/{name}/{field}"], found[f"local/{name}/{field}"])
