"""The Triton kernels against the reference: on a GPU where there is one, else in Triton's interpreter."""

from itertools import chain

import numpy as np
import pytest

from neural_brane.errors import ParameterError
from neural_brane.kernels import reference
from neural_brane.kernels.model import MAX, MEAN, SUM, Model

torch = pytest.importorskip("torch")
gpu = pytest.importorskip("neural_brane.kernels.gpu.step")
gpu_frame = pytest.importorskip("neural_brane.kernels.gpu.shapes")
gpu_long = pytest.importorskip("neural_brane.kernels.gpu.hubs")
gpu_layer = pytest.importorskip("neural_brane.kernels.gpu.layer")
gpu_small = pytest.importorskip("neural_brane.kernels.gpu.small")
gpu_large = pytest.importorskip("neural_brane.kernels.gpu.large")
gpu_nodes = pytest.importorskip("neural_brane.kernels.gpu.nodes")
gpu_trainer = pytest.importorskip("neural_brane.kernels.gpu.trainer")

ON_GPU = not gpu.INTERPRETED
BATCH = 100 if ON_GPU else 1  # the interpreter takes some five milliseconds a program
SEED = np.random.SeedSequence().entropy % 2**32 if ON_GPU else 7
POOLINGS = [(MAX, False), (MAX, True), (SUM, False), (MEAN, False)]
CLOSE = 1e-5  # a call that rounding may take otherwise
PENALTIES = [{}, {"hidden_l2": 0.002}, {"parameter_l2": 0.01}]


@pytest.fixture(autouse=True)
def poison(monkeypatch):
    """Memory that kernels are to write starts as NaN, or as rows far outside of every table."""

    def poisoned(*shape, dtype=torch.float32):
        return torch.full(shape, torch.nan if dtype.is_floating_point else 10**9, dtype=dtype, device=gpu.DEVICE)

    monkeypatch.setattr(gpu, "empty", poisoned)
    monkeypatch.setattr(gpu_layer, "empty", poisoned)
    monkeypatch.setattr(gpu_small, "empty", poisoned)
    monkeypatch.setattr(gpu_large, "empty", poisoned)
    monkeypatch.setattr(gpu_nodes, "empty", poisoned)


def closest_call(model, attribute_bags, neighbour_bags, settings) -> float:
    """The least by which a node's two largest rows are apart, or a hidden unit from zero, beside their mean size."""
    d1 = settings.attribute_dim
    tables = model.attribute_table[:, :d1], model.neighbour_table[:, : model.weight.shape[1] - d1]
    calls = []
    for bags, table in zip((attribute_bags, neighbour_bags), tables, strict=True):
        for bag in np.split(bags.indices, bags.indptr[1:-1]):
            rows = np.vstack([table[bag], np.zeros((int(settings.zero_floor), table.shape[1]))])
            if settings.pooling == MAX and len(rows) > 1 and table.size:
                second, largest = np.sort(rows, axis=0)[-2:]
                calls += ((largest - second) / np.abs(table).mean()).tolist()
    nodes = np.arange(len(neighbour_bags.indptr) - 1)
    pooled = reference.embed(model, attribute_bags, neighbour_bags, nodes, settings)
    units = np.abs(pooled @ model.weight.T + model.bias)
    return min([*calls, *units[units > 0] / units.mean()])


def assert_follows_the_reference(case, settings, **options) -> None:
    """Train the same model on the same triplets by both kernels; the reference in double precision.

    At a close call they may part, and rightly so: a gradient goes to another row. Before one, both are given the same
    model again, shaken a little.
    """
    model, *bags, triplets = case
    slow = Model(*(theta.astype(np.float64) for theta in model))
    random = np.random.default_rng(SEED)
    begun, expected = 0, []
    for step, batch in enumerate(triplets):
        if closest_call(slow, *bags, settings) < CLOSE:
            assert_alike(model, slow, gpu.train(model, *bags, triplets[begun:step], settings, **options), expected)
            begun, expected = step, []
            while closest_call(slow, *bags, settings) < CLOSE:
                for theta, wanted in zip(model, slow, strict=True):
                    shake = random.normal(0, 1e-3 * mean_size(wanted), wanted.shape)
                    theta[:] = wanted[:] = np.where(wanted == 0, 0, wanted + shake)  # spare columns stay zero
        expected += reference.train(slow, *bags, batch[None], settings).tolist()
    assert_alike(model, slow, gpu.train(model, *bags, triplets[begun:], settings, **options), expected)


