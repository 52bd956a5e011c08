import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate import Splits, classify, random_splits
from neural_brane.evaluate.classify import C_GRID, FOLDS
from neural_brane.evaluate.labelled import LENGTH


@pytest.fixture(scope="module")
def clouds():
    """Three overlapping clouds of unequal size."""
    rng = np.random.default_rng(0)
    labels = rng.choice(["databases", "agents", "learning"], 240, p=[0.6, 0.3, 0.1])
    centres = {"databases": 0.0, "agents": 1.0, "learning": 2.0}
    vectors = rng.normal(size=(240, 5)) + np.array([centres[name] for name in labels])[:, None]
    return vectors.astype(np.float32), labels


def test_scores_are_those_of_plain_scikit_learn(clouds):
    vectors, labels = clouds
    score = classify(vectors, labels, train=[0.4], splits=3, seed=5, as_they_are=True).at(0.4)
    for split, (train, test) in enumerate(random_splits(np.zeros(240), 0.4, splits=3, seed=5)):
        one_against_rest = OneVsRestClassifier(LogisticRegression(solver="liblinear"))
        model = one_against_rest.fit(vectors[train].astype(np.float64), labels[train])
        predicted = model.predict(vectors[test])
        assert score.macro.values[split] == pytest.approx(f1_score(labels[test], predicted, average="macro"), abs=1e-12)
        assert score.micro.values[split] == pytest.approx(np.mean(labels[test] == predicted), abs=1e-12)
    assert score.macro.mean == pytest.approx(sum(score.macro.values) / 3)
    assert 0.4 < score.macro.mean < score.micro.mean < 1


def test_the_length_of_the_vectors_changes_no_score_unless_they_stay_as_they_are(clouds):
    vectors, labels = clouds
    rms = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1).mean())
    plain = classify(vectors / rms * LENGTH, labels, splits=2, as_they_are=True)
    for scale in (0.01, 1.0, 8.0):
        assert classify(vectors * scale, labels, splits=2).scores == plain.scores
    assert classify(vectors * 0.01, labels, splits=2, as_they_are=True).scores != plain.scores
    asked = classify(lambda known: vectors * 0.01, labels, splits=2)  # a method that learns from labels
    assert asked.scores == plain.scores
    assert (asked.as_dict()["as_they_are"], plain.as_dict()["as_they_are"]) == (False, True)


def test_scores_are_the_same_each_time(clouds):
    assert classify(*clouds, splits=2) == classify(*clouds, splits=2)


def test_one_score_per_share_and_one_value_per_split(clouds):
    result = classify(*clouds, train=(0.3, 0.7), splits=4)
    assert [score.train for score in result.scores] == [0.3, 0.7]
    assert all(len(score.macro.values) == len(score.micro.values) == 4 for score in result.scores)
    assert result.classes == ("agents", "databases", "learning")
    with pytest.raises(EmbeddingError, match=r"no score at train=0\.5"):
        result.at(0.5)


def test_unlabelled_nodes_change_no_score(clouds):
    vectors, labels = clouds
    holes = np.zeros((60, 5), dtype=np.float32)
    more = classify(np.vstack([vectors, holes]), np.append(labels, [""] * 60), splits=2)
    assert (more.labelled, more.unlabelled) == (240, 60)
    assert more.scores == classify(vectors, labels, splits=2).scores


def test_an_embedding_scores_like_its_vectors(clouds):
    vectors, labels = clouds
    assert classify(Embedding(vectors, range(240)), labels, splits=1) == classify(vectors, labels, splits=1)


def test_a_class_absent_from_the_training_part_scores_zero_there():
    labels = np.array(["a"] * 30 + ["b"] * 30 + ["rare"] * 2)
    vectors = np.eye(3)[np.repeat([0, 1, 2], [30, 30, 2])] * 20
    macro = np.array(classify(vectors, labels, train=[0.3], splits=10).at(0.3).macro.values)
    assert set(macro.round(6)) >= {1.0}
    assert macro.min() < 0.7


def test_the_record_is_json(clouds):
    written = json.loads(json.dumps(classify(*clouds, splits=2, seed=3).as_dict()))
    assert written["seed"] == 3
    assert written["scores"][0]["train"] == 0.3
    macro = written["scores"][0]["macro_f1"]
    assert macro["mean"] == pytest.approx(np.mean(macro["splits"]))


