"""Test how a comparison marks methods that learn from labels."""

from dataclasses import replace

from neural_brane.experiments.compare import LEARNS_LABELS, compare, write_comparison


def test_they_are_marked_in_every_table_with_one_sentence(comparison, standing, tmp_path):
    learner = replace(standing("classify", "lane", 0.9, 0.8), learns_labels=True)
    found = comparison(classify=[learner, standing("classify", "attributes", 0.5, 0.4)])
    assert [one.heading for one in found.standings["classify"]] == ["lane †", "attributes"]
    assert found.remarks == [LEARNS_LABELS]
    assert found.advice.startswith("Take lane † for classes")
    record = found.as_dict()["tasks"]["classify"]["standings"]
    assert [one["learns_from_labels"] for one in record] == [True, False]
    write_comparison(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "lane †" in page
    assert LEARNS_LABELS in page
    assert "Labels are never used in training" not in page


def test_without_any_the_page_says_that_labels_are_never_used(comparison, standing, tmp_path):
    found = comparison(classify=[standing("classify", "attributes", 0.5, 0.4)])
    write_comparison(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Labels are never used in training" in page
    assert LEARNS_LABELS not in page


def test_compare_trains_and_marks_one(graph):
    found = compare(graph, {"lane": {"epochs": 1}, "attributes": {}}, "classify", runs=1, dim=8)
    assert {one.method: one.learns_labels for one in found.standings["classify"]} == {"lane": True, "attributes": False}
