import json
from dataclasses import replace

import pytest

from neural_brane.errors import ParameterError
from neural_brane.evaluate.labelled import Repeats
from neural_brane.experiments.compare import Standing, level, rank, write_comparison
from neural_brane.experiments.page import CHOSEN


def test_the_best_comes_first_and_what_failed_last(standing):
    failed = Standing("pte", failure="no attributes")
    ranked = rank([standing("cluster", "a", 0.1), failed, standing("cluster", "b", 0.3), standing("cluster", "c", 0.2)])
    assert [one.method for one in ranked] == ["b", "c", "a", "pte"]
    assert rank([failed]) == (failed,)


def test_a_difference_counts_beside_its_own_spread_and_not_beside_that_of_the_scores():
    best = Repeats((0.5, 0.7, 0.9))
    assert not level(best, Repeats((0.49, 0.69, 0.89001)))  # always the same difference, on splits that differ a lot
    assert level(best, Repeats((0.6, 0.6, 0.85)))
    assert level(best, best)


def test_two_runs_hardly_tell_anything_and_one_run_nothing():
    assert level(Repeats((0.80, 0.82)), Repeats((0.70, 0.75)))
    assert not level(Repeats((0.8,)), Repeats((0.8,)))


def test_those_level_with_the_best_are_marked_and_the_best_itself_is_not(standing):
    ranked = rank(
        [
            standing("link", "far", 0.60, 0.61, 0.60),
            standing("link", "near", 0.89, 0.92, 0.88),
            standing("link", "first", 0.90, 0.91, 0.90),
        ]
    )
    assert [one.heading for one in ranked] == ["first", "≈ near", "far"]


def test_the_best_of_a_task(standing, comparison):
    found = comparison(
        classify=[standing("classify", "a", 0.5), standing("classify", "b", 0.6)], link=[Standing("a", failure="no")]
    )
    assert found.best("classify").method == "b"
    assert found.best("link") is None
    with pytest.raises(ParameterError, match=r"'cluster'.*link"):
        found.best("cluster")


def test_everything_is_in_the_json(standing, comparison, tmp_path):
    failed = Standing("pte", failure="no attributes")
    found = comparison(cluster=[standing("cluster", "a", 0.5, 0.7), failed], notes=("left out: b",))
    found.save(tmp_path)
    record = json.loads((tmp_path / "compare.json").read_text(encoding="utf-8"))
    assert record.keys() == {"graph", "runs", "advice", "tasks", "parameters", "machines", "notes"}
    assert record["graph"]["digest"] == "0123456789abcdef"
    assert record["advice"] == found.advice
    assert record["parameters"] == {"a": {"dim": 8}, "pte": {"dim": 8}}
    assert record["machines"][0]["packages"] == {"numpy": "2.0.0"}
    assert record["notes"] == ["left out: b"]
    task = record["tasks"]["cluster"]
    assert task["measures"]["nmi"] == "NMI"
    assert "k-means" in task["judged"]
    first, last = task["standings"]
    assert first["measures"]["nmi"]["runs"] == [0.5, 0.7]
    assert first["measures"]["nmi"]["mean"] == pytest.approx(0.6)
    assert (first["ranked_by"], first["level_with_the_best"]) == ("nmi", False)
    assert first["seconds"]["runs"] == [1.0, 1.0]
    assert first["peak_mb"] == 100.0
    assert last == {"method": "pte", "failure": "no attributes"}
    assert {path.name for path in tmp_path.iterdir()} == {"compare.json", "compare.html"}


def test_how_the_default_was_chosen_stands_beside_its_scores(standing, comparison, tmp_path):
    found = comparison(cluster=[standing("cluster", "neural-brane", 0.7, 0.5), standing("cluster", "tadw", 0.3, 0.3)])
    for recipe, said in (("default", True), ("released", False)):
        one = replace(found, parameters={"neural-brane": {"recipe": recipe}, "tadw": {}})
        write_comparison(one, tmp_path / "page.html")
        assert (CHOSEN in one.remarks) is said
        assert ("chosen on ten known graphs" in (tmp_path / "page.html").read_text(encoding="utf-8")) is said
