import pytest

gpu = pytest.importorskip("neural_brane.kernels.gpu")


def test_rows_that_many_vectors_pool_follow_the_reference(make_case, settings, assert_follows, on_gpu, batch, seed):
    case = make_case(steps=50 if on_gpu else 3, batch=batch + 2, seed=seed)
    settings = settings._replace(triplet_scale=1 / (batch + 2))
    assert_follows(case, settings, deterministic=True, limits=gpu.Limits(hot_slots=0))


@pytest.mark.parametrize("wins", [1, 2])
def test_frequent_winners_added_up_first_follow_the_reference(
    make_case, settings, assert_follows, large_batches, on_gpu, seed, wins
):
    batch = 300 if on_gpu else 7
    case = make_case(steps=50 if on_gpu else 2, batch=batch, seed=seed)
    limits = large_batches._replace(crowded_slots=0, frequent_wins=wins)
    assert_follows(case, settings._replace(triplet_scale=1 / batch, zero_floor=True), limits=limits)


@pytest.mark.parametrize(("crowded_slots", "d1"), [(0, 17), (2**40, 17), (2**40, 0)])
def test_tables_in_parts_follow_the_reference(
    make_case, settings, assert_follows, large_batches, on_gpu, seed, crowded_slots, d1
):
    batch = 300 if on_gpu else 5
    case = make_case(d1=d1, d2=40, steps=50 if on_gpu else 2, batch=batch, seed=seed)
    limits = large_batches._replace(crowded_slots=crowded_slots, strip_cache=0, part_cache=64)
    assert_follows(case, settings._replace(attribute_dim=d1, triplet_scale=1 / batch), limits=limits)
