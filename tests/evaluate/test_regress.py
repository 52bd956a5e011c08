import json

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError
from neural_brane.evaluate import Splits, regress
from neural_brane.evaluate.classify import PENALTIES


@pytest.fixture(scope="module")
def salaries():
    """Numbers that depend on a third of the vectors' directions, with noise."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(60, 6)).astype(np.float32)
    return vectors, 100 + vectors @ [5.0, -3.0, 0, 0, 0, 0] + 3 * rng.normal(size=60)


def test_scores_equal_ridge_regression_with_leave_one_out(salaries):
    vectors, numbers = salaries
    table = vectors.astype(float)
    result = regress(vectors, numbers, train=[0.5], splits=3, seed=2).at(0.5)
    parts = Splits.draw(np.arange(60), np.zeros(60), splits=3, seed=2).parts(0.5)
    for split, (rows, held_out) in enumerate(parts):
        unit = np.mean(np.sum((table[rows] - table[rows].mean(axis=0)) ** 2, axis=1))
        known = numbers[rows]
        errors = [
            np.mean((cross_val_predict(Ridge(alpha=unit * one), table[rows], known, cv=LeaveOneOut()) - known) ** 2)
            for one in PENALTIES
        ]
        best = PENALTIES[int(np.argmin(errors))]
        predicted = Ridge(alpha=unit * best).fit(table[rows], numbers[rows]).predict(table[held_out])
        assert result.penalty[split] == best
        assert result.r2.values[split] == pytest.approx(r2_score(numbers[held_out], predicted))
        assert result.spearman.values[split] == pytest.approx(spearmanr(numbers[held_out], predicted).statistic)
    assert 0.5 < result.r2.mean < 1


def test_vectors_with_the_number_score_one_and_noise_scores_zero(salaries):
    _, numbers = salaries
    rng = np.random.default_rng(1)
    told = regress(np.column_stack([numbers, rng.normal(size=60)]), numbers, train=[0.5]).at(0.5)
    assert told.r2.mean == pytest.approx(1, abs=1e-4)
    assert told.spearman.mean == 1.0
    noise = regress(rng.normal(size=(60, 3)), numbers, train=[0.5]).at(0.5)
    assert noise.r2.mean < 0.1
    assert abs(noise.spearman.mean) < 0.3


def test_the_scale_of_vectors_changes_nothing_and_equal_vectors_predict_the_mean(salaries):
    vectors, numbers = salaries
    small = regress(vectors.astype(float) / 1024, numbers, splits=2)
    assert small.at(0.5).r2.mean == pytest.approx(regress(vectors, numbers, splits=2).at(0.5).r2.mean)
    flat = regress(np.ones((60, 2)), numbers, train=[0.5]).at(0.5)
    assert flat.r2.mean <= 0
    assert flat.spearman.mean == 0


def test_nodes_without_a_number_are_left_out_and_the_record_is_json(salaries):
    vectors, numbers = salaries
    seen = []
    more = Embedding(np.vstack([vectors, vectors[:4]]), range(64))
    result = regress(more, np.append(numbers, [np.nan] * 4), splits=2, progress=seen.append)
    assert (result.labelled, result.unlabelled) == (60, 4)
    assert result.scores == regress(vectors, numbers, splits=2).scores
    assert (seen[-1].done, seen[-1].total, seen[-1].unit) == (6, 6, "regressions")
    written = json.loads(json.dumps(result.as_dict()))
    assert written["scores"][0]["r2"]["splits"] == list(result.at(0.3).r2.values)
    assert written["mean"] == pytest.approx(numbers.mean())


def test_invalid_input_is_described(salaries):
    vectors, numbers = salaries
    with pytest.raises(EmbeddingError, match="60 numbers"):
        regress(vectors, np.ones(60))
    with pytest.raises(EmbeddingError, match=r"1.*60 numbers"):
        regress(vectors, np.where(np.arange(60) == 3, np.inf, numbers))
    with pytest.raises(EmbeddingError, match=r"numbers.*'old'"):
        regress(vectors, ["old"] * 60)
    with pytest.raises(EmbeddingError, match="2 random nodes"):
        regress(vectors[:6], numbers[:6], train=[0.3])
    with pytest.raises(EmbeddingError, match=r"splits.*5.*60"):
        regress(vectors, numbers, splits=Splits.draw(np.arange(5), np.zeros(5)))
