"""Columns as people write them: from every kind of table they give the attributes that a person would expect."""

import csv
import datetime
import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from neural_brane import AttributedGraph
from neural_brane.errors import GraphError, ReadingWarning
from neural_brane.files.contents import Report, inspect_nodes
from neural_brane.files.tables import read_frame
from neural_brane.graph import columns
from neural_brane.graph.columns import infer_columns
from neural_brane.graph.encoder import Encoder
from neural_brane.graph.frames import as_frame

AGES = [str(20 + row % 16) for row in range(40)]
EDGES = pl.DataFrame({"from": ["a0"] * 39, "to": [f"a{row}" for row in range(1, 40)]})


def read(values, name="x", **options):
    """Return the column of a table, and its attributes."""
    table = as_frame(pd.DataFrame({name: pd.Series(values, dtype=object)}), "nodes").table
    (column,) = infer_columns(table, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)
        return column, Encoder.fit(table, [column]).names.tolist()


def nodes(**given):
    return pl.DataFrame({"id": [f"a{row}" for row in range(40)], **given}, strict=False)


def test_the_table_of_messy_columns_is_made_from_the_code(load_script):
    messy = load_script("messy_table")
    page = messy.PAGE.read_text(encoding="utf-8")
    assert messy.fill(page) == page, "run scripts/messy_table.py"
    assert len(messy.CASES) >= 40


def test_every_kind_of_table_gives_the_same_attributes(load_script, tmp_path):
    messy = load_script("messy_table")
    cases = [case._replace(name=f"{case.name}_{at}") for at, case in enumerate(messy.CASES)]
    whole = pl.concat([messy.frame(case) for case in cases], how="horizontal")
    objects = {case.name: pd.Series(case.values, dtype=object) for case in cases}
    tables = {
        "pandas": as_frame(pd.DataFrame({case.name: case.values for case in cases}), "nodes").table,
        "objects": as_frame(pd.DataFrame(objects), "nodes").table,
        "arrow": as_frame(whole.to_arrow(), "nodes").table,
    }
    texts = [case for case in cases if case.texts]
    rows = [
        ["" if value is None else value for value in row] for row in zip(*(case.values for case in texts), strict=True)
    ]
    for suffix, separator in ((".csv", ","), (".tsv", "\t")):
        with (tmp_path / f"t{suffix}").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=separator).writerows([[case.name for case in texts], *rows])
    whole.write_parquet(tmp_path / "t.parquet")
    whole.select(pl.exclude(pl.Duration)).write_ndjson(tmp_path / "t.jsonl")
    for suffix in (".csv", ".tsv", ".parquet", ".jsonl"):
        tables[suffix] = read_frame(tmp_path / f"t{suffix}", what="table", titled=True).frame
    for case in cases:
        column, names = messy.read_column(messy.frame(case))
        for form, table in tables.items():
            if case.name in table.columns:
                found, attributes = messy.read_column(table.select(case.name))
                assert (found.kind, attributes, found.missing) == (column.kind, names, column.missing), (form, case)


@pytest.mark.parametrize(
    ("values", "why", "names"),
    [
        (["1,000", "25,000"], "numbers with thousands separators", ["x=1000", "x=25000"]),
        (["1\u202f000", "25\u00a0000"], "numbers with thousands separators", ["x=1000", "x=25000"]),
        (["1'000", "25\u2019000"], "numbers with thousands separators", ["x=1000", "x=25000"]),
        (["1.000.000", "2.500"], "numbers with thousands separators", ["x=2500", "x=1000000"]),
        (["$59,000", "-$45,000", "$5"], "numbers in $ with thousands separators", ["x=-45000", "x=5", "x=59000"]),
        (["US$5", "US$ 7"], "numbers in US$", ["x=5", "x=7"]),
        (["12 EUR", "EUR 5"], "numbers in EUR", ["x=5", "x=12"]),
        (["10%", "2.5 %"], "numbers in %", ["x=2.5", "x=10"]),
        (["1,5", "2"], "numbers with a decimal comma", ["x=1.5", "x=2"]),
        (["1,234", "1,23"], "numbers with a decimal comma", ["x=1.23", "x=1.234"]),
        (["1.234,56", "7,5"], "numbers with thousands separators and a decimal comma", ["x=7.5", "x=1235"]),
        (["1e5", "2e-3", "−7"], "numbers", ["x=-7", "x=0.002", "x=100000"]),
        (["09:15", "17:40"], "times of day", ["x=09:15", "x=17:40"]),
        (["29.02.2024", "1.3.2024"], "dates, the day first", ["x=2024-02-29", "x=2024-03-01"]),
        (["02/29/2024", "03/01/2024"], "dates, the month first", ["x=2024-02-29", "x=2024-03-01"]),
        (["0000-01-01", "9999-12-31"], "dates", ["x=0000-01-01", "x=9999-12-31"]),
        ([datetime.timedelta(minutes=1), datetime.timedelta(hours=1)], "durations in seconds", ["x=60", "x=3600"]),
        ([1, 2.0, 3], "3 different numbers, a bin each", ["x=1", "x=2", "x=3"]),
    ],
)
def test_numbers_and_dates_are_read_as_people_write_them(values, why, names):
    column, found = read(values * 2)
    assert (column.kind, column.why, found) == ("number", why, names)


