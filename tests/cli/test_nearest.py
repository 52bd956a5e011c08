import json

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.embedding import Embedding


@pytest.fixture
def files(tmp_path, small_graph):
    """Return a folder with the graph of twelve people and vectors in which their two circles are far apart."""
    rng = np.random.default_rng(0)
    side = np.array([name >= "gus" for name in small_graph.ids.tolist()])
    Embedding(rng.normal(size=(12, 4)) + 9 * np.c_[side, ~side, side, side], small_graph.ids).save(tmp_path / "v.npz")
    small_graph.save(tmp_path / "g.npz")
    (tmp_path / "labels.txt").write_text("ann\ttown\ngus\tclub\n")
    return tmp_path


def nearest(*arguments):
    return CliRunner().invoke(app, ["nearest", *map(str, arguments)])


def test_a_table_for_each_node(files):
    result = nearest(files / "v.npz", "ann", "gus", "-k", 3)
    assert result.exit_code == 0, result.stderr
    expected = Embedding.load(files / "v.npz").nearest(["ann", "gus"], k=3)
    lines = [line.split() for line in result.stdout.splitlines()]
    for node, cosine in [*expected[0], *expected[1]]:
        assert [node, f"{cosine:.4f}"] in lines
    assert ["ann"] in lines
    assert ["gus"] in lines


def test_labels_and_attributes_stand_beside(files):
    record = json.loads(nearest(files / "v.npz", "ann", "--graph", files / "g.npz", "-k", 11, "--json").stdout)
    assert (record[0]["id"], record[0]["label"]) == ("ann", "town")
    known = {one["id"]: one for one in record[0]["nearest"]}
    assert known["cat"]["attributes"] == ["opera", "chess", "tea"]  # rarer attributes come first
    assert known["joy"]["attributes"] == ["beer", "tea"]  # larger amounts come first
    assert known["ian"]["attributes"] == []
    shown = nearest(files / "v.npz", "bob", "--graph", files / "g.npz").stdout
    assert "bob (town; chess)" in shown
    assert any(line.split()[-3:] == ["opera,", "chess,", "tea"] for line in shown.splitlines())
    labelled = nearest(files / "v.npz", "bob", "--labels", files / "labels.txt", "-k", 11, "--json")
    assert {one["label"] for one in json.loads(labelled.stdout)[0]["nearest"]} == {"town", "club", None}


def test_integers_and_other_formats(tmp_path):
    (tmp_path / "v.txt").write_text("3 2\n7 1 0\n-8 1 1\n9 0 1\n")
    record = json.loads(nearest(tmp_path / "v.txt", "7", "-k", 1, "--json").stdout)
    assert record == [{"id": 7, "nearest": [{"id": -8, "cosine": 0.707107}]}]
    assert "no node 'x' here" in nearest(tmp_path / "v.txt", "x").stderr


def test_an_index_is_kept_and_asked(files):
    pytest.importorskip("faiss", reason="install faiss-cpu to build an index")
    first = nearest(files / "v.npz", "ann", "--index", files / "v.faiss", "--json")
    assert "wrote" in first.stderr
    again = nearest(files / "v.npz", "ann", "--index", files / "v.faiss", "--json")
    assert json.loads(again.stdout) == json.loads(first.stdout)
    exact = json.loads(nearest(files / "v.npz", "ann", "--json").stdout)
    assert [one["id"] for one in json.loads(again.stdout)[0]["nearest"]] == [one["id"] for one in exact[0]["nearest"]]
    whole = Embedding.load(files / "v.npz")
    whole[:5].save(files / "few.npz")
    assert "other nodes" in nearest(files / "few.npz", "ann", "--index", files / "v.faiss").stderr
    Embedding(-whole.vectors, whole.ids).save(files / "other.npz")
    assert "other vectors" in nearest(files / "other.npz", "ann", "--index", files / "v.faiss").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["anne"], "no node 'anne' here; ids are strings, such as 'ann', 'bob', 'cat'; did you mean 'ann'?"),
        (["ann", "-k", "0"], "k=0 makes no sense"),
        (["ann", "--index", "i.faiss", "--center"], "--center"),
        (["ann", "--graph", "stdlib", "--labels", "stdlib"], "has its own labels"),
        (["ann", "--attributes", "words.txt"], "give --graph too"),
        (["ann", "--index", "i.txt"], ".faiss"),
    ],
)
def test_what_cannot_be_answered(files, arguments, message):
    result = nearest(files / "v.npz", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_centred(files):
    whole = Embedding.load(files / "v.npz")
    record = json.loads(nearest(files / "v.npz", "ann", "--center", "--json").stdout)
    assert [one["id"] for one in record[0]["nearest"]] == [node for node, _ in whole.nearest("ann", center=True)]
