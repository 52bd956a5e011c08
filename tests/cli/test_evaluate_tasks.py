import json

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.embedding import Embedding


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return a folder with vectors of two directions, and classes, tags and numbers that they predict exactly."""
    rng = np.random.default_rng(0)
    has = rng.random((60, 2)) < 0.7
    has[~has.any(axis=1), 0] = True
    size = rng.random(60)
    names = [f"n{node}" for node in range(60)]
    vectors = np.column_stack([np.where(has, 5.0, -5.0), size])
    Embedding(vectors, names).save(tmp_path / "v.npz")
    tags = [[tag for tag, own in zip(("net", "text"), row, strict=True) if own] for row in has]
    (tmp_path / "lines.txt").write_text(
        "".join(f"{n}\t{tag}\n" for n, own in zip(names, tags, strict=True) for tag in own)
    )
    (tmp_path / "tags.csv").write_text(
        "name,tags,size,first\n"
        + "".join(f"{n},{';'.join(own)},{s},{own[0]}\n" for n, own, s in zip(names, tags, size, strict=True))
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluate(*arguments):
    return CliRunner().invoke(app, ["evaluate", "v.npz", *map(str, arguments)])


def test_nodes_on_several_lines_choose_the_task_and_say_so(files):
    result = evaluate("--labels", "lines.txt", "--train", 0.5, "--splits", 3)
    assert result.exit_code == 0, result.stderr
    assert "scored by multilabel" in result.stderr
    line = next(line for line in result.stdout.splitlines() if "50 %" in line)
    assert line.split()[2:] == ["1.0000", "±", "0.0000", "1.0000", "±", "0.0000"]
    assert "60 nodes, 2 labels, 1." in result.stdout
    assert "of a test node with k labels" in result.stdout


def test_a_column_of_a_table_with_a_separator_gives_the_same(files):
    first = evaluate("--labels", "lines.txt", "--json", "--splits", 2)
    second = evaluate("--labels", "tags.csv", "--id", "name", "--label", "tags", "--json", "--splits", 2)
    third = evaluate(
        "--labels", "tags.csv", "--id", "name", "--label", "tags", "--separator", ";", "--task", "multilabel", "--json",
        "--splits", 2,
    )  # fmt: skip
    found = [json.loads(result.stdout)["multilabel"] for result in (first, second, third)]
    assert found[0] == found[1] == found[2]


def test_numbers_are_predicted_and_stay_classes_when_asked(files):
    table = ("--labels", "tags.csv", "--id", "name", "--label", "size")
    result = evaluate(*table, "--train", 0.5)
    assert result.exit_code == 0, result.stderr
    assert "scored by regression" in result.stderr
    assert "60 numbers, " in result.stdout
    record = json.loads(evaluate(*table, "--task", "regression", "--train", 0.5, "--json").stdout)
    assert record["regression"]["scores"][0]["spearman"]["mean"] > 0.99
    assert "only one node" in evaluate(*table, "--task", "classification").stderr


def test_retrieval_beside_chance(files):
    table = ("--labels", "tags.csv", "--id", "name")
    result = evaluate(*table, "--label", "first", "--task", "retrieval", "--k", 1, "--k", 5)
    assert result.exit_code == 0, result.stderr
    assert "hits are nodes that have the same class, nearest by cosine" in result.stdout
    record = json.loads(evaluate("--labels", "lines.txt", "--task", "all", "--k", 5, "--json").stdout)
    assert record.keys() >= {"multilabel", "retrieval"}
    (score,) = record["retrieval"]["scores"]
    assert score["precision"] == 1.0 > score["chance_precision"]
    sampled = evaluate(*table, "--label", "first", "--task", "retrieval", "--queries", 9)
    assert "9 queries, drawn with seed 0" in sampled.stdout


def test_divisions_are_kept_for_all_tasks(files):
    evaluate("--labels", "lines.txt", "--save-splits", "s.json", "--splits", 2)
    table = ("--labels", "tags.csv", "--id", "name", "--label", "size", "--train", 0.5, "--json")
    kept, drawn = evaluate(*table, "--splits-from", "s.json"), evaluate(*table, "--splits", 2)
    assert json.loads(kept.stdout)["regression"] == json.loads(drawn.stdout)["regression"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--label", "size", "--task", "retrieval"], "--task retrieval"),
        (["--label", "size", "--stratify"], "--stratify"),
        (["--label", "tags", "--task", "multilabel", "--C", "cv"], "--C cv"),
        (
            ["--label", "tags", "--task", "multilabel", "--task", "regression"],
            "--task multilabel and --task regression",
        ),
        (["--label", "first", "--task", "retrieval", "--k", "60"], "at most 59"),
        (["--label", "first", "--task", "regression"], "is not a number"),
    ],
)
def test_mistakes_are_described(arguments, message, files):
    result = evaluate("--labels", "tags.csv", "--id", "name", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
