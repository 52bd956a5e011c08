import numpy as np
from scipy import stats

from neural_brane.sampling.tables import alias_table
from neural_brane.sampling.walks import draw_alias


def test_draws_follow_the_weights():
    weights = np.array([0.0, 1.0, 5.0, 0.25, 3.0, 0.0, 10.0])
    table = alias_table(weights)
    uniforms = np.random.default_rng(0).random(20_000)
    counts = np.bincount([draw_alias(table, u) for u in uniforms], minlength=len(weights))
    assert counts[0] == counts[5] == 0
    drawn = weights > 0
    expected = weights[drawn] / weights.sum() * len(uniforms)
    assert stats.chisquare(counts[drawn], expected).pvalue > 1e-3


def test_the_table_holds_the_distribution_exactly():
    weights = np.random.default_rng(1).pareto(1.0, 1000)
    table = alias_table(weights)
    mass = table.keep.astype(np.float64)
    np.add.at(mass, table.other, 1 - table.keep.astype(np.float64))
    np.testing.assert_allclose(mass / len(weights), weights / weights.sum(), atol=1e-7)
