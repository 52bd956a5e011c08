"""Test scripts/tune_all.py, which searches parameters of the paper's competitors and writes them to a file."""

import argparse
from pathlib import Path

import pytest

from neural_brane.experiments.tune import Tuned, grid, parse, tuned
from neural_brane.methods import METHODS

ROOT = Path(__file__).parents[3]


@pytest.fixture
def script(load_script):
    """Return the script as a module."""
    return load_script("tune_all")


def test_every_competitor_is_searched_on_every_graph_of_the_paper(script):
    searches = script.searches()
    methods = {method for _, method in searches}
    competitors = {
        "deepwalk",
        "line",
        "node2vec",
        "nnmf",
        "deepwalk+nnmf",
        "graphsage",
        "pte",
        "tadw",
        "aane",
        "graph2gauss",
    }
    assert methods == {name for name in competitors if grid(METHODS[name])}
    assert {dataset for dataset, method in searches if method == "pte"} == {
        "citeseer", "arnetminer", "caltech36", "reed98",
    }  # fmt: skip
    assert {method for dataset, method in searches if dataset == "arnetminer-15753"} == {"deepwalk", "line", "node2vec"}
    assert {(data, name) for data, some in tuned().items() for name in some} <= set(searches)


def test_an_entry_is_added_or_replaced_and_the_others_stay(script):
    text = "# a comment\n\n" + Tuned({"l2": 0.1}, 0.5, 4).as_toml("tadw", "citeseer")
    found = Tuned({"l2": 0.2}, 0.6, 4, 3, "0123")
    more = script.updated(text, "citeseer", "line", found)
    assert more.startswith("# a comment\n\n[citeseer.line]\n")
    assert list(parse(more)["citeseer"]) == ["line", "tadw"]
    assert parse(more)["citeseer"]["tadw"].parameters == {"l2": 0.1}
    again = script.updated(more, "citeseer", "tadw", found)
    assert parse(again)["citeseer"] == {"line": found, "tadw": found}
    assert script.updated(again, "citeseer", "tadw", found) == again


def test_a_search_writes_what_it_finds_and_is_made_once(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "PATH", tmp_path / "tuned.toml")
    monkeypatch.setattr(script, "grid", lambda method: {"dim": [2, 8]})
    script.PATH.write_text("# a comment\n")
    options = argparse.Namespace(jobs=1, device="cpu", folder=tmp_path / "kept")
    best = script.search("stdlib", "attributes", options)
    text = script.PATH.read_text()
    entry = parse(text)["stdlib"]["attributes"]
    assert entry.parameters == best.parameters == {"dim": 8}
    assert (entry.candidates, entry.runs, len(entry.seen)) == (2, 3, 16)
    times = {path: path.stat().st_mtime_ns for path in options.folder.iterdir()}
    script.search("stdlib", "attributes", options)
    assert {path: path.stat().st_mtime_ns for path in options.folder.iterdir()} == times
    assert script.PATH.read_text() == text