def mean_size(theta) -> float:
    return float(np.abs(theta).mean()) if theta.size else 0.0


def assert_alike(model, expected_model, losses, expected_losses) -> None:
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-3, err_msg=f"seed {SEED}")
    for name, found, expected in zip(Model._fields, model, expected_model, strict=True):
        # An entry near zero is judged by the size of its table: its own digits are those of a difference.
        atol = 1e-3 * mean_size(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=atol, err_msg=f"{name}, seed {SEED}")


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize(("pooling", "zero_floor"), POOLINGS, ids=str)
def test_fifty_steps_follow_the_reference(make_case, settings, pooling, zero_floor, penalty, deterministic):
    if not ON_GPU and deterministic != bool(penalty):
        pytest.skip("one of the two in the interpreter; both on a GPU")
    settings = settings._replace(pooling=pooling, zero_floor=zero_floor, train_bias=bool(penalty), **penalty)
    settings = settings._replace(triplet_scale=1 / max(BATCH, 10))
    case = make_case(steps=50, batch=BATCH, seed=SEED)
    assert_follows_the_reference(case, settings, deterministic=deterministic)


@pytest.fixture(params=[0, 2**40], ids=["every slot", "every node once"])
def large_batches(request, monkeypatch):
    """All batches count as large; a step computes a vector for every slot, or for every node once."""
    monkeypatch.setattr(gpu_frame, "LARGE_BATCH", 1)
    monkeypatch.setattr(gpu_trainer, "ONCE", request.param)
    monkeypatch.setattr(gpu_nodes, "PIECE", 2)


@pytest.mark.usefixtures("large_batches")
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("pooling", [MAX, MEAN])
def test_the_tiles_of_large_batches_follow_the_reference(make_case, settings, pooling, deterministic):
    batch = 1000 if ON_GPU else 3
    settings = settings._replace(triplet_scale=1 / batch, train_bias=True, zero_floor=True, hidden_l2=0.002)
    settings = settings._replace(pooling=pooling)
    case = make_case(steps=50 if ON_GPU else 3, batch=batch, seed=SEED)
    assert_follows_the_reference(case, settings, deterministic=deterministic)


def test_rows_that_many_slots_hold_follow_the_reference(make_case, settings, monkeypatch):
    monkeypatch.setattr(gpu_trainer, "HOT", 0)
    case = make_case(steps=50 if ON_GPU else 3, batch=BATCH + 2, seed=SEED)
    assert_follows_the_reference(case, settings._replace(triplet_scale=1 / (BATCH + 2)), deterministic=True)


@pytest.mark.usefixtures("large_batches")
@pytest.mark.parametrize(("d1", "d2"), [(75, 75), (20, 5), (0, 5), (5, 0)])
def test_the_tiles_of_large_batches_take_any_widths(make_case, settings, d1, d2):
    batch = 300 if ON_GPU else 3
    case = make_case(d1=d1, d2=d2, steps=2, batch=batch, seed=SEED)
    assert_follows_the_reference(case, settings._replace(attribute_dim=d1, triplet_scale=1 / batch))


