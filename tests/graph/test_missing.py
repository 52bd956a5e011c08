import numpy as np
import pytest

from neural_brane.errors import GraphError
from neural_brane.graph.ids import as_array, is_missing


@pytest.mark.parametrize("value", [None, float("nan"), np.float32("nan"), np.datetime64("NaT"), np.timedelta64("NaT")])
def test_missing_values(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", ["", "nan", "None", 0, False, np.inf, np.array([np.nan, 1.0]), (None,)])
def test_values_that_are_not_missing(value):
    assert not is_missing(value)


def test_missing_values_of_pandas():
    pandas = pytest.importorskip("pandas", reason="pandas has missing values of its own")
    assert is_missing(pandas.NA)
    assert is_missing(pandas.NaT)


@pytest.mark.parametrize(
    ("values", "kept"),
    [(["a", float("nan")], float), ([2**63, -1], int), ([1, True], bool), ([(1, 2), ("a", True)], bool)],
)
def test_a_list_keeps_the_kinds_of_its_entries(values, kept):
    assert kept in set(map(type, as_array(values, "ids").flat))


def test_masked_entries_are_refused_and_masked_arrays_without_any_accepted():
    with pytest.raises(GraphError, match=r"ids.*1"):
        as_array(np.ma.array([1, 2], mask=[False, True]), "ids")
    assert as_array(np.ma.array([1, 2]), "ids").tolist() == [1, 2]
    assert type(as_array(np.ma.array([1, 2]), "ids")) is np.ndarray


def test_ragged_lists_are_refused():
    with pytest.raises(GraphError, match=r"edges.*array"):
        as_array([[1, 2], [3]], "edges")
