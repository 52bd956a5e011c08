from functools import partial

import numpy as np
import pytest

from neural_brane.errors import ParameterError
from neural_brane.kernels import cpu, reference
from neural_brane.kernels.cpu import steps
from neural_brane.kernels.cpu.steps import BLOCK_NODES, BUCKETS, MAX_BLOCKS, make_space
from neural_brane.kernels.model import MAX, MEAN, SUM, Bags, Model


@pytest.fixture(params=[1, 1_000_000], ids=["nodes", "slots"])
def train(request):
    """Train with the node-by-node kernel, then with the slot-by-slot kernel."""
    return partial(train_case, large_batch=request.param)


def train_case(model, *bags_and_triplets_and_settings, large_batch):
    *bags, triplets, settings = bags_and_triplets_and_settings
    return cpu.Trainer(model, *bags, settings, triplets.shape[1], large_batch=large_batch)(triplets)


@pytest.fixture
def assert_follows_the_reference(train):
    """Return a function that compares a kernel with the reference, which trains the same model in double precision."""

    def check(case, settings) -> None:
        slow = case._replace(model=Model(*(theta.astype(np.float64) for theta in case.model)))
        np.testing.assert_allclose(train(*case, settings), reference.train(*slow, settings), rtol=1e-4)
        for name, found, expected in zip(Model._fields, case.model, slow.model, strict=True):
            # An entry near zero is the difference of larger numbers, so the tolerance depends on the size of the table.
            size = np.abs(expected).mean() if expected.size else 0
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * size, err_msg=name)

    return check


@pytest.mark.parametrize(("pooling", "zero_floor"), [(MAX, False), (MAX, True), (SUM, False), (MEAN, False)], ids=str)
@pytest.mark.parametrize("penalty", [{}, {"hidden_l2": 0.002}, {"parameter_l2": 0.01}], ids=str)
@pytest.mark.parametrize("train_bias", [False, True])
def test_a_hundred_steps_follow_the_reference(
    make_case, settings, pooling, zero_floor, penalty, train_bias, assert_follows_the_reference
):
    settings = settings._replace(pooling=pooling, zero_floor=zero_floor, train_bias=train_bias, **penalty)
    assert_follows_the_reference(make_case(steps=100), settings)


def test_a_summed_loss_follows_the_reference(make_case, settings, assert_follows_the_reference):
    assert_follows_the_reference(
        make_case(steps=10), settings._replace(triplet_scale=1.0, learning_rate=0.002, table_rate=0.003)
    )


@pytest.mark.parametrize("pooling", [MAX, SUM])
def test_rows_whose_rate_is_zero_stay(make_case, settings, pooling, assert_follows_the_reference):
    assert_follows_the_reference(make_case(steps=10), settings._replace(pooling=pooling, table_rate=0.0))


@pytest.mark.parametrize("batch", [1, 7, 26, 1700])
def test_any_batch_size_follows_the_reference(make_case, settings, batch, assert_follows_the_reference):
    settings = settings._replace(triplet_scale=1 / batch, train_bias=True)
    assert_follows_the_reference(make_case(steps=3, batch=batch), settings)


@pytest.mark.parametrize(("d1", "d2"), [(0, 5), (5, 0), (15, 17), (16, 33), (70, 100)])
def test_any_widths_follow_the_reference(make_case, settings, d1, d2, assert_follows_the_reference):
    assert_follows_the_reference(make_case(d1=d1, d2=d2, steps=5), settings._replace(attribute_dim=d1))


@pytest.mark.parametrize("pooling", [MAX, SUM])
def test_repeated_hubs_follow_the_reference(make_case, settings, pooling, assert_follows_the_reference):
    """A long bag is pooled once per block and copied to the other slots of its node."""
    case, hub = make_case(steps=20), 1
    lists = np.split(case.neighbour_bags.indices, case.neighbour_bags.indptr[1:-1])
    lists[hub] = np.arange(len(lists), dtype=np.int32)
    assert len(lists[hub]) >= steps.TWIN_ROWS
    bags = Bags(np.cumsum([0, *map(len, lists)]), np.concatenate(lists))
    case.triplets[:, ::3, 1] = case.triplets[:, 1::5, 2] = hub
    assert_follows_the_reference(case._replace(neighbour_bags=bags), settings._replace(pooling=pooling))


@pytest.mark.parametrize("pooling", [MAX, MEAN])
def test_a_node_in_all_three_places_follows_the_reference(make_case, settings, pooling, assert_follows_the_reference):
    case = make_case(steps=10)
    case.triplets[:, ::2] = case.triplets[:, ::2, :1]
    case.triplets[:, 1::4, 1] = case.triplets[:, 1::4, 2]
    assert_follows_the_reference(case, settings._replace(pooling=pooling, hidden_l2=0.002, train_bias=True))