@pytest.mark.parametrize(
    ("values", "kind", "names"),
    [
        (["Yes", "No", "YES", "no"], "boolean", ["x"]),
        (["Y", "n", "yes", "no"], "boolean", ["x"]),
        (["yes", None], "boolean", ["x"]),
        (["t", "n"], "category", ["x=n", "x=t"]),
        (['["go", "caf\\u00e9"]', "[]"], "list", ["x=café", "x=go"]),
        (["['go', 'c, c++']", '["it\'s"]'], "list", ["x=c, c++", "x=go", "x=it's"]),
        (["1,2,3", "2", "3,1"], "list", ["x=1", "x=2", "x=3"]),
        (["3.9;3.10", "3.9;3.11", "3.9"], "category", ["x=3.9", "x=3.9;3.10", "x=3.9;3.11"]),
        (["100000000000000017", "100000000000000018"], "category", ["x=100000000000000017", "x=100000000000000018"]),
        (["3" * 30, "4" * 30], "category", ["x=" + "3" * 30, "x=" + "4" * 30]),
        (["02139", "10115"], "category", ["x=02139", "x=10115"]),
        (["A1", "A2"], "category", ["x=A1", "x=A2"]),
        (["$59,000", "€45,000"], "category", ["x=$59,000", "x=€45,000"]),
        (["01/02/2024", "03/04/2024"], "category", ["x=01/02/2024", "x=03/04/2024"]),
    ],
)
def test_other_columns_keep_what_they_say(values, kind, names):
    column, found = read(values * 4)
    assert (column.kind, found) == (kind, names)


def test_times_of_one_day_have_bins_of_minutes_and_finer_ones_if_needed():
    start = datetime.datetime(2024, 3, 1, 9, 15)
    _, names = read([start + datetime.timedelta(minutes=row) for row in range(40)])
    assert names[0] == "x=2024-03-01T09:15..2024-03-01T09:19"
    assert len(names) == 8
    _, names = read([start + datetime.timedelta(milliseconds=row) for row in range(40)])
    assert names[0] == "x=2024-03-01T09:15:00.000..2024-03-01T09:15:00.004"
    _, names = read([start + datetime.timedelta(days=row, minutes=row) for row in range(40)])
    assert names[0] == "x=2024-03-01..2024-03-05"


def test_times_with_offsets_are_compared_in_utc():
    _, names = read(["2024-03-01T09:15:00+02:00", "2024-03-01T08:00:00Z", "2024-03-01 13:00:00+05:30"])
    assert names == ["x=2024-03-01T07:15", "x=2024-03-01T07:30", "x=2024-03-01T08:00"]


@pytest.mark.parametrize(
    ("words", "missing", "why", "last"),
    [
        (["unknown"], 1, "numbers, with 'unknown' as missing", "x=34..35"),
        (["inf", "#DIV/0!"], 2, "numbers, with 'inf', '#DIV/0!' as missing", "x=34..35"),
        (["retired", "retired"], 0, "numbers, with 'retired' as a category", "x=retired"),
        (["retired"], 1, "numbers, with 'retired' as missing", "x=34..35"),
        (["retired"] * 4, 0, "numbers, with 'retired' as a category", "x=retired"),
        (["n/a", "-"], 2, "all values are numbers", "x=34..35"),
    ],
)
def test_words_among_numbers_are_missing_or_have_their_own_attribute(words, missing, why, last):
    column, names = read([*AGES[: -len(words)], *words])
    assert (column.kind, column.missing, column.why) == ("number", missing, why)
    assert names[-1] == last


def test_infinite_numbers_are_missing_in_numbers_and_in_text():
    values = [float(age) for age in AGES[:-1]]
    for table in (pl.DataFrame({"x": [*values, np.inf]}), pl.DataFrame({"x": [*map(str, values), "inf"]})):
        (column,) = infer_columns(table)
        assert (column.kind, column.missing) == ("number", 1)
        assert "inf" in column.odd


