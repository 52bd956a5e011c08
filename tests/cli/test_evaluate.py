import json

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.embedding import Embedding


@pytest.fixture
def files(tmp_path):
    """Vectors that tell two classes apart, and a label file in another order."""
    rng = np.random.default_rng(0)
    names = np.array([f"n{i}" for i in range(60)])
    side = np.arange(60) % 2
    Embedding(rng.normal(size=(60, 3)) + 12 * side[:, None] - 6, names, {"method": "by hand"}).save(tmp_path / "v.npz")
    lines = [f"{names[i]}\t{'left' if side[i] else 'right'}\n" for i in rng.permutation(60)]
    (tmp_path / "labels.txt").write_text("".join(lines))
    return tmp_path


def evaluate(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def test_a_table_of_both_scores_at_each_share(files):
    result = evaluate(files / "v.npz", "--labels", files / "labels.txt")
    assert result.exit_code == 0, result.stderr
    for share in ("30 %", "50 %", "70 %"):
        line = next(line for line in result.stdout.splitlines() if share in line)
        assert line.split()[2:] == ["1.0000", "±", "0.0000", "1.0000", "±", "0.0000"]
    assert "60 nodes, 2 classes; mean ± sd of 10 random splits, seed 0" in result.stdout


def test_json_stands_alone_and_says_what_was_scored(files):
    result = evaluate(files / "v.npz", "--labels", files / "labels.txt", "--json", "--splits", 3)
    record = json.loads(result.stdout)
    assert [score["train"] for score in record["scores"]] == [0.3, 0.5, 0.7]
    assert len(record["scores"][0]["macro_f1"]["splits"]) == 3
    assert (record["nodes"], record["dim"], record["classes"]) == (60, 3, ["left", "right"])
    assert record["provenance"] == {"method": "by hand"}


def test_the_order_of_the_file_changes_nothing(files):
    vectors = Embedding.load(files / "v.npz")
    noisy = vectors.vectors + 12 * np.random.default_rng(1).normal(size=(60, 3)).astype(np.float32)
    Embedding(noisy, vectors.ids).save(files / "a.npz")
    Embedding(noisy[::-1], vectors.ids[::-1]).save(files / "b.tsv")
    found = [evaluate(files / name, "--labels", files / "labels.txt", "--json") for name in ("a.npz", "b.tsv")]
    first, second = (json.loads(result.stdout)["scores"] for result in found)
    assert first == second
    assert 0.5 < first[0]["macro_f1"]["mean"] < 1


def test_shares_can_be_chosen(files):
    result = evaluate(files / "v.npz", "--labels", files / "labels.txt", "--train", 0.1, "--train", 0.9, "--json")
    assert [score["train"] for score in json.loads(result.stdout)["scores"]] == [0.1, 0.9]


def test_missing_and_extra_nodes_are_reported(files):
    with open(files / "labels.txt", "a") as file:
        file.write("stranger\tleft\n")
    result = evaluate(files / "v.npz", "--labels", files / "labels.txt")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: 1 of 61 labelled nodes have no vector, such as 'stranger'")
    (files / "fewer.txt").write_text("".join((files / "labels.txt").read_text().splitlines(keepends=True)[20:]))
    result = evaluate(files / "v.npz", "--labels", files / "fewer.txt", "--allow-missing")
    assert "left out: 20 nodes that have a vector and no label" in result.stdout
    assert "left out: 1 nodes that have a label and no vector" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.npz", "--labels", "labels.txt"], "gone.npz: no such file"),
        (["v.npz", "--labels", "nothing-of-the-sort"], "nothing-of-the-sort"),
        (["v.npz", "--labels", "labels.txt", "--train", "1.5"], "train=1.5"),
        (["v.npz", "--labels", "other.txt"], "no id in common"),
        (["v.npz", "--labels", "graph.npz"], "graph.npz"),
    ],
)
def test_mistakes_are_described_without_a_traceback(arguments, message, files, monkeypatch):
    monkeypatch.chdir(files)
    (files / "other.txt").write_text("1\tleft\n2\tright\n")
    (files / "graph.npz").write_text("not a graph")
    result = evaluate(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr


def test_labels_of_a_graph_file(files):
    from neural_brane.graph import AttributedGraph
    from neural_brane.io import write_graph

    names = Embedding.load(files / "v.npz").ids
    labels = np.array(["left" if i % 2 else "right" for i in range(60)])
    edges = np.stack([names, np.roll(names, 1)], axis=1)
    write_graph(AttributedGraph.from_edges(edges, labels=labels, ids=names), files / "g.npz")
    result = evaluate(files / "v.npz", "--labels", files / "g.npz", "--json")
    assert json.loads(result.stdout)["scores"][0]["macro_f1"]["mean"] == 1.0
    write_graph(AttributedGraph.from_edges(edges, ids=names), files / "plain.npz")
    result = evaluate(files / "v.npz", "--labels", files / "plain.npz")
    assert "this graph has no labels; give a label file" in result.stderr


def test_labels_of_a_content_file(files):
    lines = [f"n{i}\t{i % 5}\t1\t{'left' if i % 2 else 'right'}\n" for i in range(60)]
    (files / "g.content").write_text("".join(lines))
    (files / "g.cites").write_text("n0\tn1\nn1\tn2\n")
    result = evaluate(files / "v.npz", "--labels", files / "g.content", "--json")
    assert json.loads(result.stdout)["scores"][2]["macro_f1"]["mean"] == 1.0


def test_labels_of_a_dataset_by_name(files):
    from neural_brane import load

    graph = load("stdlib")
    one_hot = (graph.labels[:, None] == graph.classes).astype(np.float32)
    Embedding(9 * one_hot[::-1], graph.ids[::-1]).save(files / "s.parquet")
    result = evaluate(files / "s.parquet", "--labels", "stdlib", "--json", "--splits", 2)
    assert json.loads(result.stdout)["scores"][1]["micro_f1"]["mean"] == 1.0
