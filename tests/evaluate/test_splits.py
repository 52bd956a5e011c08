import numpy as np
import pytest

from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate import Splits, random_splits
from neural_brane.evaluate.labelled import tuning_part


def test_every_split_contains_all_nodes_once():
    for train, test in random_splits(np.zeros(101), 0.3):
        assert len(train) == 30
        assert sorted([*train, *test]) == list(range(101))


def test_splits_depend_on_size_and_seed_alone():
    first, again, other = (
        [train.tolist() for train, _ in random_splits(np.zeros(50), 0.5, seed=seed)] for seed in (0, 0, 1)
    )
    assert first == again
    assert first != other
    assert len({tuple(train) for train in first}) == 10


def test_fewer_splits_are_the_first_of_more():
    three = [train.tolist() for train, _ in random_splits(np.zeros(50), 0.5, splits=3)]
    ten = [train.tolist() for train, _ in random_splits(np.zeros(50), 0.5)]
    assert three == ten[:3]


def test_training_nodes_of_a_smaller_share_are_among_those_of_a_larger_one():
    for (small, _), (large, _) in zip(random_splits(np.zeros(50), 0.3), random_splits(np.zeros(50), 0.7), strict=True):
        assert np.isin(small, large).all()


def test_stratified_splits_divide_every_class_in_the_same_proportion():
    classes = np.repeat(["a", "b", "c"], [100, 40, 10])
    for train, test in random_splits(classes, 0.3, stratify=True):
        assert {name: int((classes[train] == name).sum()) for name in "abc"} == {"a": 30, "b": 12, "c": 3}
        assert sorted([*train, *test]) == list(range(150))
    plain = [int((classes[train] == "c").sum()) for train, _ in random_splits(classes, 0.3)]
    assert len(set(plain)) > 1


@pytest.mark.parametrize("stratify", [False, True])
def test_the_tuning_part_is_trained_on_in_every_split_and_the_rest_is_drawn(stratify):
    classes, part = np.repeat(["a", "b"], [60, 41]), tuning_part(101, 0.2)
    assert len(part) == 20
    parts = list(random_splits(classes, 0.3, tuning=0.2, stratify=stratify))
    for train, test in parts:
        assert len(train) == 30
        assert np.isin(part, train).all()
        assert sorted([*train, *test]) == list(range(101))
    drawn = [frozenset(train.tolist()) - set(part.tolist()) for train, _ in parts]
    assert len(set(drawn)) == 10
    assert len(frozenset.union(*drawn)) > 50


def test_the_tuning_part_is_always_the_same():
    """Parameters in experiments/tuned.toml were tuned on these nodes. If they change, tune again."""
    assert tuning_part(20, 0.2).tolist() == [0, 1, 4, 6]
    assert len(tuning_part(20, 0.0)) == 0
    with pytest.raises(ParameterError, match=r"tuning=1\.5.*share.*0.*1"):
        tuning_part(20, 1.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train": 1.5}, r"train=1\.5.*share.*0 and 1"),
        ({"train": 0.01}, r"train=0\.01 of 10 labelled nodes"),
        ({"train": 0.5, "splits": 0}, "splits=0"),
        ({"train": 0.5, "seed": -1}, "seed=-1"),
        ({"train": 0.3, "tuning": 0.5}, r"train=0\.3.*tuning=0\.5"),
    ],
)
def test_invalid_settings_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        list(random_splits(np.zeros(10), **arguments))


IDS = np.array(["ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal"])
CLASSES = np.array(["x", "y"] * 4)


def test_drawn_splits_equal_the_random_ones():
    for stratify in (False, True):
        kept = Splits.draw(IDS, CLASSES, splits=3, seed=5, stratify=stratify)
        for share in (0.25, 0.5):
            drawn = random_splits(CLASSES, share, splits=3, seed=5, stratify=stratify)
            for (train, test), (train_again, test_again) in zip(kept.parts(share), drawn, strict=True):
                np.testing.assert_array_equal(train, train_again)
                np.testing.assert_array_equal(test, test_again)


@pytest.mark.parametrize("ids", [IDS, np.arange(8) * 10])
def test_a_file_keeps_the_splits_of_the_same_nodes_in_any_order(ids, tmp_path):
    splits = Splits.draw(ids, CLASSES, splits=2, seed=1, stratify=True, tuning=0.25)
    splits.save(tmp_path / "splits.json")
    again = Splits.load(tmp_path / "splits.json")
    assert (len(again), again.seed, again.stratify, again.tuning) == (2, 1, True, 0.25)
    turned = again.align_labels(ids[::-1])
    for (train, _), (other, _) in zip(splits.parts(0.5), turned.parts(0.5), strict=True):
        assert ids[train].tolist() == ids[::-1][other].tolist()


def test_a_file_of_another_program_needs_only_ids_and_orders(tmp_path):
    (tmp_path / "s.json").write_text('{"ids": ["a", "b", "c"], "orders": [[2, 0, 1]]}')
    found = Splits.load(tmp_path / "s.json")
    assert found.seed is None
    assert [part.tolist() for part in next(found.parts(0.4))] == [[2], [0, 1]]


def test_splits_of_other_nodes_are_refused():
    splits = Splits.draw(IDS, CLASSES)
    with pytest.raises(EmbeddingError, match=r"1 nodes.*'hal'"):
        splits.align_labels(IDS[:-1])
    with pytest.raises(EmbeddingError, match=r"2 nodes.*'ian'.*'joy'"):
        splits.align_labels(np.append(IDS, ["ian", "joy"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", r"s\.json.*JSON"),
        ('{"ids": [1, 2]}', "'ids' and 'orders'"),
        ('{"ids": [1, 2], "orders": [[0, 0]]}', "'orders' .* 0 to 1 once"),
        ('{"ids": [1, 2], "orders": [[0, 1], [0]]}', "'ids' and 'orders'"),
        ('{"ids": [1, 2], "orders": []}', "'orders' .* 0 to 1"),
        ('{"ids": [1, 1], "orders": [[0, 1]]}', "'ids'.* 1 twice"),
    ],
)
def test_damaged_files_are_described(text, message, tmp_path):
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(EmbeddingError, match=message):
        Splits.load(tmp_path / "s.json")
    with pytest.raises(EmbeddingError, match=r"gone\.json.*file"):
        Splits.load(tmp_path / "gone.json")
