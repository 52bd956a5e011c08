import os
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane import METHODS
from neural_brane.cli.app import app
from neural_brane.embedding import Embedding
from neural_brane.explore.view import View


@pytest.fixture
def files(small_graph, tmp_path):
    """Return a folder with a graph, its vectors and a model."""
    small_graph.save(tmp_path / "graph.npz")
    model = METHODS["propagated-attributes"](dim=4, seed=0).fit(small_graph)
    model.embedding_.save(tmp_path / "v.npz")
    model.save(tmp_path / "m.brane")
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, ["explore", *map(str, words)])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["absent.npz"], "no such file"),
        (["v.npz", "absent.tsv"], "no such file"),
        (["graph.npz"], "is a graph, not vectors"),
        (["v.npz", "--graph", "absent.txt"], "neither a file nor a dataset"),
        (["v.npz", "--graph", "stdlib"], "are not in the graph"),
        (["v.npz", "fewer.npz"], "have different nodes"),
        (["v.npz", "--labels", "x.txt"], "--graph"),
        (["v.npz", "--layout", "absent.tsv"], "no such file"),
        (["v.npz", "--layout", "v.npz"], "two numbers for each node"),
        (["v.npz", "--html", "map.txt"], ".html"),
        (["notes.txt"], "error"),
    ],
)
def test_wrong_and_mismatched_files_are_told_before_a_page_opens(files, words, said, monkeypatch):
    monkeypatch.chdir(files)
    (files / "notes.txt").write_text("these are no vectors\n")
    Embedding(np.ones((3, 2)), ["ann", "bob", "cat"]).save(files / "fewer.npz")
    monkeypatch.setattr("webbrowser.open", lambda _: pytest.fail("a page was opened"))
    result = run(*words, "--no-open")
    assert result.exit_code == 2, result.output
    assert said in result.stderr


def test_the_page_is_written_as_one_file(files):
    result = run(files / "v.npz", "--graph", files / "graph.npz", "--layout", "pca", "--html", files / "map.html")
    assert result.exit_code == 0, result.stderr
    assert "wrote a map of 12 nodes" in result.stdout
    assert "left out of the file: the vectors themselves" in result.stdout
    assert "<!doctype html>" in (files / "map.html").read_text()


def test_the_page_does_not_overwrite_what_it_reads(files):
    os.rename(files / "v.npz", files / "v.html")
    result = run(files / "v.html", "--html", files / "v.html")
    assert result.exit_code == 2
    assert "would be overwritten" in result.stderr


def shown(monkeypatch, *words):
    """Return the view that a command would serve."""
    seen = []
    monkeypatch.setattr("neural_brane.cli.explore.serve", lambda view, *_: seen.append(view))
    result = run(*words)
    assert result.exit_code == 0, result.output
    view = seen[0]
    assert isinstance(view, View)
    return view


def test_a_model_brings_its_graph_and_its_reasons(files, monkeypatch, small_graph):
    view = shown(monkeypatch, files / "m.brane")
    assert view.about()["edges"] == small_graph.edges
    row = view.nodes.rows["cat"]
    told = view.reasons(row)
    explained = view.runs[0].model.explain("cat", top=8)
    assert told["attributes"] == [[name, share] for name, share in explained.attributes]
    ids = view.nodes.ids
    assert [ids[row] for row, _ in told["neighbours"]] == [node for node, _ in explained.neighbours]
    assert [ids[one["row"]] for one in told["suggested"]] == [one.id for one in view.runs[0].model.suggest("cat", 8)]
    assert shown(monkeypatch, files / "v.npz").reasons(0) == {}
    assert shown(monkeypatch, files / "v.npz", "--model", files / "m.brane").reasons(row) == told


def test_a_model_of_other_nodes_is_refused(files):
    Embedding(np.ones((2, 2)), ["ann", "zoe"]).save(files / "strange.npz")
    result = run(files / "strange.npz", "--model", files / "m.brane", "--no-open")
    assert result.exit_code == 2
    assert "1 of the 2 nodes, such as 'zoe'" in result.stderr


@pytest.mark.slow
def test_a_dataset_is_learned_from(monkeypatch):
    view = shown(monkeypatch, "synthetic:60")
    assert len(view.nodes) == 60
    assert view.runs[0].name == "neural-brane"
    assert view.about()["has_graph"]


def test_it_serves_until_ctrl_c(files):
    code = "from neural_brane.cli import main; main()"
    words = ["explore", "v.npz", "--graph", "graph.npz", "--layout", "pca", "--no-open"]
    process = subprocess.Popen([sys.executable, "-u", "-c", code, *words], cwd=files, stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().split()[-1]
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{address}api/about", timeout=20) as answer:  # noqa: S310
            assert b'"nodes": 12' in answer.read()
        process.send_signal(signal.SIGINT)
        assert "the page is closed" in process.communicate(timeout=30)[0]
        assert process.returncode == 0
    finally:
        process.kill()
