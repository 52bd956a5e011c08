import datetime
import json

import numpy as np
import polars as pl
import pytest

from neural_brane.graph.columns import Column, infer_columns, plain
from neural_brane.graph.encoder import Bins, Categories, Flag


def bins(values, number=8):
    values = pl.Series("age", values, strict=False)
    return Bins.fit(values, infer_columns(values.to_frame(), columns=[f"age:number:{number}"])[0])


def test_bins_have_similar_sizes_and_are_named_after_their_range():
    values = list(range(18, 82))
    found = bins(values)
    assert found.names("age")[:2] == ["age=18..25", "age=26..33"]
    assert np.bincount(found.encode(pl.Series(values)).codes).tolist() == [8] * 8


def test_few_numbers_get_a_bin_each():
    assert bins([3, 1, 5, 1, 3]).ranges == ("1", "3", "5")
    assert bins([2.5]).ranges == ("2.5",)


def test_equal_numbers_share_a_bin_so_that_there_are_fewer():
    found = bins([0] * 90 + list(range(1, 11)), 4)
    assert found.ranges == ("0", "1..10")
    codes = found.encode(pl.Series([0, 1, 10]))
    assert codes.codes.tolist() == [0, 1, 1]


def test_numbers_outside_the_known_range_belong_to_the_end_bins():
    found = bins(range(100), 4)
    entries = found.encode(pl.Series([-1e300, float("-inf"), 1e300, float("inf"), None]))
    assert (entries.rows.tolist(), entries.codes.tolist()) == ([0, 1, 2, 3], [0, 0, 3, 3])
    assert len(entries.unknown) == 0


def test_names_have_enough_digits_to_be_distinct():
    close = [1 + at * 1e-9 for at in range(64)]
    found = bins(close)
    assert len(set(found.ranges)) == 8
    assert bins([0.123456, 0.2, 0.33333], 3).ranges == ("0.1235", "0.2", "0.3333")


def test_infinite_numbers_do_not_decide_the_bins():
    assert bins([1, 2, float("inf"), float("-inf")]).ranges == ("1", "2")
    assert bins([float("inf")]).names("x") == []
    assert len(bins([float("inf")]).encode(pl.Series([1.0])).rows) == 0


def test_texts_among_numbers_are_unknown():
    found = bins([1, 2, 3]).encode(pl.Series(["2", "old", None]))
    assert (found.rows.tolist(), found.codes.tolist(), found.unknown.to_list()) == ([0], [1], ["old"])


def test_dates_are_binned_by_day_and_named_as_dates():
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=at) for at in range(366)]
    texts = plain(pl.Series([day.isoformat() for day in days]))
    found = bins(texts, 2)
    assert found.ranges == ("2020-01-01..2020-07-01", "2020-07-02..2020-12-31")
    assert bins(plain(pl.Series(days)), 2) == bins(plain(pl.Series(days).cast(pl.Datetime)), 2) == found
    entries = found.encode(pl.Series(["1969-12-31", "2031-01-01", "soon", None]))
    assert (entries.rows.tolist(), entries.codes.tolist(), entries.unknown.to_list()) == ([0, 1], [0, 1], ["soon"])
    kept = json.dumps(found.as_dict())
    assert json.dumps(Bins.from_dict(json.loads(kept)).as_dict()) == kept


def test_categories_are_all_values_and_others_are_unknown():
    found = Categories.fit(pl.Series(["IN", None, "FR", "IN"]), Column("c", "category", ""))
    assert found.names("land") == ["land=FR", "land=IN"]
    entries = found.encode(pl.Series(["IN", "DE", None]))
    assert (entries.rows.tolist(), entries.codes.tolist(), entries.unknown.to_list()) == ([0], [1], ["DE"])


def test_a_flag_is_an_attribute_of_the_nodes_where_it_is_true():
    entries = Flag().encode(pl.Series(["yes", "no", None, "perhaps"]))
    assert Flag().names("member") == ["member"]
    assert (entries.rows.tolist(), entries.unknown.to_list()) == ([0], ["perhaps"])


@pytest.mark.parametrize("part", [bins([0.1, 1 / 3, 1e300]), Categories(("a", "ü")), Flag()])
def test_json_keeps_everything(part):
    assert type(part).from_dict(json.loads(json.dumps(part.as_dict()))) == part
