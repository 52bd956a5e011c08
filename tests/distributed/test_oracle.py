"""A simple engine in double precision equals the reference kernel, and the real engine equals the simple one."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="ranks need torch: pip install 'neural-brane[torch]'")

from neural_brane.kernels import reference
from neural_brane.kernels.model import Model, bags_of
from neural_brane.methods.neural_brane.parts import kernel_settings
from neural_brane.methods.neural_brane.training import initial_model
from neural_brane.sampling.triplets import TripletSampler

RANKS = 2
TABLES = ("attribute_table", "neighbour_table")
LONG = ("long max", "long mean", "long paper")
NAMES = ("max", "sum", "mean", "released", "paper", "shrinking", "uneven", "no attributes", "attributes alone")


@pytest.fixture(scope="module")
def oracle(tmp_path_factory, ranks_module):
    """The arrays of all ranks of the oracle, joined, by CASE/FIELD."""
    output = tmp_path_factory.mktemp("oracle")
    ranks_module.run_ranks("oracle.py", output, ranks=RANKS)
    ranks = [dict(np.load(output / f"{rank}.npz")) for rank in range(RANKS)]
    for name, array in ranks[0].items():
        if name.endswith(TABLES):
            ranks[0][name] = np.concatenate([rank[name] for rank in ranks])
        else:
            for rank in ranks:
                np.testing.assert_array_equal(rank[name], array)
    return ranks[0]


@pytest.fixture(scope="module", params=LONG)
def long_run(request, engine_cases):
    """A case and its model before and after many steps of one process, in double precision."""
    settings, graph = engine_cases.settings_of(request.param), engine_cases.graph()
    batch, steps = settings["batch_size"], engine_cases.LONG_STEPS
    first = Model(*(theta.astype(np.float64) for theta in initial_model(graph, settings, engine_cases.SEED)))
    last = Model(*(theta.copy() for theta in first))
    options = {option: settings[option] for option in ("negative_power", "allow_self_negative")}
    triplets = TripletSampler(graph.adjacency, seed=engine_cases.SEED, **options).draw(0, steps * batch)
    bags = bags_of(graph.attributes), bags_of(graph.adjacency)
    losses = reference.train(last, *bags, triplets.reshape(steps, batch, 3), kernel_settings(settings))
    return request.param, first, last, losses


def test_every_case_is_compared(engine_cases):
    assert set(engine_cases.CASES) - {"large"} == set(NAMES)
    assert tuple(engine_cases.LONG) == LONG


def test_two_ranks_of_the_oracle_equal_the_reference_to_the_last_digits(oracle, long_run):
    name, first, last, losses = long_run
    for field, before, after in zip(Model._fields, first, last, strict=True):
        assert np.abs(oracle[f"{name}/{field}"] - after).max() < 1e-12, field
        assert field == "bias" or np.abs(after - before).max() > 0.01, field  # some recipes do not train b
    assert np.abs(oracle[f"{name}/losses"] - losses).max() < 1e-12
    assert losses[-20:].mean() < losses[:20].mean() - 0.01


@pytest.mark.parametrize("name", NAMES)
def test_two_ranks_of_the_engine_equal_the_oracle(trained, oracle, name):
    found = np.load(trained(RANKS))
    for field in (*Model._fields, "losses"):
        np.testing.assert_allclose(found[f"local/{name}/{field}"], oracle[f"{name}/{field}"], rtol=0, atol=1e-5)
