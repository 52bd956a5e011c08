import csv
import json
from dataclasses import replace

import pytest

from neural_brane.experiments.reproduce.plan import choose_columns
from neural_brane.experiments.reproduce.results import read_json, stale, write_csv, write_json
from neural_brane.experiments.store import fingerprint


def test_a_cell_is_the_mean_over_runs_beside_the_published_figure(fill):
    def steady(training, record):
        record["macro_f1"]["0.7"] = [0.60 + 0.02 * training.seed] * 10
        return record

    results = fill(["classification"], ["citeseer"], choose_columns(["tadw"]), runs=3, change=steady)
    (cell,) = results.find("classification", "macro_f1", train=0.7)
    assert cell.values == [0.60, 0.62, 0.64]
    assert (cell.mean, cell.sd, cell.runs) == (0.62, 0.02, 3)
    assert (cell.published, cell.published_on) == (0.6106, "citeseer")
    assert cell.difference == pytest.approx(0.0094)
    assert cell.comparable
    assert cell.digest == cell.digest.strip() != ""
    assert cell.parameters["dim"] == 150


def test_arnetminers_published_figures_are_of_another_graph(fill):
    results = fill(["classification"], ["arnetminer"], choose_columns(["tadw", "graphsage"]))
    tadw, sage = results.find("classification", "macro_f1", train=0.3)[::-1]
    assert (tadw.published, tadw.published_on, tadw.comparable) == (0.7969, "arnetminer-15753", False)
    assert (sage.published, sage.difference, sage.runs) == (None, None, 3)


def test_a_run_that_is_missing_is_left_out(fill):
    results = fill(
        ["classification"], ["reed98"], choose_columns(["tadw", "aane"]), runs=3,
        change=lambda training, record: None if training.method == "aane" or training.seed == 1 else record,
    )  # fmt: skip
    assert {(one.column, one.runs) for one in results.cells} == {("tadw", 2)}


def test_a_curve_is_as_long_as_its_shortest_run(fill):
    def shorten(training, record):
        record["loss"] = record["loss"][: 20 + training.seed]
        return record

    (cell,) = fill(["convergence"], ["reed98"], runs=2, change=shorten).cells
    assert len(cell.curve) == 20


def test_link_cells_are_those_that_the_records_have(fill):
    results = fill(["links"], ["citeseer"], choose_columns(["tadw", "neural-brane-default"]), runs=5)
    assert [(one.column, one.measure, one.runs) for one in results.cells] == [
        ("tadw", "auc_of_cosines", 3),
        ("tadw", "scorer_auc", 3),
        ("neural-brane-default", "auc_of_cosines", 3),
        ("neural-brane-default", "scorer_auc", 3),
    ]
    assert all(0.7 <= one.mean <= 0.9 and one.published is None for one in results.cells)


def test_the_nine_cells_of_the_papers_arnetminer_are_comparable(fill):
    cells = fill(["classification"], ["arnetminer-15753"]).find("classification", "macro_f1")
    assert len(cells) == 9
    assert all(one.comparable for one in cells)
    assert [one.published for one in cells if one.column == "node2vec"] == [0.7729, 0.7837, 0.7877]


def test_a_cell_says_whether_it_is_tuned_and_what_computed_it(fill, tmp_path):
    results = fill(["classification"], ["citeseer"], choose_columns(["tadw", "nnmf"]))
    assert {(one.column, one.tuned) for one in results.cells} == {("tadw", True), ("nnmf", False)}
    assert all(len(one.fingerprint) == 16 for one in results.cells)
    write_json(results, tmp_path / "r.json")
    assert read_json(tmp_path / "r.json") == replace(results, maps={})


def test_a_method_that_computes_something_else_today_is_named(fill):
    results = fill(["classification"], ["citeseer"], choose_columns(["attributes", "smoothed-attributes"]))
    cells = [
        replace(one, fingerprint=fingerprint(one.method, one.parameters)) if one.method == "attributes" else one
        for one in results.cells
    ]
    assert stale(results) == ["attributes", "smoothed-attributes"]
    assert stale(replace(results, cells=cells)) == ["smoothed-attributes"]
    assert stale(replace(results, cells=[replace(one, fingerprint="") for one in cells])) == []


def test_files_hold_every_cell(fill, tmp_path):
    results = fill(["clustering", "pooling"], ["citeseer"], choose_columns(["pte", "neural-brane"]))
    write_json(results, tmp_path / "r.json", claims=[])
    write_csv(results, tmp_path / "r.csv")
    record = json.loads((tmp_path / "r.json").read_text())
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(record["cells"]) == len(results.cells)
    needed = {
        "mean", "sd", "runs", "seconds", "peak_mb", "published", "difference", "digest", "parameters", "versions",
        "machine",
    }  # fmt: skip
    assert needed <= rows[0].keys()
    pte = next(row for row in rows if row["column"] == "pte" and row["measure"] == "nmi")
    assert pte["published"] == "0.2653"
    assert json.loads(pte["versions"]) == {"numpy": "2.0.0", "python": "3.11.0"}
    assert pte["machine"] == "Abacus 3000, 2 cores, 8 GB"
