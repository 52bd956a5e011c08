import numpy as np
import pytest

from neural_brane.kernels import sgns


@pytest.mark.parametrize("one_table", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_step_goes_down_the_gradient_by_finite_differences(one_table, sign):
    """First-order LINE has one table, second-order LINE two; a step is the rate times the slope of the pair's loss."""
    rng = np.random.default_rng(3)
    source = rng.normal(size=(6, 4))
    target = source if one_table else rng.normal(size=(6, 4))
    row, rows = (0, np.array([2])) if sign == 1 else (0, np.array([2, 4, 5]))

    def loss() -> float:
        return sgns.loss(target[rows] @ source[row], sign)

    def slope(table, k, c, small=1e-6) -> float:
        kept = table[k, c]
        table[k, c] = kept + small
        above = loss()
        table[k, c] = kept - small
        below = loss()
        table[k, c] = kept
        return (above - below) / (2 * small)

    tables = [source] if one_table else [source, target]
    slopes = [np.array([[slope(table, k, c) for c in range(4)] for k in range(6)]) for table in tables]
    before = [table.copy() for table in tables]
    sgns.step(source, target, row, rows, sign, 1e-3)
    for table, old, gradient in zip(tables, before, slopes, strict=True):
        np.testing.assert_allclose((old - table) / 1e-3, gradient, atol=1e-6)
