import numpy as np
import polars as pl
import pytest

from neural_brane.errors import GraphError, KindError
from neural_brane.graph.build import as_real, to_single
from neural_brane.graph.columns import plain


@pytest.mark.parametrize("kind", ["?", "i1", "u8", ">i4", "e", ">f4", "f8", ">f8", "g", "O"])
def test_real_numbers_of_every_kind(kind):
    numbers = as_real(np.array([0, 1], dtype=kind), "weights", "numbers")
    assert numbers.tolist() == [0, 1]
    assert numbers.dtype.isnative


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array([1j]), "weights.*complex128.*numbers"),
        ([1j, 2], "weights.*complex128"),
        (["heavy"], "weights cannot be read as numbers"),
        (np.array(["2020-01-01"], dtype="M8[D]"), r"weights.*datetime64\[D\]"),
        (np.ma.array([1.0], mask=[True]), "weights: 1 entries are masked"),
    ],
)
def test_values_that_are_not_real_numbers_are_refused(values, message):
    with pytest.raises(GraphError, match=message):
        as_real(values, "weights", "numbers")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1e-300, "number 1 is 1e-300.*float32.*multiply"),
        (1e300, r"number 1 is 1e\+300.*float32.*divide"),
        (np.nan, "number 1 is NaN"),
        (-np.inf, "number 1 is -inf"),
    ],
)
def test_values_that_float32_cannot_represent_are_refused(value, message):
    with pytest.raises(GraphError, match=message):
        to_single(np.array([1.0, value]), lambda at: f"number {at}")


def test_opposite_infinities_are_found():
    with pytest.raises(GraphError, match="number 0 is inf"):
        to_single(np.array([np.inf, -np.inf]), lambda at: f"number {at}")


def test_the_smallest_and_the_largest_are_kept_and_nothing_is_copied():
    numbers = np.array([np.finfo(np.float32).smallest_subnormal, 0, np.finfo(np.float32).max], dtype=np.float32)
    assert to_single(numbers, str) is numbers


def test_a_date_that_polars_cannot_write_is_refused_with_its_column():
    far = pl.Series("when", [0, 2**62]).cast(pl.Datetime("ms"))
    with pytest.raises(KindError, match="column 'when'"):
        plain(far)
    assert len(plain(far.head(1))) == 1
