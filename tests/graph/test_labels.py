import warnings

import numpy as np
import pytest

from neural_brane.errors import GraphError
from neural_brane.graph.labels import node_labels

IDS = np.array(["a", "b", "c"])
NAN = float("nan")


@pytest.mark.parametrize(
    ("labels", "expected", "count"),
    [
        (np.array([1.0, 2.0, NAN]), ["1", "2", ""], 1),
        ([1.0, NAN, NAN], ["1", "", ""], 2),
        (["x", NAN, None], ["x", "", ""], 1),
        (np.array(["x", NAN, "y"], dtype=object), ["x", "", "y"], 1),
        (np.ma.array([7, 8, 9], mask=[False, True, False]), ["7", "", "9"], 1),
        (np.array(["2020-01-01", "NaT", "2021-01-01"], dtype="M8[D]"), ["2020-01-01", "", "2021-01-01"], 1),
        ({"b": NAN, "c": 3}, ["", "", "3"], 1),
        ([None, "x", ""], ["", "x", ""], 0),
        ([0.5, 1.0, 2.0], ["0.5", "1.0", "2.0"], 0),
        ([10**20, 1, 2], [str(10**20), "1", "2"], 0),
        (np.array([True, False, True]), ["True", "False", "True"], 0),
        (np.array([b"x", b"\xc3\xa9", b"y"]), ["x", "é", "y"], 0),
        (np.array(["nan", "x", "y"]), ["nan", "x", "y"], 0),
    ],
)
def test_missing_labels_give_a_warning_unless_they_are_none(labels, expected, count):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert node_labels(labels, IDS).tolist() == expected
    assert [str(one.message).split(" are ")[0] for one in caught] == [f"{count} of the 3 labels"] * (count > 0)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1j, 2, 3], "complex or infinite"),
        ([np.inf, 2, 3], "complex or infinite"),
        (np.array([b"\xff", b"x", b"y"]), "labels are bytes that are not UTF-8"),
        (np.eye(3), r"labels have shape \(3, 3\) for 3 nodes"),
        ({"z": 1}, "labels.*node 'z'"),
    ],
)
def test_invalid_labels_are_refused(labels, message):
    with pytest.raises(GraphError, match=message):
        node_labels(labels, IDS)


def test_a_series_is_joined_by_its_index():
    pandas = pytest.importorskip("pandas", reason="labels may be a pandas Series")
    series = pandas.Series(["z", "x", "y"], index=["c", "a", "b"])
    assert node_labels(series, IDS).tolist() == ["x", "y", "z"]
    with pytest.raises(GraphError, match="node 'a'"):
        node_labels(series.reset_index(drop=True), IDS)
