import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, GraphError, ParameterError
from neural_brane.evaluate import Splits, classify_several
from neural_brane.graph.labels import MultiLabels


@pytest.fixture(scope="module")
def topics():
    """Eighty nodes with one to three of four labels, and noisy vectors that depend on the labels."""
    rng = np.random.default_rng(0)
    has = rng.random((80, 4)) < 0.4
    has[~has.any(axis=1), 0] = True
    return (has + 0.7 * rng.normal(size=has.shape)).astype(np.float32), has


def naive(vectors, has, rows, held_out):
    """Return the scores of a plain implementation: each test node gets its k most probable labels."""
    chances = np.stack(
        [
            LogisticRegression(solver="liblinear", max_iter=10_000)
            .fit(vectors[rows], has[rows, label])
            .predict_proba(vectors[held_out])[:, 1]
            for label in range(has.shape[1])
        ],
        axis=1,
    )
    predicted = np.zeros_like(has[held_out])
    for node, row in enumerate(held_out):
        predicted[node, np.argsort(-chances[node])[: has[row].sum()]] = True
    return [f1_score(has[held_out], predicted, average=average) for average in ("macro", "micro")]


def test_scores_equal_a_plain_implementation(topics):
    vectors, has = topics
    result = classify_several(vectors, has, train=[0.3, 0.6], splits=3, seed=5, as_they_are=True)
    lengths = [classify_several(scale * vectors, has, train=[0.6]).scores for scale in (0.1, 1.0)]
    assert lengths[0] == lengths[1]
    divisions = Splits.draw(np.arange(80), np.zeros(80), splits=3, seed=5)
    for share in (0.3, 0.6):
        expected = [naive(vectors.astype(float), has, *parts) for parts in divisions.parts(share)]
        np.testing.assert_allclose(result.at(share).macro.values, [macro for macro, _ in expected])
        np.testing.assert_allclose(result.at(share).micro.values, [micro for _, micro in expected])
    assert 0.5 < result.at(0.6).macro.mean < 1
    assert result.labels_per_node == pytest.approx(has.sum() / 80)


def test_lists_and_matrices_give_the_same_scores_each_time(topics):
    vectors, has = topics
    lists = [[f"{label}" for label in np.flatnonzero(row)] for row in has]
    first = classify_several(vectors, has, train=[0.5], splits=2)
    assert first == classify_several(vectors, lists, train=[0.5], splits=2)
    assert first == classify_several(Embedding(vectors, range(80)), sparse.csr_array(has), train=[0.5], splits=2)
    assert first.scores != classify_several(vectors, has, train=[0.5], splits=2, seed=1).scores


def test_a_label_that_no_training_node_has_counts_as_missed():
    has = np.zeros((40, 3), dtype=bool)
    has[:20, 0] = has[20:, 1] = True
    has[39] = False, False, True
    splits = Splits(
        np.arange(40), np.array([[*range(0, 10), *range(20, 30), *range(10, 20), *range(30, 40)]], np.int32)
    )
    vectors = np.where(has[:, :1], 5.0, -5.0) * np.ones((40, 2))
    found = classify_several(vectors, has, train=[0.5], splits=splits).at(0.5)
    assert found.macro.mean == pytest.approx((1 + 18 / 19 + 0) / 3)
    assert found.micro.mean == pytest.approx(19 / 20)


def test_nodes_without_labels_are_left_out_and_progress_is_reported(topics):
    vectors, has = topics
    seen = []
    more = classify_several(
        np.vstack([vectors, vectors[:5]]), np.vstack([has, np.zeros((5, 4), bool)]), splits=2, progress=seen.append
    )
    assert (more.labelled, more.unlabelled) == (80, 5)
    assert more.scores == classify_several(vectors, has, splits=2).scores
    assert (seen[-1].done, seen[-1].total) == (6, 6)
    written = json.loads(json.dumps(more.as_dict()))
    assert written["labels"] == ["0", "1", "2", "3"]
    assert "k labels" in written["rule"]
    assert len(written["scores"][0]["macro_f1"]["splits"]) == 2


def test_invalid_input_is_described(topics):
    vectors, has = topics
    with pytest.raises(EmbeddingError, match=r"1 different label\(s\)"):
        classify_several(vectors, [["x"]] * 80)
    with pytest.raises(EmbeddingError, match=r"80.*79 lists"):
        classify_several(vectors, has[1:])
    with pytest.raises(EmbeddingError, match=r"1.*80 vectors"):
        classify_several(np.where(np.arange(80)[:, None] == 3, np.nan, vectors), has)
    with pytest.raises(ParameterError, match="C=0 "):
        classify_several(vectors, has, C=0)
    with pytest.raises(GraphError, match=r"labels.*0.*'net'"):
        classify_several(vectors, ["net"] * 80)
    with pytest.raises(GraphError, match=r"labels.* 0 or 1"):
        classify_several(vectors, 2 * has.astype(int))
    with pytest.raises(GraphError, match=r"1 names.*4"):
        MultiLabels.from_labels(has, ["a"])
