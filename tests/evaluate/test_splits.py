import numpy as np
import pytest

from neural_brane.errors import ParameterError
from neural_brane.evaluate import random_splits


def test_every_split_is_a_division_of_all_nodes():
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


def test_a_smaller_share_lies_within_a_larger_one():
    for (small, _), (large, _) in zip(random_splits(np.zeros(50), 0.3), random_splits(np.zeros(50), 0.7), strict=True):
        assert np.isin(small, large).all()


def test_stratified_splits_divide_every_class_alike():
    classes = np.repeat(["a", "b", "c"], [100, 40, 10])
    for train, test in random_splits(classes, 0.3, stratify=True):
        assert {name: int((classes[train] == name).sum()) for name in "abc"} == {"a": 30, "b": 12, "c": 3}
        assert sorted([*train, *test]) == list(range(150))
    plain = [int((classes[train] == "c").sum()) for train, _ in random_splits(classes, 0.3)]
    assert len(set(plain)) > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train": 1.5}, r"train=1\.5: the share to train on must lie between 0 and 1"),
        ({"train": 0.01}, "leaves nothing to train on"),
        ({"train": 0.5, "splits": 0}, "splits=0"),
        ({"train": 0.5, "seed": -1}, "seed=-1"),
    ],
)
def test_senseless_settings_are_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        list(random_splits(np.zeros(10), **arguments))
