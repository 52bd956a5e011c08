import json

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane import read
from neural_brane.cli.app import app
from neural_brane.embedding import Embedding


def brane(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def files(tmp_path):
    """Return a folder with the training graph, the pairs to predict, and vectors of the whole and training graphs."""
    result = brane("split-edges", "stdlib", "-o", tmp_path / "train.npz", "--held-out", tmp_path / "pairs.npz")
    assert result.exit_code == 0, result.stderr
    assert "wrote 2,485 edges of 554 nodes to" in result.stdout
    assert "wrote 276 other edges and 276 pairs without an edge to" in result.stdout
    for source, name in ((tmp_path / "train.npz", "v.npz"), ("stdlib", "seen.npz")):
        options = ["--method", "attributes", "--seed", 0, "--set", "dim=16"]
        assert brane("embed", source, *options, "-o", tmp_path / name).exit_code == 0
    return tmp_path


def test_links_from_the_graph_to_the_score(files):
    result = brane("evaluate", files / "v.npz", "--held-out", files / "pairs.npz")
    assert result.exit_code == 0, result.stderr
    cosine, evidence = (
        float(line.split()[-2]) for line in result.stdout.splitlines() if line.split()[:1] in (["cosine"], ["all"])
    )
    assert 0.7 < cosine < 0.95
    assert 0.9 < evidence < 0.98
    assert "276 held-out edges against 276 pairs without an edge" in result.stdout
    assert "make sure" not in result.stdout


def test_vectors_that_saw_the_edges_are_refused(files):
    result = brane("evaluate", files / "seen.npz", "--held-out", files / "pairs.npz")
    assert result.exit_code == 2
    assert "were trained on the full graph, which contains the held-out edges" in result.stderr


def test_vectors_made_elsewhere_are_scored_with_a_warning(files):
    Embedding.load(files / "v.npz").save(files / "v.txt")
    result = brane("evaluate", files / "v.txt", "--held-out", files / "pairs.npz")
    assert "held-out edges" in result.stdout


def test_all_tasks_at_once(files):
    options = ["--labels", "stdlib", "--task", "all", "--splits", 1, "--train", 0.5, "--json"]
    record = json.loads(brane("evaluate", files / "v.npz", "--held-out", files / "pairs.npz", *options).stdout)
    assert {"classification", "clustering", "links"} <= set(record)
    assert record["links"]["verified"] is True
    assert record["links"]["similarity"] == "cosine"


def test_nodes_without_a_vector(files):
    whole = Embedding.load(files / "v.npz")
    ids = np.append(whole.ids[3:], "stranger")
    Embedding(np.vstack([whole.vectors[3:], np.ones((1, 16))]), ids).save(files / "cut.tsv")
    result = brane("evaluate", files / "cut.tsv", "--held-out", files / "pairs.npz")
    assert "3 of 554 nodes of the graph have no vector, such as" in result.stderr
    result = brane("evaluate", files / "cut.tsv", "--held-out", files / "pairs.npz", "--allow-missing")
    assert "3 nodes of the graph have no vector" in result.stdout
    assert "left out: 1 vectors of nodes" in result.stdout


def test_the_share_and_the_seed_can_be_chosen(tmp_path):
    found = []
    for seed in (0, 1):
        options = ["-o", tmp_path / f"t{seed}.npz", "--held-out", tmp_path / "p.npz", "--share", 0.5, "--seed", seed]
        assert brane("split-edges", "stdlib", *options).exit_code == 0
        found.append(read(tmp_path / f"t{seed}.npz"))
    assert found[0].edges == found[1].edges == 2761 - 1380
    assert found[0].digest() != found[1].digest()
    result = brane("split-edges", "stdlib", "-o", tmp_path / "t.npz", "--held-out", tmp_path / "p.npz", "--share", 2)
    assert (result.exit_code, "share=2.0 of 2761 edges" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("output", "held_out", "message"),
    [
        (
            "train.txt",
            "pairs.npz",
            "train.txt: ",
        ),
        ("train.npz", "pairs", "pairs: "),
        ("train.npz", "./train.npz", "--held-out train.npz is also written as --output"),
    ],
)
def test_both_files_are_checked_before_the_graph_is_read(output, held_out, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = brane("split-edges", "no-such-graph", "-o", output, "--held-out", held_out)
    assert result.exit_code == 2
    assert message in result.stderr
    assert list(tmp_path.iterdir()) == []
