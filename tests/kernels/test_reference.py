import numpy as np
import pytest

from neural_brane.kernels import reference
from neural_brane.kernels.model import MAX, MEAN, SUM, Bags


def bags(*rows):
    sizes = [len(r) for r in rows]
    return Bags(np.concatenate([[0], np.cumsum(sizes)]), np.concatenate(rows).astype(np.int32))


TABLE = np.array([[1.0, -5.0], [2.0, -4.0], [2.0, -6.0]])


def test_max_pooling_keeps_the_largest_and_the_first_of_equals():
    pooled, winner = reference.pool(bags([0, 1, 2], []), TABLE, np.array([0, 1]), MAX, False)
    np.testing.assert_array_equal(pooled, [[2, -4], [0, 0]])
    np.testing.assert_array_equal(winner, [[1, 1], [-1, -1]])


def test_zero_floor_is_one_more_row_of_zeros():
    pooled, winner = reference.pool(bags([0, 1, 2]), TABLE, np.array([0]), MAX, True)
    np.testing.assert_array_equal(pooled, [[2, 0]])
    np.testing.assert_array_equal(winner, [[1, -1]])


def test_sum_and_mean_pooling():
    assert reference.pool(bags([0, 1, 2]), TABLE, np.array([0]), SUM, False)[0].tolist() == [[5, -15]]
    np.testing.assert_allclose(reference.pool(bags([0, 1, 2]), TABLE, np.array([0]), MEAN, False)[0], [[5 / 3, -5]])


@pytest.mark.parametrize("pooling", [MAX, SUM, MEAN])
@pytest.mark.parametrize("zero_floor", [False, True])
@pytest.mark.parametrize(
    ("penalty", "triplet_scale"), [({}, 1 / 60), ({"hidden_l2": 0.01}, 1 / 60), ({"parameter_l2": 0.01}, 1.0)]
)
def test_gradients_are_those_of_finite_differences(make_case, settings, pooling, zero_floor, penalty, triplet_scale):
    case = make_case(np.float64)
    settings = settings._replace(
        pooling=pooling, zero_floor=zero_floor, triplet_scale=triplet_scale, train_bias=True, **penalty
    )
    arguments = case.attribute_bags, case.neighbour_bags, case.triplets[0], settings
    gradient, _ = reference.gradients(case.model, *arguments)
    rng = np.random.default_rng(1)
    for theta, slope in zip(case.model, gradient, strict=True):
        width = {16: 7 if theta is case.model.attribute_table else 12}.get(theta.shape[-1], theta.shape[-1])
        for _ in range(12):
            place = tuple(rng.integers(0, size) for size in (*theta.shape[:-1], width))
            before, epsilon = theta[place], 1e-6
            theta[place] = before + epsilon
            above = reference.loss(case.model, *arguments)
            theta[place] = before - epsilon
            below = reference.loss(case.model, *arguments)
            theta[place] = before
            np.testing.assert_allclose(slope[place], (above - below) / (2 * epsilon), rtol=1e-4, atol=1e-7)


def test_training_lowers_the_loss(make_case, settings):
    case = make_case(np.float64)
    again = np.repeat(case.triplets[:1], 30, axis=0)
    losses = reference.train(case.model, case.attribute_bags, case.neighbour_bags, again, settings)
    assert losses[-1] < 0.7 * losses[0]
