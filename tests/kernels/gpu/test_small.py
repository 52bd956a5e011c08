import pytest

gpu = pytest.importorskip("neural_brane.kernels.gpu")


@pytest.mark.parametrize(("d1", "d2"), [(0, 5), (5, 0), (17, 40)])
def test_any_widths_follow_the_reference(make_case, settings, assert_follows, batch, seed, d1, d2):
    settings = settings._replace(attribute_dim=d1, triplet_scale=1 / batch)
    assert_follows(make_case(d1=d1, d2=d2, steps=2, batch=batch, seed=seed), settings)


@pytest.mark.parametrize("hidden", [70, 300])
def test_any_number_of_hidden_units_follows_the_reference(
    make_case, settings, assert_follows, on_gpu, batch, seed, hidden
):
    if hidden > 100 and not on_gpu:
        pytest.skip("so many programs take the interpreter long; 70 units have several strips as well")
    settings = settings._replace(triplet_scale=1 / batch, train_bias=True, attribute_dim=17)
    case = make_case(d1=17, d2=40, hidden=hidden, steps=3, batch=batch, seed=seed)
    case.model.weight[:] *= 0.2  # a smaller W, because the margins of so many units would be too large for float32
    assert_follows(case, settings)


@pytest.mark.parametrize("size", [1, 6, 13])
def test_any_batch_size_follows_the_reference(make_case, settings, assert_follows, seed, size):
    case = make_case(steps=2, batch=size, seed=seed)
    assert_follows(case, settings._replace(triplet_scale=1 / size, train_bias=True))