def test_a_plan_by_nodes_has_every_slot_in_a_piece_of_its_node(make_case, monkeypatch):
    monkeypatch.setattr(gpu_nodes, "PIECE", 3)
    case = make_case(steps=2, batch=40, seed=SEED)
    bags = gpu.place(case.attribute_bags), gpu.place(case.neighbour_bags)
    plan = gpu_nodes.NodePlan(bags, tuple(map(len, case.model[:2])), 2, 120)
    plan.fill(torch.from_numpy(case.triplets).to(gpu.DEVICE), segments=False)
    for step, nodes in enumerate(case.triplets.reshape(2, 120)):
        order, pieces, bounds = (array[step].tolist() for array in (plan.order, plan.pieces, plan.bounds))
        for node in range(plan.rows):
            own = [order[pieces[p] : pieces[p + 1]] for p in range(bounds[node], bounds[node + 1])]
            assert list(chain(*own)) == np.flatnonzero(nodes == node).tolist()
            assert all(0 < len(piece) <= 3 for piece in own)
        met = np.isin(np.arange(plan.rows), nodes)
        for side, bag in enumerate((case.attribute_bags, case.neighbour_bags)):
            assert (plan.sizes[step, side].cpu().numpy() == met * np.diff(bag.indptr)).all()


@pytest.mark.parametrize(("large", "once"), [(False, 0), (True, 0), (True, 2**40)])
@pytest.mark.parametrize("zero_floor", [False, True])
def test_long_bags_in_pieces_follow_the_reference(make_case, settings, monkeypatch, large, once, zero_floor):
    monkeypatch.setattr(gpu_trainer, "ONCE", once)
    monkeypatch.setattr(gpu_long, "LONG", 3)
    monkeypatch.setattr(gpu_long, "LONG_AT_LARGE_BATCHES", 3)
    monkeypatch.setattr(gpu_long, "MOST", 9)
    monkeypatch.setattr(gpu_long, "PIECE", 2)
    if large:
        monkeypatch.setattr(gpu_frame, "LARGE_BATCH", 1)
    monkeypatch.setattr(gpu_trainer, "GROUP_STEPS", 20)  # of which the second is captured, and the third not whole
    batch = 300 if ON_GPU else 5
    case = make_case(steps=50 if ON_GPU else 2, batch=batch, seed=SEED)
    settings = settings._replace(triplet_scale=1 / batch, zero_floor=zero_floor, parameter_l2=0.01)
    assert_follows_the_reference(case, settings)


@pytest.mark.usefixtures("large_batches")
@pytest.mark.parametrize("least", [1, 2])
def test_frequent_winners_added_up_first_follow_the_reference(make_case, settings, monkeypatch, least):
    monkeypatch.setattr(gpu_large, "CROWD", 0)
    monkeypatch.setattr(gpu_large, "LEAST", least)
    batch = 300 if ON_GPU else 7
    case = make_case(steps=50 if ON_GPU else 2, batch=batch, seed=SEED)
    assert_follows_the_reference(case, settings._replace(triplet_scale=1 / batch, zero_floor=True))


@pytest.mark.usefixtures("large_batches")
@pytest.mark.parametrize(("crowd", "d1"), [(0, 17), (2**40, 17), (2**40, 0)])
def test_parts_of_the_rows_one_after_the_other_follow_the_reference(make_case, settings, monkeypatch, crowd, d1):
    monkeypatch.setattr(gpu_large, "CROWD", crowd)
    monkeypatch.setattr(gpu_large, "STRIP_CACHE", 0)
    monkeypatch.setattr(gpu_large, "PART_CACHE", 64)
    batch = 300 if ON_GPU else 5
    case = make_case(d1=d1, d2=40, steps=50 if ON_GPU else 2, batch=batch, seed=SEED)
    assert_follows_the_reference(case, settings._replace(attribute_dim=d1, triplet_scale=1 / batch))


@pytest.mark.parametrize(("d1", "d2"), [(0, 5), (5, 0), (17, 40)])
def test_any_widths_follow_the_reference(make_case, settings, d1, d2):
    settings = settings._replace(attribute_dim=d1, triplet_scale=1 / BATCH)
    assert_follows_the_reference(make_case(d1=d1, d2=d2, steps=2, batch=BATCH, seed=SEED), settings)