def test_an_encoder_reads_later_values_by_the_rule_of_its_column():
    frame = pl.DataFrame({"x": ["1.234,5", "7,5", "12", "40"] * 9 + ["retired", "retired", "unknown"]})
    with pytest.warns(
        ReadingWarning, match="column 'x' is read as numbers with .*'unknown' as missing and 'retired' as a category"
    ):
        encoder = Encoder.fit(frame, infer_columns(frame), missing="attribute")
    again = Encoder.from_dict(json.loads(json.dumps(encoder.as_dict())))
    assert again.names.tolist() == ["x=7.5", "x=12", "x=40", "x=1234", "x=retired", "x=missing"]
    later = pl.DataFrame({"x": ["1.234", "8", "retired", "Unknown", "n/a"]})
    for one in (encoder, again):
        assert one.encode(later)[0].indices.tolist() == [3, 1, 4, 5, 5]
    assert again.encode(pl.DataFrame({"x": [7, 1234]}))[0].indices.tolist() == [0, 3]
    with pytest.warns(UserWarning, match="1 values of column 'x'.*'soon'"):
        assert again.encode(pl.DataFrame({"x": ["soon"]}))[0].nnz == 0


def test_encoders_that_older_versions_saved_encode_as_before():
    saved = {
        "columns": [
            {"name": "at", "kind": "number", "why": "all values are dates", "option": 8, "missing": 0, "distinct": 2}
            | {"edges": [19783.0], "ranges": ["2024-03-01", "2024-03-02"], "dates": True},
            {"name": "tags", "kind": "list", "why": "", "option": ";", "missing": 0, "distinct": 2}
            | {"separator": ";", "values": ["a", "b"]},
        ],
        "marked": [],
    }
    later = pl.DataFrame({"at": ["2024-03-01 23:59", "2024-03-02"], "tags": ["a;b", "b"]})
    encoder = Encoder.from_dict(saved)
    assert encoder.names.tolist() == ["at=2024-03-01", "at=2024-03-02", "tags=a", "tags=b"]
    assert encoder.encode(later)[0].toarray().tolist() == [[1, 0, 1, 1], [0, 1, 0, 1]]


VECTORS = {
    "lists": [[0.5, 1.25]] * 40,
    "arrays": [np.array([0.5, row], np.float32) for row in range(40)],
    "matrices": [np.ones((2, 2))] * 40,
    "text": [f"[0.5, -{row}e-2]" for row in range(40)],
}


@pytest.mark.parametrize("what", VECTORS)
def test_vectors_are_refused_unless_they_are_ignored(what):
    table = nodes().to_pandas().assign(team=["red", "blue"] * 20, point=pd.Series(VECTORS[what], dtype=object))
    with pytest.raises(GraphError, match=r"column 'point' holds vectors.*--ignore point.*ignore=\['point'\]"):
        AttributedGraph.from_frames(EDGES, table, id="id")
    graph = AttributedGraph.from_frames(EDGES, table, id="id", ignore=["point"])
    assert graph.attribute_names.tolist() == ["team=blue", "team=red"]


def test_typed_arrays_of_floats_are_vectors_and_lists_of_integers_are_lists():
    table = pl.DataFrame({"x": [[1.5, 2.5], [0.5, 1.0]], "y": [[1, 2], [2, 3]]})
    assert [column.kind for column in infer_columns(table)] == ["vector", "list"]
    assert infer_columns(table.with_columns(pl.col("x").cast(pl.Array(pl.Float32, 2))))[0].kind == "vector"


ODD = {
    "age": ([*AGES[:-1], "unknown"], "'unknown' as missing"),
    "code": ([10**17 + 7 * row for row in range(40)], "long codes"),
    "lost": ([1e17 + 128 * row for row in range(40)], "lost their last digits"),
    "dept_id": ([1, 2, 3, 7] * 10, "named like an id"),
    "day": (["01/02/2024", "03/04/2024"] * 20, "the day or the month first"),
    "due": (["2024-03-01"] * 20 + ["2024-03-09"] * 19 + ["2024-02-30"], "'2024-02-30' as missing"),
    "mixed": (["1", "2", "a", "3", "b"] * 8, "'a', 'b'"),
}


def test_what_is_odd_is_one_warning_and_the_same_in_a_report(tmp_path):
    table = nodes(**{name: values for name, (values, _) in ODD.items()})
    with pytest.warns(ReadingWarning) as caught:
        AttributedGraph.from_frames(EDGES, table, id="id")
    (warning,) = caught
    odd = columns.odd_columns(infer_columns(table, id="id"))
    assert [line.split("'")[1] for line in odd] == [*ODD]
    for line, (_, noun) in zip(odd, ODD.values(), strict=True):
        assert noun in line
        assert line in str(warning.message)
    table.write_parquet(tmp_path / "nodes.parquet")
    edges = Report(tmp_path / "edges.csv", "", ids=table["id"].to_numpy())
    report = inspect_nodes(tmp_path / "nodes.parquet", edges)
    assert report.problems == odd


def test_clean_columns_give_no_warning():
    table = nodes(age=[float(age) for age in AGES], team=["red", "blue"] * 20, since=["2024-03-01", "2024-03-02"] * 20)
    assert columns.odd_columns(infer_columns(table)) == []
    AttributedGraph.from_frames(EDGES, table, id="id")
