import datetime

import numpy as np
import polars as pl
import pytest

from neural_brane.graph.columns import as_flags, as_numbers, as_texts, plain

SAME = {
    "whole numbers": [["1", " 20", None, "-3"], [1.0, 20.0, float("nan"), -3.0], [1, 20, None, -3]],
    "fractions": [["0.5", "2", ""], [0.5, 2.0, None]],
    "booleans": [["True", "false", "NaN"], [True, False, None], ["TRUE", "FALSE", "null"]],
    "lists": [[["a", "b"], [], None], [["a", "b"], None, []]],
}


@pytest.mark.parametrize("what", SAME)
def test_values_have_the_same_form_from_every_kind_of_table(what):
    first, *others = [plain(pl.Series("x", values)) for values in SAME[what]]
    for other in others:
        assert (other.dtype, other.to_list()) == (first.dtype, first.to_list())


@pytest.mark.parametrize("word", ["", " ", "nan", "NaN", "None", "null", "NULL", "<NA>", "NaT"])
def test_words_for_missing_values_become_null(word):
    assert plain(pl.Series(["IN", word, "FR"])).to_list() == ["IN", None, "FR"]


def test_na_is_missing_among_numbers_and_a_value_among_words():
    assert plain(pl.Series(["1", "NA", "n/a", "?", "2"])).to_list() == [1, None, None, None, 2]
    assert plain(pl.Series(["FR", "NA"])).to_list() == ["FR", "NA"]


def test_leading_zeros_are_codes_not_numbers():
    assert plain(pl.Series(["02139", "10115"])).to_list() == ["02139", "10115"]
    assert plain(pl.Series(["0", "0.5"])).to_list() == [0.0, 0.5]


def test_large_integers_keep_every_digit():
    large = [2**64 - 1, 2**63]
    assert plain(pl.Series(large, dtype=pl.UInt64)).to_list() == large
    assert plain(pl.Series([str(number) for number in large])).to_list() == large


def test_dates_become_text_and_structures_are_refused():
    assert plain(pl.Series([datetime.date(2020, 1, 31)])).to_list() == ["2020-01-31"]
    assert plain(pl.Series([{"a": 1}])) is None
    assert plain(pl.Series([b"bytes"])) is None
    assert plain(pl.Series([None, None])).to_list() == [None, None]


def test_values_as_texts_numbers_and_flags():
    assert as_texts(plain(pl.Series([3.0, None]))).to_list() == ["3", None]
    assert as_texts(plain(pl.Series([True]))).to_list() == ["true"]
    assert as_numbers(pl.Series(["1.5", "old", None])).to_list() == [1.5, None, None]
    assert as_flags(pl.Series(["Yes", "no", "perhaps", None])).to_list() == [True, False, None, None]
    assert as_flags(pl.Series([1, 0, 2])).to_list() == [True, False, None]
    assert np.isinf(as_numbers(pl.Series([np.inf])).to_numpy()).all()
