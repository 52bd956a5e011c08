"""`brane compare`."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane import load, synthetic
from neural_brane.cli.app import app
from neural_brane.cli.experiments import choose_labels, show_bars, show_measures
from neural_brane.evaluate.labelled import Repeats
from neural_brane.experiments.compare import Standing
from neural_brane.experiments.compute import TASKS
from neural_brane.files.graphs.formats import write_graph
from neural_brane.graph.labels import MultiLabels

METHODS = ("--methods", "attributes,smoothed-attributes", "--dim", "8", "--runs", "1", "--jobs", "2")


def compare(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


@pytest.fixture
def graph(tmp_path):
    """A graph file without labels, and a label file."""
    made = synthetic(90, degree=8, attributes=30, attributes_per_node=5, classes=2, seed=1)
    write_graph(made.relabelled(None), tmp_path / "town.npz")
    lines = [f"{node}\t{label}" for node, label in zip(made.ids, made.labels, strict=True)]
    (tmp_path / "classes.txt").write_text("\n".join(lines) + "\n")
    return tmp_path / "town.npz", tmp_path / "classes.txt"


def test_bars_a_table_advice_a_page_and_json_and_a_second_run_trains_nothing(graph, tmp_path):
    order = (graph[0], "--labels", graph[1], *METHODS, "-o", tmp_path / "out")
    first = compare(*order)
    assert first.exit_code == 0, first.stderr
    assert first.stderr.splitlines()[0] == "trainings: 4; those for links are without the held-out edges"
    for words in ("classes: Macro-F1", "clusters: NMI", "links: AUC by cosine or AUC by link scorer", "█", "seconds"):
        assert words in first.stdout
    record = json.loads((tmp_path / "out" / "compare.json").read_text(encoding="utf-8"))
    assert record["advice"] == first.stdout.splitlines()[-1]
    assert record["advice"].startswith("Take ")
    assert {len(one["measures"]) for one in record["tasks"]["classify"]["standings"]} == {2}
    assert (tmp_path / "out" / "compare.html").stat().st_size > 0
    assert f"wrote {tmp_path / 'out' / 'compare.html'} and {tmp_path / 'out' / 'compare.json'}" in first.stdout
    assert "\x1b" not in first.stdout + first.stderr
    again = compare(*order)
    assert again.stdout == first.stdout
    assert again.stderr.splitlines()[1:] == [f"finished earlier, in {tmp_path / 'out' / 'trainings'}: 4 of them"]


def test_without_labels_links_alone_are_compared_and_nothing_is_written(graph, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    result = compare(graph[0], "--methods", "attributes", "--dim", "8", "--runs", "1")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.startswith("graph 'town' has no labels")
    assert "classes" not in result.stdout
    assert result.stdout.splitlines()[-1].startswith("Take attributes for links (AUC by cosine .")
    assert list((tmp_path / "empty").iterdir()) == []


def test_where_every_method_fails_the_reason_is_told_and_the_exit_code_is_1(graph):
    result = compare(
        graph[0], "--labels", graph[1], "--task", "cluster", "--methods", "attributes", "--time-limit", "0.001"
    )
    assert result.exit_code == 1
    assert result.stderr.splitlines()[0] == "trainings: 3"
    assert result.stdout.splitlines()[-1].startswith("No method could be trained")


def test_mistakes_are_told(graph):
    assert "method 'atributes' is unknown" in compare(graph[0], "--methods", "atributes").stderr
    assert "there is no task 'links' (did you mean 'link'?)" in compare(graph[0], "--task", "links").stderr
    assert "task 'classify' needs labels" in compare(graph[0], "--task", "classify,link").stderr
    assert compare(graph[0], "--labels", "nowhere.txt").exit_code == 2
    assert f"'{graph[1]}' is not a folder that can be written to" in compare(graph[0], "-o", graph[1]).stderr


def test_bars_fit_a_narrow_terminal_and_are_as_long_as_the_scores(capsys, monkeypatch):
    def standing(method, *scores, **rest):
        measures = {"auc_of_cosines": Repeats(scores), "scorer_auc": Repeats(scores)}
        return Standing(method, measures, "auc_of_cosines", seconds=Repeats((1.5,) * len(scores)), **rest)

    standings = [
        standing("propagated-attributes", 0.9, 1.0),
        standing("smoothed-attributes", 0.72, 0.73, level=True),
        standing("line", 0.4, 0.4),
        Standing("pte", failure="graph 'x' has no attributes, which pte learns from; " * 3),
    ]
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    show_bars(TASKS["link"], standings)
    show_measures(TASKS["link"], standings)
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines if "█" in line or "own" in line) <= 100  # colour codes are counted too
    first, second, third = (line for line in lines if "±" in line and "mean" not in line)
    assert first.count("█") == 27
    assert "≈ smoothed-attributes" in second
    assert second.count("█") == 13
    assert third.count("█") == 0
    assert any("failed" in line for line in lines)


def test_a_file_of_labels_is_taken_for_what_it_holds(tmp_path):
    graph = load("stdlib")
    (tmp_path / "tags.txt").write_text("json\ttext\njson\tfiles\ncsv\ttext\n")
    (tmp_path / "classes.txt").write_text("json\ttext\ncsv\tfiles\n")
    same, several = choose_labels(graph, str(tmp_path / "tags.txt"), [], from_table=False)
    assert isinstance(several, MultiLabels)
    assert (len(several), several.counts.sum(), same is graph) == (len(graph), 3, True)
    relabelled, targets = choose_labels(graph, str(tmp_path / "classes.txt"), [], from_table=False)
    assert targets is None
    assert sorted(set(relabelled.labels.tolist())) == ["", "files", "text"]


def test_labels_of_a_table_may_be_numbers(small_graph):
    sizes = {name: f"{at / 7:.3f}" for at, name in enumerate(small_graph.ids.tolist())}
    graph = small_graph.relabelled(sizes)
    _, numbers = choose_labels(graph, None, ["regress"], from_table=True)
    np.testing.assert_allclose(numbers, np.arange(12) / 7, atol=1e-3)
    assert choose_labels(graph, None, ["classify"], from_table=True)[1] is None
    assert choose_labels(graph, None, [], from_table=False)[0] is graph
