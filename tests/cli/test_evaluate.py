import json

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.embedding import Embedding


@pytest.fixture
def files(tmp_path):
    """Return a folder with vectors that separate two classes, and a label file in another order."""
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
    assert "60 nodes, 2 classes; mean ± sd of 10 random splits, seed 0; C = 1" in result.stdout


def test_json_stands_alone_and_says_what_was_scored(files):
    result = evaluate(files / "v.npz", "--labels", files / "labels.txt", "--json", "--splits", 3)
    record = json.loads(result.stdout)
    found = record["classification"]
    assert [score["train"] for score in found["scores"]] == [0.3, 0.5, 0.7]
    assert len(found["scores"][0]["macro_f1"]["splits"]) == 3
    assert (record["nodes"], record["dim"], found["classes"]) == (60, 3, ["left", "right"])
    assert record["missing"] == record["unlabelled"] == {"count": 0, "examples": []}
    assert record["provenance"] == {"method": "by hand"}


def test_the_order_of_the_file_changes_nothing(files):
    vectors = Embedding.load(files / "v.npz")
    noisy = vectors.vectors + 12 * np.random.default_rng(1).normal(size=(60, 3)).astype(np.float32)
    Embedding(noisy, vectors.ids).save(files / "a.npz")
    Embedding(noisy[::-1], vectors.ids[::-1]).save(files / "b.tsv")
    found = [evaluate(files / name, "--labels", files / "labels.txt", "--json") for name in ("a.npz", "b.tsv")]
    first, second = (json.loads(result.stdout)["classification"]["scores"] for result in found)
    assert first == second
    assert 0.5 < first[0]["macro_f1"]["mean"] < 1


def test_shares_can_be_chosen(files):
    result = evaluate(files / "v.npz", "--labels", files / "labels.txt", "--train", 0.1, "--train", 0.9, "--json")
    assert [score["train"] for score in json.loads(result.stdout)["classification"]["scores"]] == [0.1, 0.9]