def test_a_batch_of_one_node_follows_the_reference(make_case, settings, assert_follows_the_reference):
    for node in (0, 5):  # the first has no attributes and no neighbours
        case = make_case(steps=3)
        case.triplets[:] = node
        assert_follows_the_reference(case, settings._replace(hidden_l2=0.002))


def test_a_graph_of_one_node_follows_the_reference(make_case, settings, assert_follows_the_reference):
    case = make_case(steps=3)
    case.triplets[:] = 0
    one = [Bags(np.array([0, 1]), np.zeros(1, np.int32)) for _ in range(2)]
    tables = (table[:1].copy() for table in case.model[:2])
    case = case._replace(model=Model(*tables, *case.model[2:]), attribute_bags=one[0], neighbour_bags=one[1])
    assert_follows_the_reference(case, settings._replace(hidden_l2=0.002))


def test_strong_decay_over_many_steps_keeps_the_tables_exact(make_case, settings, assert_follows_the_reference):
    """The tables' common factor falls below its smallest value and is multiplied into the tables."""
    assert_follows_the_reference(make_case(steps=100), settings._replace(parameter_l2=0.2))


def test_spare_columns_stay_zero(make_case, settings, train):
    case = make_case()
    train(*case, settings._replace(parameter_l2=0.01))
    assert not case.model.attribute_table[:, 7:].any()
    assert not case.model.neighbour_table[:, 12:].any()


def test_threads_do_not_change_a_bit(make_case, settings, train):
    settings = settings._replace(hidden_l2=0.002, train_bias=True)
    one, all_of_them = make_case(batch=1300, steps=20), make_case(batch=1300, steps=20)
    with cpu.threads(1):
        train(*one, settings)
    train(*all_of_them, settings)
    assert_same_bits(one.model, all_of_them.model)


@pytest.mark.parametrize("large_batch", [1, 1000])
def test_a_trainer_that_goes_on_gives_the_same_bits(make_case, settings, large_batch):
    settings = settings._replace(train_bias=True)
    whole, pieces = make_case(steps=4), make_case(steps=4)
    train_case(*whole, settings, large_batch=large_batch)
    trainer = cpu.Trainer(*pieces[:3], settings, 60, large_batch=large_batch)
    for piece in np.split(pieces.triplets, 2):
        trainer(piece)
    assert_same_bits(whole.model, pieces.model)


@pytest.mark.parametrize("pooling", [MAX, SUM])
@pytest.mark.parametrize(("kernel", "by_node"), [(steps.train_nodes, True), (steps.train_slots, False)])
def test_sharing_the_tasks_among_more_threads_does_not_change_a_bit(make_case, settings, pooling, kernel, by_node):
    """With more threads than lanes of columns, the rows of a lane are divided too."""
    settings = settings._replace(pooling=pooling)
    models = []
    for threads in (1, 7):
        case, losses = make_case(batch=300, steps=3), np.empty(3)
        space = make_space(case.model, settings, 300, by_node=by_node)
        sides = cpu.sides_of(*case[:3], settings, vectors=len(space.nodes))
        kernel(*sides, space, settings, (case.triplets, losses), threads)
        models.append(case.model)
    assert_same_bits(*models)


def assert_same_bits(one, other) -> None:
    for first, second in zip(one, other, strict=True):
        np.testing.assert_array_equal(first, second)


def test_every_distinct_node_has_its_slots_in_order(make_case, settings):
    batch = np.random.default_rng(0).integers(0, 3 * BUCKETS, (4000, 3)).astype(np.int32)
    model = make_case().model._replace(neighbour_table=np.zeros((3 * BUCKETS, 16), np.float32))
    space = make_space(model, settings, len(batch), by_node=True)
    count = steps.sort_slots(batch, space)
    found, flat = space.nodes[:count], batch.ravel()
    assert sorted(found) == sorted(set(flat))
    np.testing.assert_array_equal(found[space.slot_vectors], flat)
    for vector, node in enumerate(found):
        own = space.order[space.bounds[vector] : space.bounds[vector + 1]]
        np.testing.assert_array_equal(own, np.flatnonzero(flat == node))
    assert (space.places == -1).all()


def test_more_nodes_than_one_block_follow_the_reference(make_case, settings, assert_follows_the_reference):
    """A block's share of W's gradient is summed over several groups of nodes."""
    case = make_case(steps=2)
    copies = MAX_BLOCKS * BLOCK_NODES // 40 * 2
    bags = []
    for one in case[1:3]:
        sizes = np.tile(np.diff(one.indptr), copies)
        bags.append(Bags(np.cumsum([0, *sizes]), np.tile(one.indices, copies)))
    table = np.tile(case.model.neighbour_table, (copies, 1))
    triplets = np.random.default_rng(1).integers(0, len(table), (2, len(table), 3)).astype(np.int32)
    settings = settings._replace(triplet_scale=1 / len(table), hidden_l2=1e-5, train_bias=True)
    assert_follows_the_reference(type(case)(case.model._replace(neighbour_table=table), *bags, triplets), settings)


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