@pytest.mark.parametrize("scale", [1e-3, 30.0])
def test_vectors_of_any_size_converge(clouds, scale):
    vectors, labels = clouds
    assert classify(vectors * scale, labels, splits=1).labelled == 240  # a warning would be an error here


def test_invalid_input_is_described(clouds):
    vectors, labels = clouds
    one_alone = np.append(labels[:-1], "networks")
    broken = vectors.copy()
    broken[3, 0] = np.nan
    cases = [
        (vectors, ["x"] * 240, "1 different label"),
        (vectors, [""] * 240, "0 different label"),
        (vectors, one_alone, "class 'networks'.* one node"),
        (broken, labels, "1 of 240 vectors.*NaN"),
        (vectors, labels[:-1], "239 labels"),
    ]
    for table, names, message in cases:
        with pytest.raises(EmbeddingError, match=message):
            classify(table, names)
    with pytest.raises(EmbeddingError, match=r"1 .*nodes.*same class"):
        classify(np.eye(6), ["a", "a", "a", "a", "b", "b"], train=[0.2])
    with pytest.raises(ParameterError, match=r"train=0\.01.*4 labelled nodes"):
        classify(np.eye(4), ["a", "a", "b", "b"], train=[0.01])
    with pytest.raises(ParameterError, match=r"number.*0.*'cv'"):
        classify(vectors, labels, C=-1)
    with pytest.raises(EmbeddingError, match="3 training"):
        classify(np.eye(6), ["a", "b"] * 3, train=[0.5], C="cv", seed=1)
    with pytest.raises(EmbeddingError, match=r"splits.*3.*240"):
        classify(vectors, labels, splits=Splits.draw(np.arange(3), np.zeros(3)))


def test_c_is_passed_to_the_regression(clouds):
    vectors, labels = clouds
    score = classify(vectors, labels, train=[0.4], splits=1, C=0.001, as_they_are=True).at(0.4)
    train, test = next(random_splits(labels, 0.4))
    regression = OneVsRestClassifier(LogisticRegression(C=0.001, solver="liblinear"))
    model = regression.fit(vectors[train].astype(np.float64), labels[train])
    assert score.macro.values[0] == pytest.approx(f1_score(labels[test], model.predict(vectors[test]), average="macro"))
    assert score.C == (0.001,)
    assert score.macro != classify(vectors, labels, train=[0.4], splits=1).at(0.4).macro


def test_c_is_chosen_within_the_training_part(clouds):
    vectors, labels = clouds
    small = vectors * 0.03  # too short to learn from with C = 1
    chosen, fixed = (classify(small, labels, train=[0.5], splits=2, C=C, as_they_are=True).at(0.5) for C in ("cv", 1.0))
    assert set(chosen.C) <= set(C_GRID)
    assert min(chosen.C) > 1
    assert chosen.macro.mean > fixed.macro.mean + 0.1
    _, test = next(random_splits(labels, 0.5))
    shuffled = labels.copy()
    shuffled[test] = np.random.default_rng(0).permutation(labels[test])
    assert (shuffled != labels).any()
    blind = classify(small, shuffled, train=[0.5], splits=1, C="cv", as_they_are=True).at(0.5)
    assert chosen.C[:1] == blind.C


@pytest.mark.parametrize(
    ("arguments", "regressions"),
    [({"train": [0.3, 0.5], "splits": 2}, 4), ({"train": [0.5], "splits": 1, "C": "cv"}, 1 + FOLDS * len(C_GRID))],
)
def test_progress_counts_every_regression(clouds, arguments, regressions):
    seen = []
    classify(*clouds, progress=seen.append, **arguments)
    assert (seen[-1].done, seen[-1].total, seen[-1].unit) == (regressions, regressions, "regressions")


def test_a_label_of_the_tuning_part_is_never_predicted(clouds):
    vectors, labels = clouds
    score = classify(vectors, labels, train=[0.3], splits=3, tuning=0.2)
    kept = Splits.draw(np.arange(240), labels, splits=3, tuning=0.2)
    assert score == classify(vectors, labels, train=[0.3], splits=kept)
    assert score.as_dict()["tuning"] == 0.2
    assert score.scores != classify(vectors, labels, train=[0.3], splits=3).scores


def test_saved_splits_give_the_same_scores(clouds):
    vectors, labels = clouds
    kept = Splits.draw(np.arange(240), labels, splits=2, seed=7, stratify=True)
    assert classify(vectors, labels, splits=kept) == classify(vectors, labels, splits=2, seed=7, stratify=True)
