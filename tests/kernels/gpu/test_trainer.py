import numpy as np
import pytest

from neural_brane.kernels.model import MAX, MEAN, SUM

gpu = pytest.importorskip("neural_brane.kernels.gpu")

POOLINGS = [(MAX, False), (MAX, True), (SUM, False), (MEAN, False)]
PENALTIES = [{}, {"hidden_l2": 0.002}, {"parameter_l2": 0.01}]


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize(("pooling", "zero_floor"), POOLINGS, ids=str)
def test_many_steps_follow_the_reference(
    make_case, settings, assert_follows, on_gpu, batch, seed, pooling, zero_floor, penalty, deterministic
):
    if not on_gpu and deterministic != bool(penalty):
        pytest.skip("one of the two in the interpreter; both on a GPU")
    settings = settings._replace(pooling=pooling, zero_floor=zero_floor, train_bias=bool(penalty), **penalty)
    settings = settings._replace(triplet_scale=1 / max(batch, 10))
    assert_follows(make_case(steps=50 if on_gpu else 6, batch=batch, seed=seed), settings, deterministic=deterministic)


@pytest.mark.parametrize("deterministic", [False, True])
def test_rows_whose_rate_is_zero_stay(make_case, settings, assert_follows, batch, seed, deterministic):
    settings = settings._replace(table_rate=0.0, triplet_scale=1 / batch)
    assert_follows(make_case(steps=9, batch=batch, seed=seed), settings, deterministic=deterministic)


def test_strong_decay_keeps_the_tables_exact(make_case, settings, assert_follows, batch, seed):
    """The tables' common factor falls below its smallest value, so a group is cut into shorter ones."""
    settings = settings._replace(parameter_l2=4.0, triplet_scale=1 / batch)
    assert_follows(make_case(steps=9, batch=batch, seed=seed), settings)


def test_captured_steps_follow_the_reference(make_case, settings, assert_follows, on_gpu, seed):
    """Two groups and a half: one launched step by step, one captured, the rest launched again."""
    if not on_gpu:
        pytest.skip("the interpreter has no CUDA graphs")
    case = make_case(steps=250, batch=20, seed=seed)
    assert_follows(case, settings._replace(triplet_scale=1 / 20, learning_rate=0.02, table_rate=0.03))


def test_deterministic_runs_give_the_same_bits(make_case, settings, on_gpu, train_on_gpu, batch, seed):
    runs = [make_case(steps=150 if on_gpu else 2, batch=batch, seed=seed) for _ in range(2)]
    losses = [train_on_gpu(*case, settings, deterministic=True) for case in runs]
    np.testing.assert_array_equal(*losses)
    for first, second in zip(runs[0].model, runs[1].model, strict=True):
        np.testing.assert_array_equal(first, second)
