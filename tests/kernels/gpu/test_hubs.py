import pytest

gpu = pytest.importorskip("neural_brane.kernels.gpu")

SHORT = gpu.Limits(hub_rows=3, hub_rows_at_large_batches=3, most_hubs=9, hub_piece=2)


@pytest.mark.parametrize(
    "paths",
    [{}, {"large_batch": 1, "nodes_per_slot": 0}, {"large_batch": 1, "nodes_per_slot": 2**40}],
    ids=["small batch", "large batch", "a vector per node"],
)
@pytest.mark.parametrize("zero_floor", [False, True])
def test_bags_in_pieces_follow_the_reference(make_case, settings, assert_follows, on_gpu, seed, paths, zero_floor):
    batch = 300 if on_gpu else 5
    case = make_case(steps=50 if on_gpu else 2, batch=batch, seed=seed)
    settings = settings._replace(triplet_scale=1 / batch, zero_floor=zero_floor, parameter_l2=0.01)
    # Groups have 20 steps: the second is captured, the third is shorter.
    assert_follows(case, settings, limits=SHORT._replace(group_steps=20, **paths))


def test_only_the_longest_bags_count_as_hubs(make_case, settings, seed):
    case = make_case(steps=1, batch=2, seed=seed)
    bags = gpu.place(case.attribute_bags), gpu.place(case.neighbour_bags)
    trainer = gpu.Trainer(gpu.place(case.model), *bags, settings, 2, limits=SHORT)
    assert len(trainer.hubs.keys) == 2 * SHORT.most_hubs
    assert gpu.Trainer(gpu.place(case.model), *bags, settings, 2).hubs is None
