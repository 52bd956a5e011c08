import numpy as np
import pytest

from neural_brane.errors import ParameterError
from neural_brane.kernels import cpu, reference
from neural_brane.kernels.cpu.slots import TWIN_ROWS
from neural_brane.kernels.model import MAX, MEAN, SUM, Bags, Model


def assert_follows_the_reference(case, settings) -> None:
    """Train the same model on the same triplets by both kernels; the reference in double precision."""
    slow = case._replace(model=Model(*(theta.astype(np.float64) for theta in case.model)))
    np.testing.assert_allclose(cpu.train(*case, settings), reference.train(*slow, settings), rtol=1e-4)
    for name, found, expected in zip(Model._fields, case.model, slow.model, strict=True):
        # An entry near zero is the difference of larger numbers: it is judged by the size of its table.
        size = np.abs(expected).mean() if expected.size else 0
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * size, err_msg=name)


@pytest.mark.parametrize(("pooling", "zero_floor"), [(MAX, False), (MAX, True), (SUM, False), (MEAN, False)], ids=str)
@pytest.mark.parametrize("penalty", [{}, {"hidden_l2": 0.002}, {"parameter_l2": 0.01}], ids=str)
@pytest.mark.parametrize("train_bias", [False, True])
def test_a_hundred_steps_follow_the_reference(make_case, settings, pooling, zero_floor, penalty, train_bias):
    settings = settings._replace(pooling=pooling, zero_floor=zero_floor, train_bias=train_bias, **penalty)
    assert_follows_the_reference(make_case(steps=100), settings)


def test_a_summed_loss_follows_the_reference(make_case, settings):
    assert_follows_the_reference(
        make_case(steps=10), settings._replace(triplet_scale=1.0, learning_rate=0.002, table_rate=0.003)
    )


@pytest.mark.parametrize("batch", [1, 7, 26, 1700])
def test_any_batch_size_follows_the_reference(make_case, settings, batch):
    settings = settings._replace(triplet_scale=1 / batch, train_bias=True)
    assert_follows_the_reference(make_case(steps=3, batch=batch), settings)


@pytest.mark.parametrize(("d1", "d2"), [(0, 5), (5, 0), (16, 33)])
def test_any_widths_follow_the_reference(make_case, settings, d1, d2):
    assert_follows_the_reference(make_case(d1=d1, d2=d2, steps=5), settings._replace(attribute_dim=d1))


@pytest.mark.parametrize("pooling", [MAX, SUM])
def test_repeated_hubs_follow_the_reference(make_case, settings, pooling):
    """A long bag is pooled once for all of a block's slots that have it."""
    case, hub = make_case(steps=20), 1
    lists = np.split(case.neighbour_bags.indices, case.neighbour_bags.indptr[1:-1])
    lists[hub] = np.arange(len(lists), dtype=np.int32)
    assert len(lists[hub]) >= TWIN_ROWS
    bags = Bags(np.cumsum([0, *map(len, lists)]), np.concatenate(lists))
    case.triplets[:, ::3, 1] = case.triplets[:, 1::5, 2] = hub
    assert_follows_the_reference(case._replace(neighbour_bags=bags), settings._replace(pooling=pooling))


def test_strong_decay_over_many_steps_keeps_the_tables_exact(make_case, settings):
    """The tables' common factor falls below its smallest value and is multiplied into the tables."""
    assert_follows_the_reference(make_case(steps=100), settings._replace(parameter_l2=0.2))


def test_spare_columns_stay_zero(make_case, settings):
    case = make_case()
    cpu.train(*case, settings._replace(parameter_l2=0.01))
    assert not case.model.attribute_table[:, 7:].any()
    assert not case.model.neighbour_table[:, 12:].any()


def test_threads_do_not_change_a_bit(make_case, settings):
    settings = settings._replace(hidden_l2=0.002, train_bias=True)
    one, all_of_them = make_case(batch=130), make_case(batch=130)
    with cpu.threads(1):
        cpu.train(*one, settings)
    cpu.train(*all_of_them, settings)
    for first, second in zip(one.model, all_of_them.model, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("pooling", "zero_floor"), [(MAX, False), (MAX, True), (SUM, False), (MEAN, False)])
def test_embed_and_hide_follow_the_reference(make_case, settings, pooling, zero_floor):
    case = make_case()
    settings = settings._replace(pooling=pooling, zero_floor=zero_floor)
    nodes = np.arange(40)
    pooled = cpu.embed(*case[:3], nodes, settings)
    np.testing.assert_allclose(pooled, reference.embed(*case[:3], nodes, settings), rtol=1e-6)
    np.testing.assert_allclose(cpu.hide(case.model, pooled), reference.hide(case.model, pooled), rtol=1e-6)


def test_an_impossible_number_of_threads_is_refused():
    with (
        pytest.raises(ParameterError, match="threads=1000000 makes no sense; give 1 to"),
        cpu.threads(1_000_000),
    ):
        pass
