import pytest

from neural_brane.kernels.model import MAX, MEAN

gpu = pytest.importorskip("neural_brane.kernels.gpu")


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("pooling", [MAX, MEAN])
def test_large_batches_follow_the_reference(
    make_case, settings, assert_follows, large_batches, on_gpu, seed, pooling, deterministic
):
    batch = 1000 if on_gpu else 3
    settings = settings._replace(triplet_scale=1 / batch, train_bias=True, zero_floor=True, hidden_l2=0.002)
    case = make_case(steps=50 if on_gpu else 3, batch=batch, seed=seed)
    assert_follows(case, settings._replace(pooling=pooling), deterministic=deterministic, limits=large_batches)


@pytest.mark.parametrize(("d1", "d2"), [(75, 75), (20, 5), (0, 5), (5, 0)])
def test_any_widths_follow_the_reference(make_case, settings, assert_follows, large_batches, on_gpu, seed, d1, d2):
    batch = 300 if on_gpu else 3
    case = make_case(d1=d1, d2=d2, steps=2, batch=batch, seed=seed)
    assert_follows(case, settings._replace(attribute_dim=d1, triplet_scale=1 / batch), limits=large_batches)


def test_any_number_of_hidden_units_follows_the_reference(make_case, settings, assert_follows, batch, seed):
    settings = settings._replace(triplet_scale=1 / batch, train_bias=True, attribute_dim=17)
    case = make_case(d1=17, d2=40, hidden=70, steps=3, batch=batch, seed=seed)
    case.model.weight[:] *= 0.2  # a smaller W, because the margins of so many units would be too large for float32
    assert_follows(case, settings, limits=gpu.Limits(large_batch=1))
