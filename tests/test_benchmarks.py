"""Test the parts of the benchmarks that choose the trainings and judge the results."""

import importlib
import json
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from neural_brane import METHODS, PropagatedAttributes, load, synthetic
from neural_brane.experiments.compute import FinishedCall
from neural_brane.experiments.store import Training
from neural_brane.experiments.tune import Tuned

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script of benchmarks/."""
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module
    for name in ("quality", "published", "shelf", "growth", "spectral", "defaults", "inductive", "update"):
        sys.modules.pop(name, None)


def cell(method, dataset, scores, seed=0, **parameters):
    return {
        "dataset": dataset, "method": method, "seed": seed, "macro_f1": scores, "seconds": 2.0,
        "parameters": parameters,
    }  # fmt: skip


def test_methods_are_set_beside_the_papers_cell(script):
    quality = script("quality")
    cells = [
        cell("deepwalk", "citeseer", [0.5, 0.5, 0.50]),
        cell("deepwalk", "citeseer", [0.5, 0.5, 0.5036], seed=1),
        cell("attributes", "citeseer", [0.1, 0.1, 0.1]),
    ]
    deepwalk, attributes = quality.summarise(cells, ["citeseer"], ["deepwalk", "attributes"], "method")
    assert deepwalk["difference"][-1] == pytest.approx(0.5018 - 0.5318)
    assert (deepwalk["seeds"], attributes["difference"]) == (2, None)
    assert not quality.short(deepwalk | {"difference": [0.0, 0.0, -0.0299]})
    assert quality.short(deepwalk | {"difference": [0.0, 0.0, -0.0301]})
    assert not quality.short(attributes)
    assert quality.methods_markdown([deepwalk, attributes]).splitlines()[2:] == [
        "| deepwalk | .502 (.532) |",
        "| attributes | .100 |",
    ]


def test_recipes_and_methods_are_trained_with_their_seeds_and_settings(script, monkeypatch):
    quality = script("quality")
    monkeypatch.setattr(quality, "tuned", lambda: {"cora": {"tadw": Tuned({"l2": 0.5}, 0.6, 3)}})
    options = Namespace(kind="method", seeds=2, datasets=["cora", "stdlib"], names=["tadw"], untuned=False)
    found = [(one.method, one.dataset, one.seed, one.parameters) for one in quality.plan(options)]
    assert found[:2] == [("tadw", "cora", 0, {"l2": 0.5}), ("tadw", "stdlib", 0, {})]
    assert [seed for _, _, seed, _ in found] == [0, 0, 1, 1]
    options.untuned = True
    assert {str(one.parameters) for one in quality.plan(options)} == {"{}"}
    options.kind, options.names = "recipe", ["released"]
    assert {(one.method, one.parameters["recipe"]) for one in quality.plan(options)} == {("neural-brane", "released")}


def test_a_finished_training_becomes_a_cell(script):
    quality = script("quality")
    record = {
        "macro_f1": {"0.3": [0.1, 0.3], "0.5": [0.4], "0.7": [0.5]}, "loss": [0.7, 0.123456], "seconds": 1.26,
        "data": {"digest": "ff"},
    }  # fmt: skip
    tadw = quality.as_cell(Training("tadw", {"l2": 0.5}, "cora", 3, {}), record, "method")
    assert tadw == {
        "dataset": "cora", "method": "tadw", "seed": 3, "macro_f1": [0.2, 0.4, 0.5], "parameters": {"l2": 0.5},
        "seconds": 1.3, "digest": "ff",
    }  # fmt: skip
    ours = quality.as_cell(Training("neural-brane", {"recipe": "paper"}, "cora", 3, {}), record, "recipe")
    assert (ours["recipe"], ours["losses"]) == ("paper", [0.7, 0.12346])
    assert ours["parameters"]["dim"] == 150
    assert None not in ours["parameters"].values()


def test_new_scores_replace_those_of_the_same_training_and_no_others(script):
    quality = script("quality")
    old = [cell("tadw", "cora", [1, 1, 1]), cell("tadw", "cora", [1, 1, 1], seed=1), cell("aane", "cora", [1, 1, 1])]
    new = cell("tadw", "cora", [2, 2, 2], seed=1)
    assert quality.merge(old, [new], "method") == [old[0], new, old[2]]


def test_growth_is_a_slope_of_logarithms(script):
    growth = script("growth")
    assert growth.slope([10, 100, 1000], [3.0, 30.0, 300.0]) == 1.0
    assert growth.slope([10, 100], [1.0, 100.0]) == 2.0
    runs = [("a", 10, 1.0), ("a", 100, 1.0), ("a", 1000, 100.0), ("b", 10, 1.0)]
    cells = [{"method": m, "nodes": n, "seconds": s, "peak_mb": 5} for m, n, s in runs]
    assert growth.summarise(cells) == [{"method": "a", "exponent": 1.0, "late": 2.0, "memory": 0.0}]


def test_a_method_is_measured_until_it_meets_the_timeout_and_earlier_runs_are_replaced(script, tmp_path, monkeypatch):
    growth = script("growth")
    ran = []

    def alone(function, task, timeout=None):
        nodes = task[1] if function is growth.make else int(task[1].stem)
        ran.append((function.__name__, nodes))
        late = function is growth.measure and nodes > 10
        return FinishedCall(task, {"seconds": 1.0, "peak_mb": 1}, growth.OUT_OF_TIME if late else "")

    monkeypatch.setattr(growth, "alone", alone)
    earlier = [{"method": name, "nodes": 10, "seconds": 9.0, "peak_mb": 9} for name in ("tadw", "aane")]
    *_, cells = growth.fill(earlier, "synthetic", ["tadw"], [10, 20, 30], 5.0)
    # The first run compiles, and after a timeout no larger graph is run.
    assert ran == [("make", 10), ("measure", 10), ("measure", 10), ("make", 20), ("measure", 20)]
    assert cells == [
        earlier[1],
        {"method": "tadw", "nodes": 10, "seconds": 1.0, "peak_mb": 1},
        {"method": "tadw", "nodes": 20, "timeout": 5.0},
    ]
    path = tmp_path / "growth.json"
    growth.write(cells, "synthetic", path)
    assert json.loads(path.read_text())["cells"] == cells
    assert "| tadw | 1.0 s, 1 MB | > 5 s |" in path.with_suffix(".md").read_text()


def test_a_training_of_the_shelf_is_not_made_again_for_growth(script, monkeypatch):
    growth = script("growth")
    record = {"data": {"edges": 7}, "processor_seconds": 1.234, "peak_mb": 99.6}
    monkeypatch.setattr(growth.Store, "get", lambda _, training: record if training.method == "tadw" else None)
    monkeypatch.setattr(growth, "alone", lambda *_: pytest.fail("nothing is measured"))
    *_, cells = growth.fill([], "debian-packages", ["tadw"], [95_277], 5.0)
    assert cells == [{"method": "tadw", "nodes": 95_277, "edges": 7, "seconds": 1.23, "peak_mb": 100}]
    assert growth.on_the_shelf("debian-packages", "aane", 95_277) is None
    assert growth.on_the_shelf("debian-packages", "tadw", 1_000) is None


def test_the_reference_in_double_precision_finds_the_same_directions(script):
    graph = load("stdlib")
    ours = PropagatedAttributes(dim=8, seed=0).fit(graph).values_
    assert script("spectral").reference(graph, 8)[::-1] == pytest.approx(ours, rel=0.01)


def test_each_is_judged_by_its_best_round_beside_the_reference(script, monkeypatch):
    spectral = script("spectral")
    seconds = iter([30.0, 4.0, 20.0, 5.0])
    monkeypatch.setattr(spectral, "contenders", lambda: ["reference", "cpu"])
    monkeypatch.setattr(spectral, "run", lambda _, tasks, jobs: [FinishedCall(tasks[0], {"seconds": next(seconds)})])
    assert spectral.compare("stdlib", 8, rounds=2) == {
        "reference": {"seconds": 20.0, "speedup": 1.0},
        "cpu": {"seconds": 4.0, "speedup": 5.0},
    }


def test_the_default_is_judged_beside_the_best_of_every_graph(script):
    defaults = script("defaults")

    def one(f1, nmi, link):
        return {"macro_f1_5": [f1 - 0.1], "macro_f1": [f1], "nmi": [nmi], "link": [link]}

    cells = {
        "neural-brane": {"a": one(0.8, 0.5, 0.9), "b": one(0.7, 0.5, 0.9)},
        "tadw": {"a": one(0.805, 0.4, 0.8), "b": one(0.6, 0.4, 0.8)},
        "attributes": {"a": one(0.5, 0.1, 0.6), "b": one(0.73, 0.1, 0.6)},
    }
    sentences = defaults.verdicts(cells, ["a", "b"])
    best = "the best or within 0.01 of it on"
    assert sentences[0].startswith(f"Macro-F1 at 5 %: {best} 1 of 2 graphs.")
    assert sentences[3] == f"Macro-F1 at 50 %: {best} 1 of 2 graphs. b: attributes is 0.030 ahead"
    assert sentences[4] == "Macro-F1 at 50 %: mean 0.7500; the best other method, tadw, has 0.7025"
    assert sentences[5] == "Macro-F1 at 50 %: the smallest lead over 'attributes' is -0.030, on b"
    assert sentences[6] == f"NMI: {best} 2 of 2 graphs."


def test_runs_of_several_machines_are_kept_once_each_and_shown_together(script, tmp_path):
    inductive = script("inductive")
    here, there = ({"processor": name, "cores": 2, "memory_gb": 8} for name in ("a", "b"))

    def row(seed, both, links, machine):
        scores = {"transductive": 0.8, "both": both, "attributes": 0.5, "links": links}
        one = {"graph": "cora", "hidden": 0.1, "method": "m", "seed": seed}
        return one | {"scores": scores, "device": "cpu", "machine": machine}

    path = tmp_path / "inductive.json"
    assert inductive.keep([], path) == []
    inductive.keep([row(1, 0.7, 0.4, here), row(0, 0.1, None, here)], path)
    rows = inductive.keep([row(0, 0.74, None, there)], path)
    assert [(one["seed"], one["scores"]["both"]) for one in rows] == [(0, 0.74), (1, 0.7)]
    assert inductive.read(path) == rows
    (line,) = inductive.summarise(rows)
    assert line[:9] == ["cora", "10%", "m", "0.800", "0.720", "0.500", "0.400", "90.0%", "2"]
    assert len(line) == 11  # two machines
    (line,) = inductive.summarise([row(0, None, None, here)])
    assert line[4:8] == ["—", "0.500", "—", "—"]


def test_a_row_of_updates_replaces_that_of_the_same_graph(script, tmp_path):
    update = script("update")
    path = tmp_path / "update.json"
    row = {"graph": "cora", "method": "m", "share": 0.01, "runs": [1]}
    update.keep(row, path)
    update.keep(row | {"graph": "acm"}, path)
    assert [one["runs"] for one in update.keep(row | {"runs": [2]}, path)] == [[1], [2]]


@pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning")
def test_a_run_of_updates_measures_every_column_and_earlier_runs_have_dashes(script):
    update = script("update")
    run = update.run("propagated-attributes", synthetic(400, classes=2, seed=1), 0.05, seed=0)
    assert tuple(run) == update.COLUMNS
    assert run["cosine"] > 0.95
    assert update.means([{"fresh s": 2.0}, {"fresh s": 4.0}]) == ["3.000"] + ["—"] * (len(update.COLUMNS) - 1)


def test_a_published_figure_is_compared_in_its_own_task(script):
    published = script("published")
    labels = np.array(["a"] * 30 + ["b"] * 12 + [""] * 3)
    splits, share = published.few_of_each(labels, 5, seed=0)
    known = labels[labels != ""]
    for learned, tested in splits.parts(share):
        assert sorted(known[learned]) == ["a"] * 5 + ["b"] * 5
        assert len(tested) == 32
    figure = {"method": "attributes", "dataset": "stdlib", "parameters": {"dim": 16}, "train": 0.5, "C": 1.0}
    figure |= {"measure": "micro_f1", "value": 0.5}
    run = published.score(*published.find_graph("stdlib", None), figure, 0)
    rows = published.summarise([run, run | {"seed": 1, "micro_f1": 0.0}, run | {"train": 0.3}], [figure])
    assert (rows[0]["seeds"], rows[0]["ours"]) == (2, pytest.approx(run["micro_f1"] / 2))
    assert published.short(rows[0]) == (rows[0]["difference"] < -0.03)


def test_a_fixed_division_chooses_the_penalty_by_one_part_and_is_scored_by_another(script, tmp_path, monkeypatch):
    published = script("published")
    graph = synthetic(60, classes=3, seed=0)
    parts = {"train": graph.ids[:30], "validation": graph.ids[30:45], "test": graph.ids[45:55]}
    path = tmp_path / "divisions.json"
    path.write_text(json.dumps({graph.name: {name: ids.tolist() for name, ids in parts.items()}}))
    monkeypatch.setattr(published, "DIVISIONS", path)
    calls = []

    def classify(vectors, labels, *, train, splits, C, as_they_are):
        assert as_they_are  # as in the published experiments
        ((learned, predicted),) = splits.parts(*train)
        known = np.flatnonzero(labels)
        calls.append((known[learned].tolist(), known[predicted].tolist(), C))
        micro = Namespace(mean=1.0 if C in (0.1, 10.0) else 0.5)
        return Namespace(scores=[Namespace(micro=micro)])

    monkeypatch.setattr(published, "classify", classify)
    published.classify_divided(np.zeros((60, 2)), graph)
    assert [call[2] for call in calls] == [*published.PENALTIES, 0.1]
    assert all(call[:2] == (list(range(30)), list(range(30, 45))) for call in calls[:-1])
    assert calls[-1][:2] == (list(range(30)), list(range(45, 55)))


def test_graphs_of_files_have_several_labels_a_node(script, tmp_path):
    published = script("published")
    (tmp_path / "tiny.ungraph").write_text("0\t1\n1\t2\n2\t1\n")
    (tmp_path / "tiny.cmty").write_text("0\t2\n2\n")
    graph, labels = published.find_graph("tiny", tmp_path)
    assert (len(graph), graph.edges) == (3, 2)
    assert labels.toarray().tolist() == [[1, 0], [0, 0], [1, 1]]
    assert published.find_graph("nowhere", tmp_path) is None


def test_every_published_figure_says_what_it_is_of(script):
    for figure in script("published").read_figures():
        method = METHODS[figure["method"]](**figure["parameters"])
        assert method.parameters_in_force()
        assert figure["measure"] in ("micro_f1", "macro_f1")
        assert (figure["train"] == "planetoid") == (figure["C"] == "validation")
        assert 0 < figure["value"] < 1
        assert figure["source"]


def test_a_training_that_did_not_end_is_told_on_the_shelf(script):
    shelf = script("shelf")
    (some,) = shelf.plan("debian-packages", ["tadw"], 1).values()
    assert some[0].scoring["classes"] == {"train": [0.1], "splits": 1, "C": 1.0}
    records = {}
    store = Namespace(get=lambda training: records.get("links" in training.scoring))
    assert shelf.figures(store, some, "out of time") == {"failure": "out of time"}
    records[False] = {"macro_f1": {"0.1": [0.5, 0.7]}, "nmi": 0.2, "processor_seconds": 3.0, "peak_mb": 9.0}
    known = {"macro_f1": [0.6], "nmi": [0.2], "processor_seconds": [3.0], "peak_mb": [9.0]}
    assert shelf.figures(store, some, "out of time") == known
    records[True] = {"auc_of_cosines": 0.8, "scorer_auc": 0.9}
    assert shelf.figures(store, some, "") == known | {"cosine": [0.8], "link": [0.9]}
    assert shelf.brief({"failure": "out of time"}, "nmi") == "-"
    assert shelf.brief({"nmi": [0.2, 0.4]}, "nmi") == ".300"
