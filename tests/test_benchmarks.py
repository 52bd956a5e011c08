"""The parts of the benchmarks that decide what is computed and what is said of it."""

import importlib
import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """A function that gives a script of benchmarks/ as a module."""
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module
    for name in ("quality", "growth"):
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


def test_a_cell_of_other_parameters_is_computed_again(script, tmp_path):
    quality = script("quality")
    path = tmp_path / "cells.json"
    kept = [cell("attributes", "stdlib", [0, 0, 0], dim=150), cell("attributes", "stdlib", [7, 7, 7], seed=1)]
    wanted = {("stdlib", "attributes", 0): {"dim": 4}, ("stdlib", "attributes", 1): {}}
    cells = quality.fill(kept, "method", wanted, path, 1)
    assert [one["seed"] for one in cells] == [1, 0]
    assert cells[0]["macro_f1"] == [7, 7, 7]
    assert cells[1]["parameters"] == {"dim": 4}
    assert 0 < min(cells[1]["macro_f1"]) < 1
    assert json.loads(path.read_text())["cells"] == cells
    path.unlink()
    assert quality.fill(cells, "method", wanted, path, 1) == cells
    assert not path.exists()


def test_growth_is_a_slope_of_logarithms(script):
    growth = script("growth")
    assert growth.slope([10, 100, 1000], [3.0, 30.0, 300.0]) == 1.0
    assert growth.slope([10, 100], [1.0, 100.0]) == 2.0
    runs = [("a", 10, 1.0), ("a", 100, 1.0), ("a", 1000, 100.0), ("b", 10, 1.0)]
    cells = [{"method": m, "nodes": n, "seconds": s, "peak_mb": 5} for m, n, s in runs]
    assert growth.summarise(cells) == [{"method": "a", "exponent": 1.0, "late": 2.0, "memory": 0.0}]


def test_finished_runs_are_not_repeated_and_a_timeout_only_with_more_time(script, tmp_path, monkeypatch):
    growth = script("growth")
    ran = []

    def run(method, nodes, path, timeout):
        ran.append((method, nodes))
        base = {"method": method, "nodes": nodes}
        return base | ({"timeout": timeout} if nodes > 10 else {"seconds": 1.0, "peak_mb": 1})

    monkeypatch.setattr(growth, "run", run)
    monkeypatch.setattr(growth.subprocess, "run", lambda *arguments, **rest: None)
    path = tmp_path / "growth.json"
    cells = growth.fill([], ["a"], [10, 20, 30], 5.0, path)
    assert ran == [("a", 10), ("a", 10), ("a", 20)]  # the first compiles; nothing larger than what did not end
    ran.clear()
    assert growth.fill(json.loads(path.read_text())["cells"], ["a"], [10, 20], 5.0, path) == cells
    assert ran == []
    growth.fill(cells, ["a"], [10, 20], 6.0, path)
    assert ran == [("a", 20), ("a", 20)]
    assert growth.describe(cells[-1]) == "> 5 s"
    assert "| a | 1.0 s, 1 MB | > 6 s |" in path.with_suffix(".md").read_text()