@pytest.mark.parametrize(("large", "hidden"), [(False, 70), (True, 70), (False, 300)])
def test_any_number_of_hidden_units_follows_the_reference(make_case, settings, monkeypatch, large, hidden):
    if large:
        monkeypatch.setattr(gpu_frame, "LARGE_BATCH", 1)
    settings = settings._replace(triplet_scale=1 / BATCH, train_bias=True)
    case = make_case(d1=17, d2=40, hidden=hidden, steps=3, batch=BATCH, seed=SEED)
    case.model.weight[:] *= 0.2  # or the margins of so many units would be too large for float32
    assert_follows_the_reference(case, settings._replace(attribute_dim=17))


@pytest.mark.parametrize("batch", [1, 6, 13])
def test_any_batch_size_follows_the_reference(make_case, settings, batch):
    case = make_case(steps=2, batch=batch, seed=SEED)
    assert_follows_the_reference(case, settings._replace(triplet_scale=1 / batch, train_bias=True))


def test_strong_decay_keeps_the_tables_exact(make_case, settings):
    """The common factor of the tables passes its smallest value and is folded in on the way."""
    settings = settings._replace(parameter_l2=4.0, triplet_scale=1 / BATCH)
    assert_follows_the_reference(make_case(steps=9, batch=BATCH, seed=SEED), settings)


@pytest.mark.skipif(not ON_GPU, reason="the interpreter has no graphs")
def test_captured_steps_follow_the_reference(make_case, settings):
    """Two groups and a half: one launched step by step, one captured, the rest launched again."""
    case = make_case(steps=250, batch=20, seed=SEED)
    assert_follows_the_reference(case, settings._replace(triplet_scale=1 / 20, learning_rate=0.02))


def test_unpadded_tables_are_padded_on_the_way(make_case, settings):
    case = make_case(steps=2, batch=BATCH, seed=SEED)
    tables = case.model.attribute_table[:, :7].copy(), case.model.neighbour_table[:, :12].copy()
    bare = case._replace(model=case.model._replace(attribute_table=tables[0], neighbour_table=tables[1]))
    assert_follows_the_reference(bare, settings._replace(triplet_scale=1 / BATCH))


def test_deterministic_runs_give_the_same_bits(make_case, settings):
    runs = [make_case(steps=150 if ON_GPU else 2, batch=BATCH, seed=SEED) for _ in range(2)]
    losses = [gpu.train(*case, settings, deterministic=True) for case in runs]
    np.testing.assert_array_equal(*losses)
    for first, second in zip(runs[0].model, runs[1].model, strict=True):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(("d1", "d2"), [(7, 12), (0, 5), (5, 0)])
@pytest.mark.parametrize(("pooling", "zero_floor"), POOLINGS)
def test_embed_and_hide_follow_the_reference(make_case, settings, pooling, zero_floor, d1, d2):
    case = make_case(d1=d1, d2=d2, seed=SEED)
    settings = settings._replace(pooling=pooling, zero_floor=zero_floor, attribute_dim=d1)
    nodes = np.arange(40)
    pooled = gpu.embed(*case[:3], nodes, settings)
    np.testing.assert_allclose(pooled, reference.embed(*case[:3], nodes, settings), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gpu.hide(case.model, pooled), reference.hide(case.model, pooled), rtol=1e-5, atol=1e-6)


def test_tables_that_do_not_fit_are_refused_with_both_numbers(monkeypatch):
    monkeypatch.setattr(gpu, "INTERPRETED", False)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**9, 10**10))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 0)
    with pytest.raises(ParameterError, match=r"needs 2,2\d\d,\d\d\d,\d\d\d bytes.* and 1,000,000,000 are free; lower"):
        gpu.require_memory(tables=10**9, graph=10**9, dim=150, hidden=150, batch=100)
    gpu.require_memory(tables=10**8, graph=10**8, dim=150, hidden=150, batch=100)
