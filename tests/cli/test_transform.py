"""Models on the command line: `brane embed --save-model`, `brane transform` and `brane update`."""

import shutil

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from neural_brane import Embedding, load_model, read
from neural_brane.cli.app import app

SHORT = ["--epochs", "2", "--set", "batches_per_epoch=5", "--dim", "8", "--seed", "1"]
pytestmark = [
    pytest.mark.filterwarnings("ignore:.* columns of these vectors are zero:UserWarning"),
    pytest.mark.filterwarnings("ignore::neural_brane.errors.UntrainedWarning"),
]


def brane(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def done(*words):
    result = brane(*words)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a folder with a ring of twenty people as tables, two more people, and a model with its vectors."""
    folder = tmp_path_factory.mktemp("ring")
    names = [f"p{at}" for at in range(20)]
    tables = {
        "edges": pl.DataFrame({"from": names, "to": names[1:] + names[:1]}),
        "people": pl.DataFrame({"name": names, "age": [20 + at % 5 for at in range(20)], "team": list("abcd") * 5}),
        "new_edges": pl.DataFrame({"from": ["zoe"], "to": ["p3"]}),
        "new_people": pl.DataFrame({"name": ["zoe", "yan"], "age": [21, 24], "team": ["a", "d"]}),
    }
    for name in ("edges", "people"):
        tables[f"all_{name}"] = pl.concat([tables[name], tables[f"new_{name}"]])
    for name, table in tables.items():
        table.write_csv(folder / f"{name}.csv")
    written = ("--save-model", folder / "m.brane", "-o", folder / "v.npz")
    said = done("embed", folder / "edges.csv", "--nodes", folder / "people.csv", *written, *SHORT)
    assert "wrote 20 x 8 vectors to" in said
    assert "and the model to" in said
    return folder


@pytest.fixture
def model(trained, tmp_path, monkeypatch):
    """Copy the folder of the model; the command runs in the copy."""
    shutil.copytree(trained, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here" / "m.brane"


def test_the_model_is_that_of_the_vectors(model):
    np.testing.assert_array_equal(load_model(model).embedding_.vectors, Embedding.load("v.npz").vectors)


def test_a_model_alone_can_be_written(model):
    assert done("embed", "edges.csv", "--save-model", "alone.brane", *SHORT).startswith(
        "wrote the model to alone.brane"
    )
    assert len(load_model("alone.brane").embedding_.ids) == 20


def test_new_nodes_come_as_a_table_as_links_or_as_both(model):
    links, people = read("new_edges.csv"), pl.read_csv("new_people.csv")
    table = ("--nodes", "new_people.csv")
    for words, given, made in (
        (table, people, "made from: attributes 2\nwrote 2 x 8 vectors to new.npz"),
        (("new_edges.csv",), links, "made from: links 1, known 1\nwrote 2 x 8"),
        (
            ("new_edges.csv", *table),
            (pl.read_csv("new_edges.csv"), people),
            "made from: attributes and links 1, known 1, attributes 1",
        ),
    ):
        assert made in done("transform", "m.brane", *words, "-o", "new.npz")
        expected, found = load_model(model).transform(given), Embedding.load("new.npz")
        assert found.ids.tolist() == expected.ids.tolist()
        np.testing.assert_array_equal(found.vectors, expected.vectors)


GROWN = ("update", "m.brane", "all_edges.csv", "--nodes", "all_people.csv")


def test_a_model_continues_on_a_graph_that_has_grown(model):
    said = done(*GROWN, "--save-model", "m2.brane", "-o", "v2.npz")
    assert "wrote 22 x 8 vectors to v2.npz (" in said
    assert ") and the model to m2.brane (" in said
    vectors, updated, kept = Embedding.load("v2.npz"), load_model("m2.brane"), load_model(model)
    np.testing.assert_array_equal(updated.embedding_.vectors, vectors.vectors)
    assert {"zoe", "yan"} < set(vectors.ids.tolist())
    assert updated.provenance()["updated"]["times"] == vectors.provenance["updated"]["times"] == 1
    assert "updated" not in kept.provenance()  # the file of the first model is unchanged
    np.testing.assert_array_equal(kept.update(updated.graph_).embedding_.vectors, vectors.vectors)


def test_a_model_can_be_updated_in_its_own_file_time_and_again(model):
    for times in (1, 2):
        done(*GROWN, "--save-model", "m.brane")
        assert load_model(model).provenance()["updated"]["times"] == times


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("embed", "edges.csv"), "--output"),
        (("embed", "edges.csv", "--save-model", "m.txt"), ".brane"),
        (("embed", "edges.csv", "--save-model", "x.brane", "-o", "x.brane"), "--output"),
        (("update", "m.brane", "edges.csv"), "--output"),
        (("update", "m.brane", "edges.csv", "-o", "m.brane"), "MODEL"),
        (("transform", "m.brane", "-o", "new.npz"), "--nodes"),
        (("transform", "m.brane", "edges.csv", "-o", "edges.csv"), "SOURCE"),
        (("transform", "gone.brane", "edges.csv", "-o", "new.npz"), "gone.brane"),
    ],
)
def test_contradictions_are_refused_before_the_work(model, words, reason):
    before = {path: path.stat().st_mtime_ns for path in model.parent.iterdir()}
    result = brane(*words)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert {path: path.stat().st_mtime_ns for path in model.parent.iterdir()} == before


def test_a_method_that_cannot_transform_is_named(model):
    done("embed", "edges.csv", "--method", "nnmf", "--dim", "4", "--save-model", "n.brane")
    result = brane("transform", "n.brane", "new_edges.csv", "-o", "new.npz")
    assert result.exit_code == 2
    assert "nnmf" in result.stderr