def test_missing_and_extra_nodes_are_reported(files):
    with open(files / "labels.txt", "a") as file:
        file.write("stranger\tleft\n")
    result = evaluate(files / "v.npz", "--labels", files / "labels.txt")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: 1 of 61 labelled nodes have no vector, such as 'stranger'")
    (files / "fewer.txt").write_text("".join((files / "labels.txt").read_text().splitlines(keepends=True)[20:]))
    result = evaluate(files / "v.npz", "--labels", files / "fewer.txt", "--allow-missing")
    assert "left out: 20 nodes that have a vector and no label, such as n" in result.stdout
    assert "left out: 1 nodes that have a label and no vector, such as stranger" in result.stdout
    result = evaluate(files / "v.npz", "--labels", files / "fewer.txt", "--allow-missing", "--json")
    record = json.loads(result.stdout)
    assert record["missing"] == {"count": 1, "examples": ["stranger"]}
    assert record["unlabelled"]["count"] == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gone.npz", "--labels", "labels.txt"], "gone.npz: no such file"),
        (["v.npz", "--labels", "nothing-of-the-sort"], "nothing-of-the-sort"),
        (["v.npz", "--labels", "labels.txt", "--train", "1.5"], "train=1.5"),
        (["v.npz", "--labels", "other.txt"], "id in common"),
        (["v.npz", "--labels", "graph.npz"], "graph.npz"),
        (["v.npz"], "--labels"),
        (["v.npz", "--held-out", "labels.txt", "--task", "clustering"], "--task clustering"),
        (["v.npz", "--labels", "labels.txt", "--task", "links"], "--task links needs --held-out"),
        (["v.npz", "--labels", "labels.txt", "--task", "clustering", "--held-out", "x.npz"], "--held-out x.npz"),
        (["v.npz", "--labels", "labels.txt", "--C", "many"], "--C many"),
        (["v.npz", "--labels", "labels.txt", "--C", "0"], "C=0.0 makes no sense"),
        (["v.npz", "--labels", "labels.txt", "--splits-from", "gone.json"], "gone.json: no such file"),
        (["v.npz", "--labels", "labels.txt", "--splits-from", "gone.json", "--splits", "3"], "leave out --splits"),
        (["v.npz", "--labels", "labels.txt", "--ids", "labels.txt"], "contains its ids"),
        (["v.npz", "--labels", "same.txt"], "1 different label"),
        (["v.npz", "--labels", "same.txt", "--task", "clustering"], "1 different label"),
        (["v.npz", "--labels", "alone.txt"], "class 'lonely'"),
        (["nan.npz", "--labels", "labels.txt"], "vector 4 holds NaN or infinity in float32; give finite numbers"),
        (["nan.npz", "--labels", "labels.txt", "--task", "clustering"], "vector 4 holds NaN"),
        (["bare.npy", "--labels", "labels.txt"], "--ids"),
    ],
)
def test_mistakes_are_described_without_a_traceback(arguments, message, files, monkeypatch):
    monkeypatch.chdir(files)
    (files / "other.txt").write_text("1\tleft\n2\tright\n")
    (files / "graph.npz").write_text("not a graph")
    (files / "same.txt").write_text("".join(f"n{i}\tleft\n" for i in range(60)))
    (files / "alone.txt").write_text("".join(f"n{i}\t{'lonely' if i == 7 else i % 2}\n" for i in range(60)))
    vectors = Embedding.load(files / "v.npz")
    np.save(files / "bare.npy", vectors.vectors)
    Embedding(np.where(np.arange(60)[:, None] == 3, np.nan, vectors.vectors), vectors.ids).save(files / "nan.npz")
    result = evaluate(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr


def test_labels_of_a_graph_file(files):
    from neural_brane.files.graphs.formats import write_graph
    from neural_brane.graph import AttributedGraph

    names = Embedding.load(files / "v.npz").ids
    labels = np.array(["left" if i % 2 else "right" for i in range(60)])
    edges = np.stack([names, np.roll(names, 1)], axis=1)
    write_graph(AttributedGraph.from_edges(edges, labels=labels, ids=names), files / "g.npz")
    result = evaluate(files / "v.npz", "--labels", files / "g.npz", "--json")
    assert json.loads(result.stdout)["classification"]["scores"][0]["macro_f1"]["mean"] == 1.0
    write_graph(AttributedGraph.from_edges(edges, ids=names), files / "plain.npz")
    result = evaluate(files / "v.npz", "--labels", files / "plain.npz")
    assert "this graph has no labels; give a label file" in result.stderr


def test_labels_of_a_content_file(files):
    lines = [f"n{i}\t{i % 5}\t1\t{'left' if i % 2 else 'right'}\n" for i in range(60)]
    (files / "g.content").write_text("".join(lines))
    (files / "g.cites").write_text("n0\tn1\nn1\tn2\n")
    result = evaluate(files / "v.npz", "--labels", files / "g.content", "--json")
    assert json.loads(result.stdout)["classification"]["scores"][2]["macro_f1"]["mean"] == 1.0


def test_labels_of_a_dataset_by_name(files):
    from neural_brane import load

    graph = load("stdlib")
    one_hot = (graph.labels[:, None] == graph.classes).astype(np.float32)
    Embedding(9 * one_hot[::-1], graph.ids[::-1]).save(files / "s.parquet")
    result = evaluate(files / "s.parquet", "--labels", "stdlib", "--json", "--splits", 2)
    assert json.loads(result.stdout)["classification"]["scores"][1]["micro_f1"]["mean"] == 1.0


def test_vectors_made_by_gensim(files):
    models = pytest.importorskip("gensim.models")
    vectors = Embedding.load(files / "v.npz")
    written = models.KeyedVectors(3)
    written.add_vectors(vectors.ids.tolist()[::-1], vectors.vectors[::-1])
    written.save_word2vec_format(str(files / "v.txt"))
    written.save_word2vec_format(str(files / "v.bin"), binary=True)
    whole = evaluate(files / "v.npz", "--labels", files / "labels.txt", "--json", "--task", "all", "--splits", 2)
    for name in ("v.txt", "v.bin"):
        result = evaluate(files / name, "--labels", files / "labels.txt", "--json", "--task", "all", "--splits", 2)
        for task in ("classification", "clustering"):
            assert json.loads(result.stdout)[task] == json.loads(whole.stdout)[task]


def test_a_bare_array_with_ids_and_by_row_number(files):
    vectors = Embedding.load(files / "v.npz")
    np.save(files / "bare.npy", vectors.vectors)
    (files / "ids.txt").write_text("\n".join(vectors.ids) + "\n")
    named = evaluate(files / "bare.npy", "--ids", files / "ids.txt", "--labels", files / "labels.txt", "--splits", 2)
    assert "1.0000 ± 0.0000" in named.stdout
    assert "row" not in named.stdout
    (files / "numbers.txt").write_text("".join(f"{i}\t{'left' if i % 2 else 'right'}\n" for i in range(60)))
    by_number = [files / "bare.npy", "--labels", files / "numbers.txt", "--splits", 2]
    numbered = evaluate(*by_number)
    assert "1.0000 ± 0.0000" in numbered.stdout
    assert "--ids" in numbered.stdout
    record = json.loads(evaluate(*by_number, "--json").stdout)
    assert record["ids"] == "row numbers"


def test_vectors_have_one_length_unless_they_are_to_stay_as_they_are(files):
    vectors = Embedding.load(files / "v.npz")
    Embedding(vectors.vectors / 1000, vectors.ids).save(files / "short.npz")
    arguments = ("--labels", files / "labels.txt", "--splits", 2)
    whole, short, plain = (
        json.loads(evaluate(files / name, *arguments, *more, "--json").stdout)["classification"]
        for name, more in (("v.npz", ()), ("short.npz", ()), ("short.npz", ("--as-they-are",)))
    )
    assert whole["scores"] == short["scores"] != plain["scores"]
    assert "C = 1, vectors at root-mean-square length 5" in evaluate(files / "v.npz", *arguments).stdout
    assert "C = 1, vectors as they are" in evaluate(files / "v.npz", *arguments, "--as-they-are").stdout


def test_clustering(files):
    result = evaluate(files / "v.npz", "--labels", files / "labels.txt", "--task", "clustering", "--starts", 3)
    assert any(line.split() == ["1.0000"] * 3 for line in result.stdout.splitlines())
    assert (
        "60 nodes, 2 classes; k-means with one cluster per class, best of 3 starts by inertia, seed 0" in result.stdout
    )
    assert "Macro-F1" not in result.stdout


def test_tasks_may_be_repeated(files):
    arguments = ["--task", "clustering", "--task", "classification", "--json", "--splits", 2]
    record = json.loads(evaluate(files / "v.npz", "--labels", files / "labels.txt", *arguments).stdout)
    assert record["clustering"]["nmi"] == 1.0
    assert record["classification"]["scores"][0]["macro_f1"]["mean"] == 1.0
    assert "links" not in record


def test_the_penalty_can_be_chosen(files):
    arguments = ["--C", "cv", "--splits", 1, "--train", 0.5]
    result = evaluate(files / "v.npz", "--labels", files / "labels.txt", *arguments)
    assert "C by cross-validation: " in result.stdout
    record = json.loads(evaluate(files / "v.npz", "--labels", files / "labels.txt", *arguments, "--json").stdout)
    assert (record["classification"]["C"], len(record["classification"]["scores"][0]["C"])) == ("cv", 1)


def test_saved_splits_are_the_same_for_labels_in_another_order(files):
    vectors = Embedding.load(files / "v.npz")
    noisy = vectors.vectors + 12 * np.random.default_rng(1).normal(size=(60, 3)).astype(np.float32)
    Embedding(noisy, vectors.ids).save(files / "noisy.npz")
    (files / "sorted.txt").write_text("".join(sorted((files / "labels.txt").read_text().splitlines(keepends=True))))
    scores = {}
    for labels, option in (("labels.txt", "--save-splits"), ("sorted.txt", "--splits-from"), ("sorted.txt", None)):
        chosen = [option, files / "s.json"] if option else []
        result = evaluate(files / "noisy.npz", "--labels", files / labels, "--json", "--train", 0.5, *chosen)
        scores[labels, option] = json.loads(result.stdout)["classification"]["scores"]
    saved, read, fresh = scores.values()
    assert saved == read
    assert saved != fresh
