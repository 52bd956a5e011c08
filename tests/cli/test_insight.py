"""`brane explain`, `brane suggest` and `brane cluster` print the results of the library."""

import json

import pytest
from typer.testing import CliRunner

from neural_brane import Embedding, PropagatedAttributes, load, load_model
from neural_brane.cli.app import app


def brane(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reasons")
    model = PropagatedAttributes(dim=16, seed=0).fit(load("stdlib"))
    model.save(folder / "m.brane")
    model.embedding_.save(folder / "v.npz")
    return folder


def test_explain_prints_what_the_model_says(files):
    model = load_model(files / "m.brane")
    told = json.loads(brane("explain", files / "m.brane", "json", "--top", 3, "--json").stdout)
    assert told == model.explain("json", top=3).as_dict()
    pair = json.loads(brane("explain", files / "m.brane", "json", "pickle", "--json").stdout)
    assert pair["similarity"] == pytest.approx(model.explain("json", "pickle").similarity)
    shown = brane("explain", files / "m.brane", "json", "pickle").stdout
    assert "cosine of json and pickle" in shown
    assert "by part: own attributes" in shown


def test_suggest_prints_likely_links_and_reasons(files):
    told = json.loads(brane("suggest", files / "m.brane", "json.decoder", "-k", 2, "--json").stdout)
    assert told == [one.as_dict() for one in load_model(files / "m.brane").suggest("json.decoder", 2)]
    assert "both linked to" in brane("suggest", files / "m.brane", "json.decoder").stdout


def test_cluster_prints_names_and_writes_assignments(files, tmp_path):
    output = tmp_path / "clusters.csv"
    shown = brane("cluster", files / "v.npz", "--graph", "stdlib", "-k", 5, "-o", output)
    assert "554 nodes in 5 clusters" in shown.stdout
    found = Embedding.load(files / "v.npz").clusters(5)
    lines = output.read_text().splitlines()
    assert lines[0] == "id,cluster"
    assert lines[1:] == [f"{node},{at}" for node, at in zip(found.ids, found.assignments, strict=True)]
    told = json.loads(brane("cluster", files / "v.npz", "-k", 5, "--json").stdout)
    assert [one["size"] for one in told["clusters"]] == [one.size for one in found]


def test_what_is_wrong_is_said_in_a_line(files, tmp_path):
    for arguments, message in (
        (("explain", files / "m.brane", "nothing"), "no node 'nothing' here"),
        (("suggest", files / "m.brane", "json", "-k", 0), "k=0 makes no sense"),
        (("cluster", files / "v.npz", "-o", tmp_path / "c.txt"), ".csv"),
    ):
        result = brane(*arguments)
        assert result.exit_code == 2
        assert message in result.stderr


def test_a_table_of_nodes_names_clusters_and_stands_beside_the_nearest(tmp_path):
    names = [f"n{at}" for at in range(20)]
    vectors = [[1.0, at / 100] if at < 10 else [at / 100, 1.0] for at in range(20)]
    Embedding(vectors, names).save(tmp_path / "v.npz")
    rings = [f"{names[at]},{names[10 * (at // 10) + (at + 1) % 10]}" for at in range(20)]
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *rings]))
    colours = [f"{name},{'red' if at < 10 else 'blue'}" for at, name in enumerate(names)]
    (tmp_path / "people.csv").write_text("\n".join(["id,colour", *colours]))
    graph = ("--graph", tmp_path / "edges.csv", "--nodes", tmp_path / "people.csv")
    told = json.loads(brane("cluster", tmp_path / "v.npz", *graph, "-k", 2, "--json").stdout)
    assert {one["attributes"][0]["attribute"] for one in told["clusters"]} == {"colour=red", "colour=blue"}
    near = json.loads(brane("nearest", tmp_path / "v.npz", "n0", *graph, "-k", 1, "--json").stdout)
    assert near[0]["nearest"][0]["attributes"] == ["colour=red"]
    assert "give --graph too" in brane("nearest", tmp_path / "v.npz", "n0", *graph[2:]).stderr


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("nearest", "m.brane", "json"), "is a model, not vectors"),
        (("cluster", "v.npz", "--graph", "m.brane"), "is a model, not a graph"),
        (("cluster", "v.npz", "--graph", "v.npz"), "found vectors, expected a graph"),
        (("explain", "v.npz", "json"), "is not a model; 'brane embed SOURCE"),
        (("suggest", "empty.brane", "json"), "is empty; fit the method again"),
        (("nearest", "empty.npz", "json"), "is empty; write the vectors again"),
        (("nearest", "v.npz", "JSN"), "did you mean 'json'"),
        (("suggest", "m.brane", "jsn"), "did you mean 'json'"),
    ],
)
def test_the_wrong_file_and_the_wrong_id_are_told_from_the_right_ones(files, monkeypatch, command, message):
    monkeypatch.chdir(files)
    for name in ("empty.npz", "empty.brane"):
        (files / name).touch()
    assert message in brane(*command).stderr
